"""The parameters of a host function, with everything that is known of their shapes and layout.

In: a host function and what was reached from it. Out: ``ParameterFact`` tuples: documented shapes, shapes that code
shows on the way, how the two compare, and what is asked of the strides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Workbench
from opwalker.model.reach import LaunchSite, Reach
from opwalker.model.walk import DerivedFact, ParameterFact, ShapeSource, Span
from opwalker.notation.cpp_expression import parse_expression, walk
from opwalker.notation.regex import Regex
from opwalker.notation.tensor_expression import asked
from opwalker.views.derived import derived_facts, with_derived
from opwalker.views.entered import Entered
from opwalker.views.layout import LayoutUse, layout_uses, verdict
from opwalker.views.ownership import is_allocation
from opwalker.views.shapes import ShapeReader, documented, fields_of
from opwalker.views.value_facts import Found
from opwalker.views.values import Values
from opwalker.views.way import Way

#: Functions on a walk whose bodies are read for shapes: those nearest to the host function.
MAX_FUNCTIONS = 24
_TENSOR = Regex(r"Tensor(?:View|Ref|Base)?\b(?![\w:]*List)")
_TENSORS = Regex(r"(?:vector|List|ArrayRef|array)\s*<|TensorList")


def host_parameters(
    workbench: Workbench,
    candidate: Candidate,
    argument_names: tuple[str, ...],
    wrapper: Mapping[str, ShapeSource],
) -> tuple[ParameterFact, ...]:
    """The parameters with their documented shapes; ``argument_names`` are the schema's, joined by place."""
    function = candidate.function
    joined = len(argument_names) == len(function.parameters)
    names = argument_names if joined else (None,) * len(function.parameters)
    sources = documented(workbench, candidate, names, wrapper)
    return tuple(
        ParameterFact(parameter.name, parameter.type, name, *fields_of(found), found)
        for parameter, name, found in zip(function.parameters, names, sources, strict=True)
    )


def with_code(
    workbench: Workbench,
    way: Way,
    reach: Reach,
    parameters: tuple[ParameterFact, ...],
    entered: Entered | None = None,
) -> tuple[ParameterFact, ...]:
    """The same parameters with what the code on the way says of their shapes and layout."""
    entered = entered or Entered(way, reach)
    tensors = [p.name for p in parameters if p.name and is_tensor(p.type)]
    function = way.host.body.function
    place = (way.host.body.path, function.line if function else 0)
    derived: dict[str, list[DerivedFact]] = {}
    uses: dict[str, list[LayoutUse]] = {}
    leading = _leading(reach)
    for values in _functions(way, reach) if tensors else ():
        launches = _launches_of(values, reach)
        own = values.body.function
        under = entered.of(values.body.path, own) if own is not None else ()
        anchors = [site.at for site in launches]
        anchors += [call.start for call in values.body.facts.calls if call.simple in leading]
        for tensor, fact in derived_facts(values, way.host, tensors, launches, under, anchors):
            derived.setdefault(tensor, []).append(fact)
        beside = values is not way.host and not launches
        for tensor, use in layout_uses(values, way.host, tensors, launches, under, anchors):
            if beside:
                # Whether that function is entered whenever the kernel is launched is not known.
                if use.what in ("contiguous", "helper", "stride", "made", "elsewhere"):
                    uses.setdefault(tensor, []).append(LayoutUse("elsewhere", 0))
            else:
                here = values.body.path == way.host.body.path
                uses.setdefault(tensor, []).append(use if here else replace(use, file=values.body.path))
    kernels = _kernel_shapes(workbench, way, reach, tensors)
    between = _shapes_on_way(workbench, way, reach, tensors)
    out = []
    for one in parameters:
        found = [*between.get(one.name, ()), *kernels.get(one.name, ())]
        if found:
            shown = fields_of(tuple(found)) if not one.sources and between.get(one.name) else None
            one = replace(one, sources=(*one.sources, *found))
            if shown is not None:
                one = replace(one, shape=shown[0], shape_text=shown[1], shape_span=shown[2])
        one = with_derived(one, derived.get(one.name, ()), *place)
        found = verdict(uses.get(one.name, ()))
        if found:
            text, (number, file) = found
            at = Span(file, number, number) if file is not None else None
            one = replace(one, layout=text, layout_line=(number or None) if at is None else None, layout_at=at)
        out.append(one)
    return tuple(out)


def is_tensor(type_text: str) -> bool:
    """Whether a C++ type is one tensor, given or optional; no list of them."""
    return bool(_TENSOR.search(type_text)) and not _TENSORS.search(type_text)


def _leading(reach: Reach) -> frozenset[str]:
    """The names of the functions on the way to launches and ends, and of the ends."""
    steps = (step for one in reach.launches for step in one.steps)
    names = [step.function for step in (*steps, *(step for one in reach.terminals for step in one.path))]
    names += [one.name.split("<", 1)[0].replace(".", "::") for one in reach.terminals if not is_allocation(one)]
    return frozenset(name.rsplit("::", 1)[-1] for name in names)


def _functions(way: Way, reach: Reach) -> Iterator[Values]:
    yield way.host
    host = way.host.body
    count = 0
    for path, function, steps in reach.functions:
        if (path, function.body_start) == (host.path, getattr(host.function, "body_start", -1)) or not steps:
            continue
        if any(is_tensor(p.type) for p in function.parameters) and count < MAX_FUNCTIONS:
            count += 1
            values = way.of_function(path, function, steps)
            if values is not None:
                yield values


def _launches_of(values: Values, reach: Reach) -> list[LaunchSite]:
    """The launches that stand in a body."""
    body = values.body
    name = body.function.qualified_name if body.function else None
    return [
        site
        for site in reach.launches
        if site.steps[-1].file == body.path and (name is None or site.steps[-1].function == name)
    ]


def _kernel_shapes(
    workbench: Workbench, way: Way, reach: Reach, tensors: Sequence[str]
) -> dict[str, tuple[ShapeSource, ...]]:
    """Shapes in comments beside kernel parameters, by the host's tensor whose data is passed for them."""
    out: dict[str, dict[ShapeSource, None]] = {}
    for site in reach.launches:
        values = way.at(site.steps)
        if values is None or not site.passed:
            continue
        for kernel in {(k.path, k.function) for k in site.kernels}:
            path, function = kernel
            reader = ShapeReader(workbench.files.part(path))
            for number, span in enumerate(site.passed[: len(function.parameters)]):
                tensor = data_of(values, way.host, values.body.text(span), span[0])
                found = reader.source(path, function, number, "kernel") if tensor in tensors else None
                if tensor is not None and found is not None:
                    out.setdefault(tensor, {})[found] = None
    return {tensor: tuple(sorted(found, key=lambda s: (s.span.file, s.span.line))) for tensor, found in out.items()}


def _shapes_on_way(
    workbench: Workbench, way: Way, reach: Reach, tensors: Sequence[str]
) -> dict[str, tuple[ShapeSource, ...]]:
    """Shapes that functions on the way document of their parameters, by the host's tensor that is passed for them."""
    out: dict[str, dict[ShapeSource, None]] = {}
    for values in _functions(way, reach) if tensors else ():
        function = values.body.function
        if values is way.host or function is None:
            continue
        found = documented(workbench, Candidate(values.body.path, function))
        for parameter, sources in zip(function.parameters, found, strict=True):
            if sources and re.fullmatch(r"\w+", parameter.name or ""):
                where, tensor, _ = values.origin(parameter.name, 0, tensor=True)
                if where is way.host and tensor in tensors:
                    named = (replace(one, kind="way") for one in sources)
                    out.setdefault(tensor, {}).update(dict.fromkeys(named))
    return {tensor: tuple(found) for tensor, found in out.items()}


def data_of(values: Values, host: Values, text: str, offset: int) -> str | None:
    """The host's tensor whose data an argument of a launch is; None for anything else."""
    found = Found()
    resolved = values.of(parse_expression(text), offset, found)
    held = [parse_expression(found.kept[n.text]) for n in walk(resolved) if n.kind == "name" and n.text in found.kept]
    for node in (node for expr in (resolved, *held) for node in walk(expr)):
        told = asked(node) if node.kind == "call" else None
        if told and ("data_ptr" in told[1] or told[1] == "data") and re.fullmatch(r"\w+", told[0]):
            where, name, _ = values.origin(told[0], offset, tensor=True)
            return name if where is host and name else None
    return None
