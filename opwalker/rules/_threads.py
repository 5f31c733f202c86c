"""Which values of a kernel differ between the threads of a block: read by the rules about barriers.

In: a device routine. Out: whether an expression is the same for a whole block. What cannot be told counts as the same,
so that a rule which speaks of a difference has ground.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.statements import CallText, DeclareText, Routine, Statement

_BARRIER = re.compile(r"(?:::)?__syncthreads(?:_count|_and|_or)?\Z|__barrier_sync\Z|__builtin_amdgcn_s_barrier\Z")
#: The whole block as a group, and the barrier of all its threads in assembly.
_GROUP = re.compile(r"\bthis_thread_block\s*\(")
_BLOCK = re.compile(r"(?:\w+::)*thread_block\b")
_BAR = re.compile(r"\bbar(?:rier)?(?:\.cta)?\.sync(?:\.aligned)?\s+0(?!\s*[,\d])")
_SOURCE = re.compile(r"\bthreadIdx\s*\.\s*[xyz]\b|\blaneid\b|\b__laneid\b|\bthread_rank\(\)")
_WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_SCALAR = re.compile(
    r"(?:(?:const|constexpr|static|volatile|unsigned|signed|auto|bool|char|short|int|long|float|double|half|dim3|[\w:]+_t|"
    r"u?(?:char|short|int|long|float)[1234]?)\s*)+&?"
)
#: A vote or reduction over the block gives every thread the same answer.
_SAME = re.compile(r"__syncthreads_(?:and|or|count)|\b__shfl_sync\b|\b__(?:all|any|ballot)_sync\b")


#: A class whose methods every thread of the block has to call, and an alias of one.
_COLLECTIVE = re.compile(
    r"\bBlock(?:Reduce|Scan|RadixSort|MergeSort|Exchange|Discontinuity|AdjacentDifference|Shuffle)\b"
)

_ALIAS = re.compile(rf"using\s+(\w+)\s*=\s*[^;]*{_COLLECTIVE.pattern}[^;]*")


class Threads:
    """The values of one routine. A name that is declared twice is two variables, each in its own block."""

    def __init__(self, routine: Routine) -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        for first, last, name in _declared(routine):
            self._ranges.setdefault(name, []).append((first, last))
        self._groups = {one.name for one in routine.parameters if _BLOCK.search(one.type)}
        self._groups |= {
            made.name
            for one in routine.walk()
            for made in one.declares
            if _BLOCK.search(made.type) or _GROUP.search(made.value or "")
        }
        self._collectives = {
            made.name
            for one in routine.walk()
            for made in one.declares
            if _COLLECTIVE.search(made.type) and "TempStorage" not in made.type
        }
        aliases = (_ALIAS.match(one.text) for one in routine.walk() if one.kind == "declaration" and not one.declares)
        self._collectives |= {found[1] for found in aliases if found and "TempStorage" not in found[0]}
        self._names: set[tuple[str, int]] = set()
        # Every thread reads the same of what a block shares.
        shared = {d.name for one in routine.walk() for d in one.declares if "__shared__" in d.type}
        for _ in range(6):
            before = len(self._names)
            for one in routine.walk():
                for declared in one.declares:
                    if declared.value is None or "__shared__" in declared.type or _makes_object(declared):
                        continue
                    if self.differ(declared.value, one.line) or self._loads(declared.value, one.line):
                        self._names.add(self._variable(declared.name, one.line))
                for assigned in one.assigns:
                    plain = assigned.target.strip()
                    if plain in shared or not re.fullmatch(r"\w+", plain):
                        continue
                    if self.differ(assigned.value, one.line):
                        self._names.add(self._variable(plain, one.line))
            if len(self._names) == before:
                break

    def barriers(self, one: Statement) -> list[tuple[int, str]]:
        """``(line, name)`` of the barriers of the whole block that a statement itself has."""
        out = [
            (call.line, call.name)
            for call in one.calls
            if _BARRIER.match(call.name) or self._syncs(call) or self._joins(call)
        ]
        return [*out, (one.line, "bar.sync")] if one.kind == "asm" and _BAR.search(one.text) else out

    def _syncs(self, call: CallText) -> bool:
        group = call.receiver or next(iter(call.arguments), "")
        return call.simple == "sync" and (group.strip() in self._groups or _GROUP.search(group) is not None)

    def _joins(self, call: CallText) -> bool:
        """Whether a call is one of the whole block's: ``BlockReduce(storage).Sum(x)``."""
        made = re.match(r"(?:typename\s+)?(?:\w+::)*(\w+)", call.receiver or "")
        if made is None:
            return False
        return made[1] in self._collectives or _COLLECTIVE.fullmatch(made[1]) is not None

    def differ(self, text: str, line: int) -> bool:
        """Whether an expression on a line is known to differ between threads of one block."""
        if _SAME.search(text):
            return False
        plain = re.sub(r"\[[^\[\]]*\]", "", text)  # what an array holds is another question than where
        if _SOURCE.search(plain):
            return not _is_same_for_all(plain)
        return any(self._variable(found.group(), line) in self._names for found in _WORD.finditer(plain))

    def _loads(self, text: str, line: int) -> bool:
        """Whether an expression is an element of an array, each thread's own: ``lengths[threadIdx.x]``."""
        found = re.fullmatch(r"[=({\s]*\w+\s*\[([^\[\]]*)\][)}\s]*", text)
        return found is not None and self.differ(found[1], line)

    def _variable(self, name: str, line: int) -> tuple[str, int]:
        """A variable by the first line of the innermost block that declares the name; 0 for one from elsewhere."""
        around = [one for one in self._ranges.get(name, ()) if one[0] <= line <= one[1]]
        return name, max(around)[0] if around else 0


def _makes_object(declared: DeclareText) -> bool:
    """Whether an object of a class is constructed: that a thread's index is among what it is made of does not say that
    what it answers differs."""
    return declared.value is not None and declared.value[:1] in ("(", "{") and not _SCALAR.fullmatch(declared.type)


def _declared(routine: Routine) -> Iterator[tuple[int, int, str]]:
    """``(first line, last line, name)``: where the variable of each declaration is in sight."""
    yield from _below(routine.statements, routine.end_line)


def _below(statements: Sequence[Statement], end: int) -> Iterator[tuple[int, int, str]]:
    for one in statements:
        yield from ((one.line, end, declared.name) for declared in one.declares)
        yield from ((part.line, one.end_line, d.name) for part in one.head for d in part.declares)
        for branch in (one.body, one.orelse):
            yield from _below(branch, branch[-1].end_line if branch else one.end_line)
        for held in one.lambdas:
            yield from _below(held.body, one.end_line)


def _is_same_for_all(text: str) -> bool:
    """``threadIdx.x < blockDim.x`` and its like hold for every thread."""
    return bool(re.fullmatch(r"\s*threadIdx\s*\.\s*([xyz])\s*<\s*blockDim\s*\.\s*\1\s*", text))
