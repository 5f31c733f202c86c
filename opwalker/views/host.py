"""What a host function's body says about its tensors: sizes, strides, checks, guards, streams.

In: a body. Out: a ``Host``, in source order. Names are those of public tensor interfaces; nothing is inferred beyond
what a line says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Workbench
from opwalker.model.body import CallFact, LocalFact
from opwalker.model.held import HeldFact
from opwalker.model.walk import (
    ContiguousFact,
    GuardFact,
    Host,
    ParameterFact,
    SizeFact,
    StreamFact,
)
from opwalker.notation.cpp_expression import Expr, parse_expression
from opwalker.notation.regex import Regex
from opwalker.notation.tensor_expression import whole
from opwalker.views.checks import checks_of
from opwalker.views.constants import known_of
from opwalker.views.devices import device_words, stream_words
from opwalker.views.held import held_by
from opwalker.views.lifetimes import scope_end
from opwalker.views.ops import shown_condition, signature_text
from opwalker.views.returns import Returns, past_words, words_of
from opwalker.views.value_facts import Known

_SIZE = Regex(
    r"(?:\.|->)\s*(?:size|sizes|numel|dim|element_size|itemsize|nbytes|sym_size|sym_sizes|sym_numel|ndim)\s*\("
)
_NO_SIZE = Regex(r"\bdim3\b|Tensor\b|\bstring\b|_t\s*\*|\bbool\b")
_STRIDE = Regex(r"(?:\.|->)\s*(?:stride|strides|sym_stride|sym_strides)\s*\(")
_OPTIONAL = Regex(r"(?:\w+::)*optional\s*<(.*)>", re.DOTALL)
_ACCESSOR = Regex(r"Accessor\w*\s*<|_accessor\w*\s*<")
_GUARD = Regex(
    r"(?:Optional)?(?:CUDA|HIP|Device|Stream|HIPMasquerading|Accelerator)\w*Guard\w*\Z|\w*DeviceGuard\w*\Z|\w*Guard\Z"
)
_STREAM_CALL = Regex(
    r"(?:getCurrent(?:CUDA|HIP)?Stream\w*|get_current(?:_cuda)?_stream\w*|getStreamFromPool|getDefaultCUDAStream|"
    r"aoti_torch_get_current_cuda_stream|TVMFFIEnvGetStream|get_stream)\Z"
)
_STREAM_TYPE = Regex(r"(?:const\s+)?(?:cuda|hip)Stream_t(?:\s+const)?\Z")
_NARROW = Regex(r"(?:const\s+)?(?:unsigned(?:\s+int)?|u?int|u?int32_t|u?short|unsigned short|u?int16_t)(?:\s+const)?\Z")
#: Operators that give a truth value.
_TRUTH = frozenset("== != < <= > >= && ||".split())
_CONTIGUOUS = Regex(r"(?:contiguous|is_contiguous)\Z")


_Placed = TypeVar("_Placed", GuardFact, StreamFact, ContiguousFact)


def read_host(
    workbench: Workbench,
    candidate: Candidate,
    body: Body,
    parameters: tuple[ParameterFact, ...],
    asserting: Mapping[str, int] | None = None,
) -> Host:
    """The facts of a host function; ``asserting`` as for ``checks_of``."""
    function = candidate.function
    facts = body_facts(body, asserting)
    return Host(
        name=function.qualified_name,
        file=candidate.path,
        line=function.line,
        end_line=function.end_line,
        parameters=_unused(workbench, candidate, body, parameters),
        signature=signature_text(candidate),
        condition=shown_condition(workbench.index.declared(candidate.path).conditions[function.condition]),
        held=checked_locals(body, facts, known_of(workbench)),
        **facts,
    )


def _unused(
    workbench: Workbench, candidate: Candidate, body: Body, parameters: tuple[ParameterFact, ...]
) -> tuple[ParameterFact, ...]:
    """The parameters, with those marked that the body does not name: neither as it is written, in any build, nor as
    its macros expand."""
    start, end = candidate.function.body_start, candidate.function.body_end
    named = set(_WORD.findall(workbench.files.plain(candidate.path, start, end)))
    named.update(_WORD.findall(body.expanded.full))
    return tuple(one if one.name in named else replace(one, unused=True) for one in parameters)


def checked_locals(body: Body, facts: Mapping[str, tuple], known: Known) -> tuple[HeldFact, ...]:
    """What the locals hold that the checks of a body name, but for those that are told as sizes and strides."""
    told = {one.name for kind in ("sizes", "strides") for one in facts[kind] if one.name}
    return held_by(body, (one.condition for one in facts["checks"]), told, known)


_WORD = Regex(r"[A-Za-z_]\w*")
#: What makes a tensor or memory of a size.
_MADE = Regex(r"(?:[\w.]+(?:::|\.|->))*(?:new_)?(?:empty|zeros|ones|full|rand\w*)(?:_like|_strided|_permuted)?\s*\(")


def body_facts(body: Body, asserting: Mapping[str, int] | None = None) -> dict[str, tuple]:
    """Sizes, strides, checks, guards, streams, contiguous calls and early returns of a body, as fields of ``Host``."""
    branches = Returns(body)
    return {
        "sizes": tuple(_sizes(body, _SIZE, _STRIDE)),
        "strides": tuple(_sizes(body, _STRIDE, None)),
        "checks": checks_of(body, asserting or {}),
        "guards": tuple(_guards(body, branches)),
        "streams": tuple(_streams(body, branches)),
        "contiguous_calls": tuple(_contiguous(body, branches)),
        "returns": branches.early(),
    }


def _sizes(body: Body, pattern: re.Pattern[str], unless: re.Pattern[str] | None) -> list[SizeFact]:
    out: dict[tuple, SizeFact] = {}
    for local in body.facts.locals:
        if local.value is None or local.type in ("using", "namespace", "using namespace"):
            continue
        if body.lambda_at(local.value) is not None or _NO_SIZE.search(local.type):
            continue
        # A macro may hide the call; what the reader is shown stays as written.
        meant = body.text(local.value)
        if not pattern.search(meant) or (unless is not None and unless.search(meant) and not _SIZE.search(meant)):
            continue
        value = _value(body, local)
        if _MADE.match(value) or _ACCESSOR.search(f"{local.type} {value.split('(', 1)[0]}"):
            continue  # a tensor, or a view of one, that is made with these sizes is none itself
        line = body.use_line(local.start)
        kind = local.type.replace("static ", "").strip()
        narrowed = bool(_NARROW.match(kind)) and _is_wide(parse_expression(value))
        out.setdefault((local.name, line), SizeFact(local.name, value, kind, narrowed, line))
    return list(out.values())


def _is_wide(value: Expr) -> bool:
    """Whether a value read from a tensor may take 64 bits: not where the tensor only decides between numbers, or is
    compared."""
    if value.kind == "ternary":
        return any(_is_wide(one) for one in value.parts[1:])
    return whole(value) is None and not (value.kind == "binary" and value.text in _TRUTH)


def _value(body: Body, local: LocalFact) -> str:
    text = body.written(local.value)
    return text[1:-1].strip() if text[:1] in "({" and text[-1:] in ")}" else text


def _guards(body: Body, branches: Returns) -> list[GuardFact]:
    out: dict[tuple, GuardFact] = {}
    for local in body.facts.locals:
        kind = re.sub(r"\b(?:const|static|auto|constexpr)\b", "", local.type).strip()
        of, at = _value(body, local) if local.value else None, local.start
        held = _OPTIONAL.fullmatch(kind)
        if held and not local.value:
            # `optional<Guard> guard; guard.emplace(device);`: it is one from there on.
            made = next((call for call in body.facts.calls if _makes(body, call, local.name)), None)
            if made is None:
                continue
            kind, at = held[1].strip(), made.start
            of = ", ".join(body.written(span) for span in made.arguments) or None
        bare = re.sub(r"<.*", "", kind, flags=re.DOTALL).split("::")[-1].strip()
        if not _GUARD.match(bare) or "lock" in bare.lower():
            continue
        line = body.use_line(at)
        device = device_words(body, of, at)
        found = GuardFact(kind, of, line, device, scope_end(body, local), *_place(body, branches, at))
        out[kind, line] = _joined(out.get((kind, line)), found)
    return list(out.values())


def _makes(body: Body, call: CallFact, name: str | None) -> bool:
    return call.simple == "emplace" and call.receiver is not None and body.text(call.receiver) == name


def _streams(body: Body, branches: Returns) -> list[StreamFact]:
    out: dict[tuple, StreamFact] = {}
    calls = [call for call in body.facts.calls if _STREAM_CALL.match(call.simple)]
    for call in calls:
        value = body.written((call.start, call.end))
        line, words = body.use_line(call.start), stream_words(body, value, call.start)
        found = StreamFact(value, line, words, *_place(body, branches, call.start))
        out[value, line] = _joined(out.get((value, line)), found)
    for local in body.facts.locals:
        # Whatever gives it: what a local of a stream's type is made of is the stream.
        if local.value is None or not _STREAM_TYPE.match(local.type):
            continue
        value, line = _value(body, local), body.use_line(local.start)
        told = any(local.value[0] <= call.start < local.value[1] for call in calls)
        if value not in ("0", "nullptr") and not told:
            found = StreamFact(value, line, None, *_place(body, branches, local.start))
            out[value, line] = _joined(out.get((value, line)), found)
    return list(out.values())


def _contiguous(body: Body, branches: Returns) -> list[ContiguousFact]:
    out: dict[tuple, ContiguousFact] = {}
    for call in body.facts.calls:
        if call.receiver is not None and call.simple == "contiguous":
            tensor = body.written(call.receiver)
        elif call.receiver is None and call.name.endswith("::contiguous") and call.arguments:
            tensor = body.written(call.arguments[0])
        else:
            continue
        line = body.use_line(call.start)
        under, past, compiled = _place(body, branches, call.start)
        found = ContiguousFact(tensor, line, (*past, *under), compiled)
        out[tensor, line] = _joined(out.get((tensor, line)), found)
    return list(out.values())


def _joined(held: _Placed | None, found: _Placed) -> _Placed:
    """One fact of several copies that a macro makes of one text: it stands under what all of them do."""
    if held is None:
        return found
    kinds = [kind for kind in ("under", "past") if hasattr(held, kind)]
    common = {k: tuple(one for one in getattr(held, k) if one in getattr(found, k)) for k in kinds}
    return replace(held, compiled=held.compiled if held.compiled == found.compiled else None, **common)


def _place(body: Body, branches: Returns, offset: int) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    """What holds where something stands: around it, because nothing before it has returned, and what it is compiled
    under."""
    block = branches.innermost(offset)
    around = branches.around(block)
    compiled = shown_condition(body.conditions_around(offset))
    return words_of(around), past_words(branches.past(block, offset), around), compiled


__all__ = ["CallFact", "body_facts", "read_host"]
