"""Which device a guard is for and which stream is meant, in words.

In: expressions of a body. Out: words, or None where the expression cannot be followed to a tensor.
"""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression
from opwalker.notation.tensor_expression import asked, tensor_of
from opwalker.views.value_facts import Found
from opwalker.views.values import Values

_DEVICE = frozenset(("device", "get_device", "get_device_index", "cuda_device"))
#: Casts that are written as calls: `char(x.get_device())`.
_CASTS = frozenset(("char", "int", "int8_t", "int32_t", "c10::DeviceIndex", "at::DeviceIndex"))
_OF = frozenset(("device_of", "get_device", "ffi_get_device", "device_index_of"))


def device_words(body: Body, text: str | None, offset: int) -> str | None:
    """Whose device an expression is: ``the device of input``; with its cases where that depends on conditions."""
    return _Reader(Values(body), offset).words(parse_expression(text)) if text else None


class _Reader:
    def __init__(self, values: Values, offset: int) -> None:
        self._values = values
        self._offset = offset

    def words(self, expr: Expr, depth: int = 0) -> str | None:
        """Whose device an expression is, or None."""
        found = Found()
        expr = self._values.of(expr, self._offset, found)
        if depth > 6:
            return None
        if expr.kind == "name" and expr.text in found.kept:
            return self.words(parse_expression(found.kept[expr.text]), depth + 1)
        if expr.kind == "member" and expr.simple == "device_id":
            return self.words(expr.parts[0], depth + 1)
        if expr.kind == "cast" or (expr.kind == "unary" and expr.text == "*"):
            return self.words(expr.parts[0], depth + 1)
        if expr.kind == "ternary":
            yes, no = (self.words(part, depth + 1) for part in expr.parts[1:])
            return f"{yes} where {said(expr.parts[0])}, else {no}" if yes and no else None
        told = asked(expr)
        if told and told[1] in ("index", "getIndex", "value") and expr.kind == "call":
            return self.words(expr.parts[0].parts[0], depth + 1)
        if told and told[1] in _DEVICE:
            return f"the device of {told[0]}" if re.fullmatch(r"[\w.]+", told[0]) else None
        if expr.kind == "call" and expr.parts[0].simple in _OF and len(expr.parts) == 2:
            return f"the device of {tensor_of(expr.parts[1])}"
        if expr.kind == "call" and len(expr.parts) == 2 and expr.parts[0].text in _CASTS:
            return self.words(expr.parts[1], depth + 1)
        return None


def stream_words(body: Body, text: str, offset: int) -> str | None:
    """Which stream a call gives."""
    call = parse_expression(text)
    while call.kind == "call" and call.parts[0].kind == "member" and call.parts[0].simple in ("stream", "cuda_stream"):
        call = call.parts[0].parts[0]
    if call.kind != "call":
        return None
    name = call.parts[0].simple
    if re.search(r"StreamFromPool", name):
        return "a stream of the pool"
    if re.search(r"Default", name):
        return "the default stream"
    if not re.search(r"[cC]urrent|EnvGetStream|get_stream", name):
        return None
    arguments = [part for part in call.parts[1:] if part.kind != "unary"]
    if not arguments:
        return "the current stream"
    of = device_words(body, print_expression(arguments[-1]), offset)
    return f"the current stream of {of}" if of else "the current stream"
