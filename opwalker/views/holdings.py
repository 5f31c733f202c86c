"""Who has what one call acquires and another releases: a member that holds it, or the caller that it is returned to.

In: resources and releases of functions beside a walk, each with its body. Out: ``Holding`` facts. A release belongs to
an acquisition where it names the member that keeps it (also as an element of a range over it), or where the thing was
returned and the release takes what its own caller gives. Nothing is said of what is handed anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.expand.bodies import Body
from opwalker.model.owning import Holding, Resource, UseFact
from opwalker.notation.regex import Regex

_CAST = Regex(r"(?:reinterpret|static|const)_cast\s*<[^<>]*>|\(\s*(?:const\s+)?(?:void|char|[\w:]+)\s*\*+\s*\)")
_STEPS = 4


def holdings_of(
    acquired: Sequence[tuple[Resource, Body]], releases: Sequence[tuple[str, UseFact, Body]]
) -> tuple[Holding, ...]:
    """What is acquired for later calls, in the order of the source."""
    out = []
    for resource, body in acquired:
        if resource.releases:
            continue  # the function itself releases it
        member = next((m for text in resource.goes_to for m in _kept(text, body)), None)
        returned = any(text.startswith("returned to the caller") for text in resource.goes_to)
        if member is None and not returned:
            continue
        same = [(origin_of(use.text, inner), use) for kind, use, inner in releases if kind == resource.kind]
        wanted = ("member", member) if member is not None else None
        held = [use for origin, use in same if (origin == wanted if wanted else origin[0] == "parameter")]
        others = [(name, use) for (_, name), use in same if use not in held] if not held else []
        out.append(
            Holding(
                resource.kind, resource.text, resource.function, resource.file, resource.line, member,
                tuple(dict.fromkeys(held)), tuple(dict.fromkeys(others)),
            )
        )  # fmt: skip
    return tuple(dict.fromkeys(out))


def _kept(text: str, body: Body) -> Iterator[str]:
    """The member of ``kept in NAME``, found behind locals that only refer to it."""
    found = re.match(r"kept in ([\w.\->]+)", text)
    if found:
        kind, name = _origin(re.match(r"\w+", found[1])[0], body)
        if kind == "member":
            yield name


def origin_of(text: str, body: Body) -> tuple[str, str]:
    """Where what a release names comes from: ``("parameter", name)``, ``("member", name)``, ``("", text)``."""
    inner = re.sub(r"\A\s*delete\s*(?:\[\s*\])?|\A[\w:]+\s*(?=\()", "", _CAST.sub("", text)).strip("()&*; ")
    name = re.match(r"[A-Za-z_]\w*", inner.removeprefix("this->"))
    return _origin(name[0], body) if name else ("", text)


def _origin(name: str, body: Body, steps: int = 0) -> tuple[str, str]:
    if body.function is not None and any(p.name == name for p in body.function.parameters):
        return "parameter", name
    full = body.expanded.full
    word = re.escape(name)
    made = re.search(
        rf"\[[^\[\];]*\b{word}\b[^\[\];]*\]\s*(?:=|:)\s*[*&(]*\s*([A-Za-z_]\w*)"
        rf"|[\w>*&]\s+[*&]*{word}\s*(?:=(?!=)|:)\s*[*&(]*\s*([A-Za-z_]\w*)",
        full,
    )
    if made and steps < _STEPS:
        return _origin(made[1] or made[2], body, steps + 1)
    if name in body.locals or re.search(rf"[\w>*&]\s+[*&]*{word}\s*;", full):
        return "", name
    return "member", name
