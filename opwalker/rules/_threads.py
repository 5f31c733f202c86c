"""Which values of a kernel differ between the threads of a block: read by the rules about barriers.

In: a device routine. Out: whether an expression is the same for a whole block. What cannot be told counts as the same,
so that a rule which speaks of a difference has ground.
"""

from __future__ import annotations

import re

from opwalker.model.statements import Routine

BARRIER = re.compile(r"(?:::)?__syncthreads(?:_count|_and|_or)?\Z|__barrier_sync\Z|__builtin_amdgcn_s_barrier\Z")
_SOURCE = re.compile(r"\bthreadIdx\s*\.\s*[xyz]\b|\blaneid\b|\b__laneid\b|\bthread_rank\(\)")
_WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
#: A vote or reduction over the block gives every thread the same answer.
_SAME = re.compile(r"__syncthreads_(?:and|or|count)|\b__shfl_sync\b|\b__(?:all|any|ballot)_sync\b")


class Threads:
    """The values of one routine."""

    def __init__(self, routine: Routine) -> None:
        self._names: set[str] = set()
        for _ in range(6):
            before = len(self._names)
            for one in routine.walk():
                for declared in one.declares:
                    if declared.value and self.differ(declared.value) and "__shared__" not in declared.type:
                        self._names.add(declared.name)
                for assigned in one.assigns:
                    plain = assigned.target.strip()
                    if re.fullmatch(r"\w+", plain) and assigned.value and self.differ(assigned.value):
                        self._names.add(plain)
            if len(self._names) == before:
                break

    def differ(self, text: str) -> bool:
        """Whether an expression is known to differ between threads of one block."""
        if _SAME.search(text):
            return False
        plain = re.sub(r"\[[^\[\]]*\]", "", text)  # what an array holds is another question than where
        if _SOURCE.search(plain):
            return not _is_same_for_all(plain)
        return any(found.group() in self._names for found in _WORD.finditer(plain))


def _is_same_for_all(text: str) -> bool:
    """``threadIdx.x < blockDim.x`` and its like hold for every thread."""
    return bool(re.fullmatch(r"\s*threadIdx\s*\.\s*([xyz])\s*<\s*blockDim\s*\.\s*\1\s*", text))
