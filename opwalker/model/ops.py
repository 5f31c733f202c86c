"""The nouns of ``ops``: an operator, its schema, and where it is defined, implemented and called."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.places import Gap, SourceInfo, Span


class HostRef(Struct, frozen=True):
    """Where a host function is defined."""

    file: str
    line: int
    end_line: int


class OpDef(Struct, frozen=True):
    """One definition of an op. ``builds`` are the kinds of build whose targets compile it, None when unknown.

    ``namespace_at`` is where the library object is made that the namespace comes from, for definitions in Python.
    """

    file: str
    line: int
    condition: str | None = None
    builds: tuple[str, ...] | None = None
    target: str | None = None
    schema: str | None = None
    namespace_at: Span | None = None


class OpImpl(Struct, frozen=True):
    """One implementation entry. ``line`` is the registration's; ``host`` the function's definition, if it is here."""

    key: str | None
    function: str | None
    file: str
    line: int
    condition: str | None = None
    host: HostRef | None = None
    builds: tuple[str, ...] | None = None
    certainty: str = "proved"


class PythonRef(Struct, frozen=True):
    """A place in Python: a call of an op (``callee``, ``depth`` callers away from it) or a fake implementation.

    ``line`` is where the call stands. At depth 0, a function that is itself called from elsewhere is a wrapper and
    stands for the op: then ``line`` is its definition, and ``call_line`` the call in it.
    """

    file: str
    line: int
    function: str | None = None
    callee: str | None = None
    depth: int = 0
    call_line: int | None = None


class Argument(Struct, frozen=True):
    """An argument of a schema; ``alias`` is its alias set as text (``"a!"``), ``default`` its literal as written."""

    name: str
    type: str
    mutated: bool = False
    alias: str | None = None
    optional: bool = False
    default: str | None = None
    kwarg_only: bool = False


class Returned(Struct, frozen=True):
    """A value that a schema returns."""

    type: str
    name: str | None = None
    alias: str | None = None


class Op(Struct, frozen=True):
    """An operator under whatever binding (``kind``). ``signature`` is set where ``schema`` is not."""

    name: str
    kind: str
    schema: str | None
    signature: str | None = None
    arguments: tuple[Argument, ...] = ()
    returns: tuple[Returned, ...] = ()
    tags: tuple[str, ...] = ()
    defs: tuple[OpDef, ...] = ()
    impls: tuple[OpImpl, ...] = ()
    fake: tuple[PythonRef, ...] = ()
    python: tuple[PythonRef, ...] = ()


class OpsResult(Struct, frozen=True, kw_only=True):
    """``files_read`` and ``looked_for`` (``"TORCH_LIBRARY"``, ``"PYBIND11_MODULE"``, …) let an empty list say so."""

    format: int = 1
    source: SourceInfo
    ops: tuple[Op, ...]
    gaps: tuple[Gap, ...] = ()
    files_read: int | None = None
    looked_for: tuple[str, ...] = ()
