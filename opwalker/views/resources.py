"""Resources of a body: what it acquires, which variable holds it, where it is released, which ways out release it not.

In: a body. Out: ``Resource`` facts. A way out counts as releasing when a release of the same variable lies before it in
branches that it lies in too. Ways out that only a failed acquisition takes (the branch right behind it) are left out.
What is said of a variable's further way (returned, stored, passed on) is what the text shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from opwalker.expand.bodies import Body
from opwalker.expand.macros import KNOWN
from opwalker.model.body import CallFact, Span2
from opwalker.model.walk import PathFact, Resource, UseFact
from opwalker.notation.check_words import said
from opwalker.notation.families import OBJECT, Family, acquired, released
from opwalker.notation.regex import Regex
from opwalker.views.branches import Branches, needed

_CASTS = Regex(r"\((?:const\s+)?(?:void|char|[\w:]+)\s*\*+\s*\)|(?:reinterpret|static|const)_cast\s*<[^<>]*>")
_HOLDER = Regex(r"[A-Za-z_][\w.]*(?:->\w+|\[\w+\])*")
_NEW = Regex(r"\bnew\s+(?:\([^()]*\)\s*)?((?:::)?[A-Za-z_][\w:]*(?:<[^;{}()]*>)?)")
_DELETE = Regex(r"\bdelete\s*(?:\[\s*\])?\s*([^;]+);")
_SMART = Regex(r"(?:unique_ptr|shared_ptr|intrusive_ptr)\s*<")
_STRING = Regex(r'"(?:[^"\\]|\\.)*"')
_HANDED = Regex(r"[A-Za-z_][\w:.>-]*\Z")
_QUIET = frozenset("sizeof printf fprintf snprintf assert memset cudaMemset cudaMemsetAsync".split())
#: Kinds that the function itself must release: their ways out are told even where nothing releases them.
OF_THE_CALL = ("GIL state", "thread state")
#: Longest text of an acquisition that is shown.
MAX_TEXT = 160


class _Taken(Struct, frozen=True):
    kind: str
    family: Family | None
    start: int
    end: int
    block: int
    holder: str | None
    text: str


#: What a call of the project's own releases: the families.
Wrapped = Callable[[Body, CallFact], Sequence[Family]]


def no_wrapper(body: Body, call: CallFact) -> Sequence[Family]:
    """Where no function of the project is looked at."""
    return ()


def resources_of(body: Body, name: str) -> tuple[Resource, ...]:
    """What a body acquires; ``name`` is its function's."""
    branches = Branches(body)
    found: dict[tuple, Resource] = {}
    for taken in _taken(body):
        made = _resource(body, branches, taken, name)
        held = found.get((made.kind, made.line, made.text))
        # The copies of a macro are one acquisition.
        found[made.kind, made.line, made.text] = held or made
    return tuple(found.values())


def releases_of(body: Body, name: str, wrapped: Wrapped = no_wrapper) -> Iterator[tuple[str, UseFact]]:
    """Every release in a body, ``(kind of resource, use)``; ``wrapped`` says what a function of the project releases
    that has the name of a public one."""
    branches = Branches(body)
    for call in body.facts.calls:
        families = released(call.simple) if call.receiver is None else ()
        for kind in dict.fromkeys(f.kind for f in (families if is_public(call) else families and wrapped(body, call))):
            yield kind, _use(body, branches, call.start, call.end, call.block, name)
    for match in _DELETE.finditer(body.expanded.full):
        block = branches.innermost(match.start())
        yield OBJECT, _use(body, branches, match.start(), match.end() - 1, block, name)


def is_public(call: CallFact) -> bool:
    """Whether a call's name is spelt as one of a public interface: ``mine::free`` is a function of the project's."""
    return call.receiver is None and call.name in (call.simple, f"std::{call.simple}", f"::{call.simple}")


def handed_on(body: Body) -> tuple[Family, ...]:
    """The families whose releasing calls a function hands a parameter of its own to."""
    own = {p.name for p in body.function.parameters} if body.function is not None else set()
    return tuple(
        dict.fromkeys(
            family
            for call in body.facts.calls
            if is_public(call) and own.intersection(body.text(span) for span in call.arguments)
            for family in released(call.simple)
        )
    )


def _use(body: Body, branches: Branches, start: int, end: int, block: int, name: str) -> UseFact:
    text = body.written((start, end))[:MAX_TEXT]
    under = tuple(said(g.condition) for g in needed(branches.around(block)))
    return UseFact(text, name, body.path, body.use_line(start), under)


def _taken(body: Body) -> Iterator[_Taken]:
    full = body.expanded.full
    for call in body.facts.calls:
        family = acquired(call.simple) if call.receiver is None else None
        if family is None or not is_public(call):
            continue
        if family.position is None:
            holder = _result(body, call.start)
        else:
            holder = _filled(body, call, family.position)
        text = body.written((call.start, call.end))[:MAX_TEXT]
        yield _Taken(family.kind, family, call.start, call.end, call.block, holder, text)
    for match in _NEW.finditer(full):
        if body.expanded.origin(match.start())[0] == KNOWN or full[: match.start()].rstrip().endswith("operator"):
            continue
        holder = _result(body, match.start())
        if holder is not None and holder.startswith("in "):
            continue  # a smart pointer takes it at once
        branches = Branches(body)
        text = body.written((match.start(), match.end()))[:MAX_TEXT]
        yield _Taken(OBJECT, None, match.start(), match.end(), branches.innermost(match.start()), holder, text)


def _filled(body: Body, call: CallFact, position: int) -> str | None:
    """The variable whose address a call is given to fill."""
    if position >= len(call.arguments):
        return None
    text = _CASTS.sub("", body.text(call.arguments[position])).strip("&() ")
    match = _HOLDER.match(text)
    return match.group() if match else None


def _result(body: Body, start: int) -> str | None:
    """The variable that gets a call's result; ``in unique_ptr`` where an owner of the standard library takes it."""
    full = body.expanded.full
    before = full[max(0, start - 160) : start]
    smart = re.search(r"(?:unique_ptr|shared_ptr|intrusive_ptr)\s*<[^;{}]*>\s*[({]\s*\Z", before)
    if smart or re.search(r"\.reset\(\s*\Z", before):
        return "in a smart pointer"
    for local in body.facts.locals:
        if local.value is not None and local.value[0] <= start < local.value[1] and local.name:
            if _SMART.search(local.type):
                return f"in {local.name}"
            if body.lambda_at(local.value) is None:
                return local.name
    for assign in body.facts.assigns:
        if assign.value[0] <= start < assign.value[1]:
            return assign.target
    return None


def _resource(body: Body, branches: Branches, taken: _Taken, name: str) -> Resource:
    full = body.expanded.full
    word = re.compile(rf"(?<![\w.>]){re.escape(taken.holder)}(?!\w)") if taken.holder else None
    releases: list[tuple[int, int, int]] = []
    for call in body.facts.calls:
        if is_public(call) and call.start > taken.start and taken.family in released(call.simple):
            if word is None or any(word.search(body.text(span)) for span in call.arguments):
                releases.append((call.start, call.end, call.block))
    if taken.kind == OBJECT and word is not None:
        for match in _DELETE.finditer(full, taken.end):
            if word.search(match.group(1)):
                releases.append((match.start(), match.end() - 1, branches.innermost(match.start())))
    local = taken.holder is not None and taken.holder in body.locals
    return Resource(
        taken.kind,
        taken.text,
        name,
        body.path,
        body.use_line(taken.start),
        taken.holder,
        tuple(dict.fromkeys(_use(body, branches, *place, name) for place in releases)),
        _paths(body, branches, taken, releases, word) if local and (releases or taken.kind in OF_THE_CALL) else (),
        tuple(dict.fromkeys(_goes_to(body, taken, word))),
    )


def _paths(
    body: Body,
    branches: Branches,
    taken: _Taken,
    releases: list[tuple[int, int, int]],
    word: re.Pattern[str] | None,
) -> tuple[PathFact, ...]:
    """The ways out behind an acquisition, each with the release that it passes."""
    around = [f.body for f in body.enclosing_lambdas(taken.start)]
    inner = around[0] if around else (0, len(body.expanded.full))
    outer = branches.plain(taken.block)
    out: dict[tuple[int, str], PathFact] = {}
    for offset, block, text, value in _ends(body, branches, taken, inner, around):
        if not branches.holds(outer, offset) or not branches.together(outer, block):
            continue
        if _only_failed(body, branches, taken, outer, block):
            continue
        chain = {branches.plain(b) for b in (*branches.chain(block), -1)}
        passed = [at for at, _, held in releases if at < offset and branches.plain(held) in chain]
        handed = value is not None and word is not None and word.search(body.text(value)) is not None
        line = body.use_line(offset)
        found = PathFact(line, text, body.use_line(passed[-1]) if passed else None, handed)
        out.setdefault((line, text), found)
    return tuple(out.values())


def _ends(
    body: Body, branches: Branches, taken: _Taken, inner: Span2, around: list[Span2]
) -> Iterator[tuple[int, int, str, Span2 | None]]:
    """Ways out behind an acquisition: ``(offset, block, text, what is returned)``."""
    exits = [e for e in body.facts.exits if [f.body for f in body.enclosing_lambdas(e.start)] == around]
    for exit_ in exits:
        if exit_.start > taken.end:
            text = "throw" if exit_.kind == "throw" else body.written((exit_.start, exit_.end)).rstrip(";")
            yield exit_.start, exit_.block, text, exit_.value
    last = exits[-1] if exits else None
    if last is None or body.expanded.full[last.end : inner[1] - 1].strip():
        end = inner[1] - 1
        yield end, branches.innermost(end), "end of the function", None


def _only_failed(body: Body, branches: Branches, taken: _Taken, outer: int, block: int) -> bool:
    """Whether a way out lies in the branch that tests whether the acquisition worked: around it, or right behind it."""
    known = set(branches.chain(outer))
    inside = [b for b in branches.chain(block) if b not in known and branches.plain(b) == b]
    if not inside:
        return False
    first = body.facts.blocks[inside[0]]
    if not first.kind.startswith("if") or first.condition is None:
        return False
    if first.condition[0] <= taken.start < first.condition[1]:
        return True
    start, test = body.expanded.use_position(taken.start), body.expanded.use_position(first.condition[0])
    between = body.code(body.path)[start:test]
    # The rest of the acquiring statement, then nothing but the test, of something that this statement names.
    return bool(re.fullmatch(r"[^;]*;\s*if\s*\(\s*", between)) and _asks_of_it(body, taken, first.condition)


def _asks_of_it(body: Body, taken: _Taken, condition: tuple[int, int]) -> bool:
    """Whether a condition speaks of an error, or of what the acquiring statement names."""
    asked = body.text(condition)
    if re.search(r"error|status|fail|errno", asked, re.IGNORECASE):
        return True
    full = body.expanded.full
    begin = max(full.rfind(mark, 0, taken.start) for mark in ";{}") + 1
    return bool(set(re.findall(r"[A-Za-z_]\w*", asked)) & set(re.findall(r"[A-Za-z_]\w*", full[begin : condition[0]])))


def _goes_to(body: Body, taken: _Taken, word: re.Pattern[str] | None) -> Iterator[str]:
    """Where what is held is handed to: returned, stored, passed on."""
    if taken.holder is None or word is None:
        for exit_ in body.facts.exits:
            if exit_.kind == "return" and exit_.start <= taken.start < exit_.end:
                yield f"returned to the caller (:{body.use_line(exit_.start)})"
        return
    parameters = {p.name for p in body.function.parameters} if body.function is not None else set()
    root = re.match(r"\w+", taken.holder)
    if root is not None and root.group() in parameters:
        yield f"in parameter {root.group()}, which the caller passes"
    elif taken.holder not in body.locals:
        yield f"kept in {taken.holder}"
    for exit_ in body.facts.exits:
        if exit_.kind == "return" and exit_.start > taken.end and exit_.value and word.search(body.text(exit_.value)):
            yield f"returned to the caller (:{body.use_line(exit_.start)})"
    for assign in body.facts.assigns:
        if assign.start > taken.end and word.search(body.text(assign.value)) and assign.target != taken.holder:
            if _HANDED.match(assign.target) and ("." in assign.target or "->" in assign.target):
                yield f"kept in {assign.target} (:{body.use_line(assign.start)})"
    for call in body.facts.calls:
        if call.start <= taken.end or call.simple in _QUIET or acquired(call.simple) or released(call.simple):
            continue
        if re.match(r"(?:cuda|cu|hip)[A-Z]|std::|[A-Z_]+\Z|\w+_cast|.*\W\Z", call.name):
            continue
        if any(word.search(_STRING.sub("", body.text(span))) for span in call.arguments):
            yield f"passed to {call.simple} (:{body.use_line(call.start)})"
