"""Who owns what on a walk: guards, allocations, frees and callbacks in every host function that it enters."""

from __future__ import annotations

import re

from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.reach import Reach
from opwalker.model.walk import Ownership, PlaceFact, Terminal
from opwalker.views.host import body_facts

_ALLOCATION = re.compile(
    r"(?:cuda|hip)(?:Malloc\w*|HostAlloc|HostRegister|MemPoolCreate)\Z|cuMem(?:Alloc\w*|Create|AddressReserve|Map)\Z|malloc\Z|"
    r"(?:new_)?(?:empty|zeros|ones|full)(?:_like|_strided|_permuted)?\Z|new_(?:empty|zeros|ones|full)\Z|allocate\Z|raw_alloc\w*\Z|raw_allocate\Z"
)
_FREE = re.compile(
    r"(?:cuda|hip)(?:Free\w*|HostFree|HostUnregister|MemPoolDestroy)\Z|cuMem(?:Free\w*|Release|Unmap|AddressFree)\Z|free\Z|raw_delete(?:ion)?\Z|deallocate\Z"
)
_CALLBACK = re.compile(
    r"(?:cuda|hip)(?:LaunchHostFunc|StreamAddCallback)\Z|cuLaunchHostFunc\Z|Py_?(?:ObjectCall\w*|Object_Call\w*)\Z|PyObject_Call\w*\Z|from_blob\Z"
)


def is_allocation(terminal: Terminal) -> bool:
    """Whether a terminal only makes a tensor or memory."""
    return terminal.kind == "memory" and bool(_ALLOCATION.match(terminal.name.replace(".", "::").rsplit("::", 1)[-1]))


def ownership_of(workbench: Workbench, unit: Unit, reach: Reach, root: str) -> Ownership:
    """What the host functions of a walk hold, in the order in which they are entered."""
    guards: dict[PlaceFact, None] = {}
    allocations: dict[PlaceFact, None] = {}
    frees: dict[PlaceFact, None] = {}
    callbacks: dict[PlaceFact, None] = {}
    for path, function, _ in reach.functions:
        unit_root = root if path in workbench.index.closure(root) else path
        body = unit.bodies.of(Candidate(path, function), unit_root)
        for guard in body_facts(body)["guards"]:
            guards[PlaceFact(f"{guard.type}({guard.of})" if guard.of else guard.type, path, guard.line)] = None
        for call in body.facts.calls:
            for pattern, out in ((_ALLOCATION, allocations), (_FREE, frees), (_CALLBACK, callbacks)):
                if pattern.match(call.simple):
                    out[PlaceFact(body.written((call.start, call.end))[:160], path, body.use_line(call.start))] = None
    return Ownership(tuple(guards), tuple(allocations), tuple(frees), tuple(callbacks))
