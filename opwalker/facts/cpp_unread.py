"""Which lines of a C++ file hold functions that a reader of the file did not look at.

In: a file's facts and text, and which functions were looked at. Out: stretches of whole lines, each one function and
nothing else. A function stays where its lines hold anything that may say something of what stands around it:
directives, other declarations, or the end of a comment above what follows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from opwalker.facts.cpp_text import line_starts
from opwalker.model.cpp import CppFacts, Function
from opwalker.notation.regex import Regex

#: What may stand before a function's name on its first line beside its own head.
_OTHERS = Regex(r'[;{}#"\\]|//|/\*')
#: A line within a function that is more than its code.
_DIRECTIVE = Regex(r"^[ \t]*#|\\[ \t\r]*$", 8)  # re.MULTILINE, without the import
_COMMENT_BEGINS = ("/", "*")


def unread(
    facts: CppFacts, text: str, is_read: Callable[[Function], bool], spans: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]] | None:
    """The lines of functions outside of classes that were not read: first and last line of each. ``is_read`` says
    which were; ``spans`` are stretches of text that were, besides. None where one of these goes beyond a function: what
    stands between functions was read."""
    starts = line_starts(text)
    others = _offsets(facts)
    bodies = [(f.offset, f.body_end) for f in facts.functions if f.body_end]
    bodies += [(c.body_start, c.body_end) for c in facts.classes if c.body_end]
    out: list[tuple[int, int]] = []
    for function in facts.functions:
        if not function.body_end or is_read(function):
            continue
        first, end = starts[function.start_line - 1], function.body_end
        if any(a < first and end < b for a, b in bodies):
            continue  # within a class, or another function
        if any(a <= first and end <= b for a, b in spans):
            return None
        if any(a < end and first < b for a, b in spans):
            continue
        if _is_alone(function, text, first, end, others) and not _holds_read(facts, function, first, end, is_read):
            out.append((function.start_line, function.end_line))
    return out


def _is_alone(function: Function, text: str, first: int, end: int, others: Sequence[int]) -> bool:
    """Whether the lines of a function hold nothing else."""
    line_end = text.find("\n", end)
    behind = text[end : line_end if line_end >= 0 else len(text)]
    if behind.strip() or _OTHERS.search(text, first, function.offset) or _DIRECTIVE.search(text[first:end]):
        return False
    if text[first:end].lstrip().startswith(_COMMENT_BEGINS):
        return False
    last = text.rfind("\n", 0, end) + 1
    if text[last:end].lstrip().startswith(_COMMENT_BEGINS):
        return False
    at = bisect_left(others, first)
    return at == len(others) or others[at] >= end


def _holds_read(
    facts: CppFacts, function: Function, first: int, end: int, is_read: Callable[[Function], bool]
) -> bool:
    """Whether a function that was read stands within another one."""
    return any(first <= f.offset < end and f is not function and is_read(f) for f in facts.functions)


def _offsets(facts: CppFacts) -> list[int]:
    """Where everything stands that is no function."""
    kinds = (facts.includes, facts.macros, facts.classes, facts.enums, facts.aliases, facts.variables)
    found = [one.offset for kind in (*kinds, facts.invocations, facts.instantiations) for one in kind]
    found += [call.offset for site in facts.bindings for call in site.calls]
    found += [use[2] for site in facts.bindings for use in site.uses]
    return sorted(found)
