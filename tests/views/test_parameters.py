"""Parameters of host functions: documented shapes from all sources, shapes from code, how they compare, and strides."""

from __future__ import annotations

import pytest

from opwalker.model.walk import ParameterFact, PythonRef, Span
from opwalker.views.parameters import is_tensor
from opwalker.views.walk import WalkView
from opwalker.views.wrapper_shapes import wrapper_shapes
from tests.views.miniatures import SOURCE, ops_of, walk_of

BIND = 'TORCH_LIBRARY(ns, m) {{ m.def("f({schema}) -> ()"); m.impl("f", torch::kCUDA, &f); }}\n'


def parameters(files: str | dict[str, str], schema: str = "Tensor x, Tensor y, int n", python: tuple = ()) -> dict:
    """The parameters of ``f`` by name, in the walk of an op that is bound to it."""
    held = {"a.cu": files} if isinstance(files, str) else dict(files)
    held["a.cu"] += BIND.format(schema=schema)
    ops, _, bench = ops_of(held)
    walk = WalkView(bench, SOURCE).walk(ops["ns::f"], python)
    return {p.name: p for p in walk.implementations[0].host.parameters}


def of(code: str, x: str = "", y: str = "", head: str = "") -> tuple[ParameterFact, ParameterFact]:
    """The two tensors of ``f`` with a body and comments beside them."""
    written = f"void f(torch::Tensor& x,  // {x}\n       torch::Tensor& y,  // {y}\n       int64_t n) {{"
    found = parameters(f"{head}{written}\n{code}\n}}\n")
    return found["x"], found["y"]


# -- documented -----------------------------------------------------------------------------------------------


def test_the_nearest_source_counts_and_the_others_are_kept() -> None:
    files = {
        "a.cu": """#include "a.h"
// Moves rows.
//   x: [rows, width]
//   y: [rows, 2 * width]
void f(torch::Tensor& x, torch::Tensor& y,  // [rows, d]
       int64_t n) {}
""",
        "a.h": "void f(torch::Tensor& x,  // [tokens, width]\n       torch::Tensor& y, int64_t n);\n",
    }
    found = parameters(files)
    assert [(s.kind, s.text, s.span.file, s.span.line) for s in found["x"].sources] == [
        ("above", "[rows, width]", "a.cu", 3),
        ("declaration", "[tokens, width]", "a.h", 1),
    ]
    assert (found["x"].shape, found["x"].shape_span.line) == (("rows", "width"), 3)
    assert [(s.kind, s.text) for s in found["y"].sources] == [
        ("comment", "[rows, d]"),
        ("above", "[rows, 2 * width]"),
    ]


def test_a_declaration_with_other_types_is_another_function() -> None:
    files = {
        "a.cu": "void f(torch::Tensor& x, torch::Tensor& y, int64_t n) {}\n",
        "b.h": "void f(at::Half* x,  // [rows]\n       torch::Tensor& y, int64_t n);\n",
    }
    assert parameters(files)["x"].sources == ()


WRAPPER = '''import torch

def f(
    rows: torch.Tensor,  # [n_rows, width]
    out: torch.Tensor,
    count: int,
) -> None:
    """Moves rows.

    Args:
        out: [n_rows, 2 * width]
        count: how many
    """
    torch.ops.ns.f(rows, out, count)
'''


def test_the_python_wrapper_is_joined_by_the_places_in_its_call() -> None:
    ref = PythonRef("ops.py", 3, "f", "torch.ops.ns.f", 0, 14)
    found = wrapper_shapes(WRAPPER, ref, "ns::f", ["x", "y", "n"])
    assert {name: (s.text, s.span.line) for name, s in found.items()} == {
        "x": ("[n_rows, width]", 4),
        "y": ("[n_rows, 2 * width]", 11),
    }
    assert wrapper_shapes("def f(:\n [", ref, "ns::f", ["x"]) == {}


def test_shapes_of_the_wrapper_in_a_walk() -> None:
    files = {"a.cu": "void f(torch::Tensor& x, torch::Tensor& y, int64_t n) {}\n", "ops.py": WRAPPER}
    found = parameters(files, python=(PythonRef("ops.py", 3, "f", "torch.ops.ns.f", 0, 14),))
    assert (found["x"].shape, found["x"].sources[0].kind) == (("n_rows", "width"), "python")


def test_the_kernels_own_comment_is_a_source_and_not_the_shape() -> None:
    text = """__global__ void k(const float* in,  // [rows, width]
                  float* out) {}
void f(torch::Tensor& x, torch::Tensor& y, int64_t n) {
  const float* p = n > 0 ? x.data_ptr<float>() : nullptr;
  k<<<1, 1>>>(p, y.data_ptr<float>());
}
"""
    found = parameters(text)["x"]
    assert (found.shape, [(s.kind, s.text) for s in found.sources]) == (None, [("kernel", "[rows, width]")])


# -- derived --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "derived", "rank"),
    [
        ("int heads = x.size(1);", ("?", "heads", "..."), None),
        ("auto d = x.size(-1); int64_t t = x.sizes()[0];", ("t", "...", "d"), None),
        ("TORCH_CHECK(x.dim() == 3); int d = x.size(-1);", ("?", "?", "d"), 3),
        ("TORCH_CHECK(x.size(0) == n, \"rows\");", ("n", "..."), None),
        ("TORCH_CHECK(x.sizes() == torch::IntArrayRef({n, 4}));", ("n", "4"), 2),
        ("if (x.dim() != 2) throw std::runtime_error(\"2\");", ("?", "?"), 2),
        ("if (n > 0) { int d = x.size(1); }", None, None),
        ("x = x.transpose(0, 1); int d = x.size(1);", None, None),
        ("x = x.contiguous(); int d = x.size(1);", ("?", "d", "..."), None),
        ("const auto& z = x; int d = z.size(0);", ("d", "..."), None),
    ],
)  # fmt: skip
def test_what_code_says_of_a_shape(code: str, derived: tuple | None, rank: int | None) -> None:
    found, _ = of(code)
    assert (found.derived_shape, found.rank) == (derived, rank)


def test_a_size_that_is_passed_to_a_kernel_has_the_name_of_its_parameter() -> None:
    head = "__global__ void k(float* a, int rows, int width) {}\n"
    found, _ = of("int r = x.size(0); k<<<1, 1>>>(a, r, x.size(1));", x="[rows, width]", head=head)
    assert (found.derived_shape, found.agrees) == (("r", "width", "..."), True)
    other, _ = of("k<<<1, 1>>>(a, x.size(1), x.size(0));", x="[rows, width]", head=head)
    assert (other.derived_shape, other.contradictions) == (("width", "rows", "..."), ())


def test_a_rank_that_is_one_of_several() -> None:
    found, _ = of("TORCH_CHECK(x.dim() == 1 || x.dim() == 2);")
    assert (found.rank, found.ranks, found.derived_shape) == (None, (1, 2), None)


def test_sizes_that_a_called_function_reads_are_the_hosts() -> None:
    head = "template <typename T> void go(torch::Tensor& in, int64_t m) { int width = in.size(1); }\n"
    found, other = of("go<float>(y, n);", head=head)
    assert (found.derived_shape, other.derived_shape) == (None, ("?", "width", "..."))


@pytest.mark.parametrize(
    ("code", "shape", "agrees"),
    [
        ("int width = x.size(1);", "[rows, width]", True),
        ("int w = x.size(1);", "[rows, width]", None),
        ("int width = x.size(-1);", "[..., width]", True),
        ("int rows = x.size(0);", "[..., rows]", None),
        ("TORCH_CHECK(x.dim() == 2);", "[rows, width]", True),
        ("TORCH_CHECK(x.dim() == 3);", "[rows] or [a_b, rows, width]", True),
        ("", "[rows, width]", None),
        # what is demanded by another name is not known to be what is documented
        ("TORCH_CHECK(x.dim() == 2); int rows = x.size(0); TORCH_CHECK(x.size(1) == packed);", "[rows, width]", None),
        ("int width = x.size(1); TORCH_CHECK(x.size(1) == packed);", "[rows, width]", True),
        ("int rows = x.size(0); TORCH_CHECK(x.size(1) == 2 * packed);", "[rows, width]", True),
    ],
)
def test_agreement_with_the_documented_shape(code: str, shape: str, agrees: bool | None) -> None:
    found, _ = of(code, x=shape)
    assert (found.agrees, found.contradictions) == (agrees, ())


@pytest.mark.parametrize(
    ("code", "shape", "reason"),
    [
        ("TORCH_CHECK(x.dim() == 3);", "[rows, width]", "2 dimensions are documented, 3 are demanded"),
        # one dimension too few is said once
        (
            "TORCH_CHECK(x.dim() == 3); int depth = x.size(2);",
            "[rows, width]",
            "2 dimensions are documented, 3 are demanded",
        ),
        ("int depth = x.size(2);", "[rows, width]", "dimension 2 of 2 documented ones is not there"),
        (
            "int width = x.size(0);",
            "[rows, width]",
            "width is documented as dimension 1, and dimension 0 as rows",
        ),
        ("TORCH_CHECK(x.size(1) == 4);", "[rows, 8]", "dimension 1 is documented as 8"),
    ],
)
def test_a_comment_that_the_code_contradicts(code: str, shape: str, reason: str) -> None:
    found, _ = of(code, x=shape)
    assert found.agrees is False
    assert [(c.reason, c.documented, c.line, c.documented_at.line) for c in found.contradictions] == [
        (reason, shape, 4, 1)
    ]


def test_what_only_holds_on_a_condition_contradicts_nothing() -> None:
    found, _ = of("if (n > 2) { TORCH_CHECK(x.dim() == 3); int width = x.size(0); }", x="[rows, width]")
    assert (found.agrees, found.contradictions) == (None, ())
    assert {fact.under for fact in found.derived_from} == {("n is greater than 2",)}


def test_a_shape_beside_a_number() -> None:
    text = "void f(torch::Tensor& x, torch::Tensor& y,\n       int64_t n  // [rows]\n) {}\n"
    (wrong,) = parameters(text)["n"].contradictions
    assert (wrong.documented, wrong.reason) == ("[rows]", "int64_t is one value")


# -- layout ---------------------------------------------------------------------------------------------------

KERNEL = "__global__ void k(float* a, int s) {}\n"


@pytest.mark.parametrize(
    ("code", "layout"),
    [
        ("TORCH_CHECK(x.is_contiguous());", "must be contiguous"),
        ("if (n > 1) { TORCH_CHECK(x.is_contiguous()); }", "must be contiguous where n is greater than 1"),
        ("auto z = x.contiguous();", "made contiguous"),
        (
            "if (x.stride(-1) != 1) { x = x.contiguous(); }",
            "made contiguous where the stride of x in the last dimension is not 1",
        ),
        ("TORCH_CHECK(x.stride(-1) == 1);", "the last dimension must have stride 1"),
        ("TORCH_CHECK(dense_or_contiguous(x));", "must be what dense_or_contiguous demands"),
        ("int s = x.stride(0);", "the stride of dimension 0 is read (s)"),
        ("int s = x.stride(n - 1);", "the stride of dimension n - 1 is read (s)"),
        ("auto s = x.strides();", "the stride of all dimensions is read (s)"),
        (
            "int s = x.stride(0); k<<<1, 1>>>(x.data_ptr<float>(), s);",
            "may be strided: the kernel gets the stride of dimension 0 (s)",
        ),
        (
            "k<<<1, 1>>>(x.data_ptr<float>(), x.stride(1));",
            "may be strided: the kernel gets the stride of dimension 1",
        ),
        ("k<<<1, 1>>>(x.data_ptr<float>(), 1);", "neither contiguity nor a stride is asked for"),
        ("TORCH_CHECK(n > 1 || x.is_contiguous());", "must be contiguous where n is at most 1"),
        # What is asked of a tensor that has been given another shape is not asked of what was passed.
        ("y.t_(); TORCH_CHECK(x.is_contiguous()); x.unsqueeze_(0);", "must be contiguous"),
        ("x.t_(); TORCH_CHECK(x.is_contiguous()); x.unsqueeze_(0);", None),
        ("int d = x.size(0);", None),
    ],
)
def test_what_is_asked_of_the_strides(code: str, layout: str | None) -> None:
    found, other = of(code, head=KERNEL)
    assert (found.layout, other.layout) == (layout, None)


def test_what_a_function_beside_the_way_asks_for_is_no_absence() -> None:
    head = KERNEL + "void dense(const at::Tensor& t) { TORCH_CHECK(t.is_contiguous()); }\n"
    launch = "k<<<1, 1>>>(x.data_ptr<float>(), 1);"
    assert of(f"dense(x); {launch}", head=head)[0].layout is None
    assert of(launch, head=head)[0].layout == "neither contiguity nor a stride is asked for"


@pytest.mark.parametrize(
    "loop",
    [
        "for (const at::Tensor* one : {&x, &y}) { TORCH_CHECK(one->is_contiguous()); }",
        "for (auto one : std::initializer_list<const at::Tensor*>{&x, &y}) TORCH_CHECK(one->is_contiguous());",
        "std::vector<at::Tensor> all{x, y}; for (const auto& one : all) { TORCH_CHECK(one.is_contiguous()); }",
        "auto all = {std::cref(x), std::cref(y)}; for (const at::Tensor& one : all) TORCH_CHECK(one.is_contiguous());",
    ],
)
def test_what_a_loop_over_a_list_asks_of_each(loop: str) -> None:
    assert [one.layout for one in of(loop, head=KERNEL)] == ["must be contiguous"] * 2


@pytest.mark.parametrize("listed", ["more(x, y)", "{x.view(-1), y}", "others"])
def test_a_list_that_is_not_written_out_says_nothing_of_its_elements(listed: str) -> None:
    loop = f"for (const auto& one : {listed}) {{ TORCH_CHECK(one.is_contiguous()); }}"
    assert [one.layout for one in of(loop, head=KERNEL)] == [None, None]


@pytest.mark.parametrize(
    "check",
    ["x.stride(0) == y.stride(0)", "y.stride(0) == x.stride(0)", "x.stride(0) % 8 == 0", "n == 1 || x.stride(0) > n"],
)
def test_a_stride_that_a_check_compares_is_asked_for(check: str) -> None:
    launch = "k<<<1, 1>>>(x.data_ptr<float>(), 1);"
    assert of(f"TORCH_CHECK({check}); {launch}", head=KERNEL)[0].layout is None
    head = KERNEL + f"void same(const at::Tensor& x, const at::Tensor& y, int n) {{ TORCH_CHECK({check}); }}\n"
    assert of(f"same(x, y, n); {launch}", head=head)[0].layout is None


def test_the_line_that_says_so() -> None:
    found, _ = of("\nTORCH_CHECK(x.is_contiguous());")
    assert (found.layout_line, found.layout_at) == (5, None)


@pytest.mark.parametrize(
    ("code", "layout", "rank"),
    [
        ("#ifdef STRICT\nTORCH_CHECK(x.is_contiguous());\nTORCH_CHECK(x.dim() == 2);\n#endif\nGO",
         "must be contiguous where #if STRICT", None),
        # What launches stands under the same condition, or the kind of build decides it.
        ("#ifdef STRICT\nTORCH_CHECK(x.is_contiguous());\nTORCH_CHECK(x.dim() == 2);\nGO\n#else\nthrow 1;\n#endif",
         "must be contiguous", 2),
        ("#ifdef STRICT\nTORCH_CHECK(x.is_contiguous());\nTORCH_CHECK(x.dim() == 2);\n#else\nGO\n#endif",
         "must be contiguous where #if STRICT", None),
        ("#ifndef USE_ROCM\nTORCH_CHECK(x.is_contiguous());\nTORCH_CHECK(x.dim() == 2);\n#endif\nGO",
         "must be contiguous", 2),
        ("#ifdef STRICT\nx = x.contiguous();\n#endif\nGO", "made contiguous where #if STRICT", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("go", ["k<<<1, 1>>>(x.data_ptr<float>(), 1);", "run(x);"])
def test_what_some_builds_alone_ask_of_a_tensor(code: str, layout: str, rank: int | None, go: str) -> None:
    head = KERNEL + "void run(const at::Tensor& z) { k<<<1, 1>>>(z.data_ptr<float>(), 1); }\n"
    found = of(code.replace("GO", go), head=head)[0]
    assert (found.layout, found.rank) == (layout, rank)


@pytest.mark.parametrize(
    ("check", "layout", "line"),
    [
        ("TORCH_CHECK(y.is_contiguous());", "must be contiguous", 3),
        ("TORCH_CHECK(y.stride(0) == 1);", "dimension 0 must have stride 1", 3),
        ("", "neither contiguity nor a stride is asked for", 4),
    ],
)
def test_the_place_that_says_so_in_another_file(check: str, layout: str, line: int) -> None:
    launch = "k<<<1, 1>>>(y.data_ptr<float>(), 1);"
    files = {
        "work.h": f"{KERNEL}static void go(const at::Tensor& y) {{\n{check}\n{launch}\n}}\n",
        "a.cu": '#include "work.h"\nvoid f(const at::Tensor& x) { go(x); }\n'
        'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n',
    }
    (found,) = walk_of(files, "ns::f").implementations[0].host.parameters
    assert (found.layout, found.layout_line, found.layout_at) == (layout, None, Span("work.h", line, line))


@pytest.mark.parametrize(
    ("type_text", "tensor"),
    [
        ("torch::Tensor&", True),
        ("const std::optional<at::Tensor>&", True),
        ("tvm::ffi::TensorView", True),
        ("std::vector<torch::Tensor>", False),
        ("at::TensorList", False),
        ("int64_t", False),
    ],
)
def test_what_is_one_tensor(type_text: str, tensor: bool) -> None:
    assert is_tensor(type_text) is tensor
