"""Whether what was read of a file still says the same: by name, in part, or as a whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opwalker.facts.cpp_scan import names
from opwalker.link.traced import INCLUDES, Reads, Trace
from opwalker.unchanged import Change, Version, moves_of
from tests.trees import scan_text

TEXT = """\
#include "b.h"
#define WIDTH 4

// x: [n, 4]
int used(int x) {
  return x;
}

template <typename T>
static int other(T x) {
  return x;
}

struct Row {
  int width;
  int size() { return width; }
};

int last(int y) {
  return used(y);
}
"""
USED = TEXT.index("return x;")


def version(text: str) -> Version:
    facts = scan_text(text)
    return Version(facts, text, frozenset(names(facts)))


def reads(*asked: str, parts: bool = False, spans: tuple = (), near: bool = False, whole: bool = False) -> Trace:
    made = Reads()
    made.asked.update(asked)
    if parts:
        made.part("a.cu")
        for span in spans:
            made.part("a.cu", *span)
    if near:
        made.near.add("a.cu")
    if whole:
        made.whole.add("a.cu")
    return made.trace("then", ())


def now(trace: Trace, after: str, exact: bool = False) -> Callable[[int], int | None] | None:
    """Where lines of the file are after an edit; None where the answer may be another one."""
    change = Change("a.cu", version(TEXT), version(after))
    found = moves_of(trace, [change], {}, lambda path: frozenset(), exact)
    return found["a.cu"] if found is not None else None


MORE = "static int more(int x) {\n  return 1;\n}\n\n"
FRONT = TEXT.replace("// x", MORE + "// x")
BY_NAME = reads("used")
IN_PART = reads("used", parts=True, spans=((USED, USED + 3),))
WHOLE = reads(whole=True)

#: ``(what was read, the text then, whether it holds)``.
CASES = {
    "a function more, by name": (BY_NAME, FRONT, True),
    "a function more, in part": (IN_PART, FRONT, True),
    "a function more, whole": (WHOLE, FRONT, False),
    "a line more, whole": (WHOLE, "\n" + TEXT, True),
    "a function less": (IN_PART, TEXT.replace(TEXT[TEXT.index("template") : TEXT.index("struct")], ""), True),
    "another body, not read": (IN_PART, TEXT.replace("  return used(y);", "  return 7;"), True),
    "another body, read": (IN_PART, TEXT.replace("  return x;", "  return 7;", 1), False),
    "another body, by name": (BY_NAME, TEXT.replace("  return x;", "  return 7;", 1), True),
    "another head, by name": (BY_NAME, TEXT.replace("used(int x)", "used(long x)"), False),
    "another head, not asked for": (IN_PART, TEXT.replace("int last(int y)", "int last(long y)"), True),
    "an overload": (BY_NAME, TEXT.replace("// x", "int used(long x) { return 1; }\n// x"), False),
    "a comment": (IN_PART, TEXT.replace("[n, 4]", "[n, 8]"), False),
    "a comment, by name": (BY_NAME, TEXT.replace("[n, 4]", "[n, 8]"), True),
    "a comment is taken away": (IN_PART, FRONT.replace("// x: [n, 4]\n", ""), False),
    "a function between a comment and its own": (IN_PART, TEXT.replace("int used", MORE + "int used"), False),
    "a macro": (IN_PART, TEXT.replace("WIDTH 4", "WIDTH 8"), False),
    "a macro, by name": (BY_NAME, TEXT.replace("WIDTH 4", "WIDTH 8"), True),
    "a condition": (IN_PART, TEXT.replace("struct", "#if X\n#endif\nstruct"), False),
    "a condition around": (BY_NAME, TEXT.replace("// x", "#if X\n// x").replace("template", "#endif\ntemplate"), False),
    "a macro in a function more": (IN_PART, FRONT.replace("  return 1;", "#define WIDTH 8\n  return 1;"), False),
    "a method": (IN_PART, TEXT.replace("return width", "return 4"), False),
    "an open brace": (IN_PART, FRONT.replace("  return 1;\n}", "  return 1;"), False),
    "a name that was met": (Trace("then", met=("more",)), FRONT, False),
    "a name that was asked for": (reads("more"), FRONT, False),
    "a kind that was gone through": (Trace("then", kinds=("function",)), FRONT, False),
    "another kind": (Trace("then", kinds=("kernel",)), FRONT, True),
    "any name": (Trace("then", any_name=True), FRONT, False),
    "no name, any name": (Trace("then", any_name=True), TEXT.replace("  return x;", "  return 7;"), True),
    "an owner more": (
        reads("used", parts=True, near=True), FRONT.replace("return 1", "return *new int"), False,
    ),
    "an owner more where none was looked for": (IN_PART, FRONT.replace("return 1", "return *new int"), True),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_what_holds(what: str) -> None:
    trace, after, holds = CASES[what]
    assert after != TEXT
    assert (now(trace, after) is not None) is holds


def test_lines_after_an_edit() -> None:
    line = TEXT[: TEXT.index("int used")].count("\n") + 1
    for trace in (BY_NAME, IN_PART):
        move = now(trace, FRONT)
        assert [move(at) for at in (line, line + 2)] == [line + 4, line + 6]
        assert move(TEXT[: TEXT.index("static int other")].count("\n") + 2) is None
    assert now(BY_NAME, FRONT)(2) is None
    assert now(IN_PART, FRONT)(2) == 2


def test_places_that_are_no_lines() -> None:
    assert now(BY_NAME, FRONT, exact=True) is None
    assert now(reads("last_of_all"), FRONT, exact=True) is not None
    assert now(BY_NAME, TEXT.replace("  return used(y);", "  return 7;"), exact=True) is not None
    assert now(IN_PART, "\n" + TEXT, exact=True) is None


def test_where_spans_are_after_an_edit() -> None:
    after = TEXT.replace("return x;", "return x + 1;", 1)
    change = Change("a.cu", version(TEXT), version(after))
    last = TEXT.index("int last")
    held = ((0, 4), (last, last + 3), (USED, USED + 9), (USED + 8, USED + 9), (0, USED + 8), (USED + 8, last))
    texts = [after[a:b] for a, b in change.spans(held)]
    assert texts == [
        TEXT[:4], "int", "return x + 1;", " + 1;", after[: USED + 8], after[USED + 8 : after.index("int last")],
    ]  # fmt: skip


def test_spans_that_go_beyond_functions() -> None:
    trace = reads("used", parts=True, spans=((0, len(TEXT)),))
    assert now(trace, FRONT) is None
    assert now(trace, "\n" + TEXT) is not None


@pytest.mark.parametrize(
    ("then", "made", "holds"),
    [
        ((("", "x"),), {"": "x"}, True),
        ((("", "x"),), {"": "y"}, False),
        ((("", "x"), ("a.cu", "m")), {"": "x", "a.cu": "m"}, False),
        ((("", "x"), ("b.h", "m")), {"": "x", "b.h": "m"}, True),
        ((("", "x"), ("b.h", "m")), {"": "x", "b.h": "n"}, False),
        ((("", "x"), ("c.h", "m")), {"": "x", "c.h": "n"}, True),
    ],
)
def test_what_macros_make(then, made, holds: bool) -> None:
    trace = Trace("then", then, parts=(("a.cu", ()), ("b.h", ())))
    found = moves_of(trace, [Change("a.cu", version(TEXT), version(FRONT))], made, lambda path: frozenset(("z",)))
    assert (found is not None) is holds


@pytest.mark.parametrize(
    ("after", "holds"),
    [
        (TEXT.replace("return x;", "return x + 1;"), True),
        (TEXT.replace("#define WIDTH 4", "#define WIDTH 8"), True),
        (f"// a note\n{TEXT}", True),
        (TEXT.replace("b.h", "c.h"), False),
        (f'#include "c.h"\n{TEXT}', False),
        (TEXT.replace('#include "b.h"\n', ""), False),
    ],
)
def test_who_includes_what(after: str, holds: bool) -> None:
    made = Reads()
    made.kinds.add(INCLUDES)
    assert (now(made.trace("then", ()), after, exact=True) is not None) is holds
