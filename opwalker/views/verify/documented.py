"""Documented shapes against the contract, argument by argument.

In: a contract's arguments, and the walk of an op (ours, or a library's). Out: ``DocumentedShape`` for each tensor. Names of
dimensions may differ; their number and order may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opwalker.model.verify import DocumentedShape
from opwalker.model.walk import ParameterFact, Walk
from opwalker.notation.shape_comment import parse_shape
from opwalker.views.verify.contract import Contract


def documented_shapes(contract: Contract, walk: Walk) -> tuple[DocumentedShape, ...]:
    """What the source says of each tensor argument of the contract. An op of another library may call its arguments
    otherwise: then they are compared by position."""
    found = _documented(walk)
    named = [one.name for one in walk.op.arguments] if walk.op else []
    out = []
    for number, (name, argument) in enumerate(_positions(contract, named)):
        theirs = name if name in named else named[number] if number < len(named) else name
        parameter = found.get(theirs)
        text = parameter.shape_text if parameter else None
        place = parameter.shape_span if parameter else None
        out.append(
            DocumentedShape(
                name,
                argument.shape,
                text,
                same_shape(argument.shape, text) if text else None,
                f"{place.file}:{place.line}" if place else None,
            )
        )
    return tuple(out)


def _positions(contract: Contract, named: Sequence[str]) -> Iterable[tuple[str, object]]:
    return contract.arguments.items()


def _documented(walk: Walk) -> Mapping[str, ParameterFact]:
    """Shapes by schema argument: beside the host function's parameters, else beside a kernel's of the same name."""
    found: dict[str, ParameterFact] = {}
    for implementation in walk.implementations:
        if implementation.host:
            for one in implementation.host.parameters:
                if one.shape_text:
                    found.setdefault(one.argument or one.name, one)
    for implementation in walk.implementations:
        for kernel in implementation.kernels:
            for one in kernel.parameters:
                if one.shape_text:
                    found.setdefault(one.name, one)
    return found


def same_shape(ours: str, theirs: str) -> bool:
    """Whether two shape texts say the same, in one of the readings that each allows."""
    left, right = parse_shape(ours), parse_shape(theirs)
    if left is None or right is None:
        return False
    return any(_same(a, b) for a in left.alternatives for b in right.alternatives)


def _same(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    a, b = [_plain(dim) for dim in ours], [_plain(dim) for dim in theirs]
    for one, other in ((a, b), (b, a)):
        if one and one[0] == "..." and (not other or other[0] != "..."):
            one[:1] = other[: len(other) - len(one) + 1]
    if len(a) != len(b):
        return False
    return not any(x != y and (_moved(x, b) or _moved(y, a) or (x.isdigit() and y.isdigit())) for x, y in zip(a, b))


def _moved(dim: str, others: Sequence[str]) -> bool:
    """Whether a dimension stands elsewhere on the other side: then the order differs, not the name."""
    return not dim.isdigit() and dim in others


def _plain(dim: str) -> str:
    return "".join(dim.split()).replace("//", "/")
