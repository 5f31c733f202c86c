"""Conditions that hold in some builds alone: what is known behind ``#if X``, ``if (n == 0) return;``, ``#endif``.

In and out: ``Expr``. Such a condition is a node of its own around the other one, so that whoever asks for a comparison
does not find one; its code and its words end with the preprocessor condition: ``n is not 0 (#if X)``.
"""

from __future__ import annotations

from opwalker.notation.cpp_expression import Expr

_MARK = " (#if "


def in_some_builds(condition: Expr, compiled: str) -> Expr:
    """A condition that is known only where ``compiled`` holds for the preprocessor."""
    return Expr("postfix", f"{_MARK}{compiled})", (condition,))


def is_of_some_builds(expr: Expr) -> bool:
    """Whether a node is one that ``in_some_builds`` makes: ``text`` is what stands behind the words of its part."""
    return expr.kind == "postfix" and expr.text.startswith(_MARK)
