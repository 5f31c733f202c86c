"""What a call means: a definition, and what the call binds."""

from __future__ import annotations

from msgspec import Struct, field

from opwalker.expand.resolve import Candidate
from opwalker.expand.terms import Term


class Fit(Struct, frozen=True):
    """A definition that a call means: what its template parameters and those of its class are bound to (None: not
    worked out, for the reason ``why``), its class, and the types of what is passed for ``auto``. ``sure`` is false
    where another definition may be meant instead."""

    candidate: Candidate
    bound: dict[str, Term | None] = field(default_factory=dict)
    owner: str | None = None
    why: str | None = None
    sure: bool = True
    given: dict[str, str] = field(default_factory=dict)
    types: tuple[str | None, ...] = ()

    @property
    def key(self) -> tuple:
        """What makes two fits the same."""
        bound = tuple(sorted((k, repr(v)) for k, v in self.bound.items()))
        return (*self.candidate.key, bound, self.owner, tuple(sorted(self.given.items())))
