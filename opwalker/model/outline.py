"""What a file or a class holds, for a reader who meets it for the first time."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.owning import UseFact


class OutlineItem(Struct, frozen=True):
    """One thing of a file, in reading order. ``kind`` is ``entry point``, ``host function``, ``kernel``,
    ``device function``, ``class`` or ``global``. ``ops`` are the ops that are bound to it, ``why`` says what else makes
    it an entry point; ``uses`` are things of the same file that it calls or launches, ``used_by`` those that call or
    launch it; ``notes`` are short statements about it."""

    kind: str
    name: str
    line: int
    end_line: int
    ops: tuple[str, ...] = ()
    why: str | None = None
    uses: tuple[str, ...] = ()
    used_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    condition: str | None = None


class ClassRef(Struct, frozen=True):
    """A class and where it is defined."""

    name: str
    file: str
    line: int


class MethodFact(Struct, frozen=True):
    """A method: how it is declared, where its body stands (None: nowhere in this source), and who overrides it."""

    name: str
    signature: str
    file: str
    line: int
    virtual: bool = False
    pure: bool = False
    body_at: UseFact | None = None
    overridden_by: tuple[UseFact, ...] = ()


class ClassView(Struct, frozen=True):
    """A class: what it derives from, what derives from it, its methods, its data, and where it is made and deleted."""

    name: str
    kind: str
    file: str
    line: int
    end_line: int
    template: str | None = None
    bases: tuple[str, ...] = ()
    derived: tuple[ClassRef, ...] = ()
    methods: tuple[MethodFact, ...] = ()
    members: tuple[UseFact, ...] = ()
    constructed: tuple[UseFact, ...] = ()
    deleted: tuple[UseFact, ...] = ()
