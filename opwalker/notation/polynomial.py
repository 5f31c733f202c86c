"""Index arithmetic as polynomials: integers, symbols, and quotients and remainders kept as symbols of their own.

In: polynomials built by ``+``, ``-``, ``*``, ``quotient`` and ``remainder``. Out: ``Poly`` values, exact, equal when
they are the same function of their symbols up to ``x * (a / x) + a % x == a`` (``same``); printing gives C's notation.
Values are taken to be natural numbers, divisors not 0, as in the index of an array. Ranges are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache

from msgspec import Struct

#: A product of atoms with their powers, in the order of their texts.
Monomial = tuple[tuple["Atom", int], ...]
ONE: Monomial = ()


class Atom(Struct, frozen=True, dict=True, cache_hash=True):
    """What a polynomial is made of. A ``symbol`` has a ``name``; a ``quotient`` and a ``remainder`` have two
    ``parts``; a ``call`` has a name and parts (``min(a, b)``; one called ``[>>]`` is ``a >> b``), and so has a ``load``
    (``table[i]``)."""

    kind: str
    name: str = ""
    parts: tuple[Poly, ...] = ()

    @cached_property
    def text(self) -> str:
        """The atom in C's notation, in parentheses where it is an operation."""
        if self.kind == "symbol":
            return self.name
        if self.kind == "call" and not self.name.startswith("["):
            return f"{self.name}({', '.join(str(part) for part in self.parts)})"
        if self.kind == "load":
            return f"{self.name}[{', '.join(str(part) for part in self.parts)}]"
        left, right = (_operand(part) for part in self.parts)
        operator = self.name.strip("[]") if self.kind == "call" else "/" if self.kind == "quotient" else "%"
        return f"({left} {operator} {right})"

    def __lt__(self, other: Atom) -> bool:
        return self.text < other.text


class Poly:
    """A polynomial with whole coefficients; a value, never changed."""

    __slots__ = ("terms", "_hash")

    def __init__(self, terms: Mapping[Monomial, int] | None = None) -> None:
        self.terms: dict[Monomial, int] = {m: c for m, c in (terms or {}).items() if c}
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __add__(self, other: Poly | int) -> Poly:
        out = dict(self.terms)
        for monomial, factor in poly(other).terms.items():
            out[monomial] = out.get(monomial, 0) + factor
        return Poly(out)

    def __radd__(self, other: int) -> Poly:
        return self + other

    def __neg__(self) -> Poly:
        return _made({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -poly(other)

    def __rsub__(self, other: int) -> Poly:
        return poly(other) - self

    def __mul__(self, other: Poly | int) -> Poly:
        number = other if isinstance(other, int) else other.constant
        if number is not None:
            return _made({m: c * number for m, c in self.terms.items()} if number else {})
        out: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                product = times(left, right)
                out[product] = out.get(product, 0) + a * b
        return Poly(out)

    def __rmul__(self, other: int) -> Poly:
        return self * other

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __repr__(self) -> str:
        return f"Poly({self})"

    def __str__(self) -> str:
        """C's notation, the longest products first."""
        if not self.terms:
            return "0"
        out = ""
        for monomial, factor in sorted(self.terms.items(), key=lambda item: _rank(item[0])):
            sign = "-" if factor < 0 else "+"
            size = abs(factor)
            pieces = [str(size)] if size != 1 or not monomial else []
            pieces += [atom.text for atom, power in monomial for _ in range(power)]
            out += f" {sign} {' * '.join(pieces)}" if out else ("-" if factor < 0 else "") + " * ".join(pieces)
        return out

    @property
    def constant(self) -> int | None:
        """The number that it is, None where it has symbols."""
        if not self.terms:
            return 0
        return self.terms[ONE] if len(self.terms) == 1 and ONE in self.terms else None

    @property
    def constant_term(self) -> int:
        """What it has beside its symbols."""
        return self.terms.get(ONE, 0)

    @property
    def atom(self) -> Atom | None:
        """The atom that it is, alone and once; None for anything else."""
        if len(self.terms) == 1:
            ((monomial, factor),) = self.terms.items()
            if factor == 1 and len(monomial) == 1 and monomial[0][1] == 1:
                return monomial[0][0]
        return None

    @property
    def monomial(self) -> tuple[Monomial, int] | None:
        """Its only product and factor, None where it has none or several."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 else None

    def atoms(self) -> frozenset[Atom]:
        """The atoms of its own products; what stands inside of quotients and calls is not among them."""
        return frozenset(atom for monomial in self.terms for atom, _ in monomial)

    def all_atoms(self) -> frozenset[Atom]:
        """All its atoms, those within others too."""
        found: set[Atom] = set()
        pending = list(self.atoms())
        while pending:
            atom = pending.pop()
            if atom not in found:
                found.add(atom)
                pending += [inner for part in atom.parts for inner in part.atoms()]
        return frozenset(found)


def _made(terms: dict[Monomial, int]) -> Poly:
    """A polynomial of terms of which none is 0."""
    out = Poly.__new__(Poly)
    out.terms = terms
    out._hash = None
    return out


def poly(value: Poly | int) -> Poly:
    """A number as a polynomial; a polynomial as it is."""
    return value if isinstance(value, Poly) else _made({ONE: value} if value else {})


def symbol(name: str) -> Poly:
    """A symbol as a polynomial."""
    return of_atom(Atom("symbol", name))


def of_atom(atom: Atom) -> Poly:
    """An atom as a polynomial."""
    return _made({((atom, 1),): 1})


def product(parts: Iterable[Poly]) -> Poly:
    """All parts multiplied; 1 for none."""
    out = poly(1)
    for part in parts:
        out = out * part
    return out


def call(name: str, *parts: Poly) -> Poly:
    """A function's value, opaque."""
    return of_atom(Atom("call", name, parts))


def load(name: str, index: Poly) -> Poly:
    """What an array holds at an index, opaque."""
    return of_atom(Atom("load", name, (index,)))


def times(left: Monomial, right: Monomial) -> Monomial:
    """The product of two products."""
    if not left or not right:
        return left or right
    powers: dict[Atom, int] = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].text))


def over(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """A product without the atoms of another; None where it does not hold them all."""
    powers = dict(monomial)
    for atom, power in divisor:
        held = powers.get(atom, 0) - power
        if held < 0:
            return None
        if held:
            powers[atom] = held
        else:
            del powers[atom]
    return tuple(sorted(powers.items(), key=lambda item: item[0].text))


def split(value: Poly, divisor: Poly) -> tuple[Poly, Poly]:
    """``(q, r)`` with ``value == q * divisor + r``: ``q`` from the products that the divisor, one product itself,
    divides; everything is ``r`` where it is several."""
    single = divisor.monomial
    if single is None:
        return poly(0), value
    monomial, factor = single
    taken: dict[Monomial, int] = {}
    left: dict[Monomial, int] = {}
    for own, count in value.terms.items():
        rest = over(own, monomial)
        if rest is None:
            left[own] = count
            continue
        whole = abs(count) // abs(factor) * (1 if (count < 0) == (factor < 0) else -1)
        if whole:
            taken[rest] = whole
        if count - whole * factor:
            left[own] = count - whole * factor
    return Poly(taken), Poly(left)


def quotient(value: Poly, divisor: Poly) -> Poly:
    """``value / divisor``, rounded down: what divides without remainder is taken out, the rest is one atom."""
    one = divisor.constant
    if one == 1 or not value:
        return value
    if one is not None and one != 0 and value.constant is not None:
        return poly(value.constant // one)
    if value == divisor:
        return poly(1)
    whole, rest = split(value, divisor)
    if not rest:
        return whole
    if (rest.constant is not None and one is not None and 0 <= rest.constant < one) or _below(rest, divisor):
        return whole
    held = rest.atom
    if held is not None and held.kind == "quotient":
        return whole + of_atom(Atom("quotient", "", (held.parts[0], held.parts[1] * divisor)))
    return whole + of_atom(Atom("quotient", "", (rest, divisor)))


def remainder(value: Poly, divisor: Poly) -> Poly:
    """``value % divisor``."""
    one = divisor.constant
    if one == 1 or not value or value == divisor:
        return poly(0)
    if one is not None and one != 0 and value.constant is not None:
        return poly(value.constant % one)
    _, rest = split(value, divisor)
    if not rest or _below(rest, divisor):
        return rest
    if rest.constant is not None and one is not None:
        return poly(rest.constant % one)
    return of_atom(Atom("remainder", "", (rest, divisor)))


def _below(value: Poly, divisor: Poly) -> bool:
    """Whether a value is smaller than the divisor by its form: a remainder of just that divisor."""
    held = value.atom
    return held is not None and held.kind == "remainder" and held.parts[1] == divisor


def replace(value: Poly, change: Callable[[Atom], Poly | None]) -> Poly:
    """The polynomial with atoms replaced, innermost first; ``change`` gives None for those that stay."""
    made: dict[Atom, Poly | None] = {}
    for monomial in value.terms:
        for atom, _ in monomial:
            if atom not in made:
                made[atom] = _changed(atom, change)
    if all(new is None for new in made.values()):
        return value
    out: dict[Monomial, int] = {}
    for monomial, factor in value.terms.items():
        term = _made({tuple(part for part in monomial if made[part[0]] is None): factor})
        for atom, power in monomial:
            new = made[atom]
            for _ in range(power if new is not None else 0):
                term = term * new
        for whole, count in term.terms.items():
            out[whole] = out.get(whole, 0) + count
    return Poly(out)


def _changed(atom: Atom, change: Callable[[Atom], Poly | None]) -> Poly | None:
    """What stands for an atom when those within it have been replaced; None where it stays."""
    rebuilt: Poly | None = None
    if atom.parts:
        parts = tuple(replace(part, change) for part in atom.parts)
        if parts != atom.parts:
            if atom.kind == "quotient":
                rebuilt = quotient(*parts)
            elif atom.kind == "remainder":
                rebuilt = remainder(*parts)
            else:
                rebuilt = of_atom(Atom(atom.kind, atom.name, parts))
    same_atom = atom if rebuilt is None else rebuilt.atom
    if same_atom is None or (rebuilt is not None and not same_atom.parts):
        return rebuilt  # a symbol that is left has been put there
    found = change(same_atom)
    return rebuilt if found is None else found


def canonical(value: Poly) -> Poly:
    """The form in which equal polynomials are one: ``a % x`` written as ``a - x * (a / x)``."""
    return replace(value, _without_remainder)


@lru_cache(maxsize=4096)
def _without_remainder(atom: Atom) -> Poly | None:
    if atom.kind != "remainder":
        return None
    whole, divisor = atom.parts
    return whole - divisor * quotient(whole, divisor)


def same(left: Poly, right: Poly) -> bool:
    """Whether two polynomials are the same function of their symbols, as far as the rule of quotients shows it."""
    return not canonical(left - right)


def value_of(value: Poly, given: Callable[[Atom], int]) -> int:
    """The number that a polynomial is for given values of symbols and calls."""

    def of(atom: Atom) -> int:
        if atom.kind not in ("quotient", "remainder"):
            return given(atom)
        left, right = (value_of(part, given) for part in atom.parts)
        return left // right if atom.kind == "quotient" else left % right

    total = 0
    for monomial, factor in value.terms.items():
        term = factor
        for atom, power in monomial:
            term *= of(atom) ** power
        total += term
    return total


def _operand(value: Poly) -> str:
    text = str(value)
    single = value.monomial
    plain = value.constant is not None or (single is not None and single[1] == 1 and sum(p for _, p in single[0]) == 1)
    return text if plain else f"({text})"


def _rank(monomial: Monomial) -> tuple[int, str]:
    return -sum(power for _, power in monomial), " * ".join(atom.text for atom, _ in monomial)
