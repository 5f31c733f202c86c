"""Locals that are made of an allocation, and what is returned of them.

In: a body. Out: the local that holds what a call allocates, and whether the function returns it.
"""

from __future__ import annotations

from opwalker.expand.bodies import Body
from opwalker.model.body import CallFact
from opwalker.notation.regex import Regex

ALLOCATION = Regex(
    r"(?:cuda|hip)(?:Malloc\w*|HostAlloc|HostRegister|MemPoolCreate)\Z|cuMem(?:Alloc\w*|Create|AddressReserve|Map)\Z|malloc\Z|"
    r"(?:new_)?(?:empty|zeros|ones|full)(?:_like|_strided|_permuted)?\Z|new_(?:empty|zeros|ones|full)\Z|allocate\Z|raw_alloc\w*\Z|raw_allocate\Z"
)


def is_made(body: Body, name: str) -> bool:
    """Whether a local is made of an allocation."""
    return any(ALLOCATION.match(call.simple) and holder_of(body, call) == name for call in body.facts.calls)


def holder_of(body: Body, call: CallFact) -> str | None:
    """The local that is made of what a call gives, and of nothing else."""
    full = body.expanded.full
    for local in body.facts.locals:
        if local.value is not None and local.value[0] <= call.start and call.end <= local.value[1]:
            before, after = full[local.value[0] : call.start], full[call.end : local.value[1]]
            return local.name if not before.strip(" ({") and not after.strip(" )}") else None
    return None


def is_returned(body: Body, name: str) -> bool:
    """Whether a function returns a local, as it is."""
    found = (body.text(one.value).strip() for one in body.facts.exits if one.kind == "return" and one.value is not None)
    return any(text in (name, f"std::move({name})") for text in found)
