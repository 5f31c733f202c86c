"""What syntax trees of Python build scripts say of themselves, remembered for each node.

In: nodes. Out: names. A script is evaluated once for every kind of build, and its functions many times.
"""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=20_000)
def names_in(node: ast.AST) -> tuple[str, ...]:
    """The variables that an expression reads, in alphabetical order."""
    return tuple(sorted({inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}))


@lru_cache(maxsize=20_000)
def decorators_of(function: ast.AST) -> frozenset[str]:
    """The last parts of the names of a function's decorators."""
    found: set[str] = set()
    for decorator in getattr(function, "decorator_list", ()):
        plain = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.add(plain.attr if isinstance(plain, ast.Attribute) else getattr(plain, "id", ""))
    return frozenset(found)
