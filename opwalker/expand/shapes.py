"""Types taken apart: a base name with its arguments, and the pointers, references and extents around it.

In: a type's text, canonical or as declared. Out: ``Shape``. No name is looked up.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from opwalker.expand.terms import join_arguments
from opwalker.facts.cpp_brackets import match_angle, match_bracket, split_commas
from opwalker.facts.cpp_heads import parse_parameters
from opwalker.notation.regex import Regex

_QUALIFIERS = frozenset("const volatile typename constexpr static struct class enum __restrict__ __restrict".split())
_WORD = Regex(r"[A-Za-z_]\w*")
_CONST_END = Regex(r"\s*\b(const|volatile|__restrict__|__restrict)\Z")
_EXTENT = Regex(r"\[([^\[\]]*)\]\Z")
_POINTED = Regex(r"\(\s*((?:[\w:]+::)?[*&]+)\s*\w*\s*((?:\[[^\]]*\])?)\s*\)")


class Shape(Struct, frozen=True):
    """``base`` is the type's name with its arguments and without qualifiers; ``const`` whether it is; ``marks`` are
    ``*``, ``&``, ``&&`` and ``[n]``, the outermost last; ``parameters`` are those of a function type, whose result is
    the rest."""

    base: str
    const: bool = False
    marks: tuple[str, ...] = ()
    parameters: tuple[str, ...] | None = None

    @property
    def text(self) -> str:
        """The type in canonical spelling: qualifiers behind what they qualify."""
        const = " const" if self.const else ""
        if self.parameters is not None:
            return f"{self.base}{const} ({''.join(self.marks)})({', '.join(self.parameters)})"
        return f"{self.base}{const}{''.join(self.marks)}"

    @property
    def name(self) -> str:
        """The base without its arguments."""
        at = self.base.find("<")
        return self.base if at < 0 or match_angle(self.base, at) != len(self.base.rstrip()) else self.base[:at].strip()

    @property
    def arguments(self) -> tuple[str, ...] | None:
        """The arguments of the base's last name; None without any."""
        text = self.base.rstrip()
        at = _last_list(text)
        if at < 0:
            return None
        inner = text[at + 1 : -1]
        return tuple(inner[a:b].strip() for a, b in split_commas(inner))


def _last_list(text: str) -> int:
    """Where the argument list that a name ends with begins; -1 without one."""
    at = text.find("<")
    while at >= 0:
        close = match_angle(text, at)
        if close < 0:
            return -1
        if close == len(text):
            return at
        at = text.find("<", close)
    return -1


def _pointed(text: str) -> re.Match[str] | None:
    """The ``(*)`` of a type itself, not of one of its arguments."""
    for found in _POINTED.finditer(text):
        if text.count("<", 0, found.start()) == text.count(">", 0, found.start()):
            return found
    return None


@lru_cache(maxsize=16384)
def shape(text: str) -> Shape:
    """A type's text as a shape."""
    text = " ".join(text.split())
    if text.endswith(")"):
        pointed = _pointed(text)
        close = match_bracket(text, pointed.end()) if pointed and text.startswith("(", pointed.end()) else -1
        if pointed and close == len(text):
            inner = text[pointed.end() + 1 : close - 1]
            result = shape(text[: pointed.start()])
            listed = tuple(kind for kind, *_ in parse_parameters(inner, 0, len(inner)))
            return Shape(result.text, False, (pointed.group(1),), listed)
    marks: list[str] = []
    pointed = _pointed(text)
    if pointed and text[pointed.end() :].lstrip().startswith("["):
        marks.append(pointed.group(1))  # `T (&)[4]`
        text = text[: pointed.start()] + text[pointed.end() :]
    while True:
        text = text.rstrip()
        if text.endswith(("*", "&")):
            mark = "&&" if text.endswith("&&") else text[-1]
            marks.insert(0, mark)
            text = text[: -len(mark)]
            continue
        extent = _EXTENT.search(text)
        if extent:
            marks.insert(0, f"[{extent.group(1).strip()}]")
            text = text[: extent.start()]
            continue
        qualifier = _CONST_END.search(text)
        if qualifier is None:
            break
        before = text[: qualifier.start()].rstrip()
        if before.endswith(("*", "&", "]")):
            text = before  # a constant pointer: the parameter's own affair
            continue
        text = before
        if qualifier.group(1) == "const":
            return _with_const(text, marks)
    return _with_const(text, marks, False)


def _with_const(text: str, marks: list[str], const: bool = True) -> Shape:
    """The rest of a type: leading qualifiers off."""
    while True:
        word = _WORD.match(text)
        if word is None or word.group() not in _QUALIFIERS:
            break
        const = const or word.group() == "const"
        text = text[word.end() :].lstrip()
    text = re.sub(r"\bconst\b\s*\Z", "", text).rstrip()
    inner = re.match(r"((?:unsigned|signed|long|short)\s+)const\s+", text)
    if inner:
        text, const = inner.group(1) + text[inner.end() :], True
    return Shape(text, const, tuple(marks))


@lru_cache(maxsize=8192)
def components(text: str) -> tuple[tuple[str, tuple[str, ...] | None], ...]:
    """A qualified name as its parts, each with its template arguments (None without a list):
    ``ns::A<int>::B`` is ``(("ns", None), ("A", ("int",)), ("B", None))``."""
    out: list[tuple[str, tuple[str, ...] | None]] = []
    at = 0
    text = text.strip().removeprefix("::")
    while at < len(text):
        word = re.compile(r"\s*(?:template\s+)?(\(anonymous namespace\)|[A-Za-z_]\w*)\s*").match(text, at)
        if word is None:
            return ()
        at = word.end()
        arguments = None
        if text.startswith("<", at):
            close = match_angle(text, at)
            if close < 0:
                return ()
            inner = text[at + 1 : close - 1]
            arguments = tuple(inner[a:b].strip() for a, b in split_commas(inner))
            at = close
        out.append((word.group(1), arguments))
        following = re.compile(r"\s*(::)?\s*").match(text, at)
        at = following.end()
        if following.group(1) is None:
            return tuple(out) if at >= len(text) else ()
    return tuple(out)


def outer_of(text: str) -> str:
    """A canonical class type without its last name; ``""`` for one without a scope."""
    parts = components(text)[:-1]
    out = []
    for name, arguments in parts:
        out.append(name if arguments is None else f"{name}<{join_arguments(list(arguments))}>")
    return "::".join(out)
