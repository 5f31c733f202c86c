"""What a local of a function holds, where something else that is told of the function names it."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.launch import CaseFact


class HeldFact(Struct, frozen=True):
    """A local (or a constant that its function sees, then ``line`` is 0) and what it is made of, as written. ``filled``
    where ``value`` is a call that is given its address; where branches assign it, ``cases`` say which value where: the
    first one that holds counts."""

    name: str
    value: str
    line: int = 0
    filled: bool = False
    cases: tuple[CaseFact, ...] = ()
