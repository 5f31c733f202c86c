"""The kernels of an implementation, read apart from the functions that launch them.

In: the launches of an implementation. Out: facts of their kernels; or ``Launched``, which says of each all that its
reading depends on besides files: where it is, in which unit it is read, and what its launches pass; and of these
``KernelSide``. An edit of a kernel leaves what launches it as it was, and the
other way round; how kernels are read is ``views.kernel``'s, and what launches pass ``views.index_host``'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.frames import unit_of
from opwalker.expand.resolve import Candidate
from opwalker.expand.values import Number
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.reach import LaunchSite, Reach
from opwalker.model.walk import FlagStruct, Host, Kernel, Span, SyncPoint
from opwalker.notation.polynomial import Atom, Poly
from opwalker.notation.regex import Regex
from opwalker.views.device_functions import DeviceReader
from opwalker.views.index_host import LaunchJoin
from opwalker.views.kernel import read_kernel
from opwalker.views.kernel_values import Documented, Passed
from opwalker.views.registered import of_file
from opwalker.views.sync import WalkSync
from opwalker.views.way import Way

#: A line in words that does not say of which file: which one it is, words alone do not tell.
_BARE_LINE = Regex(r"\(:\d|\bat :\d")


#: Launches of one kernel whose arguments are looked at.
_LAUNCHES_JOINED = 6


class Kerneled(Struct, frozen=True):
    """A kernel that is launched, the unit that it is read in, and what its launches pass."""

    candidate: Candidate
    root: str
    passed: Passed


class Launched(Struct, frozen=True):
    """As ``Kerneled``, for an answer that is kept: its file, its name and number among those of the name there; what
    its launches pass, in ``passed`` as text, and the ``tensors`` behind its pointers."""

    path: str
    name: str
    rank: int
    root: str
    passed: str
    tensors: tuple[tuple[str, Documented], ...]


class KernelSide(Struct, frozen=True):
    """What was read of kernels that ``host`` launches: their facts, where their threads wait, and on which flags."""

    host: Span
    launched: tuple[Launched, ...]
    kernels: tuple[Kernel, ...]
    points: tuple[SyncPoint, ...]
    flags: tuple[FlagStruct, ...]


def launched_kernels(workbench: Workbench, reach: Reach, way: Way, host: Host | None, sync: WalkSync) -> list[Kerneled]:
    """The kernels that an implementation launches, each with what its first launches pass."""
    join = LaunchJoin(workbench, way, host.parameters if host else ())
    sync.host(way.host.body)
    for path, function, _ in reach.functions:
        sync.host(way.body_of(path, function))
    found: dict[tuple[str, int], tuple[Candidate, list[LaunchSite]]] = {}
    for site in reach.launches:
        for reference in site.kernels:
            candidate = Candidate(reference.path, reference.function)
            sites = found.setdefault(candidate.key, (candidate, []))[1]
            if site not in sites:
                sites.append(site)
    out = []
    for candidate, sites in found.values():
        launcher = sites[0].steps[-1].file
        # It is read in the unit of the file that launches it, when this includes the kernel's.
        root = unit_of(workbench.index, candidate, launcher)
        passed = join.best(sites[:_LAUNCHES_JOINED], candidate.function)
        if len(sites) > _LAUNCHES_JOINED:
            passed = replace(passed, always={})  # not all were looked at
        out.append(Kerneled(candidate, root, passed))
    return out


def read_kernels(workbench: Workbench, unit: Unit, them: Iterable[Kerneled], sync: WalkSync) -> tuple[Kernel, ...]:
    """Kernels with what their launches pass."""
    device = DeviceReader.of(workbench, unit)
    kernels = []
    for one in them:
        reading = device.kernel(one.candidate, one.root)
        sync.kernel(reading)
        kernels.append(read_kernel(workbench, unit, reading, one.root, one.passed))
    return tuple(kernels)


def launched(workbench: Workbench, one: Kerneled) -> Launched | None:
    """A kernel with what its launches pass; None where that cannot be said apart from where things stand."""
    path, function = one.candidate.path, one.candidate.function
    named, text = of_file(workbench, path, function.name), pack(one.passed)
    if text is None or function not in named or _BARE_LINE.search(text):
        return None
    return Launched(path, function.name, named.index(function), one.root, text, tuple(one.passed.tensors.items()))


def read_launched(workbench: Workbench, unit: Unit, host: Span, them: Sequence[Launched]) -> KernelSide:
    """Kernels that ``host`` launches, and what is met in them."""
    for place in (host, *(tensor.at for one in them for _, tensor in one.tensors if tensor.at is not None)):
        # It is told with the kernels, though it is not looked at for them.
        workbench.index.note_head(place.file, place.line)
    sync = WalkSync(workbench)
    candidates = (Candidate(one.path, of_file(workbench, one.path, one.name)[one.rank]) for one in them)
    found = [Kerneled(candidate, one.root, unpack(one)) for candidate, one in zip(candidates, them, strict=True)]
    kernels = read_kernels(workbench, unit, found, sync)
    _, points, flags = sync.found()
    return KernelSide(host, tuple(them), kernels, points, flags)


# -- what a launch passes, as text -------------------------------------------------------------------------------------


def pack(passed: Passed) -> str | None:
    """All of it but the tensors, as text; None where a value is no number."""
    if not all(isinstance(value, Number) for value in passed.bound.values()):
        return None
    held = [
        [[name, _poly(value.poly)] for name, value in passed.bound.items()],
        [[name, _poly(value)] for name, value in passed.extents.items()],
        [[_atom(atom), *place] for atom, place in passed.strides.items()],
        [[_atom(one), _atom(other), words] for one, other, words in passed.equal],
        list(passed.names.items()),
        [
            [name, [[[dim, None if value is None else _poly(value)] for dim, value in dims] for dims in shapes]]
            for name, shapes in passed.shapes.items()
        ],
        sorted(passed.absent),
        [[_atom(atom), words] for atom, words in passed.conditions.items()],
        list(passed.always.items()),
        sorted(passed.compared),
        [[name, _poly(value)] for name, value in passed.counts.items()],
    ]
    return msgspec.json.encode(held).decode()


def unpack(one: Launched) -> Passed:
    """What the launches of a kernel pass."""
    bound, extents, strides, equal, names, shapes, absent, conditions, always, compared, counts = msgspec.json.decode(
        one.passed
    )
    return Passed(
        {name: Number(_to_poly(value)) for name, value in bound},
        {name: _to_poly(value) for name, value in extents},
        dict(one.tensors),
        {_to_atom(atom): (tensor, dim) for atom, tensor, dim in strides},
        tuple((_to_atom(first), _to_atom(second), words) for first, second, words in equal),
        dict(names),
        {
            name: [[(dim, None if value is None else _to_poly(value)) for dim, value in dims] for dims in held]
            for name, held in shapes
        },
        frozenset(absent),
        {_to_atom(atom): words for atom, words in conditions},
        dict(always),
        frozenset(compared),
        {name: _to_poly(value) for name, value in counts},
    )


def _poly(value: Poly) -> list:
    return [[str(factor), [[_atom(atom), power] for atom, power in product]] for product, factor in value.terms.items()]


def _atom(atom: Atom) -> list:
    return [atom.kind, atom.name, [_poly(part) for part in atom.parts]]


def _to_poly(held: list[Any]) -> Poly:
    return Poly({tuple((_to_atom(atom), power) for atom, power in product): int(factor) for factor, product in held})


def _to_atom(held: list[Any]) -> Atom:
    kind, name, parts = held
    return Atom(kind, name, tuple(_to_poly(part) for part in parts))
