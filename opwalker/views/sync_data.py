"""Which memory a stretch of a body touches: what a barrier or a flag can be there for.

In: a body and two offsets. Out: names of what is read and written between them: parameters' memory, shared memory,
members of objects. Registers (locals that are no pointers) are left out. Order of execution is taken to be that of the
text: in a loop what stands behind a barrier may come before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from opwalker.expand.bodies import Body
from opwalker.model.body import LocalFact
from opwalker.notation.cpp_expression import Expr, parse_expression
from opwalker.views.sync_events import root_of

_INDEXES = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim"))


NO_TYPES: Mapping[int, tuple[str, ...]] = {}


class Touched(Struct, frozen=True):
    """Names of what is read, written, and passed on to functions that may do either, in the order of the text."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()

    def said(self, when: str) -> str | None:
        """In words: ``before it: reads a, writes b``; None where nothing is touched."""
        kinds = (("reads", self.reads), ("writes", self.writes), ("passes on", self.passes))
        parts = [f"{verb} {', '.join(names)}" for verb, names in kinds if names]
        return f"{when} it: {', '.join(parts)}" if parts else None

    def first(self, count: int) -> Touched:
        """The first names of each kind."""
        return Touched(self.reads[:count], self.writes[:count], self.passes[:count])


def touched(
    body: Body,
    start: int,
    end: int,
    without: frozenset[str] = frozenset(),
    types: Mapping[int, tuple[str, ...]] = NO_TYPES,
) -> Touched:
    """What is touched in ``[start, end)``; ``without`` are names that are not data, ``types`` the parameters' types of
    the functions that calls mean, by where they begin."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    passes: dict[str, None] = {}
    facts = body.accesses
    for access in facts.accesses:
        uses = [one for one in access.uses if start <= one[0] < end]
        if any(written or read for _, written, read in uses):
            name = _name(body, parse_expression(body.text((access.start, access.end))), access.start)
            if name is not None and name.split(".")[0] not in without:
                if any(read for *_, read in uses):
                    reads[name] = None
                if any(written for _, written, _ in uses):
                    writes[name] = None
    shared = shared_names(body)
    for change in facts.changes:
        if start <= change.start < end and change.target in shared - without:
            writes[change.target] = None
    for call in body.facts.calls:
        if start <= call.start < end:
            kinds = types.get(call.start, ())
            for number, span in enumerate(call.arguments):
                name, constant = _passed(body, span, kinds[number] if number < len(kinds) else None)
                if name is not None and name.split(".")[0] not in without:
                    (reads if constant else passes)[name] = None
    for name in dict.fromkeys(local.name for local in body.facts.locals if local.name in shared):
        # A shared variable that is no array is read by its name alone.
        if name not in reads and name not in without and _mentioned(body, name, start, end):
            reads[name] = None
    return Touched(tuple(reads), tuple(writes), tuple(n for n in passes if n not in reads and n not in writes))


def shared_names(body: Body) -> frozenset[str]:
    """The shared variables of a body."""
    return frozenset(local.name for local in body.facts.locals if "__shared__" in local.type)


def _mentioned(body: Body, name: str, start: int, end: int) -> bool:

    targets = {c.start for c in body.accesses.changes if c.target == name and c.operator == "="}
    declared = {local.start for local in body.locals.get(name, ())}
    text = body.expanded.text
    return any(
        match.start() not in targets and match.start() not in declared
        for match in re.finditer(rf"\b{re.escape(name)}\b(?!\s*\[)", text[:end])
        if match.start() >= start
    )


def _name(body: Body, expr: Expr, at: int) -> str | None:
    """What an access is to: the variable and the member that it goes through, ``dp.ptrs``; None for registers."""
    members: list[str] = []
    steps = 0
    while True:
        steps += expr.kind == "index" or expr.text.startswith("->") or (expr.kind == "unary" and expr.text == "*")
        if expr.kind == "member":
            members.insert(0, expr.simple)
        elif expr.kind not in ("index", "unary", "cast", "postfix") and not (
            expr.kind == "binary" and expr.text in "+-"
        ):
            break
        expr = expr.parts[0]
    if expr.kind != "name" or expr.text in _INDEXES:
        return None
    local = next(iter(reversed(body.locals_at(expr.text, at))), None)
    if local is not None and not _is_memory(local):
        return None
    if local is not None and "[" in local.type and "__shared__" not in local.type and steps < 2:
        return None  # a pointer out of an array of them
    root = _opened(body, local, at) if local is not None else expr.text
    return ".".join((root, *members[:1])) if root is not None else None


def _is_memory(local: LocalFact) -> bool:
    """Whether a local stands for memory: a pointer, an array of pointers, shared memory, a copy of a structure."""
    return "*" in local.type or "__shared__" in local.type or "auto" in local.type


def _opened(body: Body, local: LocalFact, at: int, steps: int = 4) -> str | None:
    """The variable that a pointer points into, followed through the locals that it is made of."""
    name = local.name
    while steps and local is not None and local.value is not None and "__shared__" not in local.type:
        steps -= 1
        found = _name_of_value(parse_expression(body.text(local.value)))
        if found is None:
            # A copy of what a pointer points to, or the result of a call: it keeps its own name.
            return name
        inner = [f for f in body.locals_at(found, local.start) if f.start < local.start]
        name = found
        local = inner[-1] if inner else None
        if local is not None and not _is_memory(local):
            return None
    return name


def _name_of_value(expr: Expr) -> str | None:
    while (
        expr.kind in ("cast", "index")
        or (expr.kind == "unary" and expr.text in "&*")
        or (expr.kind == "binary" and expr.text in "+-")
    ):
        expr = expr.parts[0]
    return expr.text if expr.kind == "name" else None


def _passed(body: Body, span: tuple[int, int], kind: str | None) -> tuple[str | None, bool]:
    """The memory that an argument is the address of, and whether it is passed as constant; ``kind`` is the type of the
    parameter that it is passed for, where that is known."""
    text = body.text(span)
    expr = parse_expression(text)
    if kind is not None and ("*" in kind or "[" in kind) and expr.kind in ("name", "binary", "member"):
        name = root_of(text)
        local = next(iter(reversed(body.locals_at(name, span[0]))), None) if name else None
        if name is None or (local is not None and not _is_memory(local)):
            return None, True
        return (_opened(body, local, span[0]) if local is not None else name), "const" in kind
    if "*" not in text and "&" not in text:
        return None, True
    if expr.kind not in ("unary", "cast") or (expr.kind == "unary" and expr.text != "&"):
        return None, True
    return _name(body, Expr("unary", "*", (expr,)), span[0]), "const" in text
