"""What one function leads to, apart from the way that leads to it.

In: nothing; these are the records between reading a body (``expand/body_moves.py``) and following what was read
(``expand/reach.py``). A move says nothing of who called the function: the steps of a launch and of an end begin in the
function itself, and a function to enter has no steps at all. So the moves of one function with the same bindings are
the same by whatever way it is reached.
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.expand.bodies import Body
from opwalker.expand.frames import Frame, unit_of
from opwalker.expand.resolve import Candidate
from opwalker.link.index import Index
from opwalker.model.body import CallFact
from opwalker.model.reach import LaunchSite
from opwalker.model.walk import Gap, PathStep, Terminal


class Entry(Struct, frozen=True):
    """A function to enter, in a frame without steps, by the step ``by``. ``counted`` says that it is one of the ways in
    which a call binds a function, of which there may be too many; ``called`` that the step is a call, which a reader is
    shown once where it calls itself. ``caller`` is the body and the call, where it counts who calls a function;
    ``through`` the place on the way at which the function was put into what is called."""

    frame: Frame
    by: PathStep
    counted: bool = False
    called: bool = True
    caller: tuple[Body, CallFact] | None = None
    through: PathStep | None = None


class Stored(Struct, frozen=True):
    """An object of a registry that is handed on by the step ``by``, as its ``text`` tells: what the module of the walk
    stores in it may be called. ``frame`` is the one that hands it on."""

    text: str
    frame: Frame
    by: PathStep


class Asked(Struct, frozen=True):
    """Kernels that are named with template arguments of their own, to ask the runtime about them or to hand them on:
    that compiles them, launched or not."""

    site: LaunchSite


class Lost(Struct, frozen=True):
    """A call that could not be followed."""

    name: str
    place: tuple[str, int]


Move = Entry | Stored | Asked | Lost | LaunchSite | Terminal | Gap


def passed_on(index: Index, candidate: Candidate, frame: Frame, by: PathStep) -> Entry:
    """A function that is not called but handed on: what it is called with is not known."""
    made = Frame(candidate, unit_of(index, candidate, frame.root), (), certain=frame.certain, doubt=frame.doubt)
    return Entry(made, by)
