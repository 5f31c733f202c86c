"""Declarations whose heads hold branches of the preprocessor, alone and within a branch around them."""

from __future__ import annotations

import pytest

from opwalker.facts.cpp_scan import scan
from opwalker.model.source import SourceFile

PARAMETERS = """void launch(int a,
#if LOW
  float b,
#endif
  int c
#if SPEC
  , double d
#endif
  ) { go(); }
"""
ALTERNATIVES = """void take(
#if FIRST
  int a,
#if SECOND
  int b,
#endif
#else
  long a,
#endif
  int c) { go(); }
"""
QUALIFIED = """#ifdef FUSED
__device__ __forceinline__
#else
extern "C" __global__
#endif
void impl(int a) { }
"""
UNBALANCED = """#if FIRST
void go(int a) {
#else
void go(long a) {
#endif
}
void after() { }
"""


def _read(text: str, *flags: str) -> list[tuple]:
    facts = scan(SourceFile("a.cu", text, "cuda", ""))
    assert facts.problems == ()
    shown = []
    for f in facts.functions:
        kept = tuple(flag for flag in f.flags if flag in flags)
        shown.append((f.name, tuple(p.name for p in f.parameters), kept, facts.conditions[f.condition]))
    return shown


BOTH = [("launch", ("a", "b", "c", "d"), (), ("LOW", "SPEC")), ("launch", ("a", "c"), (), ("!(LOW)", "!(SPEC)"))]


@pytest.mark.parametrize(
    ("around", "outer"),
    [
        ("{}", ()),
        ("#if WHOLE\n{}#endif\n", ("WHOLE",)),
        ("#if WHOLE\nint x;\n#else\n{}#endif\n", ("!(WHOLE)",)),
        ("#if WHOLE\n#if INNER\n{}#endif\n#endif\n", ("WHOLE", "INNER")),
    ],
)
def test_what_stands_in_a_branch_is_read_in_every_pass(around: str, outer: tuple[str, ...]) -> None:
    assert _read(around.format(PARAMETERS)) == [(*first, (*outer, *last)) for *first, last in BOTH]


def test_branches_that_open_blocks_in_a_branch_keep_what_follows() -> None:
    found = _read(f"#if WHOLE\n{UNBALANCED}#endif\n")
    assert [(name, condition) for name, _, _, condition in found] == [
        ("go", ("WHOLE", "FIRST")),
        ("after", ("WHOLE",)),
        ("go", ("WHOLE", "!(FIRST)")),
    ]


def test_a_branch_that_is_not_shown_gives_no_condition_of_those_within_it() -> None:
    assert [(parameters, condition) for _, parameters, _, condition in _read(ALTERNATIVES)] == [
        (("a", "b", "c"), ("FIRST", "SECOND")),
        (("a", "c"), ("!(FIRST)",)),
    ]


def test_a_function_may_be_a_kernel_in_one_branch_alone() -> None:
    assert _read(QUALIFIED, "global", "device") == [
        ("impl", ("a",), ("device",), ("defined(FUSED)",)),
        ("impl", ("a",), ("global",), ("!defined(FUSED)",)),
    ]
