"""Which lines of a C++ file hold what a reader of the file did not look at: whole functions, or the insides of some.

In: a file's facts and text, and what was looked at of each function. Out: stretches of whole lines. A function stays
where its lines hold anything that may say something of what stands around it: directives, other declarations, or the
end of a comment above what follows. Directives within it stay, where no branch of theirs goes beyond it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from opwalker.facts.cpp_lines import held_lines
from opwalker.facts.cpp_text import line_starts
from opwalker.model.cpp import CppFacts, Function
from opwalker.notation.regex import Regex

#: What may be read of a function.
NOTHING, HEAD, ALL = range(3)

#: What may stand before a function's name on its first line beside its own head.
_OTHERS = Regex(r'[;{}#"\\]|//|/\*')
#: A line within a function that is more than its code: a directive with the lines that it goes on over, or what goes on
#: without being one.
_DIRECTIVE = Regex(
    r"^[ \t]*(?:#|%:)(?![ \t]*pragma\b)[ \t]*(\w*)(?:[^\n\\]|\\[ \t\r]*\n|\\)*|\\[ \t\r]*$", re.MULTILINE
)
#: How far a directive opens or closes a branch. What only belongs into one is told by ``_INNER``.
_NESTS = {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}
_INNER = frozenset(("elif", "elifdef", "elifndef", "else", "endif"))
_PLAIN = frozenset(("define", "undef", "include", "error", "warning"))
_COMMENT_BEGINS = ("/", "*")
_BLANKS = Regex(r"[ \t]*")
#: Lines that the template heads of a function may take up.
_MOST_HEAD_LINES = 40


def unread(
    facts: CppFacts, text: str, read: Callable[[Function], int], spans: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]] | None:
    """The lines of functions outside of classes that were not read: first and last line of each stretch. ``read`` says
    what was read of a function by its name; ``spans`` are stretches of text that were read. None where one of these
    goes beyond a function: what stands between functions was read."""
    starts = line_starts(text)
    others = _offsets(facts)
    bodies = [(f.offset, f.body_end) for f in facts.functions if f.body_end]
    bodies += [(c.body_start, c.body_end) for c in facts.classes if c.body_end]
    out: list[tuple[int, int]] = []
    for function in facts.functions:
        if not function.body_end:
            continue
        line = first_line(function, text, starts)
        first, end = starts[line - 1], function.body_end
        if any(a < first and end < b for a, b in bodies):
            continue  # within a class, or another function
        if any(a <= first and end <= b for a, b in spans):
            return None
        what = read(function)
        if what == ALL or any(a < end and first < b for a, b in spans):
            continue
        begin = first if what == NOTHING else function.body_start
        at = bisect_left(others, begin)
        directives = _directive_lines(text, begin, end, starts)
        if (at < len(others) and others[at] < end) or directives is None:
            continue
        if any(begin < f.offset < end and f is not function and read(f) != NOTHING for f in facts.functions):
            continue
        if what == NOTHING:
            if _is_alone(function, text, first, end):
                out += _around(directives, line, function.end_line)
        else:
            out += _around(directives, bisect_left(starts, function.body_start + 1) + 1, function.end_line - 1)
    return out


def _directive_lines(text: str, begin: int, end: int, starts: Sequence[int]) -> list[int] | None:
    """The lines of the directives in a stretch of text; None where any of them belongs to a branch that goes beyond it,
    or may be none."""
    out: list[int] = []
    depth = 0
    for match in _DIRECTIVE.finditer(text[begin:end]):
        name = match[1]
        first, last = (bisect_right(starts, begin + at) for at in (match.start(), match.end()))
        if name not in _NESTS and name not in _INNER and name not in _PLAIN:
            return None
        # One that begins in a comment is none; one that a comment ends behind goes on there.
        if not held_lines(text).isdisjoint((first - 1, last)) or (name in _INNER and not depth):
            return None
        depth += _NESTS.get(name, 0)
        out += range(first, last + 1)
    return None if depth else out


def _around(lines: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """A stretch of lines without some of them."""
    for line in (*lines, last + 1):
        if first < line:
            yield first, line - 1
        first = line + 1


def first_line(function: Function, text: str, starts: Sequence[int]) -> int:
    """The line that a function's declaration begins on, template heads on lines of their own included."""
    line = function.start_line
    heads = 0 if function.template is None else _MOST_HEAD_LINES
    while heads:
        above = line - 1
        while above and heads and not text.startswith("template", _first_word(text, starts[above - 1])):
            above, heads = above - 1, heads - 1
        if not above or not heads or _OTHERS.search(text, starts[above - 1], starts[line - 1]):
            break
        line = above
    return line


def _first_word(text: str, start: int) -> int:
    """Where the text of a line begins."""
    return _BLANKS.match(text, start).end()


def _is_alone(function: Function, text: str, first: int, end: int) -> bool:
    """Whether nothing else stands on the lines of a function, and none of them looks like part of a comment."""
    line_end = text.find("\n", end)
    behind = text[end : line_end if line_end >= 0 else len(text)]
    last = text.rfind("\n", 0, end) + 1
    head = text[first : function.offset]
    return not (
        behind.strip()
        or (function.template is not None and "template" not in head)
        or _OTHERS.search(text, first, function.offset)
        or text[first:end].lstrip().startswith(_COMMENT_BEGINS)
        or text[last:end].lstrip().startswith(_COMMENT_BEGINS)
    )


def _offsets(facts: CppFacts) -> list[int]:
    """Where everything stands that is neither a function nor a directive."""
    kinds = (facts.classes, facts.enums, facts.aliases, facts.variables)
    found = [one.offset for kind in (*kinds, facts.invocations, facts.instantiations) for one in kind]
    found += [call.offset for site in facts.bindings for call in site.calls]
    found += [use[2] for site in facts.bindings for use in site.uses]
    return sorted(found)
