"""Which device functions a call in device code can mean.

In: a name in a kernel or device function, and its context. Out: a ``Resolution``. Device code is not linked across
units unless relocatable device code is asked for, and then the unit declares what it calls: a function of another unit
that this one neither includes nor declares is not meant, whatever it is called (``isnan`` is then CUDA's own).
"""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.expand.resolve import Candidate, Context, Resolution, Resolver
from opwalker.link.index import Index


def device_function(index: Index, resolver: Resolver, name: str, context: Context, count: int | None) -> Resolution:
    """The definitions for a non-member name in device code that its unit includes or declares."""
    found = resolver.function(name, context, count, kernel=False)
    near = index.closure(context.root) | index.closure(context.path)
    seen = tuple(c for c in found.candidates if c.path in near or _declared(index, c, near))
    return found if len(seen) == len(found.candidates) else replace(found, candidates=seen)


def _declared(index: Index, candidate: Candidate, near: frozenset[str]) -> bool:
    """Whether one of some files declares what a candidate defines."""
    function = candidate.function
    named = index.functions(function.name)
    return any(p in near and not f.body_end and f.qualified_name == function.qualified_name for p, f in named)
