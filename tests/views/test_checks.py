"""Checks of a body: what is demanded, in which words, under which conditions, and by which macro."""

from __future__ import annotations

import pytest

from opwalker.model.walk import CheckFact
from opwalker.views.checks import checks_of, raises
from tests.trees import tree


def body(code: str, head: str = ""):
    """The body of ``f`` in a file of its own."""
    text = f"{head}void f(Tensor& x, Tensor& y, int n, bool causal) {{\n{code}\n}}\n"
    bench = tree({"a.cu": text})
    (_, function) = bench.index.functions("f")[0]
    unit = bench.unit()
    return unit.bodies.span("a.cu", function.body_start, function.body_end, "a.cu", function, ())


def checks(code: str, head: str = "") -> list[CheckFact]:
    return list(checks_of(body(code, head)))


@pytest.mark.parametrize(
    ("code", "kind", "condition", "words"),
    [
        ("TORCH_CHECK(x.is_contiguous());", "TORCH_CHECK", "x.is_contiguous()", "x is contiguous"),
        ("CHECK_EQ(x.dim(), 2);", "CHECK_EQ", "x.dim() == 2", "x has 2 dimensions"),
        ("TORCH_CHECK(causal);", "TORCH_CHECK", "causal", None),
        ("if (n % 4 != 0) throw std::runtime_error(\"no\");", "throw std::runtime_error", "n % 4 == 0",
         "n is divisible by 4"),
        ("if (n == 1) { } else if (n == 2) { } else { TORCH_CHECK(false, \"n\"); }", "TORCH_CHECK", "false",
         "n is 1 or 2"),
        ("switch (n) { case 1: break; case 4: break; default: TORCH_CHECK(false, \"n\"); }", "TORCH_CHECK", "false",
         "n is 1 or 4"),
        ("if (n > 8) { TORCH_CHECK(false, \"n\"); }", "TORCH_CHECK", "false", "n is at most 8"),
        ("if (n == 1) { } else { if (n == 2 || n == 3) { } else { TORCH_CHECK(false, \"n\"); } }", "TORCH_CHECK",
         "false", "n is 1, 2 or 3"),
        ("TORCH_CHECK(false, \"never\");", "TORCH_CHECK", "false", None),
        ("if (n == 1) return; else if (n == 2) { return; } TORCH_CHECK(false, \"n\");", "TORCH_CHECK", "false",
         "n is 1 or 2"),
        ("if (n < 0) TVM_FFI_THROW(ValueError) << \"n\";", "TVM_FFI_THROW", "n >= 0", "n is at least 0"),
    ],
)  # fmt: skip
def test_what_is_demanded(code: str, kind: str, condition: str, words: str | None) -> None:
    (found,) = checks(code)
    assert (found.kind, found.condition, found.words, found.under) == (kind, condition, words, ())


def test_the_conditions_around_a_check_are_told_without_what_they_repeat() -> None:
    code = """if (y.defined()) {
      if (y.dim() == 1) { TORCH_CHECK(y.size(0) == n); }
      else if (y.dim() == 2) { TORCH_CHECK(y.size(1) == n); }
      else { TORCH_CHECK(false, "rank of y"); }
    }"""
    assert [(c.words, c.under) for c in checks(code)] == [
        ("dimension 0 of y equals n", ("y is given", "y has 1 dimension")),
        ("dimension 1 of y equals n", ("y is given", "y has 2 dimensions")),
        ("y has 1 or 2 dimensions", ("y is given",)),
    ]


def test_every_check_of_a_macro_counts() -> None:
    head = """#define CHECK_CUDA(t) TORCH_CHECK(t.is_cuda(), #t " on GPU")
#define CHECK_DENSE(t) TORCH_CHECK(t.is_contiguous(), #t " dense")
#define CHECK_INPUT(t) CHECK_CUDA(t); CHECK_DENSE(t)
"""
    found = checks("CHECK_INPUT(x);\nCHECK_INPUT(y);", head)
    assert [(c.words, c.via, c.line) for c in found] == [
        ("x is on the GPU", "CHECK_INPUT", 5),
        ("x is contiguous", "CHECK_INPUT", 5),
        ("y is on the GPU", "CHECK_INPUT", 6),
        ("y is contiguous", "CHECK_INPUT", 6),
    ]


def test_two_failures_of_one_macro_are_told_apart_by_what_they_say() -> None:
    head = """#define PICK(a, b) \\
  if (a == 1) { if (b == 1) { g(); } else { TORCH_CHECK(false, "b") } } \\
  else if (a == 2) { if (b == 1) { g(); } else { TORCH_CHECK(false, "b") } } \\
  else { TORCH_CHECK(false, "a") }
"""
    found = checks("PICK(n, m)", head)
    assert [(c.message, c.words, c.under) for c in found] == [('"b"', "m is 1", ()), ('"a"', "n is 1 or 2", ())]


def test_a_function_that_checks_is_shown_with_all_it_is_given() -> None:
    (found,) = checks("CHECK_SHAPE<2, true>(x, n, at::kInt);")
    assert (found.kind, found.condition, found.words, found.message) == ("CHECK_SHAPE", "x, n, at::kInt", None, None)


def test_the_other_branch_of_a_test_of_something_else_is_where_it_is_demanded() -> None:
    (found,) = checks('if (m == 1) { } else { if (n == 2) { } else { TORCH_CHECK(false, "n"); } }')
    assert (found.words, found.under) == ("n is 2", ("m is not 1",))


def test_messages_that_are_streamed() -> None:
    (found,) = checks('TVM_FFI_ICHECK(n > 0) << "n must be " << "positive, got " << g(n << 1);')
    assert found.message == '"n must be ", "positive, got ", g(n << 1)'
    (found,) = checks("TVM_FFI_ICHECK(n > 0) << n;")
    assert found.message is None


def test_a_macro_of_the_projects_own_around_a_known_check_is_read() -> None:
    head = '#define TORCH_CHECK_DIV(t, d, by) TORCH_CHECK((t).size(d) % by == 0, #t " must be divisible by " #by)\n'
    (found,) = checks("TORCH_CHECK_DIV(x, 1, 128);", head)
    assert (found.kind, found.words, found.via) == (
        "TORCH_CHECK", "dimension 1 of x is divisible by 128", "TORCH_CHECK_DIV"
    )  # fmt: skip
    (found,) = checks("TORCH_CHECK_EQ(n, 2);", "#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_OP(a, b, ==)\n")
    assert (found.kind, found.condition) == ("TORCH_CHECK_EQ", "n == 2")


def test_where_a_body_can_raise() -> None:
    found = body("TORCH_CHECK(n);\nassert(n);\nif (n) throw Oops(n);")
    assert [what for _, what in raises(found)] == ["Oops", "TORCH_CHECK"]


@pytest.mark.parametrize(
    ("code", "words", "past"),
    [
        ('if (n == 2) { return; } else { throw std::invalid_argument("n"); }', "n is 2", ()),
        ('if (n == 2) { return; } else { TORCH_CHECK(false, "n"); }', "n is 2", ()),
        ('if (n == 9) { return; }\nif (n == 2) { return; } else { throw Oops("n"); }', "n is 2", ("n is not 9",)),
    ],
)
def test_a_demand_is_not_told_with_its_opposite(code: str, words: str, past: tuple[str, ...]) -> None:
    (found,) = checks(code)
    assert (found.words, found.past, found.under) == (words, past, ())
