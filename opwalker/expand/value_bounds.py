"""How large an index can be: what loops, conditions and guards around a place say, and proofs from it.

In: a place of a body. Out: ``Bounds``, which answers whether one polynomial stays below another. All values are taken
to be natural numbers, extents to be at least 1. No answer is a guess: what is not proved is not so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from opwalker.expand.bodies import Body
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import THREAD_EXTENTS, Number, World
from opwalker.model.access import Leave
from opwalker.notation.cpp_expression import Expr, negated, parse_expression
from opwalker.notation.polynomial import (
    Atom,
    Poly,
    of_atom,
    over,
    poly,
    quotient,
    remainder,
    replace,
    split,
    symbol,
)

#: ``(small, big)``: small < big.
Relation = tuple[Poly, Poly]
_MAX_TRIES = 80


def relations_at(reader: ValueReader, at: int) -> list[Relation]:
    """What is known where an offset is reached, from the loops and branches around it and the guards before it."""
    body, facts = reader.body, reader.body.accesses
    out: list[Relation] = []
    for block in body.facts.blocks:
        if block.condition is None or not block.start <= at < block.end:
            continue
        if block.kind in ("if", "if constexpr"):
            out += _of_span(reader, block.condition, False)
        elif block.kind in ("else", "else constexpr"):
            out += _of_span(reader, block.condition, True)
    for loop in facts.loops:
        if loop.condition is not None and loop.body[0] <= at < loop.body[1]:
            out += _of_span(reader, loop.condition, False)
    for leave in facts.leaves:
        held = leave.start <= at and leave.until[0] <= at < leave.until[1]
        # What leaves in some builds alone says nothing of the others.
        if held and body.only_where(leaving_at(body, leave), at) == ():
            out += _of_span(reader, leave.condition, True)
    return out


def leaving_at(body: Body, leave: Leave) -> int:
    """Where the statement stands that leaves."""
    return max(body.expanded.text.rfind(leave.kind, leave.condition[1], leave.start), leave.condition[1])


def _of_span(reader: ValueReader, span: tuple[int, int], opposite: bool) -> list[Relation]:
    expr = parse_expression(reader.body.expanded.text[span[0] : span[1]])
    return list(_of_condition(reader, negated(expr) if opposite else expr, span[0]))


def _of_condition(reader: ValueReader, expr: Expr, at: int) -> Iterator[Relation]:
    if expr.kind != "binary":
        return
    if expr.text == "&&":
        for part in expr.parts:
            yield from _of_condition(reader, part, at)
        return
    if expr.text not in ("<", ">", "<=", ">=", "=="):
        return
    left, right = (reader.value(part, at) for part in expr.parts)
    if not isinstance(left, Number) or not isinstance(right, Number):
        return
    small, big = left.poly, right.poly
    if expr.text == "==":
        yield small, big + 1
        yield big, small + 1
    elif expr.text in ("<", "<="):
        yield small, big if expr.text == "<" else big + 1
    else:
        yield big, small if expr.text == ">" else small + 1


class Bounds:
    """Proofs from relations. ``extents`` are what is known of ``gridDim.x`` and the like."""

    def __init__(
        self,
        world: World,
        relations: Sequence[Relation],
        extents: Mapping[str, Poly] | None = None,
        change: Callable[[Poly], Poly] = lambda value: value,
        back: Callable[[Poly], Poly] = lambda value: value,
    ) -> None:
        self._world = world
        self._relations = relations
        self._extents = extents or {}
        self._change = change
        self._back = back
        self._tries = 0
        self._seen: set[tuple[Poly, frozenset[Atom]]] = set()
        self._definitions: dict[Atom, Poly] = {}
        self._extent: dict[Atom, bool] = {}
        self._proved: dict[tuple[Poly, Poly], bool] = {}

    def changed(self, change: Callable[[Poly], Poly], back: Callable[[Poly], Poly]) -> Bounds:
        """The same with every polynomial changed; ``back`` undoes the change."""
        extents = {name: change(value) for name, value in self._extents.items()}
        return Bounds(self._world, [(change(a), change(b)) for a, b in self._relations], extents, change, back)

    def _definition(self, atom: Atom) -> Poly | None:
        """What a kept symbol stands for."""
        found = self._definitions.get(atom)
        if found is None and atom in self._world.definitions:
            found = self._definitions[atom] = self._change(self._world.definitions[atom])
        return found

    def below(self, value: Poly, limit: Poly) -> bool:
        """Whether a value is proved to be smaller than a limit."""
        key = value, limit
        if key not in self._proved:
            self._start()
            self._proved[key] = (value, limit) in self._relations or any(
                self._natural(limit - 1 - form)
                for most in self._most(value, frozenset())
                for form in _without_choice(most)
            )
        return self._proved[key]

    def _start(self) -> None:
        self._tries = 0
        self._seen.clear()

    def fills(self, value: Poly, extent: Poly, dims: frozenset[Atom]) -> bool:
        """Whether a value is shown to stay below an extent and nothing of the extent's dimensions is left over."""
        self._start()
        for most in self._most(value, frozenset()):
            for form in _without_choice(most):
                left = extent - 1 - form
                if self._natural(left) and any(not one.atoms() & dims for one in _forms(left)):
                    return True
        return False

    def limits(self, atom: Atom) -> Iterator[Poly]:
        """What an atom is known to be smaller than."""
        own = of_atom(atom)
        for small, big in self._relations:
            if small == own:
                yield big
            elif atom in small.atoms() and (rest := small - own) and all(c > 0 for c in rest.terms.values()):
                if atom not in rest.all_atoms():
                    yield big  # what is added to it is natural
        if atom.kind == "symbol":
            which, _, axis = atom.name.partition(".")
            if which in THREAD_EXTENTS:
                extent = f"{THREAD_EXTENTS[which]}.{axis}"
                yield self._extents.get(extent) or self._world.extents.get(extent, symbol(extent))
                if extent in self._world.called:
                    yield self._world.called[extent]
            definition = self._definition(atom)
            if definition is not None:
                yield from (most + 1 for most in self._most(definition, frozenset((atom,))))
        elif atom.kind == "remainder":
            yield atom.parts[1]
            yield from (most + 1 for most in self._most(atom.parts[0], frozenset((atom,))))
        elif atom.kind == "quotient":
            for most in self._most(atom.parts[0], frozenset((atom,))):
                if most == atom.parts[0]:
                    continue  # nothing is known of it
                whole, rest = split(most + 1, atom.parts[1])
                yield whole if not rest else quotient(most + atom.parts[1], atom.parts[1])

    def _most(self, value: Poly, without: frozenset[Atom]) -> Iterator[Poly]:
        """Polynomials without moving symbols that a value is at most."""
        self._tries += 1
        if self._tries > _MAX_TRIES or (value, without) in self._seen:
            return
        self._seen.add((value, without))
        moving = [a for a in value.atoms() if a not in without and self._is_moving(a)]
        if not moving:
            yield value
            return
        # What depends on others goes first: its limit may hold them.
        moving.sort(key=lambda a: (-len(of_atom(a).all_atoms() | self._inside(a)), a.text))
        for atom in moving:
            factors = [c for m, c in value.terms.items() if any(a == atom for a, _ in m)]
            if all(c < 0 for c in factors):
                yield from self._most(_put(value, atom, poly(0)), without)
                return
            if all(c > 0 for c in factors):
                for limit in self.limits(atom):
                    yield from self._most(_put(value, atom, limit - 1), without)
                definition = self._definition(atom)
                if definition is not None:
                    yield from self._most(_put(value, atom, definition), without)
            if atom.kind in ("quotient", "remainder"):
                # What has no limit of use may still cancel.
                yield from self._most(value, without | {atom})
            return

    def _inside(self, atom: Atom) -> frozenset[Atom]:
        definition = self._definition(atom)
        return definition.all_atoms() if definition is not None else frozenset()

    def _is_moving(self, atom: Atom) -> bool:
        return not (atom.kind == "call" and atom.name == "min") and self._world.moves(of_atom(atom))

    def _natural(self, value: Poly) -> bool:
        """Whether a polynomial of extents is proved not to be negative."""
        before = self._back(value)
        for form in (*_forms(value), *(_forms(before) if before != value else ())):
            if all(factor >= 0 for factor in form.terms.values()):
                return True
            if self._falls_short(form):
                continue
            at_least_one = replace(form, lambda a: of_atom(a) + 1 if self._is_extent(a) else None)
            if all(factor >= 0 for factor in at_least_one.terms.values()):
                return True
        return False

    def _falls_short(self, form: Poly) -> bool:
        """Whether a polynomial is negative for some small extents, everything else taken as 0: then it has no proof."""
        for size in (1, 2, 64):
            total = 0
            for monomial, factor in form.terms.items():
                if all(self._is_extent(atom) for atom, _ in monomial):
                    total += factor * size ** sum(power for _, power in monomial)
            if total < 0:
                return True
        return False

    def _is_extent(self, atom: Atom) -> bool:
        found = self._extent.get(atom)
        if found is None:
            found = self._extent[atom] = atom.kind == "symbol" and not self._world.moves(of_atom(atom))
        return found


def _without_choice(value: Poly) -> Iterator[Poly]:
    """A polynomial, and what it is at most with a ``min`` taken for one of its values."""
    yield value
    for atom in sorted(value.atoms()):
        if atom.kind == "call" and atom.name == "min" and all(c > 0 for c in _by(value, atom)[0].terms.values()):
            for part in atom.parts:
                yield from _without_choice(_put(value, atom, part))


def _forms(value: Poly) -> Iterator[Poly]:
    """A polynomial, and as it is with ``d * (a / d)`` taken back to ``a - a % d`` where it is subtracted."""
    yield value
    form = value
    for atom in sorted(value.atoms()):
        if atom.kind != "quotient":
            continue
        factor, rest = _by(form, atom)
        if not factor or any(count > 0 for count in factor.terms.values()):
            continue
        whole, left = split(factor, atom.parts[1])
        if whole:
            dividend, divisor = atom.parts
            form = (dividend - remainder(dividend, divisor)) * whole + of_atom(atom) * left + rest
            yield form


def _by(value: Poly, atom: Atom) -> tuple[Poly, Poly]:
    """``(f, r)`` with ``value == f * atom + r``."""
    held: dict = {}
    rest: dict = {}
    for monomial, count in value.terms.items():
        left = over(monomial, ((atom, 1),))
        if left is None:
            rest[monomial] = count
        else:
            held[left] = count
    return Poly(held), Poly(rest)


def _put(value: Poly, atom: Atom, by: Poly) -> Poly:
    """A polynomial with one of its own atoms replaced, those within other atoms left as they are."""
    factor, rest = _by(value, atom)
    return rest if not factor else _put(factor, atom, by) * by + rest


__all__ = ["Bounds", "Relation", "leaving_at", "relations_at"]
