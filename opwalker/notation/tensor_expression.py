"""What a C++ expression asks of a tensor: ``x.size(0)``, ``x.stride(-1)``, ``x.dim()``, in all their spellings.

In: an ``Expr``. Out: the tensor and what is asked, or None. Tensors by their names; optionals, pointers and casts
around them are looked through.
"""

from __future__ import annotations

import re

from opwalker.notation.cpp_expression import Expr, print_expression
from opwalker.notation.regex import Regex

_RANK = frozenset(("dim", "ndim", "ndimension"))
_SCALAR_TYPE = Regex(
    r"(?:\w+::)*ScalarType::(\w+)\Z|(?:(?:at|torch|c10)::)?k((?:B?Float|Half|Double|U?Int|Long|Short|Char|Byte|Bool|Complex"
    r"|QU?Int)(?:\d\w*)?)\Z|(?:\w+::)*dl_?(\w+)\Z"
)


def tensor_of(expr: Expr) -> str:
    """What an expression speaks of: ``weight`` for ``weight->``, ``weight.value()``, ``(*weight)``."""
    while True:
        if expr.kind == "unary" and expr.text in ("*", "&"):
            expr = expr.parts[0]
        elif method(expr) in ("value", "get", "unwrap") and len(expr.parts) == 1:
            expr = expr.parts[0].parts[0]
        elif expr.kind == "cast":
            expr = expr.parts[0]
        else:
            return print_expression(expr)


def asked(expr: Expr) -> tuple[str, str, tuple[Expr, ...]] | None:
    """``(tensor, method, arguments)`` of ``tensor.method(arguments)``; also of ``tensor.shape[0]``; else None."""
    if expr.kind == "index" and len(expr.parts) == 2:
        held = expr.parts[0]
        if held.kind == "member" and held.simple in ("shape", "sizes", "strides"):
            return tensor_of(held.parts[0]), held.simple, (expr.parts[1],)
        if method(held) in ("sizes", "shape", "strides") and len(held.parts) == 1:
            return tensor_of(held.parts[0].parts[0]), held.parts[0].simple, (expr.parts[1],)
    if expr.kind == "call" and expr.parts[0].kind == "member":
        return tensor_of(expr.parts[0].parts[0]), expr.parts[0].simple, expr.parts[1:]
    return None


def dimension_of(expr: Expr) -> tuple[str, int] | None:
    """``(tensor, dimension)`` of ``x.size(-1)``, ``x.sizes()[0]`` and their like; None for anything else."""
    found = asked(expr)
    if found is None or found[1] not in ("size", "sizes", "sym_size", "shape") or len(found[2]) != 1:
        return None
    number = whole(found[2][0])
    return (found[0], number) if number is not None else None


def stride_of(expr: Expr) -> tuple[str, int] | None:
    """``(tensor, dimension)`` of ``x.stride(0)`` and its like; None for anything else."""
    found = asked(expr)
    if found is None or found[1] not in ("stride", "strides", "sym_stride") or len(found[2]) != 1:
        return None
    number = whole(found[2][0])
    return (found[0], number) if number is not None else None


def rank_of(expr: Expr) -> str | None:
    """The tensor whose number of dimensions is asked for; None for anything else."""
    found = asked(expr)
    return found[0] if found and found[1] in _RANK and not found[2] else None


def whole(expr: Expr) -> int | None:
    """The value of a whole number as written, None for anything else."""
    if expr.kind == "unary" and expr.text == "-" and (inner := whole(expr.parts[0])) is not None:
        return -inner
    if expr.kind == "cast":
        return whole(expr.parts[0])
    match = re.match(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\Z", expr.text) if expr.kind == "number" else None
    return int(match[1], 0 if match[1][:2] in ("0x", "0X") else 10) if match else None


def scalar_type(expr: Expr) -> str | None:
    """The name of a scalar type that an enumerator means (``at::kHalf``, ``ScalarType::Half``: ``Half``)."""
    match = _SCALAR_TYPE.match(expr.text) if expr.kind == "name" else None
    return (match[1] or match[2] or match[3]) if match else None


def method(expr: Expr) -> str:
    """The member function that a call calls, empty for anything else."""
    return expr.parts[0].simple if expr.kind == "call" and expr.parts[0].kind == "member" else ""


def as_comparison(expr: Expr) -> Expr:
    """``a.sizes().equals(b)`` as ``a.sizes() == b``; anything else as it is."""
    if method(expr) in ("equals", "equal") and len(expr.parts) == 2:
        return Expr("binary", "==", (expr.parts[0].parts[0], expr.parts[1]))
    return expr


def extents_of(expr: Expr) -> tuple[Expr, ...] | None:
    """The extents in ``torch::IntArrayRef({a, b})``, ``std::vector<int64_t>{a, b}`` or ``{a, b}``."""
    if expr.kind == "braces":
        return expr.parts
    if expr.kind == "call" and len(expr.parts) == 2 and expr.parts[1].kind == "braces":
        return expr.parts[1].parts if expr.parts[0].simple.endswith(("Ref", "vector", "Shape", "SmallVector")) else None
    return None
