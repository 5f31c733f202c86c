"""The parts of a text between an operator, on its outermost level: outside of brackets and quotes.

In: an expression's text and what stands between its parts (``,``, ``+``, ``<<``). Out: the parts as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def outermost(text: str, between: str) -> Iterator[str]:
    """The parts of ``a + b + c``; the whole text where ``between`` stands nowhere on its outermost level."""
    depth = begin = 0
    quoted = False
    for at, char in enumerate(text):
        if char == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif not quoted and char in "([{":
            depth += 1
        elif not quoted and char in ")]}":
            depth -= 1
        elif not quoted and depth == 0 and text.startswith(between, at) and at >= begin:
            yield text[begin:at]
            begin = at + len(between)
    yield text[begin:]


def bare_names(names: Sequence[str]) -> list[str]:
    """Names of calls; those that differ in template arguments alone are one, ``f<…>``."""
    by_name: dict[str, list[str]] = {}
    for name in names:
        by_name.setdefault(name.split("<", 1)[0], []).append(name)
    return [found[0] if len(found) == 1 else f"{name}<…>" for name, found in by_name.items()]
