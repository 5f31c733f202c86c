"""What the locals hold that checks, allocations, copies, launches and a kernel's indexes name."""

from __future__ import annotations

import pytest

from opwalker.model.held import HeldFact
from opwalker.model.walk import Implementation
from tests.views.miniatures import walk_of
from tests.views.notes_text import section
from tests.views.test_notes import note_of

REGISTERED = 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n'
KERNEL = """constexpr int kTail = 4 + 8;
void grow(int& b) { b = b * 2; }
int twice(const int& b);
__global__ void k(float* out /* [pages, size] */, const long* slots, int size, int per) {
  const long slot = slots[blockIdx.x];
  const long page = slot / per;
  const bool whole = slot % per == 0;
  int moved = per;
  moved += 1;
  if (whole) out[page * size + threadIdx.x + kTail] = moved;
}
"""


def walked(code: str, parameters: str = "torch::Tensor& x, torch::Tensor& y, int n", head: str = "") -> Implementation:
    """The implementation of an op whose host function has this body."""
    return walk_of(f"{KERNEL}{head}void f({parameters}) {{\n{code}\n}}\n{REGISTERED}", "ns::f").implementations[0]


def told(facts: tuple[HeldFact, ...]) -> dict[str, str]:
    return {fact.name: fact.value for fact in facts}


LAUNCHED = "k<<<n, 32>>>(x.data_ptr<float>(), slots, n, 4);"


@pytest.mark.parametrize(
    ("code", "held"),
    [
        ("const int pack = 16 / sizeof(T); TORCH_CHECK(n % pack == 0);", {"pack": "16 / sizeof(T)"}),
        ("int a = n / 2; int b = a + 1; TORCH_CHECK(b > 3);", {"b": "a + 1", "a": "n / 2"}),
        ("auto d = x.device(); TORCH_CHECK(d.index() == 0, d);", {"d": "x.device()"}),
        ("int b(n + 1); TORCH_CHECK(b > 3);", {"b": "n + 1"}),
        # Sizes and strides have a table of their own; parameters and members are no locals.
        ("int rows = x.size(0); TORCH_CHECK(rows > n);", {}),
        ("int d = 3; TORCH_CHECK(x.d == n);", {}),
        ('int d = 3; TORCH_CHECK(named("d") == n);', {}),
        # What may hold something else by then is not told.
        ("int b = 1; b = n; TORCH_CHECK(b > 3);", {}),
        ("int b = 1; b += n; TORCH_CHECK(b > 3);", {}),
        ("int b = 1; b++; TORCH_CHECK(b > 3);", {}),
        ("int b = 1; grow(b); TORCH_CHECK(b > 3);", {}),
        ("int b = 1; twice(b); TORCH_CHECK(b > 3);", {"b": "1"}),
        ("for (int b = 1; b < n; b++) { TORCH_CHECK(b > 3); }", {}),
        ("for (int b : all) { TORCH_CHECK(b > 3); }", {}),
        ("int b; if (n) { b = 1; } TORCH_CHECK(b > 3);", {}),
        ("int b = 1; fill(&b); empty(&b); TORCH_CHECK(b > 3);", {}),
        ("if (n) { int b = 1; TORCH_CHECK(b > 3); } else { int b = 2; TORCH_CHECK(b > 4); }", {}),
        # What is given by its address may be what a call reads.
        ("Desc d = {}; cudaSetAccess(&d, 1); TORCH_CHECK(d.on);", {}),
        ("int b = 3; memcpy(to, &b, 4); TORCH_CHECK(b > 3);", {}),
        ("Props b; cudaGetProperties(&b); TORCH_CHECK(b > 3);", {}),
        # A call that asks for something and is given the address of a number fills it.
        ("int b = 0; cudaGetDevice(&b); TORCH_CHECK(b > 3);", {"b": "cudaGetDevice(&b)"}),
    ],
)
def test_what_a_check_names(code: str, held: dict[str, str]) -> None:
    host = walked(f"{code}\n{LAUNCHED}").host
    assert told(host.held) == held
    assert all(fact.filled == fact.value.startswith("cuda") for fact in host.held)


CHAIN = "if (n > 4) { kind = Up; } else if (wide) { kind = Down; } else { TORCH_CHECK(false); }"


@pytest.mark.parametrize(
    ("code", "cases"),
    [
        (f"Kind kind; {CHAIN}", [("n is greater than 4", "Up"), ("wide", "Down")]),
        ("Kind kind; if (n > 4) { kind = Up; } if (wide) { kind = Down; }", None),
        ("Kind kind; for (int i = 0; i < n; i++) { if (wide) { kind = Up; } else { kind = Down; } }", None),
        ("Kind kind = Up; if (n > 4) { kind = Down; }", None),
    ],
)  # fmt: skip
def test_a_copy_shows_its_arguments_with_what_they_hold(code: str, cases: list[tuple[str, str]] | None) -> None:
    copy = "char* to = static_cast<char*>(y.data_ptr());\ncudaMemcpyAsync(to + n, x.data_ptr(), n, kind, 0);"
    (end,) = walked(f"{code}\n{copy}", "torch::Tensor& x, torch::Tensor& y, int n, bool wide").terminals
    assert end.text == "cudaMemcpyAsync(to + n, x.data_ptr(), n, kind, 0)"
    held = {fact.name: fact for fact in end.held}
    assert held["to"].value == "static_cast<char*>(y.data_ptr())"
    found = [(" and ".join(one.under), one.value) for one in held["kind"].cases] if "kind" in held else None
    assert found == cases


def test_a_size_that_a_call_fills_in_is_told_with_the_launch() -> None:
    code = "int parts = 0; cudaDeviceGetAttribute(&parts, kCount, 0); k<<<n / parts, 32>>>(a, slots, n, 4);"
    (launch,) = walked(code).launches
    (name,) = launch.names
    assert (name.name, name.value, name.filled) == ("parts", "cudaDeviceGetAttribute(&parts, kCount, 0)", True)


def test_a_parameter_of_the_callers_name_is_the_callers_value() -> None:
    head = "void start(float* x, int rows) { k<<<rows, 32>>>(x, slots, rows, 4); }\n"
    (launch,) = walked("int rows = y.size(0); start(x.data_ptr<float>(), rows);", head=head).launches
    assert [(one.name, one.value) for one in launch.names] == [("rows", "y.size(0)")]


def test_what_a_kernels_indexes_and_conditions_name() -> None:
    (kernel,) = walked(LAUNCHED).kernels
    assert told(kernel.held) == {
        "page": "slot / per",
        "kTail": "4 + 8",
        "slot": "slots[blockIdx.x]",
    }


def test_an_index_that_is_told_with_the_work_is_not_told_again() -> None:
    head = "__global__ void j(float* out /* [rows, 32] */) { int row = blockIdx.x; int at = row * 32; "
    head += "out[at + threadIdx.x] = 0; }\n"
    text = f"{KERNEL}{head}void f(torch::Tensor& x, int n) {{ j<<<n, 32>>>(x.data_ptr<float>()); }}\n{REGISTERED}"
    told = section(note_of(walk_of(text, "ns::f"), "cuda"), "kernel-1")
    assert "One block for each `row` (`blockIdx.x`, `n` in all)." in told
    assert "  `row` is `blockIdx.x`." not in told


def test_the_note_tells_them_beside_what_names_them() -> None:
    code = "const int pack = 16 / sizeof(T); TORCH_CHECK(n % pack == 0); auto made = torch::empty({pack}, x.options());"
    text = f"{KERNEL}void f(torch::Tensor& x, torch::Tensor& y, int n) {{\n{code}\n{LAUNCHED}\n}}\n{REGISTERED}"
    note = note_of(walk_of(text, "ns::f"), "cuda")
    checks = section(note, "checks")
    assert checks[checks.index("  `pack` is `16 / sizeof(T)`.") - 1].startswith("Requires that `n` is divisible by")
    assert "  `pack` is `16 / sizeof(T)`." in section(note, "ownership")
    kernel = section(note, "kernel-1")
    assert kernel[kernel.index("Names that are used above:") + 1] == "  `slot` is `slots[blockIdx.x]`."


def test_an_argument_that_the_function_does_not_name_is_not_used() -> None:
    head = "#define LAUNCH(N) k<<<N, per>>>(x.data_ptr<float>(), slots, N, 4)\n"
    text = (
        f"{KERNEL}{head}void f(torch::Tensor& x, int n, int per, int spare, int rocm) {{\n  LAUNCH(n);  // not spare\n"
    )
    text += "#ifdef USE_ROCM\n  n = rocm;\n#endif\n}\n"
    text += 'TORCH_LIBRARY(ns, m) { m.def("f(Tensor! x, int n, int per, int spare, int rocm) -> ()"); '
    text += 'm.impl("f", torch::kCUDA, &f); }\n'
    walk = walk_of(text, "ns::f")
    assert [one.name for one in walk.implementations[0].host.parameters if one.unused] == ["spare"]
    uses = [
        row.split(" | ")[2] for row in section(note_of(walk, "cuda"), "contract") if row.startswith("`") and "|" in row
    ]
    assert uses == ["written", "read", "read", "not used", "read"]


def test_sizes_and_strides_of_functions_on_the_way_have_a_table() -> None:
    head = "void start(torch::Tensor& x, int n) {\nconst uint rows = x.size(0);\nint row = x.stride(0);\n"
    head += "k<<<rows, row>>>(x.data_ptr<float>(), slots, n, 4);\n}\n"
    text = f"{KERNEL}{head}void f(torch::Tensor& x, int n) {{\nstart(x, n);\n}}\n{REGISTERED}"
    shapes = section(note_of(walk_of(text, "ns::f"), "cuda"), "shapes")
    assert shapes[shapes.index("On the way, `start` reads:") + 1 :] == [
        "`rows` | `x.size(0)` | `const uint`, 64 bits narrowed",
        "`row` | `x.stride(0)` | `int`, 64 bits narrowed",
    ]
