"""Which parameter's memory a pointer points into, by what it is made of, where its value is not worked out.

In: an expression of a body. Out: the names of the pointer parameters that it may come from: through casts, offsets,
addresses of elements, and locals that hold those. What is read from memory points nobody knows where.
"""

from __future__ import annotations

from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Pointer, Several
from opwalker.notation.cpp_expression import Expr, parse_expression

_NOTHING = ("nullptr", "NULL")
_STEPS = 6


def bare_root(root: str) -> str:
    """The name of what an address lies in, without what tells it from others of that name."""
    return root.split("@", 1)[0].rstrip("'")


def pointed_into(reader: ValueReader, expr: Expr, at: int) -> tuple[str, ...]:
    """The parameters of the kernel in whose memory an address may lie; nothing where it may lie elsewhere."""
    roots = _roots(reader, expr, at, _STEPS)
    return () if "" in roots else tuple(sorted(roots))


def _roots(reader: ValueReader, expr: Expr, at: int, steps: int) -> set[str]:
    """The parameters that an address may come from; an empty text stands for anything else."""
    while expr.kind in ("cast", "call") or (expr.kind == "unary" and expr.text == "&"):
        if expr.kind == "call" and not (len(expr.parts) == 2 and "_cast" in expr.parts[0].simple):
            return {""}
        address, expr = expr.kind == "unary", expr.parts[-1]
        while address and expr.kind in ("index", "member") and not expr.text.startswith("->"):
            expr = expr.parts[0]
    if expr.kind == "binary" and expr.text in "+-":
        return _roots(reader, expr.parts[0], at, steps)
    if expr.kind == "ternary":
        return _roots(reader, expr.parts[1], at, steps) | _roots(reader, expr.parts[2], at, steps)
    if expr.kind != "name" or not steps:
        return {""}
    body = reader.body
    held = [one for one in body.locals_at(expr.text, at) if one.start <= at]
    if not held:
        return _parameter(reader, expr.text)
    local = held[-1]
    if "*" not in local.type and "auto" not in local.type:
        return {""}
    # Moved pointers stay within what they point into.
    set_ = [one.value for one in body.accesses.changes if one.target == expr.text and one.operator == "="]
    values = [span for span in (local.value, *set_) if span is not None and body.text(span).strip("= ") not in _NOTHING]
    found = (_roots(reader, parse_expression(body.text(span)), span[0], steps - 1) for span in values)
    return set().union(*found) if values else {""}


def _parameter(reader: ValueReader, name: str) -> set[str]:
    """Where a parameter points: of the kernel, itself; of a helper, where its caller says."""
    value = reader.bound.get(name)
    if isinstance(value, Pointer):
        return {value.root}
    if isinstance(value, Several):
        return {one.root for _, one in value.options if isinstance(one, Pointer)} or {""}
    return {name} if not reader.depth else {""}
