"""The names that the conditions of a walk are told with, and what they hold.

In: a host function's body, and an implementation whose checks, choices and launches are known. Out: facts of the locals
that their words and code mention, and of those in these values. A name that is ever changed, or that is declared twice
with different values, is left out, as are sizes, which are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opwalker.expand.bodies import Body
from opwalker.model.body import LocalFact
from opwalker.model.walk import Implementation, SizeFact
from opwalker.notation.regex import Regex

_NAME = Regex(r"(?<![\w.:>\"])[A-Za-z_]\w*(?![\w(:]|\s*\()")
#: Words of conditions: a local of such a name is only meant where code has it.
_WORDS = frozenset(
    "is not of and or at least most less greater than divisible by the same size in dimension dimensions number "
    "elements element type contiguous given where aligned to bytes stride last device all any has have does equals one "
    "a an none otherwise".split()
)
_NO_VALUE = Regex(r"using|namespace|dim3|\w*(?:Guard|Stream_t|stream)\b|const char ?\*")
#: A value that is shown is at most so long.
_LONG = 160


def told_names(body: Body, found: Implementation) -> tuple[SizeFact, ...]:
    """The names in source order."""
    host = found.host
    if host is None:
        return ()
    told = {one.name for one in (*host.parameters, *host.sizes, *host.strides)}
    wanted = [w for text in _words(found) for w in _NAME.findall(text) if w not in _WORDS]
    wanted += [w for text in _code(found) for w in _NAME.findall(text)]
    wanted = list(dict.fromkeys(wanted))
    out: dict[str, SizeFact] = {}
    while wanted:
        name = wanted.pop()
        held = body.locals.get(name, [])
        if name in out or name in told or not held or body.assigns.get(name):
            continue
        values = {_value(body, local) for local in held}
        value = values.pop()
        if values or not value:
            continue
        line = body.use_line(held[0].start)
        out[name] = SizeFact(name, value, held[0].type.replace("static ", "").strip(), False, line)
        wanted += _NAME.findall(value)
    starts = {name: body.locals[name][0].start for name in out}
    return tuple(sorted(out.values(), key=lambda fact: starts[fact.name]))


def _value(body: Body, local: LocalFact) -> str:
    """What a local is made of, on one line; nothing for what is no value that a condition can speak of."""
    if local.value is None or _NO_VALUE.search(local.type) or ("static" in local.type and "const" not in local.type):
        return ""
    text = body.text(local.value).strip()
    text = text[1:-1].strip() if text[:1] in "({" and text[-1:] in ")}" and not text.startswith("({") else text
    return text if len(text) <= _LONG and not text.startswith("[") else ""


def _words(found: Implementation) -> Iterator[str]:
    host = found.host
    for check in host.checks if host else ():
        yield from (check.words or "", *check.under, *check.past)
    for fact in (*host.guards, *host.streams, *host.contiguous_calls) if host else ():
        yield from (*fact.under, *getattr(fact, "past", ()))
    for one in host.returns if host else ():
        yield from one.words
    for use in found.dispatch:
        yield from (*use.under, *_rows(use.rows), *(fail.words or "" for fail in use.fails))
    for choice in found.branches:
        yield from (*choice.under, *_rows(choice.rows), *(fail.words or "" for fail in choice.fails))
    for launch in found.launches:
        yield from launch.conditions


def _rows(rows: Iterable) -> Iterator[str]:
    for row in rows:
        yield from row.under


def _code(found: Implementation) -> Iterator[str]:
    for use in found.dispatch:
        yield from (use.on or "", *(axis.on for axis in use.axes))
    for choice in found.branches:
        yield choice.on
