"""What is asked of a tensor's strides: must it be contiguous, is it made so, or are its strides passed on.

In: the functions of a walk, as values at the host function. Out: one sentence a tensor parameter, with its line. It
states what is read and checked on the host; what the kernel does with it is the kernel's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.model.body import Span2
from opwalker.model.host import ParameterFact
from opwalker.model.kernel import Kernel
from opwalker.model.reach import LaunchSite
from opwalker.notation.check_words import listed, said
from opwalker.notation.cpp_expression import negated, parse_expression, print_expression, terms, walk
from opwalker.notation.regex import Regex
from opwalker.notation.tensor_expression import asked, stride_of, whole
from opwalker.views.branches import Guard, compiled_under, needed
from opwalker.views.checks import demands_of
from opwalker.views.elements import elements_of
from opwalker.views.returns import Returns, all_of
from opwalker.views.values import Values

_DATA = frozenset("data_ptr mutable_data_ptr const_data_ptr data packed_accessor32 packed_accessor64 accessor".split())
_CHECKING = Regex(r"CHECK|ASSERT|ENFORCE|assert")

#: What is said of a stride that a kernel gets, and of one that it takes for a number of elements.
_STRIDED = "may be strided: the kernel gets the stride of "
_LENGTH = "the kernel goes through as many elements as the stride of {}, a gap behind a row among them"


class LayoutUse(Struct, frozen=True):
    """One thing that a function does with a tensor's strides. ``what`` is ``contiguous``, ``helper`` (a function of the
    project's own, its ``name``) or ``stride`` (checks), ``made`` (contiguous), ``read`` (a stride; ``name`` is what
    holds it), ``data`` (its pointer is taken), ``elsewhere`` (a check that has no words here, or a function beside the
    way to the launch, asks for something). ``dimension`` is a number, an expression, or None for all; ``file`` is told
    where the line is of another file than the host function's."""

    what: str
    line: int
    dimension: int | str | None = None
    name: str | None = None
    under: tuple[str, ...] = ()
    passed: bool = False
    file: str | None = None

    @property
    def at(self) -> tuple[int, str | None]:
        """The line, and its file."""
        return self.line, self.file


def layout_uses(
    values: Values,
    host: Values,
    tensors: Sequence[str],
    launches: Sequence[LaunchSite],
    entered: tuple[str, ...] = (),
    anchors: Sequence[int] = (),
) -> Iterator[tuple[str, LayoutUse]]:
    """What one function does with the strides of the host function's tensors; ``entered`` are the conditions under
    which it is entered, ``anchors`` where it goes on to what is done with them."""
    body, branches = values.body, Returns(values.body)

    def of(name: str, offset: int) -> str | None:
        if not re.fullmatch(r"\w+", name):
            return None
        where, text, _ = values.origin(name, offset, tensor=True)
        return text if where is host and text in tensors else None

    def each(name: str, offset: int) -> list[str]:
        """The tensors that a name means: several for the variable of a loop over a list of them."""
        locals_ = body.locals_at(name, offset)
        elements = elements_of(body, locals_[0]) if len(locals_) == 1 else ()
        return [tensor for one in elements or (name,) if (tensor := of(one, offset))]

    def under(guards: Sequence[Guard], offset: int) -> tuple[str, ...]:
        held = (*needed(guards), *compiled_under(body, offset, anchors))
        return tuple(dict.fromkeys((*entered, *(said(g.condition) for g in held))))

    for demand in demands_of(body):
        expr = demand.condition
        options = terms(expr, "||")
        for one in options if len(options) > 1 else ():
            # `!x || x.is_contiguous()`: where the others do not hold.
            told = asked(one)
            if told and told[1] in ("is_contiguous", "IsContiguous"):
                others = tuple(said(negated(other)) for other in options if other is not one)
                held = (*under(demand.guards, demand.offset), *others)
                conditions = tuple(t for t in held if t != f"{told[0]} is given")
                for tensor in each(told[0], demand.offset):
                    yield tensor, LayoutUse("contiguous", demand.line, under=conditions)
        told = asked(expr)
        if told and told[1] in ("is_contiguous", "IsContiguous"):
            held = under(demand.guards, demand.offset)
            conditions = tuple(t for t in held if t != f"{told[0]} is given")
            for tensor in each(told[0], demand.offset):
                yield tensor, LayoutUse("contiguous", demand.line, under=conditions)
        elif expr.kind == "call" and "contiguous" in expr.parts[0].simple.lower():
            # A helper of the project's own: what it demands is its own matter.
            for part in expr.parts[1:]:
                for tensor in each(print_expression(part), demand.offset):
                    yield tensor, LayoutUse("helper", demand.line, name=expr.parts[0].simple)
        elif expr.kind == "binary" and expr.text == "==":
            for left, right in (expr.parts, expr.parts[::-1]):
                found = stride_of(left)
                if found and whole(right) == 1:
                    held = under(demand.guards, demand.offset)
                    conditions = tuple(t for t in held if t != f"{found[0]} is given")
                    for tensor in each(found[0], demand.offset):
                        yield tensor, LayoutUse("stride", demand.line, found[1], under=conditions)
        for one in walk(expr):
            # Whatever else a check asks of a stride stands with the checks; that nothing is asked is not true then.
            found = stride_of(one)
            for tensor in each(found[0], demand.offset) if found else ():
                yield tensor, LayoutUse("elsewhere", demand.line, found[1])
    passed = _passed_names(body, launches)
    for call in body.facts.calls:
        if call.simple == "contiguous" and (call.receiver is not None or len(call.arguments) == 1):
            name = body.text(call.receiver if call.receiver is not None else call.arguments[0])
            if tensor := of(name, call.start):
                conditions = under(branches.around(call.block), call.start)
                yield tensor, LayoutUse("made", body.use_line(call.start), under=conditions)
        elif call.receiver is not None and call.simple in ("stride", "strides", "sym_stride"):
            if (tensor := of(_receiver(body, call.receiver), call.start)) and not _tested(body, call.start):
                asked_for = body.text(call.arguments[0]) if call.arguments else ""
                number = whole(parse_expression(asked_for)) if asked_for else None
                dimension: int | str | None = number if number is not None else asked_for or None
                name = _held(body, call.start)
                given = name in passed if name else _inside(call.start, launches, body)
                line = body.use_line(call.start)
                block = call.block
                past = tuple(said(one.condition) for one in needed(branches.past(block, call.start)))
                conditions = tuple(dict.fromkeys((*under(branches.around(block), call.start), *past)))
                yield tensor, LayoutUse("read", line, dimension, name, conditions, given)
        elif call.receiver is not None and call.simple in _DATA:
            if tensor := of(_receiver(body, call.receiver), call.start):
                yield tensor, LayoutUse("data", body.use_line(call.start))


def _receiver(body: Body, span: Span2) -> str:
    text = body.text(span)
    return re.sub(r"\.value\(\)\Z", "", text).lstrip("*(").rstrip(")") if not re.fullmatch(r"\w+", text) else text


def _held(body: Body, offset: int) -> str | None:
    """The local whose initialiser reads the stride."""
    for local in body.facts.locals:
        if local.value is not None and local.value[0] <= offset < local.value[1] and local.name:
            return local.name if body.lambda_at(local.value) is None else None
    return None


def _tested(body: Body, offset: int) -> bool:
    """Whether a stride is only compared: in a check's argument or in the condition of a branch."""
    if any(b.condition and b.condition[0] <= offset < b.condition[1] for b in body.facts.blocks):
        return True
    return any(call.start <= offset < call.end and _CHECKING.search(call.simple) for call in body.facts.calls)


def _passed_names(body: Body, launches: Sequence[LaunchSite]) -> set[str]:
    """The names that stand in the arguments of launches of this body."""
    out: set[str] = set()
    for site in launches:
        for span in site.passed:
            out.update(re.findall(r"\w+", body.text(span)))
    return out


def _inside(offset: int, launches: Sequence[LaunchSite], body: Body) -> bool:
    return any(span[0] <= offset < span[1] for site in launches for span in site.passed)


def verdict(uses: Sequence[LayoutUse]) -> tuple[str, tuple[int, str | None]] | None:
    """What is asked of the strides, in words, and where that is said (see ``LayoutUse.at``); None where nothing is said
    or read."""
    required = next((u for u in uses if u.what == "contiguous" and not u.under), None)
    if required is not None:
        return "must be contiguous", required.at
    parts: list[str] = []
    places: list[tuple[int, str | None]] = []
    made = [u for u in uses if u.what == "made"]
    if made:
        when = f" where {all_of(made[0].under)}" if made[0].under else ""
        parts.append(f"made contiguous{when}")
        places.append(made[0].at)
    conditional = next((u for u in uses if u.what == "contiguous"), None)
    if conditional is not None:
        parts.append(f"must be contiguous where {all_of(conditional.under)}")
        places.append(conditional.at)
    helpers = [u for u in uses if u.what == "helper"]
    if helpers:
        parts.append(f"must be what {listed(sorted({u.name or '' for u in helpers}), 'and')} demands")
        places.append(helpers[0].at)
    checked: dict[tuple[str, ...], list[LayoutUse]] = {}
    for use in uses:
        if use.what == "stride":
            checked.setdefault(use.under, []).append(use)
    for under, found in checked.items():
        where = f" where {all_of(under)}" if under else ""
        parts.append(f"{_places(list(dict.fromkeys(u.dimension for u in found)))} must have stride 1{where}")
        places.append(found[0].at)
    read = [u for u in uses if u.what == "read"]
    if read:
        parts += _by_way(read)
        places.append(read[0].at)
    if not parts:
        if any(u.what == "elsewhere" for u in uses):
            return None
        data = next((u for u in uses if u.what == "data"), None)
        return ("neither contiguity nor a stride is asked for", data.at) if data is not None else None
    return "; ".join(parts), places[0]


def taken_as_lengths(parameters: Sequence[ParameterFact], kernels: Sequence[Kernel]) -> tuple[ParameterFact, ...]:
    """Parameters again: a stride that a kernel takes for the number of elements that it goes through does not allow a
    tensor to lie apart, as what lies between would be gone through as well."""
    extents = " ".join(fact.extent for kernel in kernels for fact in kernel.work if fact.extent)
    out = []
    for one in parameters:
        if one.layout and _STRIDED in one.layout and re.search(rf"\b{re.escape(one.name)}\.stride\(", extents):
            parts = one.layout.split("; ")
            told = (_LENGTH.format(p.removeprefix(_STRIDED)) if p.startswith(_STRIDED) else p for p in parts)
            one = replace(one, layout="; ".join(told))
        out.append(one)
    return tuple(out)


def _by_way(read: Sequence[LayoutUse]) -> list[str]:
    """What is said of the strides: where a kernel gets them on several ways under different conditions, a way each."""
    given: dict[tuple[str, ...], list[LayoutUse]] = {}
    for use in read:
        if use.passed:
            given.setdefault(use.under, []).append(use)
    if len(given) < 2:
        return [_strides(read)]
    return [_strides(uses) + (f" where {all_of(under)}" if under else "") for under, uses in given.items()]


def _strides(read: Sequence[LayoutUse]) -> str:
    """Which strides are read, and which of them the kernel gets."""
    given = [u for u in read if u.passed]
    chosen = given or list(read)
    places = _places(list(dict.fromkeys(u.dimension for u in chosen)))
    names = listed(list(dict.fromkeys(u.name for u in chosen if u.name)), "and")
    behind = f" ({names})" if names else ""
    if given:
        return f"{_STRIDED}{places}{behind}"
    return f"the stride of {places} is read{behind}"


def _places(dimensions: Sequence[int | str | None]) -> str:
    """Dimensions in words: ``dimensions 0, 1 and the last one``."""
    if None in dimensions:
        return "all dimensions"
    if list(dimensions) == [-1]:
        return "the last dimension"
    texts = ["the last one" if d == -1 else str(d) for d in dimensions]
    return f"{'dimension' if len(texts) == 1 else 'dimensions'} {listed(texts, 'and')}"
