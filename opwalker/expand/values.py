"""Run-time values of a body as far as index arithmetic shows them: numbers as polynomials, pointers with offsets.

``World`` names the symbols of one reading and remembers what each stands for, so that a polynomial can be kept short
(``block_idx``) or opened (``slot_mapping[token_idx] / block_size``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from opwalker.notation.polynomial import Atom, Poly, call, of_atom, poly, quotient, remainder, replace, symbol

#: Symbols that tell threads and blocks apart.
THREAD_INDEXES = frozenset(f"{which}.{axis}" for which in ("threadIdx", "blockIdx") for axis in "xyz")
THREAD_EXTENTS = {"threadIdx": "blockDim", "blockIdx": "gridDim"}


class Number(Struct, frozen=True):
    """An integer."""

    poly: Poly


class Pointer(Struct, frozen=True):
    """An address: ``offset`` elements of the type that ``root``'s pointer was declared with; one step of this pointer
    is ``step`` of them (a vector type's lanes)."""

    root: str
    offset: Poly
    step: Poly = field(default_factory=lambda: poly(1))
    element: str = ""


class Unread(Struct, frozen=True):
    """What could not be worked out, and why."""

    reason: str


class Several(Struct, frozen=True):
    """One of several addresses, each with the branch that chooses it."""

    options: tuple[tuple[str, Pointer], ...]

    def each(self, change: Callable[[Pointer], Value]) -> Value:
        """All of them changed; unread where one is."""
        made = [(under, change(one)) for under, one in self.options]
        lost = next((one for _, one in made if not isinstance(one, Pointer)), None)
        return Several(tuple(made)) if lost is None else lost


Value = Number | Pointer | Several | Unread


class LambdaCall(Struct, frozen=True):
    """A call of a lambda: where it stands, and the values of the lambda's parameters."""

    at: int
    bound: Mapping[str, Value]


class World:
    """The symbols of one reading: what locals stand for, and which symbols differ from thread to thread."""

    def __init__(self) -> None:
        #: What a kept symbol stands for, in other symbols.
        self.definitions: dict[Atom, Poly] = {}
        #: Symbols whose value changes from thread to thread or from step to step.
        self.moving: set[Atom] = set()
        #: Symbols that are set in more than one place: what they hold is not known.
        self.unsteady: set[Atom] = set()
        #: Symbols that branches set, each once: ``(condition, value)``.
        self.choices: dict[Atom, tuple[tuple[str, Poly], ...]] = {}
        #: Names from outside a function, with the numbers that they are constants of.
        self.constants: dict[Atom, int | None] = {}
        #: Extents of the grid that the launch shows, by name (``gridDim.x``), and names that the kernel has for others.
        self.extents: dict[str, Poly] = {}
        self.called: dict[str, Poly] = {}
        self._names: dict[str, object] = {}
        self._scopes: dict[object, int] = {}

    def scope(self, key: object) -> int:
        """A number for one reading of a body: the same function with other values is another."""
        return self._scopes.setdefault(key, len(self._scopes))

    def atom(self, name: str, key: object) -> Atom:
        """The symbol for a thing called ``name``; another thing of that name gets a prime."""
        while self._names.setdefault(name, key) != key:
            name += "'"
        return Atom("symbol", name)

    def namesakes(self, name: str) -> list[Atom]:
        """The symbols of all things that are called so."""
        out = []
        while name in self._names:
            out.append(Atom("symbol", name))
            name += "'"
        return out

    def moves(self, value: Poly) -> bool:
        """Whether a value depends on the thread or on a step of a loop."""
        return any(a in self.moving or a.kind == "load" or a.name in THREAD_INDEXES for a in value.all_atoms())

    def opened(self, value: Poly, only: Iterable[Atom] | None = None) -> Poly:
        """A value with kept symbols replaced by what they stand for, all the way down; ``only`` names some of them."""
        chosen = None if only is None else frozenset(only)

        def change(atom: Atom) -> Poly | None:
            found = self.definitions.get(atom) if chosen is None or atom in chosen else None
            return None if found is None else self.opened(found, chosen)

        return replace(value, change)


def moved(operator: str, left: Value, right: Value) -> Value:
    """A pointer moved by a number."""
    if isinstance(left, Several):
        return left.each(lambda one: moved(operator, one, right))
    if isinstance(right, Several):
        return right.each(lambda one: moved(operator, left, one))
    if operator == "+" and isinstance(right, Pointer) and isinstance(left, Number):
        left, right = right, left
    if isinstance(left, Pointer) and isinstance(right, Number) and operator in "+-":
        way = right.poly * left.step
        offset = left.offset + way if operator == "+" else left.offset - way
        return Pointer(left.root, offset, left.step, left.element)
    if isinstance(left, Pointer) and isinstance(right, Pointer) and operator == "-" and left.root == right.root:
        return Number(quotient(left.offset - right.offset, left.step))
    return Unread("addresses joined by an operator")


def combined(operator: str, left: Poly, right: Poly) -> Value:
    """Two numbers joined by one of C's operators."""
    number = right.constant
    if operator in "+-*":
        return Number({"+": left + right, "-": left - right, "*": left * right}[operator])
    if operator in "/%" and right:
        return Number(quotient(left, right) if operator == "/" else remainder(left, right))
    if operator in ("<<", ">>") and number is not None and 0 <= number < 63:
        return Number(left * (1 << number) if operator == "<<" else quotient(left, poly(1 << number)))
    if operator == "&" and number is not None and number >= 0 and (number & (number + 1)) == 0:
        return Number(remainder(left, poly(number + 1)))
    if operator in ("&", "|", "^", "<<", ">>"):
        return Number(call(f"[{operator}]", left, right))
    return Unread(f"`{operator}` of two values")


def shown(value: Poly) -> str:
    """A polynomial for a reader: the marks that tell symbols of one name apart are left out where one is alone, and
    ``(a - 1) / b + 1`` is ``(a + b - 1) / b``, as sources write it."""
    held: dict[str, set[str]] = {}
    for atom in value.all_atoms():
        held.setdefault(atom.name.rstrip("'"), set()).add(atom.name)

    def plain(atom: Atom) -> Poly | None:
        name = atom.name.rstrip("'")
        if atom.parts:
            return of_atom(Atom(atom.kind, atom.name, tuple(_rounded_up(part) for part in atom.parts)))
        return symbol(name) if atom.kind == "symbol" and name != atom.name and len(held[name]) == 1 else None

    return str(_rounded_up(replace(value, plain)))


def _rounded_up(value: Poly) -> Poly:
    """A sum of a quotient and a number with the number inside of it, where the dividend is less a number."""
    number = value.constant_term
    for monomial, factor in value.terms.items():
        atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        if atom is None or atom.kind != "quotient" or number <= 0 or factor <= 0 or number % factor:
            continue
        dividend, divisor = atom.parts
        if dividend.constant_term < 0:
            whole = of_atom(Atom("quotient", "", (dividend + divisor * (number // factor), divisor)))
            return value - factor * of_atom(atom) - number + factor * whole
    return value
