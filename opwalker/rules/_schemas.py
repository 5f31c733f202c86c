"""Schemas beside the functions that they are bound to: read by the rules about schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from opwalker.model.check import CheckedTree
from opwalker.model.ops import Argument, Op, OpImpl
from opwalker.model.statements import Routine, RoutineParameter


class Signature(Struct, frozen=True):
    """A function as an implementation names it, defined or only declared: ``(type, name)`` of its parameters."""

    file: str
    line: int
    parameters: tuple[tuple[str, str], ...]
    returns: str


def bound_pairs(op: Op, routine: Routine) -> Iterator[tuple[Argument, RoutineParameter]]:
    """Schema arguments with the C++ parameters at the same place; none where the counts differ."""
    if len(op.arguments) == len(routine.parameters):
        yield from zip(op.arguments, routine.parameters, strict=True)


def signatures(tree: CheckedTree, impl: OpImpl) -> Sequence[Signature]:
    """The signatures that the function of an implementation can have: its definition's, else its declarations'."""
    if impl.function is None:
        return ()
    if impl.host is not None:
        routine = tree.routine_at(impl.host.file, impl.host.line)
        if routine is None or routine.name.rsplit("::", 1)[-1] != impl.function.rsplit("::", 1)[-1]:
            return ()  # a lambda, or code that another build reads
        return (Signature(routine.file, routine.line, _types(routine.parameters), routine.returns),)
    name = impl.function.rsplit("::", 1)[-1]
    found = [(file, one) for file, one in tree.functions(name) if one.template is None]
    # What another file declares may be another function of that name.
    near = [(file, one) for file, one in found if file == impl.file or file in tree.included(impl.file)]
    return tuple(Signature(file, one.line, _types(one.parameters), one.return_type) for file, one in near)


def _types(parameters) -> tuple[tuple[str, str], ...]:
    return tuple((one.type, one.name) for one in parameters if one.type != "void")
