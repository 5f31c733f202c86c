"""Which lines of a C++ file count, and where each of them stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.facts.cpp_lines import read_lines

BEFORE = """#pragma once
#include "a.h"
// Sums segments.
#include "b.h"

// x: [n, d]
int f(int x) {
  int a = x;
  // kept
  return a;
}
"""

SILENT = [
    ("a remark in front", "// edit\n" + BEFORE),
    ("blank lines in front", "\n  \n" + BEFORE),
    ("a remark among the includes", BEFORE.replace('#include "a.h"\n', '#include "a.h"\n\n// why\n')),
    ("no remark among the includes", BEFORE.replace("// Sums segments.\n", "")),
    ("a blank line between lines of code", BEFORE.replace("{\n", "{\n\n")),
    ("a blank line more above a comment", BEFORE.replace('b.h"\n\n', 'b.h"\n\n\n\n')),
    ("remarks behind the code", BEFORE + "\n// end\n"),
]

LICENSED = f"/* Mine.\n   // Yours.\n\n * #pragma twice */\n\n/* Once. */\n{BEFORE}"

LICENCES = [
    ("a remark in front", "// edit\n" + LICENSED, True),
    ("a remark behind", LICENSED.replace("Once. */\n", "Once. */\n// edit\n"), True),
    ("a remark before the last", LICENSED.replace("/* Once", "// edit\n/* Once"), True),
    ("a blank line within", LICENSED.replace("Mine.\n", "Mine.\n\n"), False),
    ("a remark within", LICENSED.replace("Mine.\n", "Mine.\n// edit\n"), False),
    ("another text", LICENSED.replace("Mine", "Ours"), False),
    ("code behind it", LICENSED.replace("Once. */", "Once. */ int x;"), False),
]

SAYING = [
    ("a comment above a function", BEFORE.replace("int f(", "// y: [n]\nint f(")),
    ("another word in a comment", BEFORE.replace("[n, d]", "[n, e]")),
    ("a blank line between a comment and its function", BEFORE.replace("d]\n", "d]\n\n")),
    ("no blank line before a comment", BEFORE.replace('b.h"\n\n', 'b.h"\n')),
    ("a blank line before a comment in the code", BEFORE.replace("= x;\n", "= x;\n\n")),
    ("a remark before a line of code", BEFORE.replace("  return", "  // now\n  return")),
    ("another number of blanks in a line", BEFORE.replace("int a", "int  a")),
    ("a remark that goes on in front", "// edit \\\n" + BEFORE),
    ("what stands in a comment over lines", "/*\n" + BEFORE.replace("// kept", "*/")),
]

HELD = [
    ("a raw string", 'const char* t = R"(a\n{}b)";\n'),
    ("a macro", "#define M(x) \\\n  x; \\\n{}\nint y;\n"),
    ("a comment", "/* a\n{}b */\nint y;\n"),
    ("a directive in a comment", "/* a\n{}#include <b>\n*/\nint y;\n"),
]


@pytest.mark.parametrize(("what", "after"), SILENT, ids=[what for what, _ in SILENT])
def test_lines_that_say_nothing(what: str, after: str) -> None:
    old, new = read_lines(BEFORE), read_lines(after)
    assert new.digest == old.digest
    lines, moved = BEFORE.split("\n"), after.split("\n")
    counting = [line for line in range(1, len(lines) + 1) if old.number(line) is not None]
    assert len(counting) == old.counted
    for line in counting:
        assert moved[new.line(old.number(line)) - 1] == lines[line - 1]


@pytest.mark.parametrize(("what", "after", "same"), LICENCES, ids=[what for what, *_ in LICENCES])
def test_comments_over_lines_that_a_file_begins_with(what: str, after: str, same: bool) -> None:
    assert (read_lines(after).digest == read_lines(LICENSED).digest) is same


def test_remarks_above_what_describes_the_first_function_count() -> None:
    text = "#pragma once\n/* x: [n]\n*/\nint f(int x);\n"
    assert read_lines(text.replace("/*", "// y: [m]\n/*")).digest != read_lines(text).digest


@pytest.mark.parametrize(("what", "after"), SAYING, ids=[what for what, _ in SAYING])
def test_lines_that_say_something(what: str, after: str) -> None:
    assert read_lines(after).digest != read_lines(BEFORE).digest


@pytest.mark.parametrize(("what", "text"), HELD, ids=[what for what, _ in HELD])
def test_blank_lines_within_what_goes_on(what: str, text: str) -> None:
    assert read_lines(text.format("\n")).digest != read_lines(text.format("")).digest


@given(st.lists(st.sampled_from(["", "// a", "int x;", "#if 1", "/* b", "*/", "x \\", 'R"(', ')"', "  "]), max_size=14))
def test_every_line_that_counts_has_its_number(lines: list[str]) -> None:
    read = read_lines("\n".join(lines))
    numbers = [read.number(line) for line in range(1, len(lines) + 2)]
    counting = [number for number in numbers if number is not None]
    assert counting == list(range(read.counted))
    assert [read.line(number) for number in counting] == [n for n, one in enumerate(numbers, 1) if one is not None]
