"""Python values as far as a build script needs them.

Plain constants are themselves. Everything else that can differ between the ways of an undecided condition lives in
dicts that the branches write (``build_guard``). What is not known keeps the text that it came from.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from msgspec import Struct

from opwalker.link.build_guard import Guard, Stopped, excludes, implied, join, merge_sequences, resolved, without
from opwalker.link.build_values import MARK

_LARGE = 10**40

#: A name that may stand for more values than this is unknown.
MAX_OPTIONS = 12


class Element(NamedTuple):
    """One element of a list, with the conditions under which it is there and the place where it was written."""

    value: Any
    guard: Guard = ()
    file: str = ""
    line: int = 0

    def under(self, guard: Guard) -> Element:
        return self._replace(guard=join(guard, self.guard)) if guard else self


class Unknown(Struct, frozen=True):
    """A value that is not known. ``truth`` is set where at least that is; ``number`` tells computations apart."""

    text: str
    truth: bool | None = None
    number: int = 0


class Ref(Struct, frozen=True):
    """Something of a module that is not read, by its dotted name."""

    name: str


class PathText(Struct, frozen=True):
    """A ``pathlib.Path``."""

    text: str


class Choice(Struct, frozen=True):
    """One of several values, each with the condition that makes it the one."""

    options: tuple[tuple[Guard, Any], ...]


class Seq:
    """A list, tuple or set. ``store["items"]`` is a tuple of elements."""

    __slots__ = ("store", "kind")

    def __init__(self, items: tuple[Element, ...] = (), kind: str = "list") -> None:
        self.store: dict[str, tuple[Element, ...]] = {"items": items}
        self.kind = kind

    @property
    def items(self) -> tuple[Element, ...]:
        return self.store["items"]


class Map:
    """A dict with constant keys."""

    __slots__ = ("store",)

    def __init__(self, store: dict[Any, Any] | None = None) -> None:
        self.store = store if store is not None else {}


class Frame:
    """The variables of a module or a running function.

    ``returns`` are its results so far, each with its guard; ``places`` say of loop variables where what they hold was
    written (file and line).
    """

    __slots__ = ("vars", "outer", "module", "shared", "returns", "places", "guard", "owner", "receiver")

    def __init__(self, outer: Frame | None, module: Module) -> None:
        self.vars: dict[str, Any] = {}
        self.outer = outer
        self.module = module
        self.shared: frozenset[str] = frozenset()
        self.returns: list[tuple[Guard, Any]] = []
        self.places: dict[str, tuple[str, int]] = {}
        self.guard: Guard = ()
        self.owner: Class | None = None
        self.receiver: Any = None


class Module:
    """One Python file that is evaluated; ``directory`` is where its relative paths start."""

    __slots__ = ("path", "tree", "frame", "directory", "text", "classes")

    def __init__(self, path: str, tree: ast.Module, directory: str, text: str) -> None:
        self.path = path
        self.tree = tree
        self.text = text
        self.directory = directory
        self.frame = Frame(None, self)
        self.classes: list[Class] = []


class Function:
    """A function, method or lambda, bound to ``receiver`` if it was taken from an object."""

    __slots__ = ("node", "frame", "owner", "receiver")

    def __init__(self, node: Any, frame: Frame, owner: Class | None = None, receiver: Any = None) -> None:
        self.node = node
        self.frame = frame
        self.owner = owner
        self.receiver = receiver


class Class:
    """A class of the scripts; ``bases`` are classes or references."""

    __slots__ = ("name", "bases", "attrs", "module")

    def __init__(self, name: str, bases: list[Any], module: Module) -> None:
        self.name = name
        self.bases = bases
        self.attrs: dict[str, Any] = {}
        self.module = module

    def lineage(self) -> list[Class]:
        """The class and all that it inherits from, nearest first, each once."""
        found: list[Class] = [self]
        for base in self.bases:
            for ancestor in base.lineage() if isinstance(base, Class) else ():
                if ancestor not in found:
                    found.append(ancestor)
        return found[:40]

    def external_bases(self) -> list[Ref]:
        return [base for cls in self.lineage() for base in cls.bases if isinstance(base, Ref)]


class Obj:
    """An instance of a class of the scripts."""

    __slots__ = ("cls", "attrs")

    def __init__(self, cls: Class) -> None:
        self.cls = cls
        self.attrs: dict[str, Any] = {}


class Raised(Stopped):
    """An exception of the script, or its exit."""


class Absent:
    """No value at all."""


ABSENT = Absent()


def merge_values(ways: list[tuple[Guard, Any]], key: Any) -> Any:
    """What a place holds after several ways."""
    values = [value for _, value in ways]
    if key == "items" and all(isinstance(value, tuple) for value in values):
        return merge_sequences(ways)
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values[1:]):
        return first
    options: list[tuple[Guard, Any]] = []
    for guard, value in ways:
        if isinstance(value, Choice):
            options.extend((join(guard, g), v) for g, v in value.options if not excludes(guard, g))
        elif value is not ABSENT:
            options.append((guard, value))
    if len(options) > MAX_OPTIONS:
        return Unknown(str(key))
    return Choice(tuple(options)) if options else ABSENT


def settled(value: Any, context: Guard) -> Any:
    """A choice as it is where ``context`` holds."""
    if not isinstance(value, Choice):
        return value
    options: list[tuple[Guard, Any]] = []
    for guard, option in value.options:
        if excludes(guard, context):
            continue
        options.append((without(guard, context), option))
        if implied(guard, context):
            break
    if len(options) == 1 and not options[0][0]:
        return options[0][1]
    return Choice(tuple(options)) if options else Unknown("nothing")


def options_of(value: Any) -> tuple[tuple[Guard, Any], ...]:
    """All that a value may be, each with its condition."""
    return value.options if isinstance(value, Choice) else (((), value),)


def elements_of(value: Any) -> tuple[Element, ...] | None:
    """The elements of something that can be iterated; None if they are not known."""
    if isinstance(value, Seq):
        return value.items
    if isinstance(value, Map):
        return tuple(Element(key) for key in value.store)
    if isinstance(value, str) and MARK not in value:
        return tuple(Element(char) for char in value[:2000])
    if isinstance(value, Choice):
        ways: list[tuple[Guard, tuple[Element, ...]]] = []
        for guard, option in value.options:
            inner = elements_of(option) if option is not None else ()
            if inner is None:
                return None
            ways.append((guard, inner))
        if resolved(guard for guard, _ in ways) == [()]:
            # One of them it is: what all of them have is there in any case.
            return merge_sequences(ways)
        return tuple(element.under(guard) for guard, inner in ways for element in inner)
    return None


def as_text(value: Any) -> str:
    """``str(value)``, unknown parts marked."""
    if isinstance(value, str):
        return value
    if isinstance(value, PathText):
        return value.text
    if isinstance(value, Unknown):
        return f"{MARK}{value.text.replace(MARK, '')}{MARK}"
    if isinstance(value, Ref):
        return f"{MARK}{value.name}{MARK}"
    if isinstance(value, int) and not -_LARGE < value < _LARGE:
        return f"{MARK}a large number{MARK}"
    if isinstance(value, (int, float)) or value is None:
        return str(value)
    return f"{MARK}value{MARK}"


def is_plain(value: Any) -> bool:
    """True for constants that are fully known."""
    if isinstance(value, str):
        return MARK not in value
    return value is None or isinstance(value, (int, float, bool, bytes))


def truth_of(value: Any) -> bool | None:
    """Whether a value counts as true; None if that is not known."""
    if isinstance(value, Unknown):
        return value.truth
    if isinstance(value, str) and MARK in value:
        return True if any(value.split(MARK)[::2]) else None
    if isinstance(value, Ref):
        return None
    if isinstance(value, Seq):
        if any(not element.guard for element in value.items):
            return True
        return None if value.items else False
    if isinstance(value, Map):
        return bool(value.store)
    if isinstance(value, Choice):
        truths = {truth_of(option) for _, option in value.options}
        return truths.pop() if len(truths) == 1 else None
    if is_plain(value):
        return bool(value)
    return True


def identity_of(value: Any) -> Any:
    """Something hashable that is equal only for values that must behave alike."""
    if is_plain(value) or isinstance(value, (Unknown, Ref, PathText)):
        return (type(value).__name__, value)
    if isinstance(value, Choice):
        return tuple((guard, identity_of(option)) for guard, option in value.options)
    # What can be changed is the same only while nobody has changed it; the object itself is part of it, and so kept.
    if isinstance(value, Seq):
        return value, value.items
    if isinstance(value, Map):
        return value, tuple(value.store.items())
    return (value, tuple(value.attrs.items())) if isinstance(value, Obj) else value
