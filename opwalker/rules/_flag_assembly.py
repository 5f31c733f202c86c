"""Accesses with a memory order that are written in one expression: inline assembly, a compiler's atomics, a reference
to an atomic that is made for one access, a cast to volatile; and the functions that make such an access for others.

In: the routines of a tree. Out: the accesses of the form that ``_flags`` tells. A function whose own work is a single
access through a pointer that it is given is an access where it is called; one that does more (a fence, a loop) has it
where it stands, its address being what the caller gives. A load counts as a poll in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from opwalker.model.assembly import Instruction
from opwalker.model.check import CheckedTree
from opwalker.model.statements import CallText, Routine, Statement
from opwalker.notation.ptx import decode

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LOOPS = frozenset(("while", "do", "for"))
_SCOPES = {"block": "block", "gpu": "device", "system": "system"}
_ORDERS = frozenset(("relaxed", "acquire", "release", "acq_rel", "volatile"))
#: A quick no: what any of these orders has in its text.
_ORDERED = re.compile(rf"""\.["\s]*(?:{"|".join(sorted(_ORDERS))})\b""")
#: Atomics of the compiler: which argument is the address is always the first.
_BUILTIN = re.compile(r"__(?:(?:hip|scoped)_)?atomic_(load|store)(?:_n)?\Z")
_BUILTIN_ORDER = re.compile(r"__ATOMIC_(RELAXED|ACQUIRE|RELEASE|ACQ_REL|SEQ_CST|CONSUME)\b")
_BUILTIN_SCOPE = re.compile(r"_SCOPE_(SYSTEM|SYSTM|AGENT|DEVICE|DVC|WORKGROUP|WRKGRP|WAVEFRONT|WVFRNT|SINGLETHREAD)\b")
_BUILTIN_SCOPES = {"SYSTEM": "system", "SYSTM": "system", "AGENT": "device", "DEVICE": "device", "DVC": "device"}
#: An atomic reference that is made for one access: ``cuda::atomic_ref<int, …>(flag).store(1)``.
_REFERENCE = re.compile(r"\batomic_ref\s*<[^;]*?>\s*[({](.*)[)}]\s*\Z", re.DOTALL)
_REFERENCE_SCOPE = re.compile(r"thread_scope_(system|device|block|thread)")
_REFERENCE_ORDER = re.compile(r"memory_order(?:_|::)(relaxed|acquire|release|acq_rel|seq_cst|consume)")
#: A function of CUDA that changes memory in one step and orders nothing around it: its name says how far.
_CUDA_ATOMIC = re.compile(r"atomic(?:Exch|Add|Sub|Or|And|Max|Min|Inc|Dec)(_system|_block)?\Z")
#: A dereference of a pointer that is cast to one to volatile, and nothing else.
_CAST = re.compile(
    r"\*\s*\(*\s*(?:\(\s*[^()]*\bvolatile\b[^()]*\*\s*\)|(?:reinterpret|static|const)_cast\s*<[^<>]*\bvolatile\b[^<>]*\*\s*>)"
    r"\s*(\(?[^;=]*\)?)\s*\Z"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
#: A cast of a pointer to another, and the text of an address: where a flag lies, and no value that was read.
POINTER_CAST = re.compile(r"(?:reinterpret|static|const)_cast\s*<[^<>]*>|\(\s*[^()]*\*\s*\)")
_PLACE = re.compile(r"\A[=({\s]*(?:&|[A-Za-z_][\w\s\[\]\.>()+*-]*(?:->|\[|\+|\.)|[A-Za-z_]\w*[)}\s]*\Z|\w+_cast|\()")
#: What orders memory by itself: a function that does it has more to do than one access.
_ORDERS_TOO = re.compile(r"(?i)sync|fence")
_DEEPEST = 3


class Told(Struct, frozen=True):
    """An access: whether it stores, its order (``volatile`` for assembly that says so, None for a cast and for CUDA's
    own atomics), its scope, the address as the routine writes it, the line and routine that it stands at. ``how`` is
    ``atomic``, ``volatile`` or ``changed`` (by an atomic function of CUDA), ``looped`` whether a loop is around it."""

    stores: bool
    order: str | None
    scope: str | None
    address: str
    line: int
    routine: Routine
    how: str = "atomic"
    looped: bool = False


def in_assembly(tree: CheckedTree, routine: Routine) -> Iterator[Told]:
    """The stores and polls of a routine, its own and those of the functions that it calls for it. What has its address
    from the caller of a function is told by the caller."""
    given = _given(routine) if "global" not in routine.flags else frozenset()
    for told in _made_in(tree, routine):
        if (told.stores or told.looped) and (is_member(told.address) or root_of(told.address) not in given):
            yield told


def root_of(address: str) -> str:
    """The variable that an address starts from: ``&peers[t]->ready[rank]`` → ``peers``."""
    found = _WORD.search(POINTER_CAST.sub("", address))
    return found.group() if found else ""


def is_member(address: str) -> bool:
    """Whether an address names a member of an object."""
    return re.search(r"->|\.\s*[A-Za-z_]", address) is not None


def condition_line(one: Statement) -> int:
    """The line of a loop's condition: that of a ``do`` stands at its end."""
    return one.end_line if one.kind == "do" else one.line


def _given(routine: Routine) -> frozenset[str]:
    return frozenset(one.name for one in routine.parameters)


@lru_cache(maxsize=1)
def _answers(tree: CheckedTree) -> dict[tuple[str, int, str], tuple[Told, ...]]:
    return {}


def _made_in(tree: CheckedTree, routine: Routine, depth: int = 0) -> tuple[Told, ...]:
    """Every access of a routine, those whose address it is given too."""
    kept, key = _answers(tree), (routine.file, routine.line, routine.name)
    if key not in kept:
        kept[key] = ()  # for a function that calls itself
        values = {d.name: d.value for one in routine.walk() for d in one.declares if d.value}
        kept[key] = tuple(_below(tree, routine, routine.statements, values, False, depth))
    return kept[key]


def _is_made_for(routine: Routine, found: Sequence[Told]) -> bool:
    """Whether a function has no other work than one access through what it is given."""
    return (
        len(found) == 1
        and not found[0].looped
        and not any(
            one.kind in _LOOPS or any(_ORDERS_TOO.search(call.simple) for call in one.calls) for one in routine.walk()
        )
    )


def _below(
    tree: CheckedTree, routine: Routine, statements: Sequence[Statement], values: Mapping[str, str], loop: bool,
    depth: int,
) -> Iterator[Told]:  # fmt: skip
    for one in statements:
        inside = loop or one.kind in _LOOPS
        for told in (*_of(one, routine), *_called(one, routine), *_cast(one, routine)):
            yield replace(_placed(told, values), looped=inside)
        for call in one.calls:
            if depth < _DEEPEST and call.simple in makers(tree):
                yield from _through(tree, routine, call, values, inside, depth)
        for part in (one.head, one.body, one.orelse):
            yield from _below(tree, routine, part, values, inside, depth)
        for held in one.lambdas:
            yield from _below(tree, routine, held.body, values, inside, depth)


def _through(
    tree: CheckedTree, routine: Routine, call: CallText, values: Mapping[str, str], inside: bool, depth: int
) -> Iterator[Told]:
    """The accesses of a function that is called whose address the call gives."""
    for target in tree.targets(routine, call):
        names = [one.name for one in target.parameters]
        found = _made_in(tree, target, depth + 1)
        for told in found:
            root = root_of(told.address)
            place = names.index(root) if root in names and not is_member(told.address) else len(call.arguments)
            if place >= len(call.arguments):
                continue
            there = replace(told, address=_put(told.address, root, call.arguments[place]))
            if _is_made_for(target, found):
                there = replace(there, line=call.line, looped=inside, routine=routine)
            yield _placed(there, values)


@lru_cache(maxsize=1)
def makers(tree: CheckedTree) -> frozenset[str]:
    """The names of the functions that access what they are given: it is told where they are called."""
    names: set[str] = set()
    held: dict[tuple[str, int, str], Routine] = {(o.file, o.line, o.name): o for o in tree.ordered}
    for _ in range(_DEEPEST):
        new = {one.name.rsplit("::", 1)[-1] for one in held.values() if _hands_on(one, names)} - names
        if not new:
            break
        names |= new
        held |= {(o.file, o.line, o.name): o for o in tree.calling_any(new)}
    return frozenset(names)


def _hands_on(routine: Routine, names: Collection[str]) -> bool:
    """Whether a function of the device may access what it is given, or hands it to one of some names."""
    if "global" in routine.flags or "device" not in routine.flags:
        return False
    given = _given(routine)
    values = {d.name: d.value for one in routine.walk() for d in one.declares if d.value}
    for one in routine.walk():
        for told in (*_of(one, routine), *_called(one, routine), *_cast(one, routine)):
            if root_of(_placed(told, values).address) in given:
                return True
        for call in one.calls:
            if call.simple in names and any(root_of(argument) in given for argument in call.arguments):
                return True
    return False


def _placed(told: Told, values: Mapping[str, str]) -> Told:
    """An access with its address followed through locals."""
    address = told.address.strip("=*() ")
    for _ in range(4):
        root = root_of(address)
        if root not in values or not _PLACE.search(values[root]) or _is_carved(values[root]):
            break
        address = _put(address, root, values[root].strip("={} "))
        values = {name: held for name, held in values.items() if name != root}
    return replace(told, address=address.strip("= "))


def _put(address: str, root: str, value: str) -> str:
    """An address with a value in place of what it starts from."""
    if address.strip("&*() ") == root:
        return value
    return re.sub(rf"\b{re.escape(root)}\b", lambda _: f"({value})", address, count=1)


def _is_carved(value: str) -> bool:
    """Whether a pointer is made by moving another one on: a part of memory that may hold several flags."""
    return not is_member(value) and re.search(r"[\w)\]]\s*[+-]\s*[\w(]", value) is not None


def _of(one: Statement, routine: Routine) -> Iterator[Told]:
    if one.kind != "asm" or not _ORDERED.search(one.text):
        return
    template, operands = _parts(one.text)
    for instruction in decode(template):
        if instruction.what in ("load", "store") and instruction.order in _ORDERS:
            address = _address(instruction, operands)
            if address:
                scope = _SCOPES.get(instruction.scope or "")
                yield Told(instruction.what == "store", instruction.order, scope, address, one.line, routine)


def _called(one: Statement, routine: Routine) -> Iterator[Told]:
    """The accesses of a statement by the compiler's atomics, by CUDA's, and by references that are made for one."""
    for call in one.calls:
        written = ", ".join(call.arguments)
        builtin, changed = _BUILTIN.match(call.simple), _CUDA_ATOMIC.match(call.simple)
        reference = _REFERENCE.search(call.receiver) if call.receiver else None
        if builtin and call.arguments:
            order, scope = _BUILTIN_ORDER.search(written), _BUILTIN_SCOPE.search(written)
            reach = _BUILTIN_SCOPES.get(scope[1], "block") if scope else "system"
            told = order[1].lower() if order else "seq_cst"
            yield Told(builtin[1] == "store", told, reach, call.arguments[0], call.line, routine)
        elif changed and call.receiver is None and call.arguments:
            reach = {"_system": "system", "_block": "block"}.get(changed[1] or "", "device")
            yield Told(True, None, reach, call.arguments[0], call.line, routine, "changed")
        elif reference and call.simple in ("load", "store", "fetch_add", "exchange"):
            order, scope = _REFERENCE_ORDER.search(written), _REFERENCE_SCOPE.search(call.receiver or "")
            told = order[1] if order else "seq_cst"
            reach = scope[1] if scope else "system"
            yield Told(call.simple != "load", told, reach, reference[1], call.line, routine)


def _cast(one: Statement, routine: Routine) -> Iterator[Told]:
    """The accesses of a function through a cast to volatile of what it is given: those of a kernel, and of what is
    named, are told by the text of their statements."""
    if "global" in routine.flags:
        return
    given = _given(routine)
    for name in (made.name for made in routine.parameters if "volatile" in made.type and "*" in made.type):
        access = re.compile(rf"\*\s*{re.escape(name)}\b|(?<![\w.>]){re.escape(name)}\s*\[[^\]]*\]")
        for assigned in one.assigns:
            target = assigned.target.strip()
            if assigned.operator == "=" and access.fullmatch(target):
                yield Told(True, None, None, target.removeprefix("*"), assigned.line, routine, "volatile")
        if one.kind in (*_LOOPS, "return") and (loaded := access.search(one.text)):
            yield Told(False, None, None, loaded.group().removeprefix("*"), condition_line(one), routine, "volatile")
    if "volatile" not in one.text:
        return
    for assigned in one.assigns:
        stored = _CAST.search(assigned.target)
        if stored and assigned.operator == "=" and root_of(stored[1]) in given and not is_member(stored[1]):
            yield Told(True, None, None, stored[1], assigned.line, routine, "volatile")
    for text in (one.text if one.kind == "return" else "", *[made.value or "" for made in one.declares]):
        loaded = _CAST.search(text)
        if loaded and root_of(loaded[1]) in given and not is_member(loaded[1]):
            yield Told(False, None, None, loaded[1], one.line, routine, "volatile")


def fence_of(one: Statement) -> str | None:
    """The fence of an assembly statement whose scope is this device, or less; None for any other statement."""
    for instruction in decode(_parts(one.text)[0]) if one.kind == "asm" else ():
        if instruction.what == "fence" and instruction.scope in ("block", "cluster", "gpu"):
            return instruction.text.split(" ")[0]
    return None


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
