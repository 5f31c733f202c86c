"""Lines of functions that were not read: whole functions, insides, and what stays where it may say more."""

from __future__ import annotations

import pytest

from opwalker.facts.cpp_lines import read_lines
from opwalker.facts.cpp_unread import ALL, HEAD, NOTHING, unread
from tests.trees import scan_text

TEXT = """\
#include <a.h>

int used(int x) {
  return x;
}

template <typename T>
static inline int unused(T x) {
  int y = x;
  return y;
}

void last() { used(1); }
"""


def left_out(text: str, name: str = "unused", what: int = NOTHING, spans: tuple = ()) -> list[str] | None:
    """The lines that are left out, where all but one function were read."""
    stretches = unread(scan_text(text), text, lambda f: what if f.name == name else ALL, spans)
    lines = text.split("\n")
    return stretches if stretches is None else [line for a, b in stretches for line in lines[a - 1 : b]]


def test_a_function_of_which_nothing_was_read() -> None:
    assert left_out(TEXT) == TEXT.split("\n")[6:11]


def test_a_function_of_which_the_head_was_read() -> None:
    assert left_out(TEXT, what=HEAD) == ["  int y = x;", "  return y;"]
    assert left_out(TEXT, "last", HEAD) == []


def test_a_function_that_stands_in_a_span_that_was_read() -> None:
    at = TEXT.index("int y")
    assert left_out(TEXT, spans=((at, at + 3),)) == []
    at = TEXT.index("void last")
    assert left_out(TEXT, spans=((at, at + 3),)) == TEXT.split("\n")[6:11]


def test_a_span_that_goes_beyond_functions() -> None:
    assert left_out(TEXT, spans=((0, len(TEXT)),)) is None


KEPT = {
    "a branch that begins elsewhere": "  int y = x;\n#endif\n",
    "a branch that ends elsewhere": "#if Y\n  int y = x;\n",
    "an else of elsewhere": "#if Y\n#endif\n#else\n",
    "what may be no directive": "/*\n#define Y 1\n*/\n",
    "a directive that goes on behind a comment": "#define Y 1 /*\n*/ + 1\n",
    "a directive that is not known": "#embed Y\n",
    "a line that goes on": "  int y = \\\n x;\n",
}


@pytest.mark.parametrize("what", KEPT)
@pytest.mark.parametrize("read", [NOTHING, HEAD])
def test_what_says_something_of_other_places_stays(what: str, read: int) -> None:
    text = TEXT.replace("  int y = x;\n", KEPT[what])
    assert text != TEXT
    assert left_out(text, what=read) == []


DIRECTIVES = {
    "a definition": "#define Y 1\n",
    "a definition over lines": "#define Y 1 \\\n  + 1\n",
    "a branch": "#ifdef Y\n",
    "an inclusion": '#include "a.inc"\n',
}


@pytest.mark.parametrize("what", DIRECTIVES)
def test_directives_stay_where_what_is_around_them_does_not(what: str) -> None:
    directive = DIRECTIVES[what]
    end = "#endif\n" if directive.startswith("#if") else ""
    text = TEXT.replace("  int y = x;\n", f"  int y = x;\n{directive}  y += 1;\n{end}")
    assert left_out(text, what=HEAD) == ["  int y = x;", "  y += 1;", "  return y;"]
    stretches = unread(scan_text(text), text, lambda f: NOTHING if f.name == "unused" else ALL)
    other = text.replace("  y += 1;\n", "  y += 1;\n  y += 2;\n")
    others = unread(scan_text(other), other, lambda f: NOTHING if f.name == "unused" else ALL)
    assert read_lines(text, stretches).digest == read_lines(other, others).digest
    changed = text.replace(directive, directive.replace("1", "2").replace("Y", "Z").replace("a.inc", "b.inc"))
    assert read_lines(changed, stretches).digest != read_lines(text, stretches).digest


def test_a_pragma_says_nothing_of_other_places() -> None:
    text = TEXT.replace("  int y = x;\n", "#pragma unroll\n")
    assert left_out(text, what=HEAD) == ["#pragma unroll", "  return y;"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("}\n\ntemplate", "} template"),
        ("}\n\nvoid last", "} void last"),
        ("template", "/* [x] */ template"),
        ("  return y;\n}", "  return y;\n*/ }"),
        ("static", "// [x]\nstatic"),
    ],
)
def test_a_function_that_shares_its_lines_stays(old: str, new: str) -> None:
    assert left_out(TEXT.replace(old, new, 1)) == []


def test_methods_stay() -> None:
    assert left_out("struct A {\n  int unused() {\n    return 1;\n  }\n};\n") == []


def test_lines_that_are_left_out_are_as_blank_ones() -> None:
    stretches = unread(scan_text(TEXT), TEXT, lambda f: NOTHING if f.name == "unused" else ALL)
    without = TEXT[: TEXT.index("template")] + TEXT[TEXT.index("void last") :]
    assert read_lines(TEXT, stretches).digest == read_lines(without).digest
    assert read_lines(TEXT).digest != read_lines(without).digest
    old, new = read_lines(TEXT, stretches), read_lines(without)
    assert [new.line(old.number(line)) for line in (1, 3, 5, 13)] == [1, 3, 5, 7]
    assert old.number(8) is None
