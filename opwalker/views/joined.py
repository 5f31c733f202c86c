"""C++ and Python together: every op with what either says of it, and a walk through both.

In: ops and what becomes of them as C++ has it, and ``PythonSide``. Out: ``Op`` and ``Walk`` values. No file is looked
at here, so that an edit of a Python file costs no reading of C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from opwalker.link.python_attach import PythonRegistrations, attach
from opwalker.model.python import COMPILED
from opwalker.model.walk import (
    Argument,
    FlagStruct,
    Gap,
    Host,
    Implementation,
    Op,
    OpImpl,
    Ownership,
    PythonRef,
    SourceInfo,
    Span,
    SyncPoint,
    Terminal,
    Walk,
)
from opwalker.notation.op_schema import SchemaError
from opwalker.views.python_side import PythonSide
from opwalker.views.signatures import Signatures


class NativeOps(Protocol):
    """The ops that C++ registers: ``op`` is None for other names."""

    def names(self) -> tuple[str, ...]: ...

    def op(self, name: str) -> Op | None: ...


class JoinedOps:
    """Every op of a tree, each worked out when asked for."""

    def __init__(self, native: NativeOps, python: PythonSide, signatures: Signatures | None = None) -> None:
        self._native = native
        self._python = python
        self._signatures = signatures or Signatures()

    def names(self) -> tuple[str, ...]:
        """The names of all ops, without working any of them out."""
        made = (op.name for op in self._python.ops if op.defs or op.impls)
        return tuple(sorted({*self._native.names(), *made}))

    def op(self, name: str) -> Op:
        """One op by its full name."""
        own = self._native.op(name)
        python = tuple(op for op in self._python.ops if op.name == name)
        return self._called(_attached([own] if own is not None else [], python)[0])

    def all(self) -> tuple[Op, ...]:
        """Every op, by name."""
        own = [op for name in self._native.names() if (op := self._native.op(name)) is not None]
        joined = [self._called(op) for op in _attached(own, self._python.ops)]
        return tuple(sorted(joined, key=lambda op: op.name))

    def callers(self, op: Op) -> tuple[PythonRef, ...]:
        """The calls of an op in Python, over all levels; of a function of a module those through the module."""
        if "::" in op.name:
            return self._python.callers.get(_base(op.name), ())
        module, _, name = op.name.removesuffix(".__init__").rpartition(".")
        calls = self._through(module, name)
        if not calls and "." in module:
            # A function of a class, called through the class: `module.Class.name(…)`.
            module, _, cls = module.rpartition(".")
            whole = f".{cls}.{name}"
            calls = tuple(c for c in self._through(module, cls) if not c.depth and (c.callee or "").endswith(whole))
        return calls

    def _through(self, module: str, name: str) -> tuple[PythonRef, ...]:
        return self._python.callers.get(f"{COMPILED}{module.rpartition('.')[2]}::{name}", ())

    def _called(self, op: Op) -> Op:
        """An op with the functions that call it: those of its overload where the call says one."""
        calls = [c for c in self.callers(op) if c.depth == 0]
        overload = op.name[len(_base(op.name)) + 1 :]
        exact = [c for c in calls if overload and (c.callee or "").endswith(f".{overload}")]
        python = tuple(PythonRef(c.file, c.line, c.function) for c in exact or calls)
        return replace(
            op,
            python=tuple(dict.fromkeys((*op.python, *python))),
            arguments=op.arguments or self._arguments(op.schema),
            returns=op.returns,
        )

    def _arguments(self, schema: str | None) -> tuple[Argument, ...]:
        """The arguments of a schema that Python gave; none where it cannot be parsed."""
        try:
            return self._signatures.of(schema)[0] if schema is not None else ()
        except SchemaError:
            return ()


def _base(name: str) -> str:
    """An op's name without the overload."""
    return name.split(".", 1)[0] if "::" in name else name


def _attached(own: list[Op], python: tuple[Op, ...]) -> Sequence[Op]:
    """Ops with what Python adds to them, and those that only Python defines."""
    return attach(own, PythonRegistrations(python)) if python else own


class NativeSide(Struct, frozen=True):
    """What becomes of an op in C++: it depends on the op's name and schema, on what its wrappers say of shapes, and on
    files of C++. ``absent`` says why a file with an implementation is not compiled."""

    implementations: tuple[Implementation, ...]
    gaps: tuple[Gap, ...]
    ownership: Ownership
    absent: str | None = None
    synchronisation: tuple[SyncPoint, ...] = ()
    flags: tuple[FlagStruct, ...] = ()


def joined_walk(
    source: SourceInfo, build: str, op: Op, native: NativeSide, callers: tuple[PythonRef, ...] = ()
) -> Walk:
    """The whole walk of an op: ``native`` is what becomes of it in C++, ``callers`` are its calls in Python."""
    implementations = list(native.implementations)
    gaps = dict.fromkeys(native.gaps)
    for impl in op.impls:
        if impl.file.endswith(".py"):
            implementations.append(_python_implementation(impl))
    implementations = list(dict.fromkeys(implementations))
    implementations.sort(key=lambda i: (not (i.builds is None or build in i.builds), i.python))
    notes: list[str] = []
    if not implementations:
        where = op.defs[0] if op.defs else None
        span = Span(where.file, where.line, where.line) if where else None
        reason = native.absent or f"nothing in the source implements {op.name}"
        gaps[Gap("not-built" if native.absent else "no-implementation", span, reason)] = None
    elif all(i.python for i in implementations):
        notes.append("the walk ends in Python: no kernel of the source is registered for this op")
    return Walk(
        source=source,
        op=op,
        python=callers or op.python,
        implementations=tuple(implementations),
        ownership=native.ownership,
        gaps=tuple(gaps),
        notes=tuple(notes),
        synchronisation=native.synchronisation,
        flags=native.flags,
    )


def _python_implementation(impl: OpImpl) -> Implementation:
    host = None
    if impl.host is not None:
        host = Host(impl.function or "", impl.host.file, impl.host.line, impl.host.end_line)
    place = impl.host or impl
    return Implementation(
        impl.key,
        impl.certainty,
        host,
        builds=impl.builds,
        condition=impl.condition,
        registered_at=Span(impl.file, impl.line, impl.line),
        python=True,
        terminals=(Terminal("host", f"Python function {impl.function}", place.file, place.line),),
    )
