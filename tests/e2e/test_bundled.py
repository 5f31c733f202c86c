"""The bundled libraries: every answer on their pages, what a walk says of a function and a kernel, the text form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask
from tests.e2e.questions import questions, told

LIBRARIES = Path(__file__).resolve().parents[2] / "fixtures" / "libraries"
PAGEKIT = LIBRARIES / "pagekit"
CLASSICKIT = LIBRARIES / "classickit"

#: What a reader counts in the binding files, kind by kind.
COUNTED = {
    "pagekit": {"torch_library": 13, "python": 1},
    "classickit": {"torch_library": 9, "pybind11": 6, "tvm_ffi": 1},
}


def test_every_library_has_its_answers() -> None:
    assert {source for source, _, _ in questions(LIBRARIES)} == set(COUNTED)


@pytest.mark.parametrize(("library", "command", "answer"), questions(LIBRARIES))
def test_the_answer_is_the_one_written_down(ask: Ask, library: str, command: str, answer: str) -> None:
    assert told(ask, LIBRARIES / library, command) == answer


@pytest.mark.parametrize("library", COUNTED)
def test_ops_by_kind(ask: Ask, library: str) -> None:
    for kind, count in COUNTED[library].items():
        document = ask("ops", "--kind", kind, "--source", LIBRARIES / library, "--json").document
        assert len(document["ops"]) == count, kind
        assert {op["kind"] for op in document["ops"]} == {kind}
    assert ask("ops", "--source", LIBRARIES / library, "--json").document["ops"] != []


@pytest.mark.parametrize("library", COUNTED)
def test_no_implementation_ends_in_nothing(ask: Ask, library: str) -> None:
    source = LIBRARIES / library
    for op in ask("ops", "--source", source, "--json").document["ops"]:
        walk = ask("walk", op["name"], "--source", source, "--json").document
        for implementation in walk["implementations"]:
            assert implementation["launches"] or implementation["terminals"] or walk["gaps"], op["name"]


def short(name: str) -> str:
    """A kernel's name without its namespaces."""
    return name.rsplit("::", 1)[-1]


@pytest.mark.parametrize("library", COUNTED)
def test_every_kernel_is_found_and_reached(ask: Ask, library: str) -> None:
    source = LIBRARIES / library
    heads = re.compile(
        r"__global__[\s\w()]*?void\s+(?:__launch_bounds__\(\w+\)\s*)?(\w+)\s*\(|^ROW_KERNEL\((\w+)\)", re.M
    )
    written = set()
    for path in source.rglob("*.cu*"):
        written |= {plain or made for plain, made in heads.findall(path.read_text(encoding="utf-8"))}
    reached = set()
    for build in ("cuda", "rocm"):
        kernels = ask("kernels", "--build", build, "--source", source, "--json").document["kernels"]
        assert {short(kernel["name"]) for kernel in kernels} == written
        reached |= {short(kernel["name"]) for kernel in kernels if kernel["ops"]}
    assert reached == written


@pytest.mark.parametrize("library", COUNTED)
def test_a_kernel_says_whether_its_instances_are_all(ask: Ask, library: str) -> None:
    for kernel in ask("kernels", "--source", LIBRARIES / library, "--json").document["kernels"]:
        assert kernel["complete"] is (kernel["why_incomplete"] is None), kernel["name"]
        assert kernel["instances"] or not kernel["complete"], kernel["name"]


def test_arguments_of_a_schema(ask: Ask) -> None:
    op = ask("walk", "gate_rms_scale", "--source", PAGEKIT, "--json").document["op"]
    arguments = [(a["name"], a["type"], a["mutated"], a["default"], a["kwarg_only"]) for a in op["arguments"]]
    assert arguments == [
        ("out", "Tensor", True, None, False),
        ("work", "Tensor", True, None, False),
        ("input", "Tensor", False, None, False),
        ("weight", "Tensor", False, None, False),
        ("epsilon", "float", False, "1e-6", False),
    ]
    assert op["returns"] == []


def test_alias_and_keyword_only_arguments(ask: Ask) -> None:
    scale = ask("walk", "row_scale_", "--source", CLASSICKIT, "--json").document["op"]
    assert [(a["name"], a["alias"], a["mutated"]) for a in scale["arguments"]] == [
        ("x", "a!", True),
        ("factors", None, False),
    ]
    assert [(r["type"], r["alias"]) for r in scale["returns"]] == [("Tensor", "a!")]
    merge = ask("walk", "sorted_merge", "--source", CLASSICKIT, "--json").document["op"]
    assert [(a["name"], a["kwarg_only"], a["default"]) for a in merge["arguments"]] == [
        ("a", False, None),
        ("b", False, None),
        ("stable", True, "True"),
    ]


def test_what_a_host_function_says(ask: Ask) -> None:
    host = ask("walk", "scatter_pages", "--source", PAGEKIT, "--json").document["implementations"][0]["host"]
    rows, pages, slots, kind = host["parameters"][:4]
    assert (rows["argument"], rows["shape_text"], rows["shape_span"]["line"]) == (
        "rows",
        "[num_tokens, num_heads, head_size]",
        71,
    )
    assert pages["shape"] == ["num_pages", "page_size", "num_heads", "head_size"]
    assert slots["shape"] == ["num_tokens"]
    assert (kind["type"], kind["shape"]) == ("const std::string&", None)
    sizes = [(s["name"], s["value"], s["type"], s["narrowed"], s["line"]) for s in host["sizes"]]
    assert sizes == [
        ("num_tokens", "slots.size(0)", "const int64_t", False, 76),
        ("num_heads", "rows.size(1)", "int", True, 77),
        ("head_size", "rows.size(2)", "int", True, 78),
    ]
    strides = [(s["name"], s["value"], s["narrowed"], s["line"]) for s in host["strides"]]
    assert strides == [("row_stride", "rows.stride(0)", False, 79)]
    assert [(g["type"], g["of"], g["line"]) for g in host["guards"]] == [
        ("torch::stable::accelerator::DeviceGuard", "rows.get_device_index()", 87)
    ]


def test_checks_and_copies_of_a_host_function(ask: Ask) -> None:
    host = ask("walk", "gather_segments", "--source", CLASSICKIT, "--json").document["implementations"][0]["host"]
    assert host["checks"][0] == {
        "kind": "TORCH_CHECK",
        "condition": "offsets.scalar_type() == at::kLong",
        "message": '"offsets are 64 bits wide"',
        "line": 95,
        "words": "offsets is of type Long",
        "under": [],
        "via": None,
        "past": [],
        "compiled": None,
    }
    assert [(c["tensor"], c["line"]) for c in host["contiguous_calls"]] == [("sums", 97)]
    assert [(s["value"], s["line"]) for s in host["streams"]] == [("at::cuda::getCurrentCUDAStream()", 103)]


def test_what_a_kernel_says(ask: Ask) -> None:
    kernel = ask("walk", "topk_rows", "--source", PAGEKIT, "--json").document["implementations"][0]["kernels"][0]
    assert kernel["template_parameters"] == ["typename scalar_t", "typename index_t", "int THREADS"]
    assert kernel["launch_bounds"] == "THREADS"
    assert [p["shape_text"] for p in kernel["parameters"]] == [
        "[num_rows, k]",
        "[num_rows, k]",
        "[num_rows, row_size]",
        None,
        None,
    ]
    assert kernel["shared_memory"] == [
        "extern float row[]",
        "float best_value[THREADS / 32]",
        "int best_place[THREADS / 32]",
    ]
    assert [b["line"] for b in kernel["barriers"]] == [23, 45, 58]
    norm = ask("walk", "row_norm", "--source", CLASSICKIT, "--json").document["implementations"][0]["kernels"][0]
    assert [(a["text"], a["line"]) for a in norm["atomics"]] == [("atomicAdd(&squares, mine)", 23)]


def test_a_hasattr_guard_is_no_call(ask: Ask) -> None:
    walk = ask("walk", "split_sum", "--source", PAGEKIT, "--json").document
    guard = next(
        number
        for number, line in enumerate((PAGEKIT / "pagekit/attention/backend.py").read_text().splitlines(), 1)
        if "hasattr" in line
    )
    assert guard not in {step["line"] for step in walk["python"] if step["file"] == "pagekit/attention/backend.py"}


def test_a_registration_in_a_comment_is_none(ask: Ask) -> None:
    assert "topp_rows" in (PAGEKIT / "csrc/stable/bindings.cpp").read_text()
    assert ask("walk", "topp_rows", "--source", PAGEKIT).code == 3


def test_text_of_a_walk_reads_from_python_to_the_kernel(ask: Ask) -> None:
    out = ask("walk", "scatter_pages", "--source", PAGEKIT).out
    steps = [
        "pagekit/attention/backend.py:16",
        "pagekit/attention/pages.py:20",
        "pagekit/_custom_ops.py:33",
        "csrc/stable/bindings.cpp:43",
        "Tensor! pages",
        "csrc/stable/bindings.cpp:52",
        "csrc/stable/page_kernels.cu:70-90",
        "[num_pages, page_size, num_heads, head_size]",
        "csrc/stable/page_kernels.cu:89",
        "csrc/stable/page_kernels.cu:63",
        "csrc/stable/page_kernels.cu:22-39",
        "csrc/cpu/pages_cpu.cpp:8-23",
    ]
    places = [out.find(step) for step in steps]
    assert -1 not in places, steps[places.index(-1)]
    assert places == sorted(places)
    assert "\x1b" not in out


def test_same_question_same_bytes(ask: Ask, tmp_path: Path) -> None:
    words = ("walk", "gate_rms_scale", "--source", PAGEKIT, "--json")
    assert ask(*words).out == ask(*words).out == ask(*words, "--jobs", "1", "--cache", tmp_path).out
