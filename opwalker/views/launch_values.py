"""Launch configurations with their names followed back to sizes, and what else is set for a launch.

In: a launch site and the way to it. Out: fields of ``Launch``: resolved extents, the cases of those that depend on
conditions, shared memory opt-ins, launch attributes. An extent that could not be followed is left out, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.terminals import LAUNCH_CALLS
from opwalker.facts.cpp_body import argument_spans
from opwalker.model.body import Span2
from opwalker.model.reach import LaunchSite
from opwalker.model.walk import CaseFact, Launch, LaunchAttribute, NamedValue
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import Expr, changed, negated, parse_expression, print_expression, walk
from opwalker.notation.cpp_folding import folded
from opwalker.notation.regex import Regex
from opwalker.views.branches import Branches, Guard, needed
from opwalker.views.entered import Entered
from opwalker.views.held import held_by
from opwalker.views.narrowed import narrowed
from opwalker.views.ops import shown_condition
from opwalker.views.pointers import chosen_where
from opwalker.views.returns import Returns
from opwalker.views.unreachable import refused
from opwalker.views.value_facts import Found
from opwalker.views.values import Values
from opwalker.views.way import Way

#: Cases of one extent that are told apart.
MAX_CASES = 8
_DIM3 = Regex(r"(?:::)?dim3\Z")
_NAME = Regex(r"[A-Za-z_][\w.]*(?:::\w+)*")
_ONE = Expr("number", "1")
_PLAIN_NAMES = frozenset(("min", "max", "gcd", "ceil", "sqrt", "abs"))
_WORD = Regex(r"\w+")
_OPT_IN = Regex(r"(?:cuda|hip|cu|mu)FuncSetAttribute\Z")
_ATTRIBUTE = Regex(r"(.+?)\s*(?:\.|->)\s*(id|val(?:ue)?(?:\.\w+)*)\Z")


def configuration(way: Way, site: LaunchSite, entered: Entered, macros: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The resolved fields of a launch; ``macros`` are the dispatch macros, whose tests are told with them."""
    values = way.at(site.steps)
    out: dict[str, Any] = {"cooperative": site.style.endswith("cooperative")}
    if values is None:
        return out
    found = Found()
    for label, spans in zip(("grid", "block", "shared"), site.extents, strict=False):
        parts = _components(values, spans, found, label != "shared")
        if parts is None:
            continue
        whole = Expr("braces", "", tuple(parts))
        out[f"{label}_resolved"] = _shown(whole)
        out[f"{label}_cases"] = _case_facts(whole)
    out["stream_resolved"] = _stream(values, site.extents[3] if len(site.extents) > 3 else ())
    texts = " ".join(out.get(f"{label}_resolved") or "" for label in ("grid", "block", "shared"))
    out["names"] = _named(found, texts, values.body)
    function = values.body.function
    outer = entered.of(values.body.path, function) if function is not None else ()
    out["conditions"] = tuple(dict.fromkeys((*outer, *_conditions(values.body, site, macros))))
    out["compiled"] = shown_condition(entered.compiled(values.body, _started(values.body, site.at)))
    out["loops"] = entered.branches(values.body).loops_around(site.at)
    out["shared_opt_in"] = _opt_ins(values.body, site)
    if "KernelEx" in site.style or site.style.endswith(("cooperative", "cuLaunchKernel")):
        out["attributes"] = _attributes(values.body, site)
    return out


def chosen(way: Way, site: LaunchSite, entered: Entered, kernel: str) -> tuple[str, ...]:
    """Under which conditions a launch that can mean several kernels means ``kernel``."""
    values = way.at(site.steps)
    return chosen_where(values.body, entered.branches(values.body), site, kernel) if values is not None else ()


def never_chosen(way: Way, site: LaunchSite, kernel: str) -> tuple[str, int] | None:
    """Why a launch that can mean several kernels never means ``kernel``, and the line; None where it may."""
    values = way.at(site.steps)
    return refused(values.body, site, kernel.rsplit("::", 1)[-1]) if values is not None else None


def _stream(values: Values, spans: tuple[Span2, ...]) -> str | None:
    """The stream that callers pass to the launching function; None where it is not a parameter, or they differ."""
    function = values.body.function
    if len(spans) != 1 or function is None or values.call is None:
        return None
    written = parse_expression(values.body.text(spans[0]))
    if written.kind != "name":
        return None
    there, name, _ = values.origin(written.text, spans[0][0])
    if there is values and name not in {p.name for p in function.parameters}:
        return None
    found = values.of(written, spans[0][0], Found())
    return print_expression(found) if found != written else None


def others_streams(body: Body, launches: Sequence[Launch]) -> bool:
    """Whether all launches run on streams that a function did not get itself: members that it passes on."""
    told = [re.fullmatch(r"(?:this->)?([A-Za-z_]\w*)(?:(?:\.|->)\w+)*", one.stream_resolved or "") for one in launches]
    own = {p.name for p in body.function.parameters} if body.function is not None else set()
    set_here = {name for target in body.assigns for name in re.findall(r"\w+", target)}
    return bool(told) and all(one and one[1] not in body.locals and one[1] not in own | set_here for one in told)


def _named(found: Found, texts: str, body: Body) -> tuple[NamedValue, ...]:
    """What the names in the texts hold, and the names in those values."""
    out: dict[str, NamedValue] = {}
    words = _NAME.findall(texts)
    while words:
        word = words.pop(0)
        if word in found.kept and word not in out:
            value = Expr("braces", "", (parse_expression(found.kept[word]),))
            facts = _case_facts(value)
            out[word] = NamedValue(word, _shown(value) if facts else _shown(_certain(value)), facts)
            words += _NAME.findall(out[word].value)
        elif word not in out and word in body.locals:
            held = [one for one in held_by(body, [word]) if one.name == word and one.filled]
            out.update((one.name, NamedValue(one.name, one.value, filled=True)) for one in held)
    return tuple(out.values())


def _certain(value: Expr) -> Expr:
    """A value without the choices that are no choice: ``false ? 4 : 10`` is ``10``."""

    def decided(node: Expr) -> Expr | None:
        if node.kind != "ternary":
            return None
        words = said(node.parts[0]).split(" and ")
        if "false" in words:
            return _certain(node.parts[2])
        return _certain(node.parts[1]) if words == ["true"] else None

    return changed(value, decided)


def _case_facts(value: Expr) -> tuple[CaseFact, ...]:
    cases = []
    for under, one in _cases(value, ()):
        parts = [[part for part in text.split(" and ") if part != "true"] for text in under]
        if not any("false" in text for text in parts):
            cases.append((tuple(" and ".join(text) for text in parts if text), one))
    if cases and not cases[0][0]:
        return ()
    return tuple(CaseFact(under, _shown(one)) for under, one in cases) if 1 < len(cases) <= MAX_CASES else ()


def _components(values: Values, spans: tuple[Span2, ...], found: Found, extent: bool) -> list[Expr] | None:
    """The components of an extent, resolved; None where it cannot be followed."""
    if not spans:
        return None
    if len(spans) > 1:
        return [values.of_span(span, found) for span in spans]
    expr = parse_expression(values.body.text(spans[0]))
    offset = spans[0][0]
    if expr.kind == "raw":
        return None
    if extent and expr.kind == "name" and re.fullmatch(r"\w+", expr.text):
        there, name, at = values.origin(expr.text, offset)
        made = _dim3(there, name, at, found)
        if made is not None or _is_dim3(there, name, at):
            return made
    parts = _constructed(expr) if extent else None
    return [values.of(part, offset, found) for part in (parts or (expr,))]


def components(values: Values, spans: tuple[Span2, ...], found: Found) -> list[Expr] | None:
    """The components of a grid or block, resolved; None where it cannot be followed."""
    return _components(values, spans, found, True)


def _is_dim3(values: Values, name: str, offset: int) -> bool:
    return any(re.search(r"\bdim3\b", local.type) for local in values.body.locals_at(name, offset))


def _constructed(expr: Expr) -> tuple[Expr, ...] | None:
    """The components in ``dim3(a, b)`` or ``{a, b}``."""
    if expr.kind == "call" and expr.parts[0].kind == "name" and _DIM3.match(expr.parts[0].text):
        return expr.parts[1:] or (_ONE,)
    if expr.kind == "braces" and (not expr.text or _DIM3.match(expr.text)):
        return expr.parts or (_ONE,)
    return None


def _dim3(values: Values, name: str, offset: int, found: Found) -> list[Expr] | None:
    """The components of a ``dim3`` variable: its initialiser, then what is set before the launch without condition."""
    body = values.body
    held = [f for f in body.locals_at(name, offset) if f.start <= offset]
    if len(held) != 1 or not (_is_dim3(values, name, offset) or "auto" in held[0].type):
        return None
    parts = [_ONE, _ONE, _ONE]
    if held[0].value is not None:
        spans = argument_spans(body.expanded.full, held[0].value)
        first = parse_expression(body.text(spans[0])) if spans else _ONE
        inner = _constructed(first) if len(spans) == 1 else None
        if inner is None and "auto" in held[0].type:
            return None
        given = inner if inner is not None else tuple(parse_expression(body.text(span)) for span in spans)
        parts[: len(given)] = [values.of(part, held[0].start, found) for part in given[:3]]
    branches = Branches(body)
    for assign in body.assigns_at(name, offset):
        field = re.fullmatch(rf"{re.escape(name)}(?:\.([xyz]))?", assign.target)
        if field is None or assign.start > offset:
            continue
        around = branches.chain(branches.innermost(offset))
        if assign.block >= 0 and assign.block not in around:
            return None
        value = parse_expression(body.text(assign.value))
        inner = _constructed(value) if field[1] is None else (value,)
        if inner is None or re.search(r"[-+*/%]=\s*\Z", body.expanded.full[assign.start : assign.value[0]]):
            return None
        new = [values.of(part, assign.start, found) for part in inner]
        if field[1] is None:
            parts = [*new, _ONE, _ONE, _ONE][:3]
        else:
            parts["xyz".index(field[1])] = new[0]
    return parts


def _shown(components: Expr) -> str:
    """Components side by side, those at the end that are 1 left out; ``std::`` of common functions is not shown."""
    parts = list(components.parts)
    while len(parts) > 1 and parts[-1] == _ONE:
        parts.pop()

    def bare(node: Expr) -> Expr | None:
        if node.kind != "call" or node.parts[0].simple not in _PLAIN_NAMES or node.parts[0].kind != "name":
            return None
        inside = tuple(changed(part, bare) for part in node.parts[1:])
        return Expr("call", "", (Expr("name", node.parts[0].simple), *inside))

    return ", ".join(print_expression(folded(changed(part, bare))) for part in parts)


def _cases(expr: Expr, under: tuple[str, ...]) -> list[tuple[tuple[str, ...], Expr]]:
    """An expression with its choices pulled out: ``(conditions in words, value)``, to be tried in order."""
    choice = next((node for node in walk(expr) if node.kind == "ternary"), None)
    if choice is None:
        return [(under, expr)]
    condition, yes, no = choice.parts
    taken = changed(expr, lambda node: yes if node == choice else None)
    other = changed(expr, lambda node: no if node == choice else None)
    first = _cases(taken, (*under, said(condition)))
    if len(first) > 1:
        rest = _cases(other, (*under, said(negated(condition))))
    else:
        # Tried in order: what comes behind need not say that the first one did not hold.
        rest = _cases(other, under)
    return [*first, *rest] if len(first) + len(rest) <= MAX_CASES else [(under, expr)] * (MAX_CASES + 1)


def _conditions(body: Body, site: LaunchSite, macros: frozenset[str]) -> tuple[str, ...]:
    """What is tested in the launching function before the launch, in words; not what dispatch macros test."""
    branches = Returns(body)
    common: dict[str, None] | None = None
    for at in (site.at, *site.copies):
        block = branches.innermost(at)
        # What a dispatch tests is told with it, and says nothing of the others.
        own = [one for one in (*branches.past(block, at), *branches.around(block)) if not _of_macro(body, one, macros)]
        held = [guard.condition for guard in needed(own)]
        found = {said(condition): None for condition in narrowed(held, body)}
        # Copies of one text stand under different conditions: only what holds for all of them can be said.
        common = found if common is None else {text: None for text in common if text in found}
    return tuple(common or ())


def _started(body: Body, at: int) -> int:
    """Where the launch is written that starts the kernel which is named at an offset: a macro may be given the name."""
    for launch in body.facts.launches:
        if launch.kernel[0] <= at < launch.kernel[1]:
            return body.expanded.full.find("<<<", launch.kernel[1])
    calls = [call for call in body.facts.calls if call.simple in LAUNCH_CALLS and call.start <= at < call.end]
    return max((call.callee[0] for call in calls), default=at)


def _of_macro(body: Body, guard: Guard, macros: frozenset[str]) -> bool:
    """Whether a condition is tested by one of some macros."""
    places = (body.facts.blocks[guard.block].start, guard.offset)
    chains = [body.expanded.chain(body.expanded.origin(place)[2]) for place in places]
    return any(use.name in macros for chain in chains for use in chain)


def _under(branches: Branches, block: int) -> tuple[str, ...]:
    return tuple(said(g.condition) for g in branches.around(block) if g.own and g.condition.kind != "raw")


def _opt_ins(body: Body, site: LaunchSite) -> tuple[LaunchAttribute, ...]:
    """Calls in the launching function that set an attribute of the launched kernel."""
    branches = Branches(body)
    kernel = re.split(r"[<(]", body.written((site.at, site.at + 1)), maxsplit=1)[0]
    names = {k.function.name for k in site.kernels}
    out: dict[LaunchAttribute, None] = {}
    for call in body.facts.calls:
        if _OPT_IN.match(call.simple) and len(call.arguments) == 3:
            target = body.text(call.arguments[0])
            known = not names.isdisjoint(_WORD.findall(target))
            known = known or bool(kernel and re.search(rf"\b{re.escape(kernel)}\b", target))
            variable = site.expression.strip("&() ") and site.expression.strip("&() ") in target
            if (known or variable) and branches.together(call.block, branches.innermost(site.at)):
                attribute, value = (body.written(span) for span in call.arguments[1:])
                line = body.use_line(call.start)
                out[LaunchAttribute(attribute, value, line, _under(branches, call.block))] = None
    return tuple(out)


def _attributes(body: Body, site: LaunchSite) -> tuple[LaunchAttribute, ...]:
    """The attributes that are set for a launch: ``attrs[0].id = …; attrs[0].val.x = …`` behind the declaration of
    ``attrs`` that holds at the launch. Copies of one launch have the conditions that are common to them."""
    branches = Branches(body)
    found = _attributes_before(body, branches, site.at)
    for at in site.copies:
        others = {(one.id, one.value): one for one in _attributes_before(body, branches, at)}
        found = [
            replace(one, under=tuple(u for u in one.under if u in others[one.id, one.value].under))
            for one in found
            if (one.id, one.value) in others
        ]
    return tuple(found)


def _attributes_before(body: Body, branches: Branches, at: int) -> list[LaunchAttribute]:
    ids: dict[str, list[tuple[str, int, int]]] = {}
    values: dict[str, list[str]] = {}
    for assign in body.facts.assigns:
        match = _ATTRIBUTE.match(assign.target)
        if match is None or assign.start > at:
            continue
        root = re.match(r"\w+", match[1])
        declared = [f.start for f in body.locals.get(root.group(), ()) if f.start < at] if root else []
        if declared and assign.start < max(declared):
            continue  # of another variable of the name
        text = body.written(assign.value)
        if match[2] == "id":
            if "Attribute" in text or "ATTRIBUTE" in text:
                ids.setdefault(match[1], []).append((text, assign.start, assign.block))
        else:
            field = match[2].split(".", 1)[-1]
            values.setdefault(match[1], []).append(f"{field} = {text}")
    out = []
    for base, found in ids.items():
        for text, start, block in found:
            # Where one slot is filled twice (branches), which value goes with which is not told apart.
            value = ", ".join(values.get(base, ())) if len(found) == 1 else None
            out.append(LaunchAttribute(text, value or None, body.use_line(start), _under(branches, block)))
    return out
