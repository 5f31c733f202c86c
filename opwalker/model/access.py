"""What a body says about memory: subscripts, dereferences, loops, guards. Spans are offsets into the expanded text."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.body import Span2

#: What loads or stores the element that its first argument points at.
LOADS = frozenset("__ldg __ldca __ldcg __ldcs __ldcv __ldlu".split())
STORES = frozenset("__stcg __stcs __stwb __stwt".split())


class Access(Struct, frozen=True):
    """``base[index]`` (``kind == "index"``), ``*base`` (``"deref"``), ``base->`` (``"arrow"``) or ``__ldg(base)`` and
    its like (``"call"``); ``index`` is None for all but the first. ``written`` where it is assigned to, ``read`` where
    its value is taken, neither where only its address is. Where a reference is bound to it, these say how that is used,
    and ``through`` where: ``(offset, written, read)``."""

    kind: str
    start: int
    end: int
    base: Span2
    index: Span2 | None
    written: bool
    read: bool
    block: int
    through: tuple[tuple[int, bool, bool], ...] = ()

    @property
    def uses(self) -> tuple[tuple[int, bool, bool], ...]:
        """Each place where the element is touched: ``(offset, written, read)``."""
        return self.through or ((self.start, self.written, self.read),)


class Loop(Struct, frozen=True):
    """A ``for`` loop's parts (None where empty); a ``while`` loop has a condition alone."""

    start: int
    end: int
    init: Span2 | None
    condition: Span2 | None
    update: Span2 | None
    body: Span2


class Leave(Struct, frozen=True):
    """``if (condition) return;``: behind ``start``, within ``until``, the condition is false. ``kind`` is the statement
    that leaves: ``return``, ``continue`` or ``break``."""

    kind: str
    condition: Span2
    start: int
    until: Span2


class Change(Struct, frozen=True):
    """A variable that is changed after its declaration: ``=``, ``+=``, ``++``; ``value`` is None for the last."""

    target: str
    operator: str
    value: Span2 | None
    start: int


class AccessFacts(Struct, frozen=True):
    """All of these of one body, each kind in source order; ``again`` are ``do`` loops, which test behind their body."""

    accesses: tuple[Access, ...] = ()
    loops: tuple[Loop, ...] = ()
    leaves: tuple[Leave, ...] = ()
    changes: tuple[Change, ...] = ()
    again: tuple[Loop, ...] = ()
