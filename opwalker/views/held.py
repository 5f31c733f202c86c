"""What the locals that a statement names hold: ``pack_size`` is ``16 / sizeof(scalar_t)``.

In: a body and texts of it. Out: ``HeldFact`` values, those that a value names in turn among them. A name is told only
where one declaration, one call that fills it, or assignments in branches that are told apart, give it its value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeVar

from opwalker.expand.bodies import Body
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.model.body import LocalFact
from opwalker.model.held import HeldFact
from opwalker.model.launch import CaseFact
from opwalker.notation.cpp_expression import negated, print_expression
from opwalker.notation.regex import Regex
from opwalker.views.branches import Branches
from opwalker.views.elements import elements_of, is_element
from opwalker.views.returns import words_of
from opwalker.views.value_facts import NOTHING_KNOWN, Known, made_once
from opwalker.views.value_marks import Marks

#: Names of one body that are told, and characters of a value.
_MOST = 24
_LONG = 120
_NAME = Regex(r"(?<![\w.\"])(?<!->)(?<!::)[A-Za-z_]\w*(?!\w|\s*\(|::)")
_STRING = Regex(r'"(?:[^"\\]|\\.)*"')
#: What is filled in by its address: a number, by a call that asks for something.
_NUMBER = Regex(
    r"(?:unsigned |signed )?(?:bool|char|short|int|long|long long|unsigned|float|double|s?size_t|u?int\d+_t)"
)
_ASKS = Regex(r"get|query|occupancy|attribute|version|count(?!down)", re.IGNORECASE)
_NO_VALUE = frozenset(("using", "namespace", "using namespace"))

_Fact = TypeVar("_Fact", bound=HeldFact)


def held_by(
    body: Body, texts: Iterable[str], told: Collection[str] = (), known: Known = NOTHING_KNOWN
) -> tuple[HeldFact, ...]:
    """What the names in ``texts`` hold, but for those that are ``told`` elsewhere."""
    marks = Marks(body, known)
    out: dict[str, HeldFact | None] = dict.fromkeys(told)
    waiting = [word for text in texts for word in names_in(text)]
    given = {p.name for p in body.function.parameters} if body.function is not None else set()
    while waiting and len(out) < _MOST + len(told):
        word = waiting.pop(0)
        if word in out:
            continue
        found = _held(body, marks, word)
        if found is None and word not in given and word not in body.locals:
            value = known.constant(word, body)
            found = HeldFact(word, value) if value is not None else None
        out[word] = found
        if found is not None:
            waiting += names_in(found.value)
    return tuple(fact for fact in out.values() if fact is not None)


def named_in(held: Iterable[_Fact], texts: Iterable[str]) -> list[_Fact]:
    """Those of the facts that texts name, and those that their values name in turn, in the order of naming."""
    known = {fact.name: fact for fact in held}
    out: dict[str, _Fact] = {}
    waiting = [word for text in texts for word in names_in(text)]
    while waiting:
        word = waiting.pop(0)
        if word in known and word not in out:
            out[word] = known[word]
            waiting += names_in(known[word].value)
    return list(out.values())


def names_in(text: str) -> list[str]:
    """The plain names in a piece of code: no members, no functions that are called."""
    return list(dict.fromkeys(_NAME.findall(_STRING.sub('""', text))))


def _held(body: Body, marks: Marks, name: str) -> HeldFact | None:
    """What one local holds wherever it is named."""
    locals_ = [one for one in body.locals.get(name, ()) if one.type not in _NO_VALUE]
    if not locals_ or any("&" in one.type and "const" not in one.type for one in locals_):
        return None
    assigns, changes = body.assigns.get(name, ()), marks.of(name)
    first = locals_[0]
    line = body.use_line(first.start)
    if changes:
        single = len(locals_) == len(changes) == 1 and not assigns and _NUMBER.fullmatch(first.type)
        call = _filled(body, name) if single else None
        return HeldFact(name, call, line, True) if call else None
    if assigns:
        cases = _cases(body, first, name) if len(locals_) == 1 and first.value is None else ()
        return HeldFact(name, "", line, False, cases) if cases else None
    values = {_value(body, one) for one in locals_}
    value = values.pop() if len(values) == 1 else None
    return HeldFact(name, value, line) if value is not None and value != name else None


def _value(body: Body, held: LocalFact) -> str | None:
    """What a local is made of, as it is written; None where that is no value, or too long to help."""
    if elements := elements_of(body, held):
        return f"each of {', '.join(elements)}"
    if held.value is None or _in_loop_head(body, held) or body.lambda_at(held.value) is not None:
        return None
    text = body.written(held.value).strip()
    if text[:1] in "({" and match_bracket(text, 0) == len(text):
        text = text[1:-1].strip()
    if is_element(body, held) or made_once(body, held) or "[&]" in text or "{" in text:
        return None
    return text if text and len(text) <= _LONG else None


def _in_loop_head(body: Body, held: LocalFact) -> bool:
    if held.block < 0 or body.facts.blocks[held.block].kind != "loop":
        return False
    start, full = body.facts.blocks[held.block].start, body.expanded.full
    opening = full.find("(", start)
    return full.startswith("for", start) and opening <= held.start < match_bracket(full, opening)


def _filled(body: Body, name: str) -> str | None:
    """The call that is given the address of a local, to fill it."""
    for call in body.facts.calls:
        if _ASKS.search(call.simple) and any(body.text(span).replace(" ", "") == f"&{name}" for span in call.arguments):
            text = body.written((call.start, call.end))
            return text if len(text) <= _LONG else None
    return None


def _cases(body: Body, held: LocalFact, name: str) -> tuple[CaseFact, ...]:
    """The values that branches assign to a local that begins without one, each with what leads to it; in a chain of
    ``else if``, what leads there as no case before it does."""
    branches = Branches(body)
    out = []
    before: set[str] = set()
    for assign in body.assigns.get(name, ()):
        guards = branches.around(assign.block, held.block)
        value = body.written(assign.value)
        plain = body.expanded.full[assign.start : assign.value[0]].rstrip().endswith("=")
        if branches.loops(assign.block, held.block) or not guards or len(value) > _LONG or not plain:
            return ()
        if any(guard.condition.kind == "raw" for guard in guards):
            return ()
        own = [guard for guard in guards if print_expression(guard.condition) not in before]
        whole = own[0].condition if len(own) == 1 else None
        before = before | {print_expression(negated(whole))} if whole is not None else set()
        out.append(CaseFact(words_of(own), value))
    blocks = [assign.block for assign in body.assigns.get(name, ())]
    apart = all(not branches.together(a, b) for n, a in enumerate(blocks) for b in blocks[n + 1 :])
    return tuple(out) if len(out) > 1 and apart and all(case.under for case in out) else ()
