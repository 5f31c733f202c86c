"""An index against a documented shape: is it the row-major index of that shape?

In: the index as a polynomial, the dimensions as polynomials, strides that the host passes, and what is known of the
ranges. Out: ``Comparison``. Every answer but ``not_decided`` is a proof from these: coordinates that are one symbol
stand for a dimension where the stride is the dimension's, all others have to be shown to stay within it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from msgspec import Struct, field

from opwalker.expand.value_bounds import Bounds
from opwalker.expand.values import World, shown
from opwalker.notation.polynomial import Atom, Poly, of_atom, over, poly, replace, split, symbol

#: A dimension: a polynomial, or None for ``...`` (any number of them) and ``*`` (any size).
Dim = tuple[str, Poly | None]
#: Dimensions beyond which other orders of them are not tried.
_MAX_ORDER = 6


class Taken(Struct, frozen=True):
    """What may be taken for granted: pairs ``(a, x)`` of which ``x`` divides ``a``, as documented shapes say; symbols
    that are taken for each other, with the words for it; the numbers of named constants."""

    divisible: tuple[tuple[Poly, Poly], ...] = ()
    equal: tuple[tuple[Atom, Poly, str], ...] = ()
    constants: tuple[tuple[Atom, int], ...] = ()


class Part(Struct, frozen=True):
    """The coordinate of one dimension, or of several that are run through as one (``first`` to ``last``)."""

    first: int
    last: int
    value: Poly
    stride: Poly
    passed: bool = False


class Comparison(Struct, frozen=True):
    """The verdict with its parts; see ``LayoutFact``."""

    verdict: str
    parts: tuple[Part, ...] = ()
    reason: str | None = None
    given: tuple[str, ...] = ()


class _Shape(Struct):
    """Dimensions made ready: each one product; ``given`` says what that takes for granted."""

    dims: list[Poly | None]
    names: list[str]
    changes: dict[Atom, Poly] = field(default_factory=dict)
    back: dict[Atom, Poly] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)

    def put(self, value: Poly) -> Poly:
        """A polynomial in the symbols of the prepared dimensions."""
        out = value
        for atom, by in self.changes.items():
            out = replace(out, lambda a, atom=atom, by=by: by if a == atom else None)
        return out

    def shown(self, value: Poly) -> Poly:
        """A polynomial in the reader's symbols again."""
        out = value
        for atom, by in reversed(self.back.items()):
            out = replace(out, lambda a, atom=atom, by=by: by if a == atom else None)
        return out


def compare(
    index: Poly, dims: Sequence[Dim], strides: Mapping[Atom, int], world: World, bounds: Bounds, taken: Taken = Taken()
) -> Comparison:
    """Compare an index with a shape. ``strides`` are the symbols of strides passed for this tensor, by dimension;
    ``taken`` is what may be taken for granted where the index cannot be decided without it."""
    found = _compared(index, dims, strides, world, bounds, Taken(equal=taken.equal))
    if found.verdict == "not_decided" and taken.divisible:
        other = _compared(index, dims, strides, world, bounds, Taken(taken.divisible, taken.equal))
        found = other if other.verdict != "not_decided" else found
    if found.verdict == "not_decided":
        parts = [a.parts for a in sorted(index.all_atoms()) if a.kind == "quotient"]
        whole = tuple(pair for pair in parts if not world.moves(pair[0]))
        # `row * stride / lanes`: the stride is a whole number of lanes.
        whole += tuple((of_atom(s), by) for of, by in parts for s in strides if s in of.atoms() and not world.moves(by))
        more = Taken((*taken.divisible, *whole), taken.equal, taken.constants)
        if whole or taken.constants:
            other = _compared(index, dims, strides, world, bounds, more)
            found = other if other.verdict != "not_decided" else found
    return found


def _compared(
    index: Poly, dims: Sequence[Dim], strides: Mapping[Atom, int], world: World, bounds: Bounds, taken: Taken
) -> Comparison:
    shape = _prepared(dims, taken, index)
    if shape is None:
        return Comparison("not_decided", reason="the documented shape has a dimension that is not read")
    placed = {atom: _dimension(number, shape.names) for atom, number in strides.items()}
    if None in placed.values():
        return Comparison("not_decided", reason="it is made with a stride of a dimension that is not documented")
    ranges = bounds.changed(shape.put, shape.shown)
    first: Comparison | None = None
    for form in _forms(index, world):
        value = shape.put(form)
        found = _decomposed(value, shape, placed, world, ranges)
        if found.verdict != "not_decided":
            return _finished(found, shape)
        first = first or found
        other = None if strides else _other_order(value, shape, world, ranges)
        if other is not None:
            return _finished(other, shape)
    return first if first is not None else Comparison("not_decided", reason="no index")


def _dimension(number: int, names: Sequence[str]) -> int | None:
    """The documented dimension that a stride's number means; what lies left of ``...`` or in it is that."""
    count = len(names)
    dots = names.index("...") if "..." in names else None
    if dots is None:
        return number % count if -count <= number < count else None
    if number < 0:
        return max(count + number, dots)
    return number if number <= dots else None


def _forms(index: Poly, world: World) -> list[Poly]:
    """An index as it is written, and with what its symbols stand for."""
    out = [index]
    opened = world.opened(index)
    if opened != index:
        out.append(opened)
    return out


def _finished(found: Comparison, shape: _Shape) -> Comparison:
    parts = tuple(Part(p.first, p.last, shape.shown(p.value), shape.shown(p.stride), p.passed) for p in found.parts)
    return Comparison(found.verdict, parts, found.reason, tuple(dict.fromkeys((*shape.given, *found.given))))


def _prepared(dims: Sequence[Dim], taken: Taken, index: Poly) -> _Shape | None:
    shape = _Shape([], [])
    for atom, number in taken.constants:
        shape.changes[atom] = poly(number)
    used = index.all_atoms().union(*(value.all_atoms() for _, value in dims if value is not None))
    for atom, by, words in taken.equal:
        if atom in used:
            shape.changes[atom] = shape.put(by)
            shape.given.append(words)
    for dividend, divisor in taken.divisible:
        _divide(shape, dividend, divisor)
    for number, (name, value) in enumerate(dims):
        shape.names.append(name)
        if value is None:
            shape.dims.append(None if name == "..." else symbol(f"*{number}"))
            continue
        for atom in sorted(value.all_atoms()):
            if atom.kind == "quotient":
                _divide(shape, *atom.parts)
        made = shape.put(value)
        if made.monomial is None:
            made = _named_sum(shape, made, name)
            if made is None:
                return None
        shape.dims.append(made)
    shape.dims = [None if d is None else shape.put(d) for d in shape.dims]
    return shape


def _divide(shape: _Shape, dividend: Poly, divisor: Poly) -> None:
    """Take it that a divisor divides: the dividend is then a product."""
    whole, part = shape.put(dividend), shape.put(divisor)
    atom = whole.atom
    if atom is None or atom.kind != "symbol" or part.monomial is None or (not part.atoms() and part.constant is None):
        return
    found = of_atom(Atom("quotient", "", (whole, part)))
    shape.given.append(f"{dividend} % {_bracketed(divisor)} == 0")
    counted = symbol(f"{dividend}/{_bracketed(divisor)}")
    shape.changes[atom] = counted * part
    shape.back[counted.atom] = found


def _bracketed(value: Poly) -> str:
    single = value.monomial
    return str(value) if value.constant is not None or (single and len(single[0]) == 1) else f"({value})"


def _named_sum(shape: _Shape, made: Poly, name: str) -> Poly | None:
    """A dimension that is a sum, as one symbol: one of its symbols is then the rest taken away from it."""
    for monomial, factor in sorted(made.terms.items(), key=lambda item: str(item[0]), reverse=True):
        if factor == 1 and len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind == "symbol":
            atom = monomial[0][0]
            whole = symbol(f"({name})")
            shape.changes[atom] = whole - (made - of_atom(atom))
            shape.back[whole.atom] = made
            return whole
    return None


def _decomposed(value: Poly, shape: _Shape, strides: Mapping[Atom, int], world: World, ranges: Bounds) -> Comparison:
    """The index taken apart along the dimensions, in their order."""
    parts, rest = _taken_apart(value, shape, strides)
    if rest:
        return Comparison("not_decided", reason=f"`{shown(shape.shown(rest))}` fits no dimension")
    return _checked(parts, shape, world, ranges)


def _taken_apart(value: Poly, shape: _Shape, strides: Mapping[Atom, int]) -> tuple[list[Part], Poly]:
    """The coordinates of all dimensions, and what is left."""
    parts: list[Part] = []
    rest = value
    passed: dict[int, list[Part]] = {}
    for atom, number in strides.items():
        whole = shape.put(of_atom(atom))
        held, rest = _by_atom(rest, atom) if whole.atom == atom else split(rest, whole)
        if held:
            passed.setdefault(number, []).append(Part(number, number, held, of_atom(atom), True))
    _carried(passed, shape)
    dense = _dense(shape.dims)
    for number in range(len(shape.dims)):
        stride = dense[number]
        if number in passed:
            parts += passed[number]
        elif stride is None:
            parts.append(Part(number, number, poly(0), poly(0)))
        else:
            held, rest = (rest, poly(0)) if stride == poly(1) else split(rest, stride)
            parts.append(Part(number, number, held, stride))
    if not passed:
        # What stands left of `...` has no stride of its own.
        parts = [p for p in parts if dense[p.first] is not None]
    return parts, rest


def _carried(passed: dict[int, list[Part]], shape: _Shape) -> None:
    """Where a dimension further out has no stride of its own, rows of it lie as far apart as the passed stride of the
    next one reaches: ``(token * heads + head) * stride`` is ``token`` rows of ``heads * stride``."""
    for number in sorted(passed, reverse=True):
        outer, extent = number - 1, shape.dims[number]
        if len(passed[number]) != 1 or outer < 0 or outer in passed or extent is None or shape.dims[outer] is None:
            continue
        part = passed[number][0]
        held, rest = split(part.value, extent)
        if held and rest and extent.constant is None:
            passed[number] = [Part(number, number, rest, part.stride, True)]
            passed[outer] = [Part(outer, outer, held, extent * part.stride, True)]


def _by_atom(value: Poly, atom: Atom) -> tuple[Poly, Poly]:
    held: dict = {}
    rest: dict = {}
    for monomial, count in value.terms.items():
        left = over(monomial, ((atom, 1),))
        (rest if left is None else held)[monomial if left is None else left] = count
    return Poly(held), Poly(rest)


def _dense(dims: Sequence[Poly | None]) -> list[Poly | None]:
    """Row-major strides; None left of and at ``...``, whose own stride stands with it."""
    out: list[Poly | None] = [None] * len(dims)
    stride = poly(1)
    for number in range(len(dims) - 1, -1, -1):
        out[number] = stride
        dim = dims[number]
        if dim is None:
            break
        stride = stride * dim
    return out


def _checked(parts: list[Part], shape: _Shape, world: World, ranges: Bounds) -> Comparison:
    """Whether every coordinate stays within its dimension."""
    out: list[Part] = []
    for part in parts:
        dim = shape.dims[part.first]
        if not part.value or dim is None or ranges.below(part.value, dim):
            out.append(part)
            continue
        alone = _one_symbol(part.value) and not _too_large(part.value, dim, ranges)
        joined = None if part.passed else _joined(part, out, shape, world, ranges, alone and part.stride != poly(1))
        if joined is not None:
            out = [p for p in out if p.first < joined.first]
            out.append(joined)
            continue
        leading = part is parts[0]
        steady = not part.value.atoms() & world.unsteady
        if alone and (leading or part.passed or (part.stride != poly(1) and steady)):
            out.append(part)
            continue
        name = shape.names[part.first]
        reason = f"`{shown(shape.shown(part.value))}` is not shown to stay below `{name}`"
        return Comparison("not_decided", reason=reason)
    if len(out) > 1 and (standing := _standing(out, shape)):
        return Comparison("not_decided", reason=standing)
    return Comparison("equal_with_strides" if any(p.passed for p in out) else "equal", tuple(out))


def _standing(parts: list[Part], shape: _Shape) -> str | None:
    """Why an index that leaves the first dimension at 0 says nothing of the layout."""
    if all(part.value.constant is not None for part in parts):
        return "one element is addressed, whatever the layout"
    first = parts[0]
    if not first.value and shape.dims[first.first] is not None and shape.dims[first.first] != poly(1):
        return f"it stays at 0 of `{shape.names[first.first]}`"
    return None


def _one_symbol(value: Poly) -> bool:
    """Whether a value is one symbol, or a number of times it."""
    single = value.monomial
    return value.constant is not None or (single is not None and single[1] == 1 and sum(p for _, p in single[0]) == 1)


def _too_large(value: Poly, dim: Poly, ranges: Bounds) -> bool:
    """Whether a coordinate is known to run through something else than the dimension."""
    atom = value.atom
    if atom is None:
        return value.constant is None or (dim.constant is not None and value.constant >= dim.constant)
    return any(limit != dim and ranges.below(dim - 1, limit - 1) for limit in ranges.limits(atom))


def _joined(part: Part, before: list[Part], shape: _Shape, world: World, ranges: Bounds, alone: bool) -> Part | None:
    """Several dimensions run through as one: those before are not used, and their product is what it runs through.

    ``alone`` says that the coordinate is one symbol with the stride of its dimension, whatever it runs through.
    """
    extent = shape.dims[part.first]
    if extent is None or not _flat(part.value, shape):
        return None
    names = frozenset(atom for dim in shape.dims if dim is not None for atom in dim.atoms())
    whole: Part | None = None
    for earlier in reversed(before):
        dim = shape.dims[earlier.first]
        if earlier.value or earlier.passed:
            break
        whole = Part(earlier.first, part.last, part.value, part.stride)
        if dim is None:
            steady = _one_symbol(part.value) and not part.value.atoms() & world.unsteady
            return whole if earlier.first == 0 and steady else None
        extent = extent * dim
        if ranges.fills(part.value, extent, names):
            return whole
    return whole if alone and whole is not None and whole.first == 0 else None


def _flat(value: Poly, shape: _Shape) -> bool:
    """Whether an index over several dimensions keeps their order: nothing in it is multiplied with one of them."""
    extents = {atom for dim in shape.dims if dim is not None for atom in dim.atoms()}
    return all(
        sum(power for _, power in monomial) <= 1 or not any(atom in extents for atom, _ in monomial)
        for monomial in value.terms
    )


def _other_order(value: Poly, shape: _Shape, world: World, ranges: Bounds) -> Comparison | None:
    """Another order of the same dimensions that the index is shown to be of."""
    dims = shape.dims
    if len(dims) > _MAX_ORDER or any(d is None for d in dims) or len(set(dims)) < 2 or _flat(value, shape):
        return None
    for order in permutations(range(len(dims))):
        turned = _Shape([dims[n] for n in order], [shape.names[n] for n in order])
        moved = [n for n in range(len(dims)) if turned.dims[n] != dims[n]]
        if len(moved) < 2:
            continue
        parts, rest = _taken_apart(value, turned, {})
        if rest or not all(parts[n].value and _one_symbol(parts[n].value) for n in moved):
            continue
        found = _checked(parts, turned, world, ranges)
        whole = found.verdict == "equal" and all(p.first == p.last for p in found.parts)
        if whole and all(ranges.below(parts[n].value, turned.dims[n]) for n in moved if n):
            return Comparison("differs", (), f"it is the index of [{', '.join(turned.names)}]")
    return None
