"""What names mean at a place of a body: locals of the branch, lambda parameters, template parameters, the tree.

In: a body, the frame it is followed in, an offset, and the call that each generic lambda around is read for. Out:
terms. ``Environment`` is the ``Scope`` of ``expand/expressions.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.environment_calls import ConstantCalls
from opwalker.expand.environment_classes import ClassReading
from opwalker.expand.environment_kept import KeptReadings, Readings
from opwalker.expand.environment_names import NameLookup
from opwalker.expand.environment_objects import ConstantObjects
from opwalker.expand.environment_sizes import SizeReading
from opwalker.expand.environment_templates import TemplateReading
from opwalker.expand.environment_types import TypeReading
from opwalker.expand.environment_values import ValueTypes
from opwalker.expand.frames import Frame
from opwalker.expand.resolve import Candidate, Context, Resolver
from opwalker.expand.terms import PassedCall, Term, Unknown
from opwalker.link.index import Index
from opwalker.model.body import CallFact

_MAX_DEPTH = 50


class Tools(Struct, frozen=True):
    """What every environment of a follower shares. ``expand`` gives a text of a file with its macros expanded;
    ``memo`` keeps what depends on a translation unit alone, ``readings`` what texts mean at places."""

    index: Index
    resolver: Resolver
    expand: Callable[[str, str, int], str] = lambda path, text, offset: text
    memo: dict[tuple, Any] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    #: Gives what explicit instantiations bind the parameters of a function template to, one for each.
    written_out: Callable[[Candidate], list[dict[str, Term | None]]] = lambda candidate: []
    #: The same for a member of a class template, each with the class.
    written_members: Callable[[Candidate], list[tuple[dict[str, Term | None], str]]] = lambda candidate: []


class Environment(
    Struct,
    KeptReadings,
    NameLookup,
    TemplateReading,
    ClassReading,
    TypeReading,
    ValueTypes,
    ConstantCalls,
    ConstantObjects,
    SizeReading,
    frozen=True,
):
    """A place where names are looked up. ``choices`` gives, by the start of a lambda, the call it is read for;
    ``bound`` are further bindings, such as a class template's parameters; ``owner`` is the class that the place stands
    in, where no frame says it. ``doubt`` says why the place may not be compiled at all in this way."""

    tools: Tools
    context: Context
    body: Body | None = None
    frame: Frame | None = None
    offset: int = 0
    choices: dict[int, CallFact | PassedCall | None] = field(default_factory=dict)
    bound: dict[str, Term | None] = field(default_factory=dict)
    depth: int = 0
    owner: str | None = None
    doubt: str | None = None

    @property
    def around(self) -> str | None:
        """The canonical type of the class around the place; None outside of classes."""
        return self.owner if self.frame is None else self.frame.owner

    def at(self, offset: int) -> Environment:
        """The same body at another offset."""
        return replace(self, offset=offset, depth=self.depth + 1)

    def _deeper(self) -> None:
        if self.depth > _MAX_DEPTH:
            raise Unknown("definitions that refer to each other too deeply")

    def elsewhere(
        self,
        path: str,
        scope: tuple[str, ...],
        bound: dict[str, Term | None] | None = None,
        owner: str | None = None,
    ) -> Environment:
        """A scope of another file of the same translation unit, with what is bound there."""
        return self.under(Context(path, self.context.root, scope), bound, owner)

    def under(
        self, context: Context, bound: dict[str, Term | None] | None = None, owner: str | None = None
    ) -> Environment:
        """A context without a body, with what is bound there."""
        held = {} if bound is None else bound
        return Environment(self.tools, context, bound=held, depth=self.depth + 1, owner=owner)
