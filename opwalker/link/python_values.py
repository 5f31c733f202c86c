"""What a Python expression can stand for, as far as registrations need it.

Values only; ``python_flow`` computes them. A value that cannot be known says why, and one that depends on what a
function is given is ``Given``: another call of the function may make it known.
"""

from __future__ import annotations

from msgspec import Struct, field


class Value(Struct, frozen=True):
    """The root of all values."""


class Const(Value, frozen=True):
    """A string, number, truth value or None."""

    value: str | int | float | bool | None


NONE = Const(None)
NO_TEXT = Const("")


class Unknown(Value, frozen=True):
    """What cannot be known; ``reason`` completes the sentence "… is"."""

    reason: str


class Given(Value, frozen=True):
    """What depends on a parameter that has no value yet; ``text`` is how it is spelt."""

    text: str


class Outer(Value, frozen=True):
    """A name of a module outside of the tree, such as ``torch.library.custom_op``; or an op, ``torch.ops.ns.op``."""

    dotted: str


class InModule(Value, frozen=True):
    """A module of the tree."""

    path: str


class Func(Value, frozen=True, eq=False):
    """A function of the tree; ``closure`` holds the names of the functions around it, by qualname."""

    path: str
    qualname: str
    line: int
    closure: Frame | None = None
    owner: Instance | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Func) and (self.path, self.qualname, self.line) == (
            other.path,
            other.qualname,
            other.line,
        )

    def __hash__(self) -> int:
        return hash((self.path, self.qualname, self.line))


class Lambda(Value, frozen=True):
    """A lambda, by its text and place."""

    text: str
    path: str
    line: int


class Class(Value, frozen=True):
    """A class of the tree."""

    path: str
    qualname: str


class Seq(Value, frozen=True):
    """A list, tuple or set."""

    items: tuple[Value, ...]


class Dict(Value, frozen=True):
    """A dictionary."""

    pairs: tuple[tuple[Value, Value], ...]


class Library(Value, frozen=True):
    """A ``torch.library.Library`` and where it is made."""

    namespace: Value
    kind: Value
    key: Value
    path: str
    line: int


class Defined(Value, frozen=True):
    """What ``custom_op`` returns: an op by its full name, with the function behind it."""

    name: str
    function: Value


class Schema(Value, frozen=True):
    """The schema that ``infer_schema`` reads off a function; ``name`` stands in front of it."""

    function: Value
    mutates: Value
    name: Value = NO_TEXT


class Partial(Value, frozen=True):
    """A callable with arguments already given."""

    function: Value
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


class Method(Value, frozen=True):
    """A method that is looked up and not yet called."""

    owner: Value
    name: str


class Choice(Value, frozen=True):
    """Several values, one of which it is."""

    values: tuple[Value, ...]


class Frame(Struct):
    """The names of a running function: its own, and those of the function that it is nested in. ``decorated`` has the
    line of the definition whose decorators gave a name its value."""

    path: str
    scope: str
    names: dict[str, Value]
    outer: Frame | None = None
    decorated: dict[str, int] = field(default_factory=dict)

    def find(self, name: str) -> Value | None:
        """The value of a name in this function or one around it."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            frame = frame.outer
        return None


class InstanceState(Struct, eq=False):
    """The attributes of one object."""

    attributes: dict[str, Value] = field(default_factory=dict)


class Instance(Value, frozen=True):
    """An object of a class of the tree. ``above`` is set for ``super()``: the class whose bases are looked at."""

    path: str
    qualname: str
    state: InstanceState = field(default_factory=InstanceState)
    above: tuple[str, str] | None = None


def choice(values: list[Value]) -> Value:
    """One value that may be any of these."""
    flat: list[Value] = []
    for value in values:
        for one in value.values if isinstance(value, Choice) else (value,):
            if one not in flat:
                flat.append(one)
    return flat[0] if len(flat) == 1 else Choice(tuple(flat))


def is_given(value: Value) -> bool:
    """Whether a value depends on a parameter that has no value yet."""
    match value:
        case Given():
            return True
        case Choice(values) | Seq(values):
            return any(is_given(one) for one in values)
        case Library(namespace=namespace):
            return is_given(namespace)
        case Schema(function, mutates, name):
            return is_given(function) or is_given(mutates) or is_given(name)
    return False


def truth(value: Value) -> bool | None:
    """Whether a value counts as true, None where that is open."""
    match value:
        case Const(constant):
            return bool(constant)
        case Seq(items):
            return bool(items)
        case Dict(pairs):
            return bool(pairs)
        case Func() | Lambda() | Class() | Library() | Defined() | Schema() | Partial() | Method():
            return True
        case InModule() | Outer():
            return True
        case Choice(values):
            outcomes = {truth(one) for one in values}
            return outcomes.pop() if len(outcomes) == 1 else None
    return None


def reason_of(value: Value, what: str) -> str:
    """Why ``what`` is not known from ``value``."""
    match value:
        case Unknown(reason):
            return f"{what} is {reason}"
        case Given(text):
            return f"{what} is {text}, which a caller gives"
        case Outer(dotted):
            return f"{what} is {dotted}, which is not in this tree"
        case Choice():
            return f"{what} is one of several, chosen at run time"
    return f"{what} is not a plain text"
