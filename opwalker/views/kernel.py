"""What a kernel says: parameters with shapes, shared memory, barriers, atomics, assembly, and whom it calls.

In: a kernel's definition. Out: ``Kernel``, in source order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opwalker.expand.bodies import Body
from opwalker.expand.constraints import written_in_head
from opwalker.expand.device_names import device_function
from opwalker.expand.resolve import Context
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.workbench import Unit, Workbench
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.cpp import Function
from opwalker.model.kernel import PassedFact, WorkFact
from opwalker.model.layout import LayoutFact
from opwalker.model.walk import BarrierFact, ConstexprFact, Kernel, ParameterFact, TextFact
from opwalker.notation.regex import Regex
from opwalker.views.constants import known_of
from opwalker.views.dependent import open_calls
from opwalker.views.device_functions import Reading, reached_assembly
from opwalker.views.held import held_by
from opwalker.views.index_host import documented_shapes
from opwalker.views.index_layout import LayoutReader
from opwalker.views.kernel_parts import calls_of, reductions_of, shared_of, vectors_of
from opwalker.views.kernel_values import KernelValues, Passed
from opwalker.views.kernel_work import WorkReader
from opwalker.views.ops import shown_condition
from opwalker.views.shapes import ShapeReader

_BARRIER = Regex(
    r"__syncthreads\w*|__syncwarp|__threadfence\w*|(?:\w+::)*this_grid|sync|barrier_\w+|\w*barrier\w*|mbarrier\w*|cp_async_wait\w*|"
    r"cp_async_fence|cluster_sync\w*|cluster_arrive\w*|cluster_wait\w*|cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion|"
    r"griddepcontrol\w*|__builtin_amdgcn_s_barrier"
)
_ATOMIC = Regex(
    r"atomic[A-Z]\w*|__hip_atomic_\w+|(?:atom|red)_\w+|fetch_(?:add|sub|or|and|xor|min|max)|atomicAdd_system|compare_exchange\w*"
)
_VECTOR = Regex(
    r"reinterpret_cast\s*<\s*(?:const\s+|volatile\s+)*(?:u?(?:int|short|char|long|longlong|float|double|half|bfloat16|nv_bfloat16|__half|__nv_bfloat16)[1-8]\w*|"
    r"__nv_bfloat162|half2|uint4|int4|float4|\w*[vV]ec\w*(?:\s*<[^<>]*>)?|\w*Pack\w*(?:\s*<[^<>]*>)?|u?int64_t|u?int128_t|uint32_t)\s*(?:const\s*)?\*\s*(?:__restrict__\s*)?>"
)
_SHARED = Regex(r"\b__shared__\b")
#: What a local is said to be made of, and names that a condition is told with.
_MADE = Regex(r"\w+ is (?!the )(.*?)(?:, (?:if|while) .*)?")
_WITH = Regex(r", with (\w+) = ")


def read_kernel(workbench: Workbench, unit: Unit, reading: Reading, root: str, passed: Passed | None = None) -> Kernel:
    """The facts of one kernel, read in the unit that launches it; ``passed`` is what its launch is known to pass."""
    candidate, body = reading.candidate, reading.body
    path, function = candidate.path, candidate.function
    named = documented_shapes(workbench, candidate)
    values = KernelValues(workbench, unit, candidate, root, named, passed or Passed())
    reader = LayoutReader(values)
    layouts = reader.facts()
    shapes = ShapeReader(workbench.files.part(path))
    parameters = tuple(
        ParameterFact(p.name, p.type, None, *shapes.of_parameter(path, function, number))
        for number, p in enumerate(function.parameters)
    )
    template = function.template or ""
    bounds = next(
        (re.sub(r"^__launch_bounds__\s*\(|\)\s*$", "", a) for a in function.attributes if "__launch_bounds__" in a),
        None,
    )
    work = WorkReader(values, layouts).facts()
    return Kernel(
        name=function.qualified_name,
        file=path,
        line=function.line,
        end_line=function.end_line,
        template_parameters=tuple(" ".join(template[a:b].split()) for a, b in split_commas(template)),
        parameters=parameters,
        launch_bounds=bounds,
        shared_memory=_shared(body),
        if_constexpr=tuple(_constexpr(body)),
        barriers=tuple(_barriers(body)),
        atomics=tuple(_atomics(body)),
        inline_asm=tuple(_asm(body)),
        vector_accesses=tuple(_vectors(body)),
        device_functions=_device_functions(workbench, unit, body, root),
        condition=shown_condition(workbench.index.declared(path).conditions[function.condition]),
        layouts=layouts,
        work=work,
        shared=shared_of(values),
        vectors=vectors_of(values),
        reductions=reductions_of(reading),
        calls=calls_of(reading),
        kind="kernel" if "global" in function.flags else "device",
        assembly=reached_assembly(reading),
        asked=written_in_head(function),
        passed=tuple(PassedFact(name, text) for name, text in values.passed.always.items()),
        held=held_by(body, _naming(work, layouts), _told(work, function), known_of(workbench, unit)),
        untold=reader.untold,
        open_calls=open_calls(body),
    )


def _naming(work: Iterable[WorkFact], layouts: Iterable[LayoutFact]) -> Iterator[str]:
    """The pieces of code that are told of a kernel and may name its locals."""
    for fact in work:
        yield from (text for text in (fact.value, fact.extent) if text and not fact.through)
        made = _MADE.fullmatch(fact.says)
        yield from ((made[1],) if made else ())
    for fact in layouts:
        yield from (fact.under or "", fact.computed) if not fact.through else (fact.computed,)


def _told(work: Iterable[WorkFact], function: Function) -> set[str]:
    """Names that are told already: indexes, and the parameters of the kernel and its template."""
    told = {p.name for p in (*function.parameters, *template_parameters(function.template)) if p.name}
    for fact in work:
        told.update(name for name in (fact.index, *_WITH.findall(fact.says)) if name)
    return told


def _shared(body: Body) -> tuple[str, ...]:
    out: dict[str, None] = {}
    for local in body.facts.locals:
        if _SHARED.search(local.type):
            kind = " ".join(_SHARED.sub("", local.type).replace("extern", "").replace("static", "").split())
            array = kind.find("[")
            name = f"{kind[:array].strip()} {local.name}{kind[array:]}" if array >= 0 else f"{kind} {local.name}"
            out[("extern " if "extern" in local.type else "") + name] = None
    return tuple(out)


def _constexpr(body: Body) -> list[ConstexprFact]:
    out: dict[tuple, ConstexprFact] = {}
    for block in body.facts.blocks:
        if block.kind == "if constexpr" and block.condition is not None:
            text, line = body.written(block.condition).strip(), body.use_line(block.condition[0])
            out.setdefault((text, line), ConstexprFact(text, line))
    return list(out.values())


def _barriers(body: Body) -> list[BarrierFact]:
    out: dict[tuple, BarrierFact] = {}
    for call in body.facts.calls:
        if _BARRIER.fullmatch(call.simple) and (
            call.receiver is None or call.simple in ("sync", "arrive_and_wait", "wait")
        ):
            text, line = body.written((call.start, call.end)), body.use_line(call.start)
            out.setdefault((text, line), BarrierFact(text, line))
    return list(out.values())


def _atomics(body: Body) -> list[TextFact]:
    out: dict[tuple, TextFact] = {}
    for call in body.facts.calls:
        if _ATOMIC.fullmatch(call.simple):
            text, line = body.written((call.start, call.end)), body.use_line(call.start)
            out.setdefault((text, line), TextFact(text, line))
    return list(out.values())


def _asm(body: Body) -> list[TextFact]:
    out: dict[tuple, TextFact] = {}
    for span in body.facts.asm:
        literals = re.findall(r'"((?:[^"\\]|\\.)*)"', body.expanded.full[span[0] : span[1]].split(":", 1)[0])
        text = " ".join("".join(literals).replace("\\n", " ").replace("\\t", " ").split())
        line = body.use_line(span[0])
        out.setdefault((text, line), TextFact(text, line))
    return list(out.values())


def _vectors(body: Body) -> list[TextFact]:
    out: dict[tuple, TextFact] = {}
    for match in _VECTOR.finditer(body.expanded.full):
        text, line = " ".join(match.group().split()), body.use_line(match.start())
        out.setdefault((text, line), TextFact(text, line))
    return list(out.values())


def _device_functions(workbench: Workbench, unit: Unit, body: Body, root: str) -> tuple[str, ...]:
    """Functions of the tree that the body calls, by qualified name, in the order of their first call."""
    out: dict[str, None] = {}
    context = Context(body.path, root, body.context.scope, body.context.usings, body.context.aliases)
    for call in body.facts.calls:
        if call.receiver is None and call.simple not in body.locals:
            count = len(call.arguments)
            for candidate in device_function(workbench.index, unit.resolver, call.name, context, count).candidates:
                out[candidate.function.qualified_name] = None
    return tuple(out)
