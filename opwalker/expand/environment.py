"""What names mean at a place of a body: locals of the branch, lambda parameters, template parameters, the tree.

In: a body, the frame it is followed in, an offset, and the call that each generic lambda around is read for. Out:
terms. ``Environment`` is the ``Scope`` of ``expand/expressions.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from opwalker.expand.bodies import Body
from opwalker.expand.environment_names import NameLookup
from opwalker.expand.environment_templates import TemplateReading
from opwalker.expand.environment_types import TypeReading
from opwalker.expand.frames import Frame
from opwalker.expand.resolve import Context, Resolver
from opwalker.expand.terms import Term, Unknown
from opwalker.link.index import Index
from opwalker.model.body import CallFact

_MAX_DEPTH = 40


@dataclass(frozen=True)
class Tools:
    """What every environment of a follower shares. ``expand`` gives a text of a file with its macros expanded."""

    index: Index
    resolver: Resolver
    expand: Callable[[str, str, int], str] = lambda path, text, offset: text


@dataclass(frozen=True)
class Environment(NameLookup, TemplateReading, TypeReading):
    """A place where names are looked up. ``choices`` gives, by the start of a lambda, the call it is read for;
    ``bound`` are further bindings, such as a class template's parameters."""

    tools: Tools
    context: Context
    body: Body | None = None
    frame: Frame | None = None
    offset: int = 0
    choices: dict[int, CallFact] = field(default_factory=dict)
    bound: dict[str, Term | None] = field(default_factory=dict)
    depth: int = 0

    def at(self, offset: int) -> Environment:
        """The same body at another offset."""
        return replace(self, offset=offset, depth=self.depth + 1)

    def _deeper(self) -> None:
        if self.depth > _MAX_DEPTH:
            raise Unknown("definitions that refer to each other too deeply")

    def elsewhere(self, path: str, scope: tuple[str, ...], bound: dict[str, Term | None] | None = None) -> Environment:
        """A scope of another file of the same translation unit, with what is bound there."""
        return self.under(Context(path, self.context.root, scope), bound)

    def under(self, context: Context, bound: dict[str, Term | None] | None = None) -> Environment:
        """A context without a body, with what is bound there."""
        return Environment(self.tools, context, bound={} if bound is None else bound, depth=self.depth + 1)
