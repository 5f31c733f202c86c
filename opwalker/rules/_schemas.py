"""Schemas beside the functions that they are bound to: read by the rules about schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from opwalker.model.check import CheckedTree
from opwalker.model.ops import Argument, Op, OpImpl
from opwalker.model.statements import Routine, RoutineParameter
from opwalker.notation.cpp_signature import split_arguments

#: A lambda that is written as an argument, up to its parameters; and a parameter, its default left out.
_LAMBDA = re.compile(r"(?<=[\s,(])\[[\w\s&=,]*\]\s*\(")
_PARAMETER = re.compile(r"(.*[\s&*>])(\w+)\s*(?:=.*)?", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


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
    if impl.host is not None and impl.function == "lambda":
        return tuple(_lambda(tree, impl))
    if impl.host is not None:
        routine = tree.routine_at(impl.host.file, impl.host.line)
        if routine is None or routine.name.rsplit("::", 1)[-1] != impl.function.rsplit("::", 1)[-1]:
            return ()  # code that another build reads
        return (Signature(routine.file, routine.line, _types(routine.parameters), routine.returns),)
    name = impl.function.rsplit("::", 1)[-1]
    found = [(file, one) for file, one in tree.functions(name) if one.template is None]
    # What another file declares may be another function of that name.
    near = [(file, one) for file, one in found if file == impl.file or file in tree.included(impl.file)]
    return tuple(Signature(file, one.line, _types(one.parameters), one.return_type) for file, one in near)


def _lambda(tree: CheckedTree, impl: OpImpl) -> Iterator[Signature]:
    """The signature of a function that is written where it is bound: read where one begins on its first line."""
    assert impl.host is not None
    first, last = impl.host.line, impl.host.end_line
    lines = tree.text(impl.host.file).splitlines(keepends=True)[first - 1 : last]
    if not lines or len(_LAMBDA.findall(_COMMENT.sub("", f" {lines[0]}"))) != 1:
        return
    text = _COMMENT.sub("", " " + "".join(lines))
    found = _LAMBDA.search(text)
    end = _closing(text, found.end()) if found else -1
    if found is None or end < 0:
        return
    parts = [_PARAMETER.fullmatch(one.strip()) for one in split_arguments(text[found.end() : end])]
    if all(parts):
        named = tuple((one[1].strip(), one[2]) for one in parts if one)
        yield Signature(impl.host.file, first, named, "auto")


def _closing(text: str, start: int) -> int:
    """Where the parenthesis that was opened before ``start`` closes; -1 where it does not."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return -1


def _types(parameters) -> tuple[tuple[str, str], ...]:
    return tuple((one.type, one.name) for one in parameters if one.type != "void")
