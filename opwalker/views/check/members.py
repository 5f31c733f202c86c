"""The data members of a class, read from its text; and the names of their types.

In: a file's text with comments blanked, and where the class stands in it. Out: ``(name, type, line)``. Methods, nested
classes and static members are passed over. Of a type, its bare name, and what it is an alias of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from opwalker.expand.resolve import strip_arguments
from opwalker.link.index import Index
from opwalker.model.cpp import ClassDef
from opwalker.notation.regex import Regex

_LABEL = Regex(r"\b(?:public|private|protected)\s*:(?!:)")
_MARK = Regex(r"[{}()\[\];:]")
#: What follows a brace that closes no initialiser.
_ENDS_A_BODY = Regex(r"\s*[^\s;,]")
_NO_MEMBER = Regex(r"\s*(?:using|typedef|friend|template|static|enum|struct|class|union|public|operator|~|#)\b")
_ATTRIBUTE = Regex(r"(?:alignas|__align__|__attribute__)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_INITIAL = Regex(r"=.*|\{.*", re.DOTALL)
_TAIL = r"\s*((?:\[[^\]]*\])*)\s*(?:[={:].*)?\Z"
_FIRST = Regex(r"\s*(.+?)(?:\s|(?<=[>&*]))([A-Za-z_]\w*)" + _TAIL, re.DOTALL)
_OTHER = Regex(r"\s*([*&]*)\s*([A-Za-z_]\w*)" + _TAIL, re.DOTALL)
_ALIAS = Regex(r"\s*using\s+(\w+)\s*=\s*(.+)\Z|\s*typedef\s+(.+?)\s+(\w+)\Z", re.DOTALL)


def data_members(code: str, definition: ClassDef, line: Callable[[int], int]) -> tuple[tuple[str, str, int], ...]:
    """The members in order; an alias of the class stands for its type in those that use it."""
    aliases: dict[str, str] = {}
    out = []
    for start, end in _statements(code, definition.body_start + 1, definition.body_end - 1):
        text = code[start:end]
        alias = _ALIAS.match(" ".join(text.split()))
        if alias:
            name, target = (alias[1], alias[2]) if alias[1] else (alias[4], alias[3])
            aliases[name] = target.strip()
            continue
        if _NO_MEMBER.match(text) or "(" in _INITIAL.sub("", _ATTRIBUTE.sub("", text)):
            continue
        for name, kind in _declared(text):
            out.append((name, aliases.get(kind, kind), line(start + text.find(name))))
    return tuple(out)


def _statements(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans between semicolons at the level of the class; what has a body is left out."""
    depth, begin = 0, start
    for found in _MARK.finditer(code, start, end):
        at, char = found.start(), found[0]
        if char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
            if char == "}" and depth == 0 and _ENDS_A_BODY.match(code, at + 1, end):
                begin = at + 1
        elif depth:
            continue
        elif char == ";":
            yield begin, at
            begin = at + 1
        elif code[at + 1] != ":" and code[at - 1] != ":" and _LABEL.search(code, begin, at + 1):
            begin = at + 1


def _declared(text: str) -> Iterator[tuple[str, str]]:
    """``(name, type)`` of ``T a, *b[4] = …, c : 3``."""
    parts = re.split(r",(?![^<]*>)(?![^(\[{]*[)\]}])", _ATTRIBUTE.sub(" ", text))
    first = _FIRST.match(parts[0])
    if first is None:
        return
    kind = " ".join(first[1].split())
    yield first[2], kind + first[3]
    base = kind.rstrip("*& ")
    for part in parts[1:]:
        other = _OTHER.match(part)
        if other:
            yield other[2], base + other[1] + other[3]


def bare_type(kind: str) -> str:
    """A type's name without qualifiers, references, template arguments: ``const ns::T<int>&`` → ``ns::T``."""
    plain = re.sub(r"\b(?:const|volatile|static|constexpr|struct|class|typename)\b|[&*]", " ", kind)
    return strip_arguments("".join(plain.split()))


def followed(name: str, index: Index) -> str:
    """A type with aliases followed, as long as a name is an alias of one type alone."""
    bare = bare_type(name)
    seen = {bare}
    while True:
        found = index.entries(bare.rsplit("::", 1)[-1], ("alias",), lambda facts: facts.aliases)
        targets = {alias.target for _, alias in found if alias.kind == "type"}
        if len(targets) != 1:
            return name
        target = targets.pop()
        if bare_type(target) in seen:
            return name
        name = name.replace(bare, target)
        bare = bare_type(target)
        seen.add(bare)
