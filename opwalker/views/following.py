"""Registrations followed piece by piece, so that a piece may be known from before when another one has changed.

In: registrations, and what follows some of them. Out: ``Followed``, the same as if all were followed at once: where
pieces have anything in common that may make a difference, they are. A registration is a piece, and so are its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.workbench import Workbench
from opwalker.link.store_rows import value_digest
from opwalker.model.walk import ShapeSource, Span
from opwalker.views.layout import taken_as_lengths
from opwalker.views.registered import Followed, Outcome, Registered
from opwalker.views.walk_kernels import Kerneled, KernelSide, Launched, launched, read_launched


class HostSide(Struct, frozen=True):
    """What became of registrations; ``launched`` are the kernels that are still to be read, None where none are: they
    have been, or cannot be told apart from what launches them."""

    followed: Followed
    launched: tuple[Launched, ...] | None = None


#: ``follow(workbench, registrations, later)``: with ``later``, kernels are not read but told.
Follow = Callable[..., HostSide]
#: The key of a question about registrations.
Question = Callable[[str, Sequence[Registered]], str]


def question(names: Sequence[str], wrapper: Mapping[str, ShapeSource]) -> Question:
    """What following registrations depends on besides files: the key of the answer."""
    return lambda about, them: f"{about}:{value_digest((tuple(them), tuple(names), dict(wrapper)))}"


def host_side(workbench: Workbench, found: Followed, kernels: Sequence[Kerneled] | None) -> HostSide:
    """What became of registrations, with the kernels that are to be read later."""
    told = [launched(workbench, one) for one in kernels or ()]
    hosts = [one.implementation.host for some in found.outcomes for one in some]
    if kernels is None or None in told or len(hosts) != 1 or hosts[0] is None:
        return HostSide(found)
    return HostSide(found, tuple(told))


def followed_by(workbench: Workbench, them: Sequence[Registered], ask: Question, follow: Follow) -> Followed:
    """Registrations followed to their ends."""

    def at_once(some: Sequence[Registered]) -> Followed:
        key = ask("followed", some)
        return workbench.apart(key, HostSide, lambda bench: follow(bench, some), moves=True).followed

    def one_by_one(one: Registered) -> Followed:
        key = ask("hosts", (one,))
        side = workbench.apart(key, HostSide, lambda bench: follow(bench, (one,), True), moves=True)
        return (_with_kernels(workbench, one, side) if side.launched is not None else None) or at_once((one,))

    found = joined([one_by_one(one) for one in them]) if workbench.keeps_apart else None
    return found if found is not None else at_once(them)


def _with_kernels(workbench: Workbench, one: Registered, side: HostSide) -> Followed | None:
    """A registration with the kernels that it launches; None where what they say changes what is said of the host."""
    if not side.launched:
        return side.followed
    ((outcome,),) = side.followed.outcomes
    host = outcome.implementation.host
    place = Span(host.file, host.line, host.line)

    def asked(about: object) -> KernelSide:
        return workbench.apart(
            f"kernels of:{value_digest((one.build, about))}",
            KernelSide,
            lambda bench: read_launched(bench, bench.unit(one.build), place, side.launched),
            moves=True,
        )

    # On which lines things stand has no say in what they are: but what stood there must be what stands there now.
    found = asked((host.file, [_anywhere(kernel) for kernel in side.launched]))
    if (found.host, found.launched) != (place, side.launched):
        found = asked((place, side.launched))
    if taken_as_lengths(host.parameters, found.kernels) != host.parameters:
        return None
    made = Outcome(replace(outcome.implementation, kernels=found.kernels), outcome.gaps, outcome.ownership)
    return replace(
        side.followed, outcomes=((made,),), kernel_points=found.points, flags=found.flags, kernels=bool(found.kernels)
    )


def _anywhere(one: Launched) -> Launched:
    """A kernel with what its launches pass, wherever anything stands."""
    return replace(one, tensors=tuple((name, replace(tensor, at=None)) for name, tensor in one.tensors))


def joined(parts: Sequence[Followed]) -> Followed | None:
    """Registrations that were followed each by itself, together; None where they have anything in common that may
    make a difference: kernels, structures of flags, or host functions where any thread waits."""
    if sum(part.kernels for part in parts) > 1 or sum(bool(part.flags) for part in parts) > 1:
        return None
    if any(part.host_points for part in parts):
        entered = [place for part in parts for place in part.entered]
        if len(set(entered)) < len(entered):
            return None
    return Followed(
        *(
            tuple(one for part in parts for one in getattr(part, name))
            for name in ("outcomes", "host_points", "kernel_points", "flags", "entered")
        ),
        kernels=any(part.kernels for part in parts),
    )
