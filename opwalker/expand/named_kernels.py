"""Where a body names kernels without launching them in these words.

In: a body, and the names of all kernels. Out: spans of names with the template arguments behind them, in order. Whether
a name means a kernel there, and which instances of it, is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from opwalker.expand.bodies import Body
from opwalker.expand.mentions import unevaluated, whole_name
from opwalker.expand.terminals import LAUNCH_CALLS
from opwalker.model.body import Span2
from opwalker.notation.regex import Regex

_NAME = Regex(r"(?<![\w.:>])(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*")
_OF_TEMPLATE = Regex(r"(?<![\w.:>])(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*(?=\s*<)")
#: What follows a member of a class that stands for a value.
_MEMBER = Regex(r"\s*(?:[,;)}\]?[.]|->|:(?!:)|==|!=|&&|\|\||\Z)")
#: What follows a name that stands for a value: no declaration of a variable of that type, no call, no member.
_VALUE = Regex(r"\s*(?:[,;)}\]?]|:(?!:)|==|!=|&&|\|\||\.\.\.|\Z)")
_NO_VALUE = Regex(r"(?:->|\busing(?:\s+typename)?|\bgoto)\s*\Z")


def named_kernels(body: Body, names: Set[str], holds: Callable[[str], bool]) -> list[Span2]:
    """The kernels that a body hands on, holds, or asks about: whoever names an instance compiles it. So does who names
    a member of a class template that ``holds`` kernels."""
    return sorted((*_with_arguments(body, names), *_bare(body, names), *_members(body, holds)))


def _with_arguments(body: Body, names: Set[str]) -> list[Span2]:
    named = [one for one in body.mentions if one[0].rsplit("::", 1)[-1] in names]
    if not named:
        return []
    read = _read(body)
    words = {body.text(launch.kernel) for launch in body.facts.launches}
    full = body.expanded.full
    out = []
    for _, start, given in named:
        end = full.index(">", given[-1][1] if given else start) + 1
        if full[start:end] not in words and not any(a <= start < b for a, b in read):
            out.append((start, end))
    return out


def _bare(body: Body, names: Set[str]) -> list[Span2]:
    """Names without template arguments: those are deduced from what the place asks for."""
    values = _values(body)
    meant = frozenset(values) & names if values else frozenset()
    if not meant:
        return []
    read = [*_read(body), *unevaluated(body.expanded.full)]
    spans = [span for name in meant for span in values[name]]
    return [span for span in spans if not any(a <= span[0] < b for a, b in read)]


def _members(body: Body, holds: Callable[[str], bool]) -> list[Span2]:
    """Members of class templates that are named with the arguments of their class."""
    found = body.kept.get("members")
    if found is None:
        found = body.kept["members"] = []
        full, read = body.expanded.full, None
        for match in _OF_TEMPLATE.finditer(full):
            start = match.start()
            name, end = whole_name(full, match, len(full))
            if "<" in name and _MEMBER.match(full, end) and not _NO_VALUE.search(full, max(0, start - 20), start):
                read = read if read is not None else [*_read(body), *unevaluated(full)]
                if not any(a <= start < b for a, b in read):
                    found.append((name.rsplit("::", 1)[-1], (start, end)))
    return [span for name, span in found if holds(name)]


def _values(body: Body) -> dict[str, list[Span2]]:
    """Names of no variable of the body that stand for values without arguments, by their last part."""
    out = body.kept.get("values")
    if out is None:
        out = body.kept["values"] = {}
        own = {p.name for p in body.function.parameters} if body.function is not None else set()
        full, tokens = body.expanded.full, body.expanded.tokens
        for match in _NAME.finditer(full):
            name, start = match.group(), match.start()
            if not _VALUE.match(full, match.end()) or name in body.locals or name in own:
                continue
            hidden = any(name == p for held in body.enclosing_lambdas(start) for _, p in held.parameters)
            if hidden or _NO_VALUE.search(full, max(0, start - 20), start):
                continue
            if '"' not in tokens[body.expanded.token_at(start)].text:
                out.setdefault(name.rsplit("::", 1)[-1].strip(), []).append(match.span())
    return out


def _read(body: Body) -> list[Span2]:
    """What launches are made of, where kernels are looked for anyhow."""
    read = [span for call in body.facts.calls if call.simple in LAUNCH_CALLS for span in call.arguments]
    return read + [launch.kernel for launch in body.facts.launches]
