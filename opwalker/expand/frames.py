"""A function being followed: where from, and what its parameters are known to be."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.terms import Term
from opwalker.link.index import Index
from opwalker.model.body import CallFact, Span2
from opwalker.model.reach import KernelRef, Origin
from opwalker.model.walk import PathStep


class Frame(Struct, frozen=True, dict=True):
    """``functions`` maps parameters (run-time and template) to kernels they can be; ``types`` maps template parameters
    to class names, ``bound`` to what a call binds them to (None: not worked out, for the reason ``unbound``).
    ``certain`` is false where a call on the way fits several functions. ``candidate`` is None for a lambda, which then
    has a ``name``. ``origins`` say where what is bound comes from, as far as it is known. ``owner`` is the class that a
    member function is entered for, in canonical spelling; ``given`` the types of what is passed for parameters declared
    ``auto``; ``doubt`` says why the function may not be compiled with these bindings at all. ``caller`` is the frame,
    body and call that it is entered by, ``number`` tells it apart from others of one walk."""

    candidate: Candidate | None
    root: str
    steps: tuple[PathStep, ...]
    functions: dict[str, tuple[KernelRef, ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    bound: dict[str, Term | None] = field(default_factory=dict)
    unbound: str | None = None
    certain: bool = True
    name: str = "lambda"
    origins: dict[str, Origin] = field(default_factory=dict)
    owner: str | None = None
    given: dict[str, str] = field(default_factory=dict)
    doubt: str | None = None
    caller: tuple[Frame, Body, CallFact] | None = None
    number: int = 0

    @cached_property
    def memo(self) -> dict:
        """What is worked out once for this frame."""
        return {}

    @cached_property
    def key(self) -> tuple:
        """What makes two visits of one function the same visit."""
        held: tuple = ()
        if self.functions:
            held = tuple(
                sorted(
                    (name, tuple((k.path, k.function.offset, k.template_arguments, k.instances) for k in found))
                    for name, found in self.functions.items()
                )
            )
        bound = tuple(sorted((k, repr(v)) for k, v in self.bound.items())) if self.bound else ()
        return (
            *self.candidate.key,
            self.root,
            self.certain,
            held,
            tuple(sorted(self.types.items())) if self.types else (),
            bound,
            self.owner,
            self.doubt,
            tuple(sorted(self.given.items())) if self.given else (),
        )

    @cached_property
    def whole(self) -> tuple:
        """What makes two visits find the same: besides the key, where what is bound comes from."""
        functions = sorted(self.functions.items(), key=lambda pair: pair[0])
        held = tuple((name, found, tuple(k.origins for k in found)) for name, found in functions)
        return (self.key, self.unbound, tuple(sorted(self.origins.items(), key=lambda pair: pair[0])), held)

    @property
    def display_name(self) -> str:
        return self.candidate.function.qualified_name if self.candidate else self.name

    @property
    def parameter_names(self) -> frozenset[str]:
        if self.candidate is None:
            return frozenset()
        return frozenset(p.name for p in self.candidate.function.parameters)

    def context(self, body: Body) -> Context:
        """The context of names in the body, with what is known of template parameters."""
        if not self.types:
            return body.context
        return replace(body.context, aliases=body.context.aliases + tuple(sorted(self.types.items())))


class Named(Struct, frozen=True):
    """A function that is named without a call: where in a body, in which frame, and the spans of the template arguments
    there; outside of bodies, in which context, and their texts."""

    candidate: Candidate
    body: Body | None = None
    frame: Frame | None = None
    offset: int = 0
    given: tuple[Span2, ...] = ()
    context: Context | None = None
    written: tuple[str, ...] = ()


def unit_of(index: Index, candidate: Candidate, root: str) -> str:
    """The translation unit in which a function is read that one of the unit at ``root`` calls."""
    if candidate.path == root or candidate.path in index.closure(root):
        return root
    return candidate.function.unit or candidate.path
