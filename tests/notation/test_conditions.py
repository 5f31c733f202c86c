"""Preprocessor conditions: reading, the short print, three-valued evaluation, joining and negating."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opwalker.notation.conditions import (
    FALSE,
    TRUE,
    Binary,
    Choice,
    Cond,
    Defined,
    Junction,
    Name,
    Number,
    Opaque,
    Unary,
    branch_condition,
    condition_text,
    conjoin,
    disjoin,
    evaluate,
    names_of,
    negate,
    parse_condition,
    parse_directive,
    print_condition,
)

PRINTED = [
    ("defined(USE_ROCM)", "USE_ROCM"),
    ("defined USE_ROCM", "USE_ROCM"),
    ("!defined(USE_ROCM)", "!USE_ROCM"),
    ("! defined USE_ROCM", "!USE_ROCM"),
    ("not defined(A) and (B or C)", "!A && (B || C)"),
    ("(((defined(A))))", "A"),
    ("(A && B) && C", "A && B && C"),
    ("A && (B && C)", "A && B && C"),
    ("(A && B) || C", "A && B || C"),
    ("A && (B || C)", "A && (B || C)"),
    ("!(A && B)", "!(A && B)"),
    ("!!A", "!!A"),
    ("(__CUDA_ARCH__>=800)", "__CUDA_ARCH__ >= 800"),
    ("defined ENABLE_X && ENABLE_X", "ENABLE_X"),
    ("(defined ENABLE_X && ENABLE_X) || (defined ENABLE_Y && ENABLE_Y)", "ENABLE_X || ENABLE_Y"),
    ("!(defined(ENABLE_X) && ENABLE_X)", "!ENABLE_X"),
    ("defined(V) && V >= 12020", "V && V >= 12020"),
    ("A == 1 && B != 0x1Ful", "A == 1 && B != 0x1Ful"),
    ("(A + 1) * 2 > B % (C - 1)", "(A + 1) * 2 > B % (C - 1)"),
    ("A - (B - C) == A - B - C", "A - (B - C) == A - B - C"),
    ("(A == 1) == (B == 2)", "A == 1 == (B == 2)"),
    ("-1 < - - A", "-1 < - -A"),
    ("~0u & MASK", "~0u & MASK"),
    ("A ? B : C", "A ? B : C"),
    ("(A ? B : C) == 1", "(A ? B : C) == 1"),
    ("A ? B : C ? D : E", "A ? B : C ? D : E"),
    ("(A ? B : C) ? D : E", "(A ? B : C) ? D : E"),
    ("__has_include(<format>)", "__has_include(<format>)"),
    ('defined(__has_include) && __has_include( "x.h" )', '__has_include && __has_include( "x.h" )'),
    ("ARCH_IN(900,  1000) && A", "ARCH_IN(900, 1000) && A"),
    ("A && /* both */ B // and no more", "A && B"),
    ("A && \\\n   B", "A && B"),
    ("A || \\\r\n   B", "A || B"),
    ("1'000 < A", "1'000 < A"),
    ("0", "0"),
    ("1", "1"),
]


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_the_short_print(text: str, printed: str) -> None:
    assert print_condition(parse_condition(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A &&",
        "&& A",
        "(A",
        "A)",
        "A B",
        "defined()",
        "defined(1)",
        "A ? B",
        "1.5 < A",
        "089",
        "@x",
        '"s" == A',
        "F(",
        "{{ x }}",
        "A = 1",
    ],
)
def test_what_is_no_expression_is_one_opaque_atom(text: str) -> None:
    cond = parse_condition(f"  {text} // note")
    assert cond == Opaque(text)
    assert print_condition(cond) == text
    assert evaluate(cond, {}, lambda name: True) is None


@pytest.mark.parametrize(
    "text",
    ["(" * 5000 + "A" + ")" * 5000, "!" * 5000 + "A", "A" + " + A" * 5000, "A" + " ? A : A" * 5000, "F" + "(" * 5000],
)
def test_no_text_exhausts_the_stack(text: str) -> None:
    assert evaluate(parse_condition(text), {"A": "1"}) is None


def test_long_flat_conditions_are_read() -> None:
    cond = parse_condition(" || ".join(f"defined(ARCH_{i})" for i in range(2000)))
    assert isinstance(cond, Junction) and len(cond.terms) == 2000
    assert evaluate(cond, {"ARCH_1999": None}) is True


@pytest.mark.parametrize(
    ("keyword", "text", "printed"),
    [
        ("ifdef", "USE_ROCM  // AMD", "USE_ROCM"),
        ("ifndef", "USE_ROCM /* AMD */", "!USE_ROCM"),
        ("elifdef", "A", "A"),
        ("elifndef", "A", "!A"),
        ("if", "!defined(A)", "!A"),
        ("elif", "A > 1", "A > 1"),
        ("ifndef", "", "!"),
    ],
)
def test_directives(keyword: str, text: str, printed: str) -> None:
    assert print_condition(parse_directive(keyword, text)) == printed


BUILD = {
    "CUDA_VERSION": "12080",
    "USE_CUDA": None,
    "EMPTY": "",
    "ARCH": "(MAJOR * 100)",
    "MAJOR": "9",
    "SELF": "SELF + 1",
}
ABSENT = {"USE_ROCM", "HIP_VERSION"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("defined(USE_CUDA)", True),
        ("defined(EMPTY)", True),
        ("defined(USE_ROCM)", False),
        ("defined(OTHER)", None),
        ("USE_CUDA", True),
        ("USE_CUDA == 1", True),
        ("USE_ROCM", False),
        ("HIP_VERSION == 0", True),
        ("OTHER", None),
        ("EMPTY", None),
        ("true && !false", True),
        ("CUDA_VERSION >= 12000", True),
        ("CUDA_VERSION <= 0x2F30", True),
        ("ARCH == 900", True),
        ("SELF > 0", None),
        ("OTHER && USE_ROCM", False),
        ("USE_ROCM && OTHER", False),
        ("OTHER || USE_CUDA", True),
        ("OTHER && USE_CUDA", None),
        ("OTHER || USE_ROCM", None),
        ("!OTHER", None),
        ("OTHER == OTHER", None),
        ("F(1) || USE_CUDA", True),
        ("F(1) && USE_CUDA", None),
        ("__has_include(<a.h>)", None),
        ("OTHER ? 1 : 2", None),
        ("OTHER ? 1 : 1", True),
        ("USE_CUDA ? OTHER : 1", None),
        ("USE_ROCM ? OTHER : 0", False),
        ("7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1", True),
        ("1 / USE_ROCM", None),
        ("1 % 0", None),
        ("1 << 3 == 8 && 16 >> 2 == 4", True),
        ("1 << 64", None),
        ("1 << -1", None),
        ("(6 & 3) == 2 && (6 | 3) == 7 && (6 ^ 3) == 5 && ~0 == -1 && +1 == 1 && - -1 == 1", True),
        ("010 == 8 && 0b11 == 3 && 10ULL == 10", True),
        ("2 - 1 - 1", False),
        ("1 + 2 * 3 == 7", True),
        ("1 | 0 && 0", False),
    ],
)
def test_evaluation_in_three_values(text: str, value: bool | None) -> None:
    assert evaluate(parse_condition(text), BUILD, ABSENT) is value
    assert evaluate(parse_condition(text), BUILD, lambda name: name in ABSENT) is value


def test_macros_that_name_each_other_end() -> None:
    chain = {f"M{i}": f"M{i + 1} + M{i + 1}" for i in range(60)}
    assert evaluate(parse_condition("M0"), chain) is None
    assert evaluate(parse_condition("M3 == 8"), {"M3": "M4 + M4", "M4": "M5 + M5", "M5": "M6 * 2", "M6": "1"}) is True


def test_chains_of_branches() -> None:
    a, b = parse_condition("A"), parse_condition("B > 1")
    assert print_condition(branch_condition([], a)) == "A"
    assert print_condition(branch_condition([a], b)) == "!A && B > 1"
    assert print_condition(branch_condition([a, b], None)) == "!A && !(B > 1)"
    assert print_condition(branch_condition([parse_condition("!defined(A)")], None)) == "A"
    assert branch_condition([parse_condition("1")], None) == FALSE
    assert branch_condition([parse_condition("0")], None) == TRUE


def test_conjunctions_are_flat_and_say_nothing_twice() -> None:
    a, b = Defined("A"), Defined("B")
    assert conjoin([]) == TRUE and disjoin([]) == FALSE
    assert conjoin([a]) == a
    assert conjoin([a, TRUE, conjoin([b, a]), a]) == Junction("&&", (a, b))
    assert conjoin([a, FALSE]) == FALSE and disjoin([a, TRUE]) == TRUE
    assert disjoin([a, conjoin([a, b])]) == Junction("||", (a, Junction("&&", (a, b))))
    assert print_condition(conjoin([disjoin([a, b]), negate(a)])) == "(A || B) && !A"
    assert negate(negate(a)) == a and negate(TRUE) == FALSE


def test_the_text_in_the_json() -> None:
    assert condition_text([]) is None
    assert condition_text([parse_condition("1")]) is None
    assert condition_text([parse_condition("!defined(USE_ROCM)"), parse_condition("A || B")]) == "!USE_ROCM && (A || B)"
    assert condition_text([parse_condition("0"), parse_condition("A")]) == "0"


def test_names() -> None:
    cond = parse_condition("defined(A) && (B + 1 > C || F(D)) && !(E ? G : 1)")
    assert names_of(cond) == {"A", "B", "C", "E", "G"}


NAMES = ["A", "B", "C"]
atoms: st.SearchStrategy[Cond] = st.one_of(
    st.sampled_from([Name(name) for name in NAMES]),
    st.sampled_from([Defined(name) for name in NAMES]),
    st.integers(0, 20).map(lambda value: Number(value, str(value))),
    st.sampled_from(["F(x, 1)", "__has_include(<a.h>)"]).map(Opaque),
)


def _junctions(conds: st.SearchStrategy[Cond]) -> st.SearchStrategy[Cond]:
    def build(operator: str, parts: list[Cond]) -> Cond:
        flat: list[Cond] = []
        for part in parts:
            flat += part.terms if isinstance(part, Junction) and part.operator == operator else (part,)
        return Junction(operator, tuple(flat))

    return st.builds(build, st.sampled_from(["&&", "||"]), st.lists(conds, min_size=2, max_size=3))


conditions = st.recursive(
    atoms,
    lambda conds: st.one_of(
        st.builds(Unary, st.sampled_from(["!", "-", "+", "~"]), conds),
        st.builds(
            Binary, st.sampled_from(["==", "!=", "<", ">=", "+", "-", "*", "/", "%", "<<", "&", "|"]), conds, conds
        ),
        _junctions(conds),
        st.builds(Choice, conds, conds, conds),
    ),
    max_leaves=12,
)


def _source(cond: Cond) -> str:
    """Source text with every bracket written."""
    if isinstance(cond, Defined):
        return f"defined({cond.name})"
    if isinstance(cond, Name):
        return cond.name
    if isinstance(cond, (Number, Opaque)):
        return cond.text
    if isinstance(cond, Unary):
        return f"{cond.operator}({_source(cond.operand)})"
    if isinstance(cond, Binary):
        return f"({_source(cond.left)}) {cond.operator} ({_source(cond.right)})"
    if isinstance(cond, Junction):
        return f" {cond.operator} ".join(f"({_source(term)})" for term in cond.terms)
    return f"({_source(cond.test)}) ? ({_source(cond.then)}) : ({_source(cond.otherwise)})"


@given(conditions)
def test_source_text_reads_as_its_value(cond: Cond) -> None:
    assert parse_condition(_source(cond)) == cond


@example(Choice(Name("A"), Name("A"), Binary("==", Name("B"), Junction("&&", (Number(2, "2"), Number(2, "2"))))))
@given(conditions)
def test_the_print_is_stable_and_keeps_the_meaning(cond: Cond) -> None:
    printed = print_condition(cond)
    again = parse_condition(printed)
    assert print_condition(again) == printed
    # Where every defined macro is 1, `defined(X)` and `X` are the same.
    for values in itertools.product((None, "1"), repeat=len(NAMES)):
        defines = {name: value for name, value in zip(NAMES, values, strict=True) if value}
        absent = set(NAMES) - set(defines)
        assert evaluate(cond, defines, absent) == evaluate(again, defines, absent)


@given(conditions, st.lists(st.sampled_from([None, "0", "1", "7", "absent"]), min_size=3, max_size=3))
def test_an_unknown_answer_is_never_wrong(cond: Cond, values: list[str | None]) -> None:
    """What is said with some macros unknown is what is said once all are known."""
    known = {n: v for n, v in zip(NAMES, values, strict=True) if v not in (None, "absent")}
    absent = {n for n, v in zip(NAMES, values, strict=True) if v == "absent"}
    partial = evaluate(cond, known, absent)
    if partial is None:
        return
    for fill in itertools.product(("0", "3", None), repeat=len(NAMES)):
        open_names = {n: v for n, v in zip(NAMES, fill, strict=True) if n not in known and n not in absent}
        defines = known | {n: v for n, v in open_names.items() if v is not None}
        missing = absent | {n for n, v in open_names.items() if v is None}
        assert evaluate(cond, defines, missing) in (partial, None)


@given(conditions)
def test_negation(cond: Cond) -> None:
    for values in itertools.product(("0", "1", "absent", None), repeat=len(NAMES)):
        defines = {n: v for n, v in zip(NAMES, values, strict=True) if v not in (None, "absent")}
        absent = {n for n, v in zip(NAMES, values, strict=True) if v == "absent"}
        holds = evaluate(cond, defines, absent)
        assert evaluate(negate(cond), defines, absent) is (None if holds is None else not holds)


@given(st.lists(conditions, max_size=4))
def test_conjunction_means_all(conds: list[Cond]) -> None:
    joined = conjoin(conds)
    for values in itertools.product(("0", "1", None), repeat=len(NAMES)):
        defines = {n: v for n, v in zip(NAMES, values, strict=True) if v is not None}
        each = [evaluate(cond, defines) for cond in conds]
        expected = False if False in each else None if None in each else True
        assert evaluate(joined, defines) is expected


@given(st.text(alphabet="AB10xdefine()!&|=<>+-*/%?:~^ ,'\"\\\n#@", max_size=40))
def test_any_text_is_read(text: str) -> None:
    cond = parse_condition(text)
    assert print_condition(parse_condition(print_condition(cond))) == print_condition(cond)
    evaluate(cond, {"A": "1"}, {"B"})


def test_a_prefix_without_digits_is_no_number() -> None:
    """``0B'`` looks like a number to the tokens and is none."""
    assert evaluate(parse_condition("0B' == 0"), {}, set()) is None
