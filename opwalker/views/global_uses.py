"""Variables that outlive a call: who writes them, who tests them, in all functions of the file that defines them.

In: the bodies of a walk. Out: ``GlobalFact``: mutable variables of a namespace that the walk uses, and ``static``
locals. An error code that a macro records in a global and that callers test is seen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.expand.bodies import Body
from opwalker.expand.resolve import Candidate, visible
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.cpp import Variable
from opwalker.model.walk import GlobalFact, UseFact
from opwalker.notation.check_words import said
from opwalker.notation.regex import Regex
from opwalker.views.branches import Branches, needed

#: Functions of the defining file whose bodies are read for uses; uses shown of one kind.
MAX_FUNCTIONS = 80
MAX_USES = 24
_TABLE = Regex(r"\bPy(?:MethodDef|ModuleDef|TypeObject|GetSetDef|MemberDef)\b")
_STATIC = Regex(r"\b(?:static|thread_local)\b")
_FIXED = Regex(r"\b(?:const|constexpr)\b")


def globals_of(workbench: Workbench, unit: Unit, bodies: Sequence[tuple[str, Body]]) -> tuple[GlobalFact, ...]:
    """The globals that bodies use; ``bodies`` are ``(function, body)`` in the order in which they are entered."""
    out: dict[tuple[str, str], GlobalFact] = {}
    for name, body in bodies:
        for fact in _statics(name, body):
            out.setdefault((fact.file, f"{name}::{fact.name}"), fact)
        for path, entry in _used(workbench, unit, body):
            key = (path, "::".join((*entry.scope, entry.name)))
            if key not in out and not _TABLE.search(entry.type):
                out[key] = _read(workbench, unit, path, entry)
    # What nothing writes and nothing tests is a constant in all but name.
    return tuple(fact for fact in out.values() if fact.written or fact.tested or "static" in fact.kind)


def _statics(name: str, body: Body) -> Iterator[GlobalFact]:
    for local in body.facts.locals:
        if _STATIC.search(local.type) and "constexpr" not in local.type and local.name:
            kind = "static local, thread local" if "thread_local" in local.type else "static local"
            written = tuple(
                UseFact(body.written((a.start, a.value[1])), name, body.path, body.use_line(a.start))
                for a in body.assigns.get(local.name, ())
            )
            line = body.use_line(local.start)
            yield GlobalFact(local.name, local.type, body.path, line, kind, written, of=name)


def _used(workbench: Workbench, unit: Unit, body: Body) -> Iterator[tuple[str, Variable]]:
    """The mutable variables of a namespace that a body names, with the files that define them."""
    index = workbench.index
    known = index.names_of_kind("variable")
    words = dict.fromkeys(re.findall(r"(?<![\w.>])[A-Za-z_]\w*", body.expanded.full))
    closure = index.closure(body.root)
    around = visible(body.context.scope)
    classes = index.names_of_kind("class")
    parameters = {p.name for p in body.function.parameters} if body.function is not None else set()
    for word in words:
        if word not in known or word in body.locals or word in parameters:
            continue
        for path, entry in index.entries(word, ("variable",), lambda facts: facts.variables):
            if path not in closure or not isinstance(entry, Variable) or entry.constant or _FIXED.search(entry.type):
                continue
            scope = visible(entry.scope)
            if scope != around[: len(scope)] or (scope and scope[-1] in classes):
                continue
            terms = index.declared(path).conditions[entry.condition]
            if unit.macros.truth(path, terms, entry.offset, body.root) is not False:
                yield path, entry


def _read(workbench: Workbench, unit: Unit, path: str, entry: Variable) -> GlobalFact:
    """A global with its uses in the file that defines it."""
    written: dict[UseFact, None] = {}
    tested: dict[UseFact, None] = {}
    functions = [f for f in workbench.index.facts(path).functions if f.body_end and "global" not in f.flags]
    for function in functions[:MAX_FUNCTIONS]:
        if not unit.resolver.is_read(path, function):
            continue
        body = unit.bodies.of(Candidate(path, function), path)
        if entry.name in body.locals or entry.name not in body.expanded.full:
            continue
        written.update(dict.fromkeys(_writes(body, entry.name, function.qualified_name)))
        tested.update(dict.fromkeys(_tests(body, entry.name, function.qualified_name)))
    storage = "global, thread local" if "thread_local" in entry.type else "global"
    name = "::".join((*visible(entry.scope), entry.name))
    return GlobalFact(name, entry.type, path, entry.line, storage, tuple(written)[:MAX_USES], tuple(tested)[:MAX_USES])


def _writes(body: Body, name: str, function: str) -> Iterator[UseFact]:
    branches = Branches(body)
    word = re.compile(rf"{re.escape(name)}\b")
    places: list[tuple[int, str, int]] = []
    for target, assigns in body.assigns.items():
        if word.match(target):
            places += [(a.start, body.text((a.start, a.value[1])), a.block) for a in assigns]
    for call in body.facts.calls:
        first = body.text(call.arguments[0]).lstrip("&") if call.arguments else ""
        filled = re.fullmatch(r"v?s?n?printf|(?:std::)?(?:memcpy|memset|strn?cpy|strn?cat)", call.name)
        if (filled and word.match(first)) or any(body.text(s).replace(" ", "") == f"&{name}" for s in call.arguments):
            places.append((call.start, f"{call.simple}({first}, …)", call.block))
        elif call.receiver is not None and body.text(call.receiver) == name and call.simple in _CHANGING:
            places.append((call.start, f"{name}.{call.simple}(…)", call.block))
    for match in re.finditer(rf"(?:\+\+|--)\s*{name}\b|\b{name}\s*(?:\+\+|--)", body.expanded.full):
        places.append((match.start(), match.group(), branches.innermost(match.start())))
    for start, text, block in sorted(places):
        under = tuple(said(g.condition) for g in needed(branches.around(block)))
        chain = body.expanded.chain(body.expanded.origin(start)[2])
        shown = f"{text} in {chain[0].name}" if chain else text
        yield UseFact(shown, function, body.path, body.use_line(start), under)


#: Members of containers and atomics that change them.
_CHANGING = frozenset(
    "store exchange fetch_add fetch_sub push_back emplace_back emplace insert erase clear reset resize assign".split()
)


def _tests(body: Body, name: str, function: str) -> Iterator[UseFact]:
    word = re.compile(rf"(?<![\w.>]){re.escape(name)}\b")
    for block in body.facts.blocks:
        if block.condition is not None and block.kind.startswith("if"):
            text = body.text(block.condition)
            if word.search(text):
                yield UseFact(text, function, body.path, body.use_line(block.condition[0]))
