"""The nouns of ``ops``: an operator, its schema, and where it is defined, implemented and called."""

from __future__ import annotations

from dataclasses import dataclass, field

from opwalker.model.places import Gap, SourceInfo, Span


@dataclass(frozen=True, slots=True)
class HostRef:
    """Where a host function is defined."""

    file: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class OpDef:
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


@dataclass(frozen=True, slots=True)
class OpImpl:
    """One implementation entry. ``line`` is the registration's; ``host`` the function's definition, if it is here."""

    key: str | None
    function: str | None
    file: str
    line: int
    condition: str | None = None
    host: HostRef | None = None
    builds: tuple[str, ...] | None = None
    certainty: str = "proved"


@dataclass(frozen=True, slots=True)
class PythonRef:
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


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a schema; ``alias`` is its alias set as text (``"a!"``), ``default`` its literal as written."""

    name: str
    type: str
    mutated: bool = False
    alias: str | None = None
    optional: bool = False
    default: str | None = None
    kwarg_only: bool = False


@dataclass(frozen=True, slots=True)
class Returned:
    """A value that a schema returns."""

    type: str
    name: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Op:
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


@dataclass(frozen=True, slots=True)
class OpsResult:
    """``files_read`` and ``looked_for`` (``"TORCH_LIBRARY"``, ``"PYBIND11_MODULE"``, …) let an empty list say so."""

    format: int = field(default=1, kw_only=True)
    source: SourceInfo
    ops: tuple[Op, ...]
    gaps: tuple[Gap, ...] = ()
    files_read: int | None = None
    looked_for: tuple[str, ...] = ()
