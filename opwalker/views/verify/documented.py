"""Documented shapes against the contract, argument by argument.

In: a contract's arguments, and the walk of an op (ours, or a library's). Out: ``DocumentedShape`` a tensor. Names
of dimensions may differ; their number and order may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opwalker.model.verify import DocumentedShape
from opwalker.model.walk import ParameterFact, Walk
from opwalker.notation.shape_alike import same_shape
from opwalker.views.verify.contract import Contract


def documented_shapes(contract: Contract, walk: Walk) -> tuple[DocumentedShape, ...]:
    """What the source says of each tensor argument of the contract. An op of another library may call its arguments
    otherwise: then they are compared by position."""
    found = _documented(walk)
    named = [one.name for one in walk.op.arguments] if walk.op else []
    tensors = [one.name for one in walk.op.arguments if one.type.startswith("Tensor")] if walk.op else []
    out = []
    for number, (name, argument) in enumerate(contract.arguments.items()):
        theirs = name if name in named else tensors[number] if number < len(tensors) else name
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


def against_contract(shapes: Iterable[DocumentedShape]) -> list[str]:
    """What the source says otherwise, as reasons."""
    return [
        f"{one.argument} is documented as {one.source} at {one.source_at}, and the contract says {one.contract}"
        for one in shapes
        if one.agrees is False
    ]


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
