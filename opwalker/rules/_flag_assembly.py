"""Flags that are stored and polled by inline assembly: in place, or by a function that is made for it.

In: the routines of a tree. Out: the accesses of the form that ``_flags`` tells. A function with a single load or store
in assembly, through a pointer that it is given, is an access where it is called. A load counts as a poll in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from opwalker.model.assembly import Instruction
from opwalker.model.check import CheckedTree
from opwalker.model.statements import Routine, Statement
from opwalker.notation.ptx import decode

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LOOPS = frozenset(("while", "do", "for"))
_SCOPES = {"block": "block", "gpu": "device", "system": "system"}
_ORDERS = frozenset(("relaxed", "acquire", "release", "acq_rel", "volatile"))
#: A quick no: what any of these orders has in its text.
_ORDERED = re.compile(rf"""\.["\s]*(?:{"|".join(sorted(_ORDERS))})\b""")


class Told(Struct, frozen=True):
    """An access in assembly: whether it stores, its order (``volatile`` too), its scope, and the address as the
    routine writes it."""

    stores: bool
    order: str
    scope: str | None
    address: str
    line: int


def in_assembly(tree: CheckedTree, routine: Routine) -> Iterator[Told]:
    """The stores and polls of a routine, its own and those of the functions that it calls for it; none of a function
    that is made for one."""
    if _made_for(routine)[0] is not None:
        return
    values = {d.name: d.value for one in routine.walk() for d in one.declares if d.value}
    yield from _below(tree, routine, routine.statements, values, False)


def _below(
    tree: CheckedTree, routine: Routine, statements: Sequence[Statement], values: Mapping[str, str], loop: bool
) -> Iterator[Told]:
    for one in statements:
        inside = loop or one.kind in _LOOPS
        for told in _of(one):
            if told.stores or inside:
                yield _placed(told, told.address, told.line, values)
        for call in (call for call in one.calls if call.simple in makers(tree)):
            for target in tree.targets(routine, call):
                access, place = _made_for(target)
                if access is not None and place < len(call.arguments) and (access.stores or inside):
                    yield _placed(access, call.arguments[place], call.line, values)
        for part in (one.head, one.body, one.orelse):
            yield from _below(tree, routine, part, values, inside)


@lru_cache(maxsize=1)
def makers(tree: CheckedTree) -> frozenset[str]:
    """The names of the functions that are made for one access: it is told where they are called."""
    return frozenset(one.name.rsplit("::", 1)[-1] for one in tree.ordered if _made_for(one)[0] is not None)


def _placed(told: Told, address: str, line: int, values: Mapping[str, str]) -> Told:
    """An access with its address followed through locals."""
    for _ in range(4):
        plain = address.strip("=&*() ")
        if plain not in values:
            break
        address = values[plain]
    return Told(told.stores, told.order, told.scope, address.strip("= "), line)


def _made_for(routine: Routine) -> tuple[Told | None, int]:
    """The one access that a function makes through a parameter, and which parameter it is."""
    found = [told for one in routine.walk() if one.kind == "asm" for told in _of(one)]
    names = [one.name for one in routine.parameters]
    if len(found) != 1 or found[0].address not in names:
        return None, 0
    return found[0], names.index(found[0].address)


def _of(one: Statement) -> Iterator[Told]:
    if one.kind != "asm" or not _ORDERED.search(one.text):
        return
    template, operands = _parts(one.text)
    for instruction in decode(template):
        if instruction.what in ("load", "store") and instruction.order in _ORDERS:
            address = _address(instruction, operands)
            if address:
                scope = _SCOPES.get(instruction.scope or "")
                yield Told(instruction.what == "store", instruction.order, scope, address, one.line)


def _parts(text: str) -> tuple[str, list[str]]:
    """The template of an assembly statement, and the expressions of its operands."""
    inner = text[text.find("(") + 1 : text.rfind(")")]
    head = re.match(r'\s*(?:"(?:[^"\\]|\\.)*"\s*)+', inner)
    if head is None:
        return "", []
    template = "".join(_STRING.findall(head.group())).replace("\\n", "\n").replace("\\t", " ")
    return template, [found[1] for found in _operands(inner[head.end() :])]


def _operands(text: str) -> Iterator[tuple[str, str]]:
    """``(constraint, expression)`` of each operand, outputs first."""
    for found in re.finditer(r'"([=+]?\w+)"\s*\(', text):
        depth, at = 1, found.end()
        while at < len(text) and depth:
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        yield found[1], text[found.end() : at - 1].strip()


def _address(instruction: Instruction, operands: Sequence[str]) -> str | None:
    number = re.search(r"%(\d+)", instruction.address or "")
    return operands[int(number[1])] if number and int(number[1]) < len(operands) else None
