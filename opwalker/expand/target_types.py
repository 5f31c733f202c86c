"""The type that a place asks of a function that is named there: ``void (*p)(float*) = k;``, ``static_cast<F>(&k)``.

In: a body, and where a name stands in it. Out: the text of a type, by which template arguments that are not written are
deduced, or None where the place asks for none that is written beside it.
"""

from __future__ import annotations

from opwalker.expand.bodies import Body
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.notation.regex import Regex

#: What may stand between the beginning of an initialiser and the name.
_LEADING = Regex(r"[\s({&]*\Z")
_STORAGE = Regex(r"\b(?:static|constexpr|inline|thread_local|constinit|extern|const(?=\s+auto\b))\b\s*")
_CAST = Regex(r"\bstatic_cast\s*<")
_POINTER = Regex(r"\(\s*\*\s*(?:const\s*)?\Z")
_TRAILING = Regex(r"\s*(?:mutable\s*|noexcept\s*)*->\s*")


def target_type(body: Body, start: int) -> str | None:
    """The type that what stands at an offset is turned into, as the body spells it."""
    known = body.kept.setdefault("targets", {})
    if start not in known:
        known[start] = _cast(body.expanded.full, start) or _declared(body, start) or _returned(body, start)
    return known[start]


def _cast(text: str, start: int) -> str | None:
    """``static_cast<T>(&k)``, ``(T)k``, ``(T)&k``."""
    at = len(text[:start].rstrip(" \n\t&"))
    if at and text[at - 1] == "(":
        for match in _CAST.finditer(text, max(0, at - 400), at):
            inner = text[match.end() : at - 1].rstrip()
            if inner.endswith(">") and "_cast" not in inner:
                return inner[:-1].strip()
    elif at and text[at - 1] == ")":
        depth = 0
        for opening in range(at - 1, max(-1, at - 400), -1):
            depth += (text[opening] == ")") - (text[opening] == "(")
            if depth == 0:
                before = text[:opening].rstrip()[-1:]
                inner = text[opening + 1 : at - 1].strip()
                return inner if before in ("=", "(", ",", "{", "?", ":") else None
    return None


def _declared(body: Body, start: int) -> str | None:
    """The type of the variable that is initialised with it, or that it is assigned to."""
    full = body.expanded.full
    around = next((held.body[0] for held in body.enclosing_lambdas(start)), 0)
    for local in body.facts.locals:
        if local.value and around <= local.start and local.value[0] <= start < local.value[1]:
            if local.type in ("using", "namespace", "using namespace"):
                return None
            return _spelt(full, local, body) if _LEADING.match(full[local.value[0] : start]) else None
    for assign in body.facts.assigns:
        if around <= assign.start and assign.value[0] <= start < assign.value[1] and assign.target.isidentifier():
            held = [f for f in body.locals_at(assign.target, start) if f.type not in ("using", "namespace")]
            if len(held) == 1 and _LEADING.match(full[assign.value[0] : start]):
                return _spelt(full, held[0], body)
    return None


def _spelt(full: str, local, body: Body) -> str | None:
    """The type of a local: with the parameters of a pointer to a function, which stand behind its name."""
    begin = max(full.rfind(mark, 0, local.start) for mark in ";{}") + 1
    name = full.find(local.name, local.start)
    before = _STORAGE.sub("", full[begin:name]).strip()
    if not _POINTER.search(before):
        return None if local.type.startswith("auto") or local.type.endswith("]") else local.type
    after = name + len(local.name)
    close = full.find("(", after)
    end = match_bracket(full, close) if close > 0 and full[after:close].strip() == ")" else -1
    return f"{before}){full[close:end]}" if end > 0 else None


def _returned(body: Body, start: int) -> str | None:
    """The type that the function or the lambda around says that it returns."""
    full = body.expanded.full
    inside = body.enclosing_lambdas(start)
    held = [(a, b) for a, b in body.facts.returns if a <= start < b]
    exits = [e.value for e in body.facts.exits if e.value and e.value[0] <= start < e.value[1]]
    span = next(iter(held or exits), None)
    if span is None or not _LEADING.match(full[span[0] : start]):
        return None
    if not inside:
        return body.function.return_type if body.function is not None else None
    head = full[inside[0].start : inside[0].body[0]]
    arrow = head.rfind("->")
    return head[arrow + 2 :].strip() if arrow > 0 else None
