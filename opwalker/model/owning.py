"""Who owns what on a walk: resources and their releases, lifetimes, globals, and what can be raised across C."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.held import HeldFact


class PlaceFact(Struct, frozen=True):
    """A piece of the source, its place, and the conditions that it stands under, in words; ``held`` is what the locals
    hold that an allocation names, ``holder`` the local that is made of it, ``returned`` the function that returns
    that."""

    text: str
    file: str
    line: int
    under: tuple[str, ...] = ()
    held: tuple[HeldFact, ...] = ()
    holder: str | None = None
    returned: str | None = None


class UseFact(Struct, frozen=True):
    """A use in a function: what is done there (``text``), and the conditions that it stands under, in words."""

    text: str
    function: str
    file: str
    line: int
    under: tuple[str, ...] = ()


class PathFact(Struct, frozen=True):
    """A way out of a function behind an acquisition: the line of the ``return``, ``throw`` or closing brace, and the
    line of the release that it passes; None where it passes none. ``handed`` says that it returns the thing itself."""

    line: int
    text: str
    released_at: int | None = None
    handed: bool = False


class Resource(Struct, frozen=True):
    """Something that is acquired and has to be released.

    ``kind`` says what it is (``"device memory"``, ``"IPC mapping"``, ``"GIL state"``); ``holder`` the variable that it
    is in; ``releases`` are the releases of that variable in the same function, ``paths`` the ways out of the function
    behind the acquisition (those of failed acquisitions left out); ``goes_to`` says in words where it is handed to;
    ``elsewhere`` are releases of the same kind in other functions of the file or class: those that name the member or
    global that holds it (``named``), otherwise all there are.
    """

    kind: str
    text: str
    function: str
    file: str
    line: int
    holder: str | None = None
    releases: tuple[UseFact, ...] = ()
    paths: tuple[PathFact, ...] = ()
    goes_to: tuple[str, ...] = ()
    elsewhere: tuple[UseFact, ...] = ()
    named: bool = False


class Lifetime(Struct, frozen=True):
    """An object that releases something when its scope ends: from ``line`` to ``end_line``. ``kind`` is ``guard``,
    ``lock``, ``interpreter lock``, ``pointer``, ``range`` or ``object`` (a class of the source with a destructor);
    ``of`` is what it is made from, ``compiled`` the preprocessor condition that it stands under and its function does
    not."""

    kind: str
    type: str
    name: str
    of: str | None
    function: str
    file: str
    line: int
    end_line: int
    compiled: str | None = None


class GlobalFact(Struct, frozen=True):
    """A variable that outlives the call: of a namespace, or ``static`` in a function. ``written`` and ``tested`` (in a
    condition) are its uses by function, in all functions of the file that defines it; ``of`` is the function that a
    ``static`` local stands in."""

    name: str
    type: str
    file: str
    line: int
    kind: str = "global"
    written: tuple[UseFact, ...] = ()
    tested: tuple[UseFact, ...] = ()
    of: str | None = None


class BoundaryFact(Struct, frozen=True):
    """A function with C linkage, and what can be raised in it or in what it calls in this source: nothing may leave
    it. ``followed`` counts the functions that were looked at."""

    function: str
    file: str
    line: int
    raises: tuple[UseFact, ...] = ()
    caught: tuple[int, ...] = ()
    followed: int = 0


class Holding(Struct, frozen=True):
    """Something that another call acquires for later ones, and who then has it: ``kept_in`` the member or global that
    holds it, None where it is returned to the caller. ``released`` are the releases of what is kept there, or of what
    their caller gives them; where there are none, ``others`` are the releases of the kind that are for something else:
    ``(what they release, use)``."""

    kind: str
    text: str
    function: str
    file: str
    line: int
    kept_in: str | None = None
    released: tuple[UseFact, ...] = ()
    others: tuple[tuple[str, UseFact], ...] = ()


class Ownership(Struct, frozen=True):
    """Who owns what, and for how long. ``beside`` are resources and releases of the same file or class that lie on no
    path of this walk: what another call acquires or frees; ``holdings`` say of them who has them in between. ``words``
    are comments of the source that speak of who owns something, in the classes and functions on the way."""

    guards: tuple[PlaceFact, ...] = ()
    allocations: tuple[PlaceFact, ...] = ()
    frees: tuple[PlaceFact, ...] = ()
    callbacks: tuple[PlaceFact, ...] = ()
    resources: tuple[Resource, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()
    globals: tuple[GlobalFact, ...] = ()
    boundaries: tuple[BoundaryFact, ...] = ()
    beside: tuple[UseFact, ...] = ()
    holdings: tuple[Holding, ...] = ()
    words: tuple[PlaceFact, ...] = ()
