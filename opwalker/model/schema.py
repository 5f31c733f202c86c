"""The value of an operator schema: what ``notation.op_schema`` parses to, and prints back."""

from __future__ import annotations

from msgspec import Struct


class AliasSet(Struct, frozen=True):
    """``(a!)``, ``(a -> *)``, ``(a! -> a|b)``, or the bare ``!`` (then ``bare`` is true and ``before`` is empty)."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    mutated: bool = False
    bare: bool = False


class SchemaType(Struct, frozen=True):
    """A type: ``base`` name, alias set, and the ``suffixes`` in written order (``"?"``, ``"[]"``, ``"[3]"``).

    The alias set stands after the suffix number ``alias_at`` (0: directly behind the base name). A tuple type
    ``(int, Tensor)`` has ``base == "tuple"`` and its members in ``items``; ``Dict(str, int)`` likewise with
    ``base == "Dict"``, and so do ``Future(t)``, ``Await(t)``, ``RRef(t)`` and ``Union(int, str)``. Further alias sets,
    ``Tensor(a!)[](b)``, are in ``more_aliases`` with their places.
    """

    base: str
    suffixes: tuple[str, ...] = ()
    alias: AliasSet | None = None
    alias_at: int = 0
    items: tuple[SchemaType, ...] = ()
    more_aliases: tuple[tuple[int, AliasSet], ...] = ()


class SchemaArgument(Struct, frozen=True):
    """One argument. ``default`` is the literal's text as written, or None."""

    type: SchemaType
    name: str
    default: str | None = None
    kwarg_only: bool = False


class SchemaReturn(Struct, frozen=True):
    """One returned value; ``name`` is None when the schema gives none."""

    type: SchemaType
    name: str | None = None


class OpSchema(Struct, frozen=True):
    """``namespace::name.overload(arguments) -> returns``. ``returns_tuple`` keeps ``-> (Tensor)`` from ``->
    Tensor``."""

    name: str
    arguments: tuple[SchemaArgument, ...]
    returns: tuple[SchemaReturn, ...]
    namespace: str | None = None
    overload: str | None = None
    vararg: bool = False
    varret: bool = False
    returns_tuple: bool = False
