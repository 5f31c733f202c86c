"""Declarations that name things: aliases of every form, variables, and the heads of classes.

In: a declaration's text, templates stripped. Out: plain tuples; ``cpp_declarations`` gives them places.
"""

from __future__ import annotations

import re

from msgspec import Struct

from opwalker.facts.cpp_brackets import flat, match_angle, match_bracket, split_commas
from opwalker.facts.cpp_heads import strip_templates
from opwalker.notation.regex import Regex

_USING = Regex(r"using\s+([A-Za-z_]\w*)\s*(?:\[\[[^\]]*\]\]\s*)?=\s*(.*)\Z", re.DOTALL)
_USING_NAMESPACE = Regex(r"using\s+namespace\s+([\w:\s]+)\Z")
_USING_NAME = Regex(r"using\s+(?:typename\s+)?([\w:\s<>,]+)\Z")
_NAMESPACE_ALIAS = Regex(r"namespace\s+(\w+)\s*=\s*([\w:\s]+)\Z")
_TYPEDEF = Regex(r"typedef\s+(.*?)([A-Za-z_]\w*)\s*((?:\[[^\]]*\])*)\Z", re.DOTALL)
_POINTER_TYPEDEF = Regex(r"typedef\s+(.*?\(\s*[\w:]*\*\s*)([A-Za-z_]\w*)(\s*\).*)\Z", re.DOTALL)


#: Words that no declared name is.
KEYWORDS = frozenset(
    "if for while switch return else do case goto delete new throw static_assert sizeof using typedef namespace "
    "template "
    "class struct union enum public private protected default break continue try catch friend operator extern const "
    "constexpr static inline virtual void int bool char float double auto unsigned signed long short typename".split()
)
_VARIABLE = Regex(r"(.*?)([A-Za-z_~][\w:]*)\s*(<[^;]*>)?\s*((?:\[[^\]]*\]\s*)*)\Z", re.DOTALL)
_FURTHER = Regex(r"([\s*&]*)([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)([={(])?")
_ATTRIBUTE = Regex(r"\b(?:alignas|__align__|__builtin_align__|__attribute__|__declspec)\s*\(|\[\[")
_FUNCTION_POINTER = Regex(
    r"([\w:<>,*&\s]*?[\w>*&])\s*\(\s*(?:[\w:]+\s*::\s*)?\*\s*(const\s+)?([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)\)\s*\("
)
_SPACES = Regex(r"\s*")
_STORAGE = Regex(r"\b(?:static|inline|constexpr|extern|thread_local|__device__|__constant__|__shared__|__host__)\b")


_ATTRIBUTE_USE = Regex(
    r"\s*(?:[A-Z_][A-Z0-9_]*\s+)*?[A-Za-z_]\w*\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*"
    r"(?!const\b|volatile\b|noexcept\b|override\b|final\b|requires\b|try\b)(?=[A-Za-z_])"
)


class VariableHead(Struct, frozen=True):
    """A variable's declaration, in offsets of the text: its initialiser is ``[value_at, end)``; ``offset`` is 0 for
    the first declarator, whose place is the declaration's, and that of the comma before for those behind it."""

    name: str
    qualifiers: tuple[str, ...]
    type: str
    constant: bool
    template: str | None
    value_at: int
    end: int
    offset: int = 0
    specialisation: str | None = None


def variables_of(head: str) -> list[VariableHead]:
    """The variables that a declaration declares: none, one, or one for each declarator."""
    begin, template, bare = strip_templates(head)
    core = head[begin:]
    if bare or not core.strip():
        return []
    pointer = _pointer_variable(core, begin, template) if "*" in core and "(" in core else None
    if pointer is not None:
        return [pointer]
    shape = flat(core)
    comma = shape.find(",")
    if comma >= 0:
        first = _first_variable(core[:comma], shape[:comma], begin, template)
        further = _further_variables(core, shape, comma, begin, first) if first else None
        if further is not None:
            return [first, *further]
    only = _first_variable(core, shape, begin, template)
    return [only] if only else []


def _pointer_variable(core: str, begin: int, template: str | None) -> VariableHead | None:
    """A pointer to a function, or an array of them: ``void (*hook)(int) = f``, ``void (*table[])(int) = {f, g}``."""
    match = _FUNCTION_POINTER.match(core)
    if match is None or match.group(3) in KEYWORDS:
        return None
    close = match_bracket(core, match.end() - 1)
    if close < 0:
        return None
    after = _SPACES.match(core, close).end()
    if after < len(core) and core[after] not in "={":
        return None
    returned = " ".join(_STORAGE.sub("", match.group(1)).split())
    if not returned:
        return None
    extents = "".join(match.group(4).split())
    kind = f"{returned} (*)({' '.join(core[match.end() : close - 1].split())}){extents}"
    value_at = begin + (after + 1 if core[after : after + 1] == "=" else after)
    constant = bool(match.group(2)) or bool(re.search(r"\b(?:constexpr|__constant__)\b", match.group(1)))
    return VariableHead(match.group(3), (), kind, constant, template, value_at, begin + len(core))


def _further_variables(core: str, shape: str, comma: int, begin: int, first: VariableHead) -> list[VariableHead] | None:
    """The declarators behind the first; None where what stands behind its comma is something else."""
    base = re.sub(r"[*&\s]+\Z|\[.*\Z", "", first.type)
    out: list[VariableHead] = []
    while comma >= 0:
        stop = shape.find(",", comma + 1)
        end = stop if stop >= 0 else len(core)
        match = _FURTHER.match(shape, comma + 1, end)
        if match is None or (match.end() < end and match.group(4) is None):
            return None
        kind = base + "".join(match.group(1).split()) + "".join(core[match.start(3) : match.end(3)].split())
        value_at = begin + (match.end() if match.group(4) == "=" else match.start(4) if match.group(4) else end)
        out.append(
            VariableHead(
                match.group(2), first.qualifiers, kind, first.constant, first.template, value_at, begin + end, comma
            )
        )
        comma = stop
    return out


def _first_variable(core: str, shape: str, begin: int, template: str | None) -> VariableHead | None:
    """The first declarator of ``core``, which stands at ``begin``; ``shape`` is its ``flat`` text."""
    equals = re.search(r"(?<![=!<>+\-*/%&|^])=(?!=)", shape)
    brace = shape.find("{")
    cut = min((x for x in (equals.start() if equals else -1, brace) if x >= 0), default=len(core))
    paren = shape.find("(")
    if 0 <= paren < cut and not re.search(r"\b(alignas|__align__|__attribute__|decltype)\s*\Z", shape[:paren]):
        cut = paren
    match = _VARIABLE.match(without_attributes(core[:cut]).strip())
    if match is None or not match.group(1).strip() or match.group(2).split("::")[-1] in KEYWORDS:
        return None
    type_text = " ".join(match.group(1).split())
    if type_text.endswith(("::", ".", ",")) or type_text in ("return", "goto", "delete", "throw", "else"):
        return None
    parts = match.group(2).split("::")
    kind = " ".join(_STORAGE.sub("", type_text).split()) + "".join(match.group(4).split())
    constant = bool(set(re.findall(r"\w+", type_text)) & {"constexpr", "const", "__constant__"})
    value_at = begin + (cut + 1 if equals and equals.start() == cut else cut)
    special = " ".join(match.group(3)[1:-1].split()) if match.group(3) else None
    return VariableHead(parts[-1], tuple(parts[:-1]), kind, constant, template, value_at, begin + len(core), 0, special)


def without_attributes(text: str) -> str:
    """The text with alignments and attributes blanked, brackets inside them and all, so that offsets stay true."""
    at = 0
    while match := _ATTRIBUTE.search(text, at):
        opened = match.end() - 1 if text[match.end() - 1] == "(" else match.start()
        close = match_bracket(text, opened)
        if close < 0:
            break
        text = text[: match.start()] + " " * (close - match.start()) + text[close:]
        at = close
    return text


def alias_of(core: str) -> tuple[str, str, str] | None:
    """``(kind, name, target)`` of a using, typedef or namespace alias; None for anything else."""
    if core.startswith("using"):
        if match := _USING.match(core):
            return "type", match.group(1), match.group(2)
        if match := _USING_NAMESPACE.match(core):
            return "directive", "", match.group(1)
        if match := _USING_NAME.match(core):
            target = match.group(1)
            return "using", target.split("<")[0].split("::")[-1].strip(), target
    elif core.startswith("namespace"):
        if match := _NAMESPACE_ALIAS.match(core):
            return "namespace", match.group(1), match.group(2)
    elif core.startswith("typedef"):
        if match := _POINTER_TYPEDEF.match(core):
            return "type", match.group(2), match.group(1) + match.group(3)
        if match := _TYPEDEF.match(core):
            return "type", match.group(2), match.group(1) + match.group(3)
    return None


def class_head(core: str, kind: str) -> tuple[str, str | None, tuple[str, ...]] | None:
    """``(name, specialisation, bases)`` of a class head whose keyword is ``kind``; None where it heads no class."""
    text = without_attributes(core[core.index(kind) + len(kind) :]).strip()
    if "(" in text and (attribute := _ATTRIBUTE_USE.match(text)):
        text = text[attribute.end() :]  # `class MACRO(16) Name`: only an attribute has parentheses before the name
    bases: tuple[str, ...] = ()
    colon = re.search(r"(?<!:):(?!:)", flat(text))
    if colon:
        bases = tuple(
            " ".join(re.sub(r"\b(?:public|private|protected|virtual)\b", "", text[a:b]).split())
            for a, b in split_commas(text, colon.end())
        )
        text = text[: colon.start()].rstrip()
    text = re.sub(r"\bfinal\s*\Z", "", text).rstrip()
    specialisation = None
    if text.endswith(">"):
        opened = text.find("<")
        if opened < 0 or match_angle(text, opened) != len(text):
            return None
        specialisation = " ".join(text[opened + 1 : -1].split())
        text = text[:opened].rstrip()
    if "(" in text or "=" in text:
        return None
    words = text.split()
    name = words[-1].split("::")[-1] if words else ""
    if words and not re.fullmatch(r"[\w:]+", words[-1]):
        return None
    if len(words) > 2 or (len(words) == 2 and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", words[0])):
        return None  # `struct X f() {` is no class head; one attribute macro before the name is
    return name, specialisation, bases
