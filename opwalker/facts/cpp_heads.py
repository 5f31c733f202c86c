"""Declaration heads: the text before a ``{`` or ``;`` at namespace or class level, understood.

In: a head's text (comments, strings and directives blanked). Out: ``FunctionHead``, or None where the head declares no
function. Parameter lists are split here too. Bodies are never looked at.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from opwalker.facts.cpp_brackets import flat, last_word, match_angle, match_bracket, split_commas, without_angles
from opwalker.notation.regex import Regex

#: Names whose parentheses belong to an attribute or specifier, never to a parameter list.
_SPECIFIERS = frozenset(
    "__launch_bounds__ __attribute__ __declspec alignas __align__ decltype noexcept asm __asm__ requires sizeof "
    "__cluster_dims__ __maxnreg__ explicit throw static_assert _Pragma __pragma typeof __typeof__ alignof "
    "__block_size__ __nv_pure__ if while for switch return defined".split()
)
_WORDS = {
    "__global__": "global",
    "__device__": "device",
    "__host__": "host",
    "static": "static",
    "inline": "inline",
    "__forceinline__": "inline",
    "__inline__": "inline",
    "constexpr": "constexpr",
    "consteval": "constexpr",
    "virtual": "virtual",
    "friend": "friend",
    "explicit": "explicit",
}
_OPERATOR = Regex(
    r"\boperator\s*(?:\(\s*\)|\[\s*\]|\"\"\s*\w+|new\b(?:\s*\[\s*\])?|delete\b(?:\s*\[\s*\])?|co_await\b|"
    r"[-+*/%^&|~!=<>,]{1,3}|[\w:<>\s*&]+?)\s*(?=\()"
)
_WORD = Regex(r"[A-Za-z_]\w*")
_TEMPLATE = Regex(r"\s*(?:extern\s+)?template\b\s*")
_COMPARED = Regex(r"(?<=\s)<(?=\s)")
_REQUIRES = Regex(r"\s*requires\b\s*")
_REQUIRED = Regex(r"\brequires\b")
_TRAILING_REQUIRES = Regex(r"\brequires\b\s*(?=\S)")
_OPERAND = Regex(r"\s*(?:!\s*)*(?:requires\b\s*)?(?:::\s*)?(?:[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*\s*)?")
_MEMBER = Regex(r"\s*::\s*(?:template\s+)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*\s*")
_JOINED = Regex(r"\s*(?:&&|\|\|)")
_RETURNED_POINTER = Regex(r"\(\s*[*&]+\s*(?:[A-Za-z_]\w*\s*::\s*)*([A-Za-z_]\w*)\s*\(")
_POINTED_AT = Regex(r"\s*\)\s*[(\[]")
_INITIALISERS = Regex(r"\s*(?:try\s*)?:(?!:)")


class FunctionHead(Struct, frozen=True):
    """A function's head. Offsets are relative to the head's text. ``qualifiers`` are those written before the name."""

    name: str
    qualifiers: tuple[str, ...]
    name_offset: int
    start_offset: int
    return_type: str
    parameters_start: int
    parameters_end: int
    flags: tuple[str, ...]
    template: str | None
    specialisation: str | None
    attributes: tuple[str, ...]
    requires: str | None = None
    owner: str | None = None


def strip_templates(head: str) -> tuple[int, str | None, bool]:
    """Skip leading ``template <…>`` heads: ``(offset behind them, innermost parameter text or None, bare)``.

    ``bare`` is true for ``template`` without ``<``: an explicit instantiation.
    """
    at = 0
    template: str | None = None
    while True:
        match = _TEMPLATE.match(head, at)
        if match is None:
            return at, template, False
        if match.end() >= len(head) or head[match.end()] != "<":
            return match.end(), template, True
        close = match_angle(head, match.end())
        if close < 0:
            # `bool B = N < 4` compares: what stands between blanks there opens nothing.
            compared = _COMPARED.sub(" ", head[match.end() + 1 :])
            close = match_angle(head[: match.end() + 1] + compared, match.end())
        if close < 0:
            return at, template, False
        inner = " ".join(head[match.end() + 1 : close - 1].split())
        # A member of a class template has two heads: the class's parameters stand first.
        template = inner if not template else f"{template}, {inner}" if inner else template
        at = close
        required = _REQUIRES.match(head, at)
        if required:
            at = _skip_requires(head, required.end())


def _skip_requires(head: str, at: int) -> int:
    """Behind a requires clause: operands (a parenthesis, a requires expression, or a name with template arguments and
    members) joined by && and ||."""
    while True:
        at = _OPERAND.match(head, at).end()
        while at < len(head) and head[at] in "({<":
            close = match_angle(head, at) if head[at] == "<" else match_bracket(head, at)
            at = max(close, at + 1)
            member = _MEMBER.match(head, at)
            if member:
                at = member.end()
            elif head[at : at + 1].isspace():
                following = re.compile(r"\s*").match(head, at).end()
                if head[following : following + 1] != "{":
                    break
                at = following
        joined = _JOINED.match(head, at)
        if joined is None:
            return at
        at = joined.end()


def parse_function(head: str, class_name: str | None) -> FunctionHead | None:
    """Read a head as a function; None when it is none. ``class_name`` is the enclosing class, for constructors."""
    begin, template, bare = strip_templates(head)
    first = head.find("(", begin)
    if first >= 0 and (returned := _RETURNED_POINTER.match(head, first)):
        return _returning_pointer(head, begin, returned, template, bare, class_name)
    operator = _OPERATOR.search(head, begin)
    groups: list[tuple[int, int, int]] = []
    at = begin
    while True:
        at = head.find("(", at)
        if at < 0:
            break
        if operator and operator.start() <= at < operator.end():
            at = operator.end()
            continue
        close = match_bracket(head, at)
        if close < 0:
            return None
        groups.append((at, close, len(groups)))
        if _INITIALISERS.match(head, close):
            break  # member initialisers follow: the list before them is the last candidate
        at = close
    chosen = None
    for start, close, _ in groups:
        before = head[begin:start].rstrip()
        if operator and operator.end() <= start and head[operator.end() : start].strip() == "":
            chosen = (start, close, operator.start())
            break
        if _inside_angles(head, begin, start):
            continue
        stripped, _spec = _strip_specialisation(before)
        word, word_end = last_word(stripped)
        if word < 0 or stripped[word:word_end] in _SPECIFIERS:
            continue
        if chosen is None or not _is_trailing_macro(head, chosen[1], begin + word):
            chosen = (start, close, begin + word)
    if chosen is None:
        return None
    return _build(head, begin, chosen, template, bare, class_name, operator)


def _returning_pointer(head, begin, returned: re.Match, template, bare, class_name) -> FunctionHead | None:
    """``void (*pick(int n))(int*)``: a function whose result is a pointer to a function or an array."""
    start = returned.end() - 1
    close = match_bracket(head, start)
    if close < 0 or not _POINTED_AT.match(head, close):
        return None
    found = _build(head, begin, (start, close, returned.start(1)), template, bare, class_name, None)
    return found and replace(found, return_type=found.return_type + " ".join(head[close:].split()))


def _is_trailing_macro(head: str, behind: int, name_at: int) -> bool:
    """Whether a later ``NAME(…)`` only follows a parameter list (``f(int) noexcept(x)``, ``f() -> decltype(y)``)."""
    between = head[behind:name_at].strip()
    if not between:
        return head[behind:name_at].count("\n") == 0
    return bool(re.match(r"(?:const|noexcept|override|final|requires|->|&)", between))


def _inside_angles(head: str, begin: int, at: int) -> bool:
    """Whether ``at`` lies inside template angle brackets that opened after ``begin``."""
    opened = head.find("<", begin, at)
    while opened >= 0:
        close = match_angle(head, opened)
        if close > at:
            return True
        opened = head.find("<", close if close > 0 else opened + 1, at)
    return False


def _strip_specialisation(before: str) -> tuple[str, str | None]:
    """Take a trailing ``<…>`` off a name: ``("f", "float, 3")``."""
    if not before.endswith(">") or before.endswith(("->", "operator>")):
        return before, None
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        char = before[at]
        if char == ">" and before[at - 1 : at] != "-":
            depth += 1
        elif char == "<":
            depth -= 1
            if depth == 0:
                return before[:at].rstrip(), before[at + 1 : -1]
    return before, None


def _build(head, begin, chosen, template, bare, class_name, operator) -> FunctionHead | None:
    start, close, name_at = chosen
    if operator and operator.start() == name_at:
        name = (
            re.sub(r"\s+", "", operator.group())
            if not operator.group()[8:9].isspace()
            else " ".join(operator.group().split())
        )
        specialisation = None
    else:
        text, specialisation = _strip_specialisation(head[begin:start].rstrip())
        word, word_end = last_word(text)
        name = text[word:word_end]
        if text[:word].rstrip().endswith("~"):
            word = text.rindex("~", 0, word)
            name = "~" + name
        name_at = begin + word
    qualifiers, first = _qualifiers(head, begin, name_at)
    owner = _strip_specialisation(head[first:name_at].rstrip().removesuffix("::").rstrip())[1] if qualifiers else None
    prefix = head[begin:first]
    flags, attributes, return_type = _specifiers(prefix)
    is_constructor = name.lstrip("~") in (class_name, qualifiers[-1].split("<")[0] if qualifiers else None)
    conversion = name.startswith("operator")
    if not return_type and not is_constructor and not conversion and "auto" not in prefix:
        return None
    if return_type.rstrip().endswith(("=", ",", "(", "return", "new", ".", "->", "else", "goto", "case")):
        return None
    if "=" in prefix and _ASSIGNED.search(without_angles(prefix, blanked=True)):
        return None
    tail = head[close:].rstrip()
    required = [_required(head[:begin])] if "requires" in head[:begin] else []
    if tail:
        behind = _TRAILING_REQUIRES.search(tail)
        if behind:
            required.append(tail[behind.end() :])
            tail = tail[: behind.start()].rstrip()
        return_type = _read_tail(tail, return_type, flags, attributes)
    if bare:
        flags.append("extern_template" if "extern" in head[:begin] else "explicit_instantiation")
    return FunctionHead(
        name,
        qualifiers,
        name_at,
        begin + len(prefix) - len(prefix.lstrip()),
        return_type,
        start + 1,
        close - 1,
        tuple(dict.fromkeys(flags)),
        template,
        specialisation,
        tuple(attributes),
        " && ".join(f"({' '.join(r.split())})" for r in required if r.strip()) or None,
        None if owner is None else " ".join(owner.split()),
    )


def _required(heads: str) -> str:
    """The requires clauses between template heads, joined."""
    shape = flat(heads)
    found = []
    for match in _REQUIRED.finditer(shape):
        following = re.compile(r"\btemplate\b").search(shape, match.end())
        found.append(heads[match.end() : following.start() if following else len(heads)].strip())
    return " && ".join(found)


def _read_tail(tail: str, return_type: str, flags: list[str], attributes: list[str]) -> str:
    """What stands behind a parameter list: into ``flags`` and ``attributes``; gives the return type, if it is there."""
    trailing = re.search(r"->\s*([^;{]+?)\Z", tail)
    if re.search(r"\boverride\b|\bfinal\b", tail):
        flags.append("override")
    if re.search(r"=\s*0\Z", tail):
        flags.append("pure")
    if re.search(r"=\s*delete\Z", tail):
        flags.append("deleted")
    if re.match(r"\s*const\b", tail):
        flags.append("const")
    attributes += [
        " ".join(found.group().split())
        for found in re.finditer(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", tail)
    ]
    if trailing and return_type.split()[-1:] == ["auto"]:
        return " ".join(trailing.group(1).split())
    return return_type


def _qualifiers(head: str, begin: int, name_at: int) -> tuple[tuple[str, ...], int]:
    """The ``a::b<T>::`` written before a name, and where they start."""
    parts: list[str] = []
    first = name_at
    while True:
        text = head[begin:first].rstrip()
        if not text.endswith("::"):
            return tuple(parts), first
        text = text[:-2].rstrip()
        bare, _spec = _strip_specialisation(text)
        word, word_end = last_word(bare)
        if word < 0 or word_end != len(bare):
            return tuple(parts), begin + len(text)
        parts.insert(0, bare[word:word_end])
        first = begin + word


_SPEC_CALL = Regex(
    r"\b(__launch_bounds__|__attribute__|__declspec|alignas|__align__|__cluster_dims__|__maxnreg__|__block_size__|explicit)\s*\("
)
_ASSIGNED = Regex(r"(?<![=!<>])=(?!=)")
_CXX_ATTRIBUTE = Regex(r"\[\[[^\]]*\]\]")
_EXTERN = Regex(r'\bextern\s*(?:"[^"]*")?')


def _specifiers(prefix: str) -> tuple[list[str], list[str], str]:
    """Flags, attributes with arguments, and what remains: the return type."""
    flags: list[str] = []
    attributes: list[str] = []
    text = prefix
    while True:
        match = _SPEC_CALL.search(text)
        if match is None:
            break
        close = match_bracket(text, match.end() - 1)
        if close < 0:
            break
        attributes.append(" ".join(text[match.start() : close].split()))
        text = text[: match.start()] + " " + text[close:]
    text = _CXX_ATTRIBUTE.sub(" ", text)
    if _EXTERN.search(text):
        if '"' in text:
            flags.append("extern_c")
        text = _EXTERN.sub(" ", text)
    for word in _WORD.findall(text):
        flag = _WORDS.get(word)
        if flag:
            flags.append(flag)
    text = _WORD.sub(lambda m: "" if m.group() in _WORDS else m.group(), text)
    return flags, attributes, " ".join(text.split())


_DECLARATOR = Regex(r"([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)\Z")
_POINTER_NAME = Regex(r"\(\s*(?:[\w:]*::)?[*&]\s*(?:const\s+)?([A-Za-z_]\w*)\s*(?:\[[^\]]*\])?\s*\)")
_TYPE_WORDS = frozenset(
    "const volatile unsigned signed int long short char float double bool void auto size_t class struct typename "
    "enum __restrict__ __restrict restrict".split()
)


def parse_parameters(
    text: str, start: int, end: int, shown: str | None = None
) -> list[tuple[str, str, str | None, int, int]]:
    """The parameters in ``text[start:end]`` as ``(type, name, default, offset, end)``; an unnamed one has name
    ``""``. ``shown`` is the text with its strings, which defaults are taken from: a comma in one splits nothing."""
    out: list[tuple[str, str, str | None, int, int]] = []
    for begin, stop in split_commas(text, start, end):
        piece = text[begin:stop]
        if not piece.strip() or piece.strip() == "void":
            continue
        offset = begin + len(piece) - len(piece.lstrip())
        close = begin + len(piece.rstrip())
        default: str | None = None
        equals = _ASSIGNED.search(without_angles(piece, blanked=True)) if "=" in piece else None
        declared = piece
        if equals:
            default = " ".join((shown or text)[begin + equals.end() : stop].split())
            declared = piece[: equals.start()]
        if "[[" in declared:
            declared = _CXX_ATTRIBUTE.sub(" ", declared)
        flat = " ".join(declared.split())
        pointer = _POINTER_NAME.search(flat) if "(" in flat else None
        if pointer:
            type_text = flat[: pointer.start(1)] + flat[pointer.end(1) :]
            out.append((type_text, pointer.group(1), default, offset, close))
            continue
        named = _DECLARATOR.search(flat)
        name, array = (named.group(1), named.group(2).strip()) if named else ("", "")
        type_text = flat[: named.start()].rstrip() if named else flat
        bare_type = type_text.replace("const", " ").replace("volatile", " ").strip()
        if not named or name in _TYPE_WORDS or not bare_type or type_text.endswith("::"):
            name, type_text, array = "", flat, ""
        out.append((type_text + array, name, default, offset, close))
    return out
