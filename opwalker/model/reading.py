"""What a walk stops at besides functions and kernels: synchronisation, patterns; a start that is no op."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.places import Span


class SyncPoint(Struct, frozen=True):
    """A point where threads, streams or devices wait for each other, and what it protects as far as the code shows it.

    ``text`` is what stands there (an instruction, a call), ``means`` the same in words; ``order`` and ``scope`` its
    memory order and who sees it. ``function`` holds it, ``kernels`` reach it. ``flag`` is the address that it touches,
    ``member`` the structure's member that this is in, ``value`` what is stored; ``spins`` says that a loop waits here.
    ``under`` are compile-time branches around it, ``threads`` those that only some threads or blocks take,
    ``condition`` its preprocessor condition. Where a function of the tree holds the instruction (``through``), ``at``
    is where it stands and ``line`` where that function is called.
    """

    kind: str
    text: str
    protects: str | None
    file: str
    line: int
    means: str | None = None
    order: str | None = None
    scope: str | None = None
    function: str | None = None
    flag: str | None = None
    member: str | None = None
    value: str | None = None
    spins: bool = False
    under: tuple[str, ...] = ()
    condition: str | None = None
    through: str | None = None
    at: Span | None = None
    kernels: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()


class PatternRef(Struct, frozen=True):
    """A known pattern that the walk passes."""

    id: str
    file: str
    line: int


class Entry(Struct, frozen=True):
    """What is walked where it is no op: ``kind`` is ``file``, ``function``, ``class`` or ``kernel``."""

    kind: str
    name: str
    file: str
    line: int
    end_line: int
