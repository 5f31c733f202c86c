"""Bindings of functions to Python as they are written: read by the rules about the interpreter lock.

In: a tree and the place of a binding. Out: whether its call guard releases the lock."""

from __future__ import annotations

from opwalker.model.check import CheckedTree


def has_call_guard(tree: CheckedTree, file: str, line: int, name: str) -> bool:
    """Whether the binding has a call guard: its text from its line to the end of the call."""
    lines = tree.text(file).split("\n")
    text = " ".join(lines[line - 1 : line + 12])
    start = text.find(f'"{name}"')
    depth, end = 1, len(text)
    for at in range(max(start, 0), len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            end = at
            break
    return "gil_scoped_release" in text[max(start, 0) : end]
