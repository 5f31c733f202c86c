"""What one function's body does to order threads and memory, in source order: the raw material of sync points.

In: a body. Out: ``Event`` values: inline assembly, fences, barriers, atomics, volatile accesses, locks, streams and
events. Whom they are called by, and what they protect, is joined in ``views/sync``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.macros import MacroChoice
from opwalker.model.assembly import AsmFact
from opwalker.model.body import Span2
from opwalker.notation.asm_statement import AsmStatement, parse_asm
from opwalker.notation.cpp_expression import Expr, negated, parse_expression, print_expression, walk
from opwalker.notation.ptx import decode
from opwalker.notation.regex import Regex
from opwalker.notation.sync_words import kind_of, of_call, of_member
from opwalker.views.ops import shown_condition
from opwalker.views.spinning import waits_at

_CONSTEXPR = ("if constexpr", "else constexpr")
_GROUP = Regex(
    r"\b(?:cg|cooperative_groups)?(?:::)?(grid|cluster|thread_block_tile|thread_block|coalesced)(?:_group)?\b"
)
_GROUP_SCOPES = {"grid": ("grid_barrier", "gpu"), "cluster": ("cluster_barrier", "cluster"),
                 "thread_block_tile": ("warp_barrier", "warp"), "thread_block": ("barrier", "block"),
                 "coalesced": ("warp_barrier", "warp")}  # fmt: skip
_MADE_GROUP = Regex(r"this_(grid|thread_block|cluster)\s*\(|tiled_partition")
_LOCK = Regex(r"(?:std::)?(lock_guard|unique_lock|scoped_lock|shared_lock)\b")
_MUTEX = Regex(r"\b(?:std::)?(?:recursive_|shared_|timed_)*mutex\b|\bMutex\b|\bSpinLock\b")
_ATOMIC_TYPE = Regex(r"\batomic(?:_ref|_flag)?\b")
_EVENT_TYPE = Regex(r"(?:CUDA|HIP|cuda)?Event\b")
_EVENT_CALLS = {
    "record": ("event_record", "event recorded on a stream"),
    "recordOnce": ("event_record", "event recorded on a stream"),
    "block": ("event_wait", "stream waits for an event"),
    "synchronize": ("event_sync", "host waits for an event"),
    "query": ("event_query", "host asks whether an event has happened"),
}
_NAMED_BARRIER = Regex(r"(?:\w+::)*(?:NamedBarrier|ClusterBarrier|ClusterTransactionBarrier)::(\w+)\Z")
_WRAPPED = Regex(r"cluster_(?:sync|arrive\w*|wait)\Z|cp_async_(?:wait\w*|fence|commit\w*)\Z")

_WORD = Regex(r"(?<![\w.])[A-Za-z_]\w*(?!\s*\()")
#: What tells threads, or blocks, apart.
_INDEX = Regex(r"\b(?:threadIdx|blockIdx)\b")
#: Orders of an access to a flag.
_ORDERS = frozenset(("acquire", "release", "acq_rel", "sc", "volatile"))
#: Kinds of event that a loop can wait with.
WAITS = Regex(r"load|atomic|wait|query")


class Event(Struct, frozen=True):
    """One thing that orders threads or memory. ``start`` is its offset in the body; ``address`` and ``value`` are C++
    expressions; ``under`` are compile-time branches around it; ``condition`` is its own preprocessor condition;
    ``spins`` where a loop waits on it; ``at`` is where it stands, ``(path, line)``, and ``through`` the function that
    holds it there, where it was reached by a call."""

    kind: str
    text: str
    means: str
    order: str | None
    scope: str | None
    start: int
    line: int
    address: str | None = None
    value: str | None = None
    under: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()
    spins: bool = False
    at: tuple[str, int] | None = None
    through: str | None = None


def events_of(body: Body) -> list[Event]:
    """The events of a body, in source order."""
    found = [*_assembly(body), *_calls(body), *_volatile(body), *_locks(body)]
    unique = {(e.start, e.kind, e.text): e for e in found}
    return sorted(unique.values(), key=lambda event: event.start)


def assembly_of(body: Body, function: str) -> list[AsmFact]:
    """The inline assembly of a body, decoded."""
    out: dict[AsmFact, None] = {}
    for start, variants in _statements(body):
        for statement, condition in variants:
            text = " ".join(statement.template.split())
            operands = tuple(o.expression for o in statement.operands)
            path, line = body.origin(start)
            read = decode(statement.template)
            under = shown_condition((*body.condition_at(start), *condition))
            out[AsmFact(path, line, function, text, read, operands, statement.clobbers, under)] = None
    return list(out)


#: A reading of an ``asm`` statement and the preprocessor conditions that it alone stands under.
_Variant = tuple[AsmStatement, tuple[str, ...]]


def _statements(body: Body) -> Iterator[tuple[int, list[_Variant]]]:
    """Each ``asm`` statement, ``(start, variants)``: several where a macro in it may be defined in several ways."""
    for start, end in body.facts.asm:
        variants = [
            (statement, condition)
            for text, condition in _spellings(body, start, end)
            if (statement := parse_asm(text)) is not None
        ]
        if variants:
            yield start, variants


def _spellings(body: Body, start: int, end: int) -> list[tuple[str, tuple[str, ...]]]:
    """The texts that a span can have, each with the conditions of the macro definitions that make it so."""
    full = body.expanded.full
    uses = body.expanded.open_uses(start, end)
    if not uses:
        return [(full[start:end], ())]
    inner, *around = uses
    outer = tuple(term for use in around for term in _defined_under(body, use.definition))
    spelled = [(full[start:end], (*outer, *_defined_under(body, inner.definition)))]
    first, last = body.expanded.extent(inner.id)
    for path, event in inner.definition.alternatives:
        # Another definition that takes arguments is not applied: only under what the chosen one holds is told.
        if event.parameters is None and start <= first < last <= end:
            text = full[start:first] + (event.body or "").strip() + full[last:end]
            spelled.append((text, (*outer, *body.conditions_of(path, event.offset, elsewhere=True))))
    alike = len(spelled) > 1 and len({" ".join(text.split()) for text, _ in spelled}) == 1
    return [(spelled[0][0], outer)] if alike else spelled


def _defined_under(body: Body, choice: MacroChoice) -> tuple[str, ...]:
    return body.conditions_of(choice.path, choice.event.offset, elsewhere=True)


def _assembly(body: Body) -> Iterator[Event]:
    for start, variants in _statements(body):
        own = body.condition_at(start)
        made: dict[tuple[str, str, int], list[Event]] = {}
        for statement, condition in variants:
            for event in _instructions(body, statement, start):
                held = made.setdefault((event.kind, event.text, event.start), [])
                held.append(replace(event, condition=_joined(own, condition)))
        for events in made.values():
            # What every definition makes stands under none of them.
            always = len(events) == len(variants) > 1
            yield replace(events[0], condition=own) if always else events[0]


def _joined(*conditions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for terms in conditions for term in terms))


def _instructions(body: Body, statement: AsmStatement, start: int) -> Iterator[Event]:
    for number, one in enumerate(decode(statement.template)):
        kind = kind_of(one)
        if kind is None:
            continue
        address = value = None
        outputs: tuple[str, ...] = ()
        if one.address is not None:
            held = statement.operand(one.address.split("+")[0].strip())
            address = held.expression if held is not None else one.address
            value = _stored(one.text, statement) if "store" in kind else None
            outputs = tuple(o.expression for o in statement.operands[: statement.outputs]) if "load" in kind else ()
        name = one.text.split(" ")[0] if one.predicate is None else one.text.split(" ")[1]
        yield _event(body, kind, name, one.means, one.order, one.scope, start, address, value, number, outputs)


def _stored(text: str, statement: AsmStatement) -> str | None:
    operand = re.search(r"\]\s*,\s*(%\w+|%\[\w+\])", text)
    held = statement.operand(operand.group(1)) if operand else None
    return held.expression if held is not None else None


def _calls(body: Body) -> Iterator[Event]:
    for call in body.facts.calls:
        arguments = [body.text(span) for span in call.arguments]
        if call.receiver is not None:
            yield from _member(body, call, arguments)
            continue
        found = of_call(call.simple, arguments)
        text = (call.start, call.end)
        if found is not None:
            address = arguments[found.address] if found.address is not None and arguments else None
            value = arguments[found.value] if found.value is not None and len(arguments) > found.value else None
            yield _event(body, found.kind, text, found.means, found.order, found.scope, call.start, address, value)
        elif (named := _NAMED_BARRIER.match(call.name)) is not None:
            yield _event(body, "barrier", text, f"barrier object: {named[1].replace('_', ' ')}", None, None, call.start)
        elif _WRAPPED.match(call.simple):
            kind = "copy_wait" if "wait" in call.simple and "cp_async" in call.simple else "barrier"
            yield _event(body, kind, text, call.simple.replace("_", " "), None, None, call.start)
        elif call.simple == "sync" and len(arguments) == 1 and (group := _group(body, arguments[0], call.start)):
            yield _event(body, group[0], text, f"barrier, {group[1]} scope", None, group[1], call.start)


def _member(body: Body, call, arguments: list[str]) -> Iterator[Event]:
    receiver = body.text(call.receiver)
    text = (call.start, call.end)
    kind = type_text(body, receiver, call.start)
    if call.simple == "sync" and (group := _group(body, receiver, call.start)):
        yield _event(body, group[0], text, f"barrier, {group[1]} scope", None, group[1], call.start)
    elif _ATOMIC_TYPE.search(kind):
        found = of_member(call.simple, kind, arguments)
        if found is not None:
            value = arguments[found.value] if found.value is not None and len(arguments) > found.value else None
            address = _inner(receiver, body, call.start)
            yield _event(body, found.kind, text, found.means, found.order, found.scope, call.start, address, value)
    elif call.simple in _EVENT_CALLS and _EVENT_TYPE.search(kind):
        name, words = _EVENT_CALLS[call.simple]
        yield _event(body, name, text, words, None, None, call.start, receiver)
    elif call.simple in ("lock", "unlock", "lock_shared", "unlock_shared", "try_lock") and _MUTEX.search(kind):
        name = "unlock" if call.simple.startswith("unlock") else "lock"
        yield _event(body, name, text, f"{receiver} {'released' if name == 'unlock' else 'taken'}", None, None,
                     call.start, receiver)  # fmt: skip
    elif call.simple in ("wait", "wait_for", "wait_until", "notify_one", "notify_all") and "condition_variable" in kind:
        name = "condition_notify" if call.simple.startswith("notify") else "condition_wait"
        yield _event(body, name, text, f"{call.simple.replace('_', ' ')} on a condition variable", None, None,
                     call.start, receiver)  # fmt: skip
    elif call.simple == "synchronize" and "tream" in kind + receiver:
        yield _event(body, "stream_sync", text, "host waits for a stream", None, None, call.start, receiver)


def type_text(body: Body, expression: str, at: int) -> str:
    """The declared type of the object that an expression begins with, or the type that it makes; ``""`` if unknown."""
    made = re.match(r"([\w:]+(?:<[^()]*>)?)\s*[({]", expression)
    if made is not None:
        return made.group(1)
    name = re.match(r"[*(&\s]*(\w+)", expression)
    if name is None:
        return ""
    for local in reversed(body.locals_at(name.group(1), at)):
        value = body.text(local.value) if local.value else ""
        return f"{local.type} {value}" if "auto" in local.type else local.type
    function = body.function
    return next((p.type for p in function.parameters if p.name == name.group(1)), "") if function else ""


def _inner(receiver: str, body: Body, at: int) -> str:
    """What an atomic reference refers to; the object itself for an atomic."""
    for local in body.locals_at(receiver, at) if re.fullmatch(r"\w+", receiver) else ():
        if "atomic_ref" in local.type and local.value is not None:
            return body.text(local.value).strip("(){}")
    made = re.match(r".*?atomic_ref\s*(?:<.*?>)?\s*[({](.*)[)}]\Z", receiver, re.DOTALL)
    return made.group(1) if made else receiver


def _group(body: Body, receiver: str, at: int) -> tuple[str, str] | None:
    """The kind of barrier and the scope of a cooperative group."""
    kind = f"{type_text(body, receiver, at)} {receiver}"
    made = _MADE_GROUP.search(kind)
    if made is not None:
        return _GROUP_SCOPES[made.group(1) or "thread_block_tile"]
    found = _GROUP.search(kind)
    return _GROUP_SCOPES[found.group(1)] if found else None


def _volatile(body: Body) -> Iterator[Event]:
    """Accesses through pointers to volatile."""
    if "volatile" not in body.expanded.full and not _volatile_parameters(body):
        return
    for access in body.accesses.accesses:
        base = body.text(access.base)
        kind = base if "volatile" in base else type_text(body, base, access.start)
        if "volatile" not in kind or "*" not in kind + base or not (access.written or access.read):
            continue
        what = "store" if access.written else "load"
        text = body.text((access.start, access.end))
        yield _event(body, f"volatile_{what}", text, f"volatile {what}", "volatile", None, access.start,
                     text.lstrip("*"))  # fmt: skip


def plain_stores(body: Body, found: list[Event]) -> Iterator[Event]:
    """Stores without any order to what other events of the body use as a flag: a lock that is set back."""
    found = sorted(found, key=lambda event: event.start)
    flags = {
        _element(opened(body, event.address, event.start))
        for before, event in zip((None, *found), found, strict=False)
        if event.address is not None
        # A relaxed store right behind a fence releases as well.
        and (event.spins or event.order in _ORDERS or (before is not None and before.kind == "fence"))
    }
    told = {event.start for event in found}
    values = {change.start: change.value for change in body.accesses.changes if change.operator == "="}
    for access in body.accesses.accesses if flags else ():
        if access.written and not access.read and access.kind in ("index", "deref") and access.start not in told:
            text, value = body.text((access.start, access.end)), values.get(access.start)
            element = _element(f"&{text}")
            if value is not None and element in flags:
                stored, address = body.text(value), element.removesuffix("[0]")
                yield _event(body, "plain_store", f"{text} = {stored}", "plain store to a flag, without an order", None,
                             None, access.start, address if address != element else f"&{element}", stored)  # fmt: skip


def _element(address: str) -> str:
    """What an address points at, spelt in one way: ``p[0]`` of ``p`` and of ``&*p``, ``p[i]`` of ``p + i``."""
    expr = parse_expression(address)
    while expr.kind == "cast":
        expr = expr.parts[0]
    if expr.kind == "unary" and expr.text == "&":
        held = expr.parts[0]
        return _element(print_expression(held.parts[0])) if held.text == "*" else print_expression(held)
    parts = expr.parts if expr.kind == "binary" and expr.text == "+" else (expr, Expr("number", "0"))
    return print_expression(Expr("index", "", parts))


def _volatile_parameters(body: Body) -> bool:
    return body.function is not None and any("volatile" in p.type for p in body.function.parameters)


def _locks(body: Body) -> Iterator[Event]:
    for local in body.facts.locals:
        found = _LOCK.search(local.type)
        if found is not None:
            held = body.text(local.value).strip("(){}") if local.value else None
            words = f"{held or 'a mutex'} held until the end of the block"
            yield _event(body, "lock", f"{local.type} {local.name}", words, None, None, local.start, held)


def _event(
    body: Body, kind: str, text: str | Span2, means: str, order: str | None, scope: str | None, start: int,
    address: str | None = None, value: str | None = None, number: int = 0, outputs: tuple[str, ...] = (),
) -> Event:  # fmt: skip
    end = start + 1 if isinstance(text, str) else text[1]
    # A call is written out only where it is an event.
    text = text if isinstance(text, str) else body.written(text)
    # What changes memory as well may work in a loop: only its condition waits then.
    asked = address if "load" in kind else None
    spins = WAITS.search(kind) is not None and waits_at(body, start, end, asked, outputs)
    made_by = (_defined_under(body, use.definition) for use in body.expanded.open_uses(start, start + 1))
    return Event(
        kind, " ".join(text.split()), means, order, scope, start + number, body.use_line(start), address, value,
        under_of(body, start), _joined(body.condition_at(start), *made_by), spins,
    )  # fmt: skip


def under_of(body: Body, at: int) -> tuple[str, ...]:
    """The compile-time branches around a place, outermost first."""
    out = []
    for block in body.facts.blocks:
        if block.kind in _CONSTEXPR and block.condition is not None and block.start <= at < block.end:
            expr = parse_expression(body.text(block.condition))
            out.append(print_expression(negated(expr) if block.kind.startswith("else") else expr))
    return tuple(out)


def asked_of_threads(body: Body, at: int) -> Iterator[str]:
    """The branches around a place that only some threads or blocks take, outermost first: ``threadIdx.x < 32``."""
    for block in body.facts.blocks:
        if block.kind in ("if", "else") and block.condition is not None and block.start <= at < block.end:
            text = body.written(block.condition)
            names = _WORD.findall(text)
            values = (body.text(one.value) for name in names for one in body.locals.get(name, ()) if one.value)
            if not any(_INDEX.search(one) for one in (text, *values)):
                continue
            if block.kind == "if":
                yield text
            elif (expr := parse_expression(body.text(block.condition))).kind != "raw":
                yield print_expression(negated(expr))


def root_of(expression: str) -> str | None:
    """The variable that an address begins with: ``p`` of ``&p->flags[i]``, ``(T*)p + 1``; None where there is none."""
    expr = parse_expression(expression)
    while expr.kind in ("member", "index", "unary", "cast", "postfix") or (expr.kind == "binary" and expr.text in "+-"):
        expr = expr.parts[0]
    return expr.text if expr.kind == "name" else None


def opened(body: Body, expression: str, at: int, steps: int = 3) -> str:
    """An address with a local that holds it replaced by what the local is made of."""
    expr = parse_expression(expression)
    for _ in range(steps):
        name = expr.text if expr.kind == "name" else None
        held = [f for f in body.locals_at(name, at) if f.value and f.start < at] if name else []
        if not held or len(body.assigns.get(name, ())) > 0:
            break
        value = parse_expression(body.text(held[-1].value).strip())
        if value.kind in ("raw", "braces", "number"):
            break
        expr = value
    return print_expression(expr)


def members_of(expression: str) -> list[str]:
    """The members that an address goes through, outermost last: ``["signals", "start"]``."""
    return [node.simple for node in reversed(list(walk(parse_expression(expression)))) if node.kind == "member"]
