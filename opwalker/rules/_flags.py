"""Flags between agents: where a value is polled, and where others store it. Read by the rules about memory order.

In: the routines of a tree. Out: polls and stores with order and scope, as far as their text says. What is reached
through a pointer to a peer's structure (``peers[i]->…``) is another device's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from opwalker.model.check import CheckedTree
from opwalker.model.statements import CallText, DeclareText, Routine, Statement
from opwalker.rules._flag_assembly import (
    POINTER_CAST,
    condition_line,
    fence_of,
    in_assembly,
    is_member,
    makers,
    root_of,
)

_ORDER = re.compile(r"memory_order(?:_|::)(relaxed|acquire|release|acq_rel|seq_cst|consume)")
_SCOPE = re.compile(r"thread_scope_(system|device|block|thread)")
#: The standard's atomics, and CUDA's where no scope is named, hold for the whole system.
_ATOMIC = re.compile(r"\b(?:cuda|std)::atomic")
_ASM_FENCE = re.compile(r"fence|membar|acquire|release|acq_rel")
_PEER = re.compile(r"\b(?:peer|remote|other|sg|signals|ptrs|bufs)\w*(?:\.\w+)?\s*\[[^\]]*\]\s*(?:->|\.)|\bpeer\w*\s*->")
#: What any access that is more than plain has in its routine, or one to a peer: as bytes, whatever stands around it.
_MORE = (
    rb"volatile|atomic|asm|(?:peer|remote|other|sg|signals|ptrs|bufs)[\w\x80-\xff]*(?:\.[\w\x80-\xff]+)?\s*"
    rb"(?:\[[^\]]*\]\s*)?(?:->|\.)"
)
_ASSEMBLY = re.compile(rb"asm")
_FENCE = re.compile(
    r"__threadfence(?:_system|_block)?\Z|(?:cuda::)?(?:std::)?atomic_thread_fence\Z|__builtin_amdgcn_fence\Z|\w*fence\w*\Z"
)

#: A dereference of a pointer that is cast to one to volatile.
_CAST = re.compile(
    r"\*\s*(?:\(\s*[^()]*\bvolatile\b[^()]*\*\s*\)|(?:reinterpret|static|const)_cast\s*<[^<>]*\bvolatile\b[^<>]*\*\s*>)"
    r"\s*\(*\s*&?\s*([A-Za-z_]\w*(?:\s*\[[^\]]*\]|\s*(?:->|\.)\s*\w+)*)"
)
#: An element of an array: its index is a stem and a number.
_ELEMENT = re.compile(r"&?(?P<base>[^\[\]]+)\[(?P<stem>(?!\d+\])[^\[\]]+?)?(?:(?:\+|(?<=\[))(?P<off>\d+))?\]")
#: What is called for an address: which member or variable it is of, its text does not say.
_CALLED = re.compile(r"(?<!\bsizeof)(?<=\w)\s*\(")
#: A pointer to pointers, and a name of what lies elsewhere.
_POINTERS = re.compile(r"\*\s*(?:const\s*)?(?:__restrict__\s*)?(?:\*|&?\s*\w*\s*\[)")
_ELSEWHERE = re.compile(r"(?:peer|remote)(?:s|_\w+|[A-Z]\w*)?\Z")
#: What a condition reads: a member, a dereference, an element.
_READ = re.compile(r"[A-Za-z_]\w*(?:\s*\[[^\]]*\])*(?:(?:->|\.)\w+(?:\s*\[[^\]]*\])*)+|\*\s*\w+|[A-Za-z_]\w*\s*\[")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
#: The value of a pointer that is set: where a flag lies, and no flag.
_POINTER = re.compile(r"\w+_cast<[^<>]*\*\s*>")


class Access(Struct, frozen=True):
    """A load or store of a flag: ``kind`` is ``store`` or ``poll``; ``how`` is ``volatile``, ``atomic`` (in assembly
    too), ``changed`` (an atomic function of CUDA, which orders nothing) or ``plain``;
    ``field`` the member or variable; ``at`` the line on which its reference is made, where that is
    another; ``place`` what the reference is made of, as written without blanks."""

    kind: str
    how: str
    field: str
    order: str | None
    scope: str | None
    peer: bool
    routine: Routine
    line: int
    at: int
    place: str = ""

    def is_apart(self, other: Access) -> bool:
        """Whether two accesses of one routine are to different elements of one array: their indices differ by a
        number."""
        if self.routine is not other.routine:
            return False
        one, two = _ELEMENT.fullmatch(self.place), _ELEMENT.fullmatch(other.place)
        if one is None or two is None or (one["base"], one["stem"]) != (two["base"], two["stem"]):
            return False
        return (one["off"] or "0") != (two["off"] or "0")


@lru_cache(maxsize=1)
def accesses(tree: CheckedTree) -> tuple[Access, ...]:
    """Every poll and store of a flag in device code (and of its host helpers); none where no finding can come from the
    routines to look at."""
    if tree.changed is not None and not _at_stake(tree):
        return ()
    out: dict[tuple[str, str, str, str, int, int], Access] = {}
    for one in _all(tree, tree.every_routine):  # what a function does for several callers is told by each of them
        out.setdefault((one.kind, one.how, one.field, one.routine.file, one.line, one.at), one)
    return tuple(out.values())


def _at_stake(tree: CheckedTree) -> bool:
    """Whether the routines to look at have a flag: what is more than plain, or what others access that way. Nothing is
    said of plain accesses alone."""
    own = list(_all(tree, tree.routines))
    if any(one.how != "plain" or one.peer for one in own):
        return True
    fields = {one.field for one in own}
    if not fields or not fields.isdisjoint(tree.volatile):
        return bool(fields)
    more = {(one.file, one.line): one for one in (*tree.ordered, *tree.calling_any(makers(tree)))}
    return any(one.field in fields for one in _all(tree, more.values()) if one.how != "plain")


def _all(tree: CheckedTree, routines: Iterable[Routine]) -> Iterator[Access]:
    for routine in routines:
        if routine.on_device or "device" in routine.flags:
            shared = {d.name for one in routine.walk() for d in one.declares if "__shared__" in d.type}
            found = [*_of(tree, routine), *_in_assembly(tree, routine)]
            yield from _met([one for one in found if one.field not in shared])


def _met(found: list[Access]) -> list[Access]:
    """The accesses of a routine, where what it stores at its peers is the flag that it waits for itself: pointers alone
    name no member, and the two have different names."""
    ordered = [one for one in found if one.how != "plain" and not is_member(one.place)]
    stored = {one.field for one in ordered if one.kind == "store" and one.peer}
    polled = {one.field for one in ordered if one.kind == "poll" and not one.peer}
    alone = stored - {one.field for one in found if one.kind == "poll"}
    waited = polled - {one.field for one in found if one.kind == "store"}
    if len(alone) != 1 or len(waited) != 1:
        return found
    (name,), (other,) = alone, waited
    return [replace(one, field=other) if one.field == name else one for one in found]


def fences(routine: Routine) -> list[tuple[int, str]]:
    """``(line, name)`` of the fences of a routine; inline assembly counts as one."""
    out = [(c.line, c.simple) for one in routine.walk() for c in one.calls if _FENCE.match(c.name)]
    for one in routine.walk():
        if one.kind == "asm" and _ASM_FENCE.search(one.text):
            out += [(one.line, fence_of(one) or "asm")]
    return out


def _of(tree: CheckedTree, routine: Routine) -> Iterator[Access]:
    statements = list(routine.walk())
    declared = [made for one in statements for made in one.declares]
    refs = _references(declared)
    volatile = {one.name for one in (*declared, *routine.parameters) if "volatile" in one.type}
    own = {one.name for one in (*declared, *routine.parameters)}
    for one in statements:
        if one.kind in ("while", "do", "for") and one.text and not _counts(one):
            yield from _polled(routine, one.text, condition_line(one), one.calls, refs, volatile)
        for assigned in one.assigns:
            field = _field(assigned.target)
            stores = assigned.operator == "=" and not _POINTER.search(assigned.value)
            if stores and field and assigned.target.strip() not in own:
                how = "volatile" if _is_volatile(assigned.target, volatile) else "plain"
                yield Access(
                    "store",
                    how,
                    field,
                    None,
                    None,
                    bool(_PEER.search(assigned.target)),
                    routine,
                    assigned.line,
                    assigned.line,
                )
        for call in one.calls:
            if call.simple in ("store", "fetch_add", "exchange") and call.receiver in refs:
                field, scope, peer, at, place = refs[call.receiver]
                peer = peer or is_peer(routine, place)
                yield Access("store", "atomic", field, _order(call), scope, peer, routine, call.line, at, place)


def _in_assembly(tree: CheckedTree, routine: Routine) -> Iterator[Access]:
    for told in in_assembly(tree, routine):
        field = _field(told.address)
        if field and not _CALLED.search(POINTER_CAST.sub("", told.address)):
            yield Access(
                "store" if told.stores else "poll", told.how, field, told.order, told.scope,
                is_peer(routine, told.address), told.routine, told.line, told.line,
                "".join(told.address.split()),
            )  # fmt: skip


def is_peer(routine: Routine, address: str) -> bool:
    """Whether an address is in another device's memory: a member of a peer's structure, an element of an array of
    pointers, or where a pointer leads whose name says so."""
    root = root_of(address)
    if _PEER.search(address) or _ELSEWHERE.match(root):
        return True
    declared = [one.type for one in routine.parameters if one.name == root]
    return "[" in address and any(_POINTERS.search(kind) for kind in declared)


def _counts(one: Statement) -> bool:
    """Whether a loop ends by a value that it moves on itself: it goes through something, and waits for nothing."""
    moved = {
        assigned.target.strip()
        for part in one.walk()
        for assigned in part.assigns
        if assigned.operator in ("++", "--", "+=", "-=")
    }
    return any(re.search(rf"(?<![\w.>]){re.escape(name)}\b", one.text) for name in moved if name.isidentifier())


def _polled(
    routine: Routine, text: str, line: int, calls: tuple[CallText, ...], refs: dict, volatile: set[str]
) -> Iterator[Access]:
    loads = [call for call in calls if call.simple == "load"]
    for call in loads:
        if call.receiver in refs:
            field, scope, peer, at, place = refs[call.receiver]
            peer = peer or is_peer(routine, place)
            yield Access("poll", "atomic", field, _order(call), scope, peer, routine, line, at, place)
    cast = {_field(found[1]) for found in _CAST.finditer(text)}
    for field, found in ((_field(found[1]), found[1]) for found in _CAST.finditer(text)):
        yield Access("poll", "volatile", field, None, None, bool(_PEER.search(found)), routine, line, line)
    if not loads and re.search(r"[!=<>]=?", text):
        for found in _READ.finditer(text):
            field = _field(found.group().rstrip("["))
            if found.group().endswith("[") and field not in volatile:
                continue  # an element of an array that is read, where it lies in no one's member
            if field and field not in cast and not re.match(r"threadIdx|blockIdx|blockDim|gridDim", found.group()):
                how = "volatile" if _is_volatile(found.group(), volatile) else "plain"
                yield Access("poll", how, field, None, None, bool(_PEER.search(found.group())), routine, line, line)


def _references(declared: Iterable[DeclareText]) -> dict[str, tuple[str, str | None, bool, int, str]]:
    """Atomic references among what a routine declares: ``name → (field, scope, peer, line, place)``."""
    out: dict[str, tuple[str, str | None, bool, int, str]] = {}
    for one in declared:
        if "atomic" in one.type or "atomic_ref" in (one.value or ""):
            text = one.value or ""
            scope = _SCOPE.search(one.type + text)
            plain = text.strip("(){}= ")
            found = _field(plain)
            if found:
                default = "system" if _ATOMIC.search(one.type + text) else None
                named = scope[1] if scope else default
                out[one.name] = (found, named, bool(_PEER.search(text)), one.line, "".join(plain.split()))
    return out


def _order(call: CallText) -> str | None:
    found = _ORDER.search(" ".join(call.arguments))
    return found[1] if found else "seq_cst"


def _field(text: str) -> str:
    """The member or variable that an access names: ``peers[t]->ready[rank]`` → ``ready``, ``flags[t] + rank`` →
    ``flags``."""
    plain = POINTER_CAST.sub("", text)
    while plain != (plain := _BRACKETS.sub("", plain)):
        pass
    plain = re.split(r"(?<=[\w)\s])[+]|(?<=[\w)\s])-(?!>)", plain, maxsplit=1)[0].strip("(&* )")
    found = re.findall(r"[A-Za-z_]\w*", plain)
    return found[-1] if found else ""


def _is_volatile(text: str, names: set[str]) -> bool:
    return "volatile" in text or _field(text) in names or re.sub(r"\W.*", "", text.strip("*( ")) in names
