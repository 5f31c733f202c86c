"""Released libraries, whole: what was published, what a plain count finds, and some in which nothing is to be found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from opwalker import pipeline
from opwalker.model.walk import Implementation, KernelsResult, Op, Walk
from opwalker.views.kernels import list_kernels
from opwalker.views.walk import WalkView
from tests.e2e.conftest import Ask
from tests.e2e.counting import helper_ops, kernels, library_ops, pybind_functions
from tests.notation.schema_samples import equal_to_dispatcher

ORACLES = Path(__file__).resolve().parents[2] / "fixtures" / "oracles"
NAMESPACES = ("_C", "_C_cache_ops", "_moe_C", "_C_custom_ar", "_C_cuda_utils", "_flashkda_C")


class Library:
    """A released library, indexed once; what is asked of it is kept."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self._session = pipeline.Session(pipeline.Options(source=str(root), cache=cache))

    @cached_property
    def ops(self) -> dict[str, Op]:
        """Every op by its name."""
        return {op.name: op for op in self._session.ops().ops}

    @cached_property
    def walks(self) -> dict[str, Walk]:
        """The walk of every op, without its Python callers."""
        view = WalkView(self._session.workbench, self._session.source)
        return {name: view.walk(op) for name, op in self.ops.items()}

    @cached_property
    def reached(self) -> set[str]:
        """The names of the kernels that some op reaches."""
        found = (each for walk in self.walks.values() for each in walk.implementations)
        return {kernel.name for implementation in found for kernel in implementation.kernels}

    @cached_property
    def kernels(self) -> KernelsResult:
        """Every kernel and the ops that reach it."""
        return list_kernels(self._session.workbench, self._session.source, tuple(self.ops.values()), None)

    def named(self, kind: str) -> set[str]:
        """The names of all ops of one binding."""
        return {name for name, op in self.ops.items() if op.kind == kind}


@dataclass
class Shelf:
    """The libraries opened so far."""

    fetch: Callable[[str, str], Path]
    cache: Path
    opened: dict[str, Library] = field(default_factory=dict)

    def __call__(self, pinned: str) -> Library:
        if pinned not in self.opened:
            self.opened[pinned] = Library(self.fetch(*pinned.split("==")), self.cache)
        return self.opened[pinned]


@pytest.fixture(scope="session")
def shelf(released: Callable[[str, str], Path], cache: Path) -> Shelf:
    """``shelf("vllm==0.30.0")``: the library, fetched, indexed and kept for the session."""
    return Shelf(released, cache)


def short(names: set[str]) -> set[str]:
    """Names without their namespaces, which a build may set."""
    return {name.rsplit("::", 1)[-1] for name in names}


def oracle(name: str) -> dict[str, Any]:
    return json.loads((ORACLES / f"{name}.json").read_text(encoding="utf-8"))


def built_for(implementation: Any, build: str) -> bool:
    return implementation.builds is None or build in implementation.builds


def ends(walk: Walk, implementation: Implementation) -> bool:
    """Whether a path leads anywhere: to a launch, to another end, or to a gap that says why not."""
    return bool(implementation.launches or implementation.terminals or walk.gaps)


# -- vLLM 0.30.0 against its wheel -------------------------------------------------------------------------------------


@pytest.fixture
def vllm(shelf: Shelf) -> Library:
    return shelf("vllm==0.30.0")


@pytest.fixture(scope="module")
def published() -> dict[str, dict[str, Any]]:
    """The 161 ops that the wheel's modules of this source define, by name."""
    ops = {op["name"]: op for op in oracle("vllm-0.30.0")["ops"] if op["name"].split("::")[0] in NAMESPACES}
    assert len(ops) == 161
    return ops


def test_every_published_op_is_listed(vllm: Library, published: dict[str, Any]) -> None:
    assert sorted(set(published) - set(vllm.ops)) == []


def test_schemas_are_those_of_the_dispatcher(vllm: Library, published: dict[str, Any]) -> None:
    unequal = [
        (name, vllm.ops[name].schema)
        for name, op in published.items()
        if not equal_to_dispatcher(vllm.ops[name].schema or "", op["schema"])
    ]
    assert unequal == []


def test_dispatch_keys_are_those_of_the_cuda_build(vllm: Library, published: dict[str, Any]) -> None:
    unequal = {}
    for name, op in published.items():
        keys = sorted({impl.key for impl in vllm.ops[name].impls if built_for(impl, "cuda")})
        if keys != sorted(op["keys"]):
            unequal[name] = keys
    assert unequal == {}


def test_what_was_not_published_belongs_to_other_builds(vllm: Library, published: dict[str, Any]) -> None:
    """Or stands under a condition that the CUDA build need not meet."""
    others = [op for name, op in vllm.ops.items() if name.split("::")[0] in NAMESPACES and name not in published]
    assert others
    here = [op for op in others if any(built_for(definition, "cuda") for definition in op.defs)]
    assert [op.name for op in here if any(definition.condition is None for definition in op.defs)] == []


def test_namespaces_of_compiled_ops(vllm: Library) -> None:
    namespaces = {name.split("::")[0] for name in vllm.named("torch_library")}
    assert namespaces == {*NAMESPACES, "_rocm_C"}


def test_published_kernels_are_reached(vllm: Library) -> None:
    published = set(oracle("vllm-0.30.0")["kernels"])
    assert len(published) == 169
    found: dict[str, bool] = {}
    for kernel in vllm.kernels.kernels:
        name = kernel.name.replace("(anonymous namespace)", "ANON")
        names = {name, name[name.find("ANON") :]} if "ANON" in name else {name}
        for each in names & published:
            found[each] = found.get(each, False) or bool(kernel.ops)
    assert sorted(published - set(found)) == []
    unreached = {name for name, reached in found.items() if not reached}
    assert len(unreached) <= 5, sorted(unreached)
    reasons = [gap.reason.replace("(anonymous namespace)", "ANON") for gap in vllm.kernels.gaps]
    assert [name for name in sorted(unreached) if not any(f"{name}: " in reason for reason in reasons)] == []


def test_every_implementation_leads_somewhere(vllm: Library) -> None:
    lost = [
        (name, found.key)
        for name, walk in vllm.walks.items()
        for found in walk.implementations
        if not ends(walk, found)
    ]
    assert lost == []


def test_every_published_op_has_its_host_function(vllm: Library, published: dict[str, Any]) -> None:
    """Or says that the body is not in the source, as the sparse attention and the generated files are not."""
    silent = []
    for name in published:
        walk = vllm.walks[name]
        assert walk.implementations, name
        explained = any(gap.kind == "no-body" for gap in walk.gaps)
        silent += [(name, found.key) for found in walk.implementations if found.host is None and not explained]
    assert silent == []


def test_a_plain_count_finds_the_same_compiled_ops(vllm: Library) -> None:
    counted = short(library_ops(vllm.root))
    assert len(counted) > 250
    assert counted == short(vllm.named("torch_library"))


def test_a_plain_count_finds_the_same_ops_registered_through_the_helper(vllm: Library) -> None:
    counted = helper_ops(vllm.root / "vllm", "direct_register_custom_op")
    assert len(counted) > 100
    assert counted <= short(vllm.named("python"))


def test_reshape_and_cache_of_vllm(vllm: Library, ask: Ask) -> None:
    walk = ask("walk", "reshape_and_cache", "--source", vllm.root, "--json").document
    bindings = "csrc/libtorch_stable/torch_bindings.cpp"
    kernels = "csrc/libtorch_stable/cache_kernels.cu"
    assert walk["op"]["name"] == "_C_cache_ops::reshape_and_cache"
    assert (bindings, 956) in [(place["file"], place["line"]) for place in walk["op"]["defs"]]
    steps = [(step["file"], step["line"]) for step in walk["python"]]
    assert ("vllm/_custom_ops.py", 2600) in steps
    assert ("vllm/v1/attention/ops/paged_attn.py", 42) in steps
    found = next(each for each in walk["implementations"] if each["key"] == "CUDA")
    assert (found["registered_at"]["file"], found["registered_at"]["line"]) == (bindings, 1142)
    host = found["host"]
    assert (host["file"], host["line"]) == (kernels, 768)
    assert [(size["name"], size["narrowed"]) for size in host["sizes"]][:3] == [
        ("num_tokens", True),
        ("num_heads", True),
        ("head_size", True),
    ]
    assert host["parameters"][2]["shape"] == ["num_blocks", "num_heads", "head_size/x", "block_size", "x"]
    (dispatch,) = found["dispatch"]
    assert (dispatch["macro"], dispatch["line"]) == ("DISPATCH_BY_KV_CACHE_DTYPE", 794)
    assert dispatch["defined_at"]["file"] == "csrc/quantization/w8a8/fp8/nvidia/quant_utils.cuh"
    assert len(dispatch["values"]) == 9
    (launch,) = found["launches"]
    assert (launch["kernel"], launch["file"], launch["line"]) == ("vllm::reshape_and_cache_kernel", kernels, 757)
    assert launch["macros"][-1] == "CALL_RESHAPE_AND_CACHE"
    assert launch["style"].startswith("macro:triple_chevron")
    assert (launch["grid"], launch["stream"]) == ("dim3 grid(num_tokens)", "stream")
    (kernel,) = found["kernels"]
    assert (kernel["name"], kernel["file"], kernel["line"]) == ("vllm::reshape_and_cache_kernel", kernels, 265)


def test_rms_norm_of_vllm(vllm: Library, ask: Ask) -> None:
    walk = ask("walk", "torch.ops._C.rms_norm", "--source", vllm.root, "--json").document
    kernels = "csrc/libtorch_stable/layernorm_kernels.cu"
    assert walk["op"]["schema"] == "rms_norm(Tensor! result, Tensor input, Tensor? weight, float epsilon) -> ()"
    result, _, weight, epsilon = walk["op"]["arguments"]
    assert (result["mutated"], weight["optional"], epsilon["type"]) == (True, True, "float")
    found = next(each for each in walk["implementations"] if each["key"] == "CUDA")
    assert found["certainty"] == "proved"
    host = found["host"]
    assert (host["name"], host["file"], host["line"]) == ("rms_norm", kernels, 221)
    assert host["parameters"][0]["argument"] == "result"
    assert host["parameters"][0]["shape"] == ["...", "hidden_size"]
    sizes = {size["name"]: size for size in host["sizes"]}
    assert (sizes["hidden_size"]["value"], sizes["hidden_size"]["narrowed"]) == ("input.size(-1)", True)
    strides = {stride["name"]: stride for stride in host["strides"]}
    assert (strides["input_stride_d2"]["type"], strides["input_stride_d2"]["narrowed"]) == ("int64_t", False)
    assert host["checks"][0]["condition"] == "out.is_contiguous()"
    assert host["guards"][0]["of"] == "input.get_device_index()"
    assert host["contiguous_calls"][0]["tensor"] == "input"
    assert [(step["macro"], step["binds"], step["values"]) for step in found["dispatch"]] == [
        ("VLLM_STABLE_DISPATCH_RANK234", "tensor_rank", ["2", "3", "4"]),
        ("VLLM_STABLE_DISPATCH_FLOATING_TYPES", "scalar_t", ["float", "c10::Half", "c10::BFloat16"]),
        ("VLLM_STABLE_DISPATCH_VEC_SIZE", "vec_size", ["16", "8", "4", "2", "1"]),
    ]
    assert [(each["line"], each["template_arguments"]) for each in found["launches"]] == [
        (274, ["scalar_t", "vec_size", "tensor_rank", "true"]),
        (282, ["scalar_t", "vec_size", "tensor_rank", "false"]),
    ]
    (kernel,) = found["kernels"]
    assert (kernel["name"], kernel["line"]) == ("vllm::rms_norm_kernel", 15)
    assert kernel["template_parameters"] == ["typename scalar_t", "int VEC_SIZE", "int NUM_DIMS", "bool HasWeight"]
    assert [barrier["line"] for barrier in kernel["barriers"]] == [75]


# -- other libraries ---------------------------------------------------------------------------------------------------

WALKED = ["vllm==0.10.2", "xformers==0.0.35", "gptqmodel==7.7.0", "causal-conv1d==1.7.0", "torch-scatter==2.1.2"]


@pytest.mark.parametrize("pinned", WALKED)
def test_a_plain_count_finds_the_same_ops(shelf: Shelf, pinned: str) -> None:
    library = shelf(pinned)
    compiled, bound = library_ops(library.root), pybind_functions(library.root)
    assert compiled or bound
    assert short(compiled) == short(library.named("torch_library"))
    assert bound <= {name.rsplit(".", 1)[-1] for name in library.named("pybind11")}


@pytest.mark.parametrize("pinned", WALKED)
def test_every_op_is_walked(shelf: Shelf, pinned: str) -> None:
    library = shelf(pinned)
    lost = [
        (name, found.key)
        for name, walk in library.walks.items()
        for found in walk.implementations
        if not ends(walk, found)
    ]
    assert lost == []


def test_published_kernels_of_vllm_0_10_2_are_reached(shelf: Shelf) -> None:
    published = set(oracle("vllm-0.10.2")["kernels"])
    assert len(published) == 141
    assert published - shelf("vllm==0.10.2").reached == set()


def test_schemas_of_vllm_0_10_2_are_those_of_its_modules(shelf: Shelf) -> None:
    ops: dict[str, list[str]] = {}
    for name, op in shelf("vllm==0.10.2").ops.items():
        ops.setdefault(name.rsplit("::", 1)[-1], []).append(op.schema or "")
    unequal = [
        op["schema"]
        for op in oracle("vllm-0.10.2")["ops"]
        if not any(equal_to_dispatcher(ours, op["schema"]) for ours in ops.get(op["name"], ()))
    ]
    assert unequal == []


@pytest.mark.parametrize("pinned", ["causal-conv1d==1.7.0", "torch-scatter==2.1.2"])
def test_every_kernel_of_a_small_library_is_reached(shelf: Shelf, pinned: str) -> None:
    counted = kernels(shelf(pinned).root)
    assert len(counted) >= 5
    assert counted == short(shelf(pinned).reached)


# -- nothing to find ---------------------------------------------------------------------------------------------------

CONTROLS = ["torch-memory-saver==0.0.9rc3", "bitsandbytes==0.42.0", "flash-linear-attention==0.6.0"]


@pytest.mark.parametrize("pinned", CONTROLS)
def test_nothing_is_found_and_said_so(shelf: Shelf, ask: Ask, pinned: str) -> None:
    root = shelf.fetch(*pinned.split("=="))
    answer = ask("ops", "--source", root, "--json").document
    assert answer["ops"] == []
    assert answer["files_read"] > 0
    assert "TORCH_LIBRARY and its family" in answer["looked_for"]
    text = ask("ops", "--source", root)
    assert text.code == 0
    assert "no op is registered in this source; looked for" in text.out
