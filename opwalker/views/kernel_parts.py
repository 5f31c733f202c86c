"""What a kernel is made of besides its arithmetic: shared memory, wide accesses, reductions, functions called.

In: a kernel's reading and values. Out: the facts of ``Kernel``, in source order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from opwalker.expand.bodies import Body
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Number, shown
from opwalker.model.body import CallFact
from opwalker.model.kernel import DeviceCall, ReductionFact, SharedFact, VectorFact
from opwalker.model.places import Span
from opwalker.notation.cpp_expression import parse_expression
from opwalker.notation.polynomial import poly
from opwalker.notation.regex import Regex
from opwalker.notation.tensor_expression import whole
from opwalker.views.branches import Branches
from opwalker.views.device_functions import Reading
from opwalker.views.kernel_values import KernelValues

_CAST = Regex(r"reinterpret_cast\s*<|\(\s*(?:const\s+)?[\w:]+(?:<[^()]*>)?\s*(?:const\s*)?\*\s*\)")
_SHUFFLE = Regex(r"__shfl_(?:xor|down|up)?(?:_sync)?\Z|__shfl\Z|shfl_\w+\Z|__reduce_\w+_sync\Z")
_LIBRARY = Regex(
    r"\b((?:hip)?cub|cuda::experimental)::(Block|Warp)(Reduce|Scan|RadixSort|MergeSort|Exchange|Load|Store)\b"
)
_LIBRARY_CALL = Regex(r"Reduce\Z|Sum\Z|Max\Z|Min\Z|InclusiveScan|ExclusiveScan|InclusiveSum|ExclusiveSum")
_QUALIFIER = Regex(
    r"\b(?:const|volatile|__restrict__|__shared__|extern|static)\b|__align__\s*\([^()]*\)|alignas\s*\([^()]*\)"
)

#: A function that reduces calls few others and is short.
_FEW = 5
_WARP_LANES = 32
_SHORT = 3000


def shared_of(values: KernelValues) -> tuple[SharedFact, ...]:
    """The shared variables with their sizes."""
    reader = values.reader
    out = []
    for local in reader.body.facts.locals:
        if "__shared__" not in local.type:
            continue
        kind = " ".join(_QUALIFIER.sub(" ", local.type).split())
        array = kind.find("[")
        element, extents = (
            (kind[:array].strip(), re.findall(r"\[([^\]]*)\]", kind[array:])) if array >= 0 else (kind, [])
        )
        dynamic = "extern" in local.type
        size = None if dynamic else _size(values, reader, element, extents, local.start)
        out.append(
            SharedFact(
                local.name, kind, reader.body.use_line(local.start), dynamic,
                shown(size) if size is not None else None, size.constant if size is not None else None,
            )
        )  # fmt: skip
    return tuple(dict.fromkeys(out))


def _size(values: KernelValues, reader: ValueReader, element: str, extents: list[str], at: int):
    size = values.types.size(element, reader)
    for extent in extents:
        found = reader.text(extent, at) if extent.strip() else None
        if size is None or not isinstance(found, Number):
            return None
        known = {a: n for a, n in values.world.constants.items() if n is not None}
        size = size * (poly(known[found.poly.atom]) if found.poly.atom in known else found.poly)
    return size


def vectors_of(values: KernelValues) -> tuple[VectorFact, ...]:
    """Pointers made to wider types, with what one access moves."""
    body = values.reader.body
    out: dict[VectorFact, None] = {}
    full = body.expanded.text
    for match in re.finditer(
        r"reinterpret_cast\s*<\s*((?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*?)\s*\*\s*(?:const\s*)?(?:__restrict__\s*)?>", full
    ):
        kind = " ".join(_QUALIFIER.sub(" ", match.group(1)).split())
        if _is_register(body, full, match.end()):
            continue
        size = values.types.size(_meant_there(full, kind, match.start()), values.reader)
        if kind in ("void", "char", "unsigned char", "uint8_t", "int8_t") or (size is None and not _is_wide(kind)):
            continue
        if size is not None and size.constant is not None and size.constant < 4:
            continue
        text = shown(size) if size is not None else None
        constant = size.constant if size is not None else None
        out[VectorFact(kind, body.use_line(match.start()), text, constant)] = None
    return tuple(out)


def _meant_there(text: str, kind: str, at: int) -> str:
    """What an alias that several blocks of a body make stands for at a place; any other type as it is."""
    made = list(re.finditer(rf"\busing\s+{re.escape(kind)}\s*=\s*([^;]+);", text)) if kind.isidentifier() else []
    for one in reversed(made if len(made) > 1 else ()):
        depths = accumulate((char == "{") - (char == "}") for char in text[one.end() : at])
        if one.end() <= at and min(depths, default=0) >= 0:
            return one[1].strip()
    return kind


def _is_register(body: Body, text: str, at: int) -> bool:
    """Whether what is cast is the address of a variable of the thread's own: no access to memory."""
    found = re.match(r"\s*\(\s*(&?)\s*([A-Za-z_]\w*)\s*[)\[]", text[at : at + 80])
    held = body.locals_at(found[2], at) if found else []
    if not held or any("__shared__" in one.type for one in held):
        return False
    kind = held[-1].type
    return bool(found[1] and "*" not in kind and "&" not in kind) or "[" in kind


def _is_wide(kind: str) -> bool:
    """Whether a type's own name says that it holds several values."""
    return bool(re.search(r"vec|pack|\dx\d|[a-z][248]\b", kind, re.IGNORECASE))


#: Overloads that a call can mean are listed up to so many; of more the number is told.
_LISTED = 8


def calls_of(reading: Reading) -> tuple[DeviceCall, ...]:
    """The functions of the tree that a kernel calls, each at its first call; overloads that are not told apart all."""
    found = [(call, (inner.candidate,)) for call, inner in reading.calls] + reading.several
    out: dict[str, list[DeviceCall]] = {}
    for call, candidates in sorted(found, key=lambda pair: pair[0].start):
        line = reading.body.use_line(call.start)
        if len(candidates) > _LISTED:
            name, first = candidates[0].function.qualified_name, candidates[0]
            at = Span(first.path, first.function.line, first.function.end_line)
            out.setdefault(name, [DeviceCall(name, line, at, True, len(candidates))])
            continue
        for one in candidates:
            at = Span(one.path, one.function.line, one.function.end_line)
            made = DeviceCall(one.function.qualified_name, line, at, len(candidates) > 1)
            held = out.setdefault(made.name, [])
            if not held or (made.overloaded and held[0].line == line and made not in held):
                held.append(made)
    return tuple(made for held in out.values() for made in held)


def reductions_of(reading: Reading) -> tuple[ReductionFact, ...]:
    """Reductions over the threads of a warp or a block: a library's, or a function's that does one."""
    out: dict[ReductionFact, None] = {}
    body = reading.body
    for call in body.facts.calls:
        if call.receiver is not None and _LIBRARY_CALL.match(call.simple):
            found = _library(body, body.text(call.receiver), call.start)
            if found is not None:
                over, name = found
                text = body.written((call.start, call.end))
                out[ReductionFact(over, text, name, body.use_line(call.start))] = None
    for call, inner in reading.calls:
        kind = reduces(inner)
        if kind is not None:
            function = inner.candidate.function
            text = body.written((call.start, call.end))
            at = Span(inner.candidate.path, function.line, function.end_line)
            out[ReductionFact(kind[0], text, f"{inner.name}: {kind[1]}", body.use_line(call.start), at)] = None
    own = [call for call in body.facts.calls if _SHUFFLE.match(call.simple) and call.receiver is None]
    if own:
        # One that joins what it gets says more than one that hands a value on; of steps over one value the first.
        joining: dict[str, CallFact] = {}
        for call in own:
            if _is_joined(body, call):
                joining.setdefault(_exchanged(body, call), call)
        for call in joining.values() or own[:1]:
            over = _lanes(body, call) if joining else ""
            text = body.written((call.start, call.end))
            out[ReductionFact(over, text, "exchange of registers within the warp", body.use_line(call.start))] = None
    return tuple(sorted(out, key=lambda fact: fact.line))


def _is_joined(body: Body, call: CallFact) -> bool:
    """Whether a shuffle's value is joined to the lane's own: an argument of a maximum or minimum, a sum, a product."""
    if "reduce" in call.simple:
        return True
    around = (one for one in body.facts.calls if any(a <= call.start < b for a, b in one.arguments))
    if any(re.search(r"max|min|add", one.simple, re.IGNORECASE) for one in around):
        return True
    before, behind = body.expanded.full[: call.start].rstrip(), body.expanded.full[call.end :].lstrip()
    return bool(re.search(r"(?:[+*|&^]=?|[+*|&^])\Z", before) or re.match(r"[+*]", behind))


def _exchanged(body: Body, call: CallFact) -> str:
    """What a shuffle hands to other lanes: its first argument behind the mask."""
    masked = call.simple.endswith("_sync") and len(call.arguments) > 1
    return body.text(call.arguments[masked]) if call.arguments else ""


def _lanes(body: Body, call: CallFact) -> str:
    """Over what a shuffle joins: as many lanes as its last argument says, else some of the warp's."""
    width = whole(parse_expression(body.text(call.arguments[3]))) if len(call.arguments) > 3 else None
    return f"group of {width} lanes" if width is not None and width < _WARP_LANES else "group of lanes of a warp"


def _library(body: Body, receiver: str, at: int) -> tuple[str, str] | None:
    """``("block", "cub::BlockReduce")`` of an object that a call is made on."""
    name = re.match(r"\w+", receiver)
    texts = [receiver]
    for local in body.locals_at(name.group(), at) if name else ():
        texts += [local.type, body.text(local.value) if local.value else ""]
    for alias, target in body.context.aliases:
        if any(re.search(rf"\b{re.escape(alias)}\b", text) for text in texts):
            texts.append(target)
    for text in texts:
        found = _LIBRARY.search(text)
        if found is not None:
            return found.group(2).lower(), f"{found.group(1)}::{found.group(2)}{found.group(3)}"
    return None


def reduces(reading: Reading) -> tuple[str, str] | None:
    """Whether a function reduces over threads, by what it does: shuffles alone, or shuffles and shared memory with a
    barrier between."""
    bodies = list(reading.all())
    if len(bodies) > _FEW or sum(len(one.body.expanded.text) for one in bodies) > _SHORT:
        return None  # more than a reduction
    if not _shuffles(bodies) and not _exchanges_by_assembly(bodies):
        return None
    barrier = any(e.kind == "barrier" for one in bodies for e in one.events)
    shared = any("__shared__" in f.type for one in bodies for f in one.body.facts.locals) or _passes_shared(reading)
    joined = _joins(bodies)
    if joined is None:
        return None
    joined = _around(bodies) or joined
    single = _single(bodies)
    if single is not None:
        lanes, condition = single
        where = f", where `{condition}`" if condition else ""
        return f"group of {lanes} lanes", f"shuffles ({joined}){where}"
    if barrier:
        return (
            "block",
            f"shuffles, shared memory and a barrier ({joined})" if shared else f"shuffles and a barrier ({joined})",
        )
    return "warp", f"shuffles ({joined})"


def _shuffles(readings: list[Reading]) -> list[tuple[Body, CallFact]]:
    return [(one.body, call) for one in readings for call in one.body.facts.calls if _SHUFFLE.match(call.simple)]


def _exchanges_by_assembly(readings: list[Reading]) -> bool:
    return any(
        i.what in ("warp shuffle", "warp reduction") for one in readings for a in one.assembly for i in a.instructions
    )


def _single(readings: list[Reading]) -> tuple[int, str | None] | None:
    """How many lanes exchanges with lanes that numbers give join, and what they are compiled under: one shuffle, or
    those 1, 2, 4 … lanes apart, each once, in no loop. None for anything else, as for a shuffle by steps."""
    found = _shuffles(readings)
    if not found or _exchanges_by_assembly(readings):
        return None
    apart: set[int] = set()
    conditions: dict[str, None] = {}
    for body, call in found:
        lanes = whole(parse_expression(body.text(call.arguments[2]))) if len(call.arguments) > 2 else None
        if not call.simple.endswith("_xor_sync") or lanes is None or lanes.bit_count() != 1 or lanes in apart:
            return None
        around = [body.facts.blocks[number] for number in Branches(body).chain(call.block)]
        if any(block.kind == "loop" for block in around):
            return None
        tested = [block.condition for block in around if block.kind == "if constexpr" and block.condition]
        conditions[" && ".join(body.text(span).strip("() \n") for span in tested)] = None
        apart.add(lanes)
    steps = {1 << step for step in range(len(apart))}
    if (len(apart) > 1 and apart != steps) or len(conditions) > 1:
        return None
    return 1 << len(apart), next(iter(conditions)) or None


def _around(readings: list[Reading]) -> str | None:
    """The join of the calls that a shuffle's value is an argument of, where each stands in one."""
    names: dict[str | None, None] = {}
    for body, call in _shuffles(readings):
        spans = [c for c in body.facts.calls if any(a <= call.start < b for a, b in c.arguments)]
        inner = min(spans, key=lambda c: c.end - c.start, default=None)
        name = inner.simple.lower() if inner else ""
        names["max" if "max" in name else "min" if "min" in name else None] = None
    return " and ".join(str(name) for name in names) if names and None not in names else None


def _passes_shared(reading: Reading) -> bool:
    return any("*" in p.type or "[" in p.type for p in reading.candidate.function.parameters)


def _joins(readings: list[Reading]) -> str | None:
    """How values are joined: ``sum``, ``max``, ``min``, or by an operator that is passed."""
    texts = " ".join(one.body.expanded.text for one in readings)
    kinds: Iterator[tuple[str, str]] = iter(
        (
            ("max", r"\bf?max\w*\s*\(|\bmax_op\b|__hmax"),
            ("min", r"\bf?min\w*\s*\("),
            ("sum", r"\+=|\+\s*__shfl|__hadd|\badd\w*\("),
        )
    )
    found = [name for name, pattern in kinds if re.search(pattern, texts)]
    shuffled = re.search(r"(\w+)\s*\(\s*[\w.\[\]]+\s*,\s*__shfl", texts)
    if shuffled and not found:
        return shuffled.group(1)
    return " and ".join(found) or None
