"""What the reader of values works with: the call that enters a body, names met, what the tree knows, single sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from opwalker.expand.bodies import Body
from opwalker.model.body import LocalFact
from opwalker.notation.cpp_expression import Expr, parse_expression, walk
from opwalker.notation.tensor_expression import asked, dimension_of, rank_of, stride_of

if TYPE_CHECKING:
    from opwalker.views.values import Values


class Call(Struct, frozen=True):
    """The call that a body is entered by: its arguments by parameter name, as the caller writes them, and where;
    ``differing`` are parameters that several calls give different values, each with where it stands; none where one
    of them is not known."""

    values: Values
    arguments: Mapping[str, Expr]
    offset: int
    differing: Mapping[str, tuple[tuple[Expr, int], ...]] = field(default_factory=dict)


class Found(Struct):
    """What was met on the way: names that were kept, with what they hold."""

    kept: dict[str, str] = field(default_factory=dict)

    def keep(self, text: str, value: str) -> bool:
        """Keeps a name for a value; False where it already stands for another one."""
        return self.kept.setdefault(text, value) == value


class Known(Struct, frozen=True):
    """What the tree knows beyond one body: ``constant(name, body)`` gives the text of a constant's value,
    ``takes_reference(function, position)`` whether a function may change what it is given there."""

    constant: Callable[[str, Body], str | None] = lambda text, body: None
    takes_reference: Callable[[str, int], bool] = lambda text, position: False


NOTHING_KNOWN = Known()


def passed_on(expr: Expr) -> str | None:
    """A name that an expression only passes on: ``x``, ``*x``, ``x.value()``, ``std::move(x)``."""
    if expr.kind == "unary" and expr.text in ("*", "&"):
        return passed_on(expr.parts[0])
    if expr.kind == "call" and len(expr.parts) == 2 and expr.parts[0].kind == "name":
        # `std::move(x)` and `torch::stable::contiguous(x)` give what they are given.
        return passed_on(expr.parts[1]) if expr.parts[0].simple in ("move", "contiguous") else None
    if expr.kind == "call" and expr.parts[0].kind == "member" and expr.parts[0].simple in ("value", "contiguous"):
        return passed_on(expr.parts[0].parts[0]) if len(expr.parts) == 1 else None
    return expr.text if expr.kind == "name" and re.fullmatch(r"\w+", expr.text) else None


def made_once(body: Body, held: LocalFact) -> bool:
    """Whether a local holds what it is made from in the first call alone: a ``static`` that is set later, or one that
    is made from what each call has of its own."""
    words = held.type.split()
    if held.value is None or "constexpr" in words or not {"static", "thread_local"}.intersection(words):
        return False
    if body.assigns.get(held.name):
        return True
    names = {node.text for node in walk(parse_expression(body.text(held.value))) if node.kind == "name"} - {held.name}
    own = {p.name for p in body.function.parameters} if body.function is not None else set()
    return any(name in own or body.locals_at(name, held.start) for name in names)


def is_size(expr: Expr) -> bool:
    """Whether a value is one size, stride, rank or count of a tensor, read as it is."""
    if dimension_of(expr) or stride_of(expr) or rank_of(expr):
        return True
    found = asked(expr)
    return bool(found and found[1] in ("numel", "element_size", "itemsize", "size", "stride") and len(found[2]) < 2)
