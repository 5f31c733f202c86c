"""Which macros come to a registration, the registrations that an expanded text uses, and the variables they declare.

In: macro names, expanded text, calls. Out: a yes or no; ``(macro, arguments)`` pairs; names of variables.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opwalker.expand.files import holds
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.link.index import Index
from opwalker.model.cpp import BindingCall
from opwalker.notation.regex import Regex

_KNOWN = Regex(
    r"(?:STABLE_)?TORCH_LIBRARY\w*|PYBIND11_(?:EMBEDDED_)?MODULE|PYBIND11_PLUGIN|NB_MODULE|TVM_FFI_(?:DLL_EXPORT|STATIC_INIT)\w*|RegisterOperators\Z"
)
#: A known registration macro in use.
BLOCK_TEXT = Regex(
    r"\b((?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?|PYBIND11_MODULE|NB_MODULE|TVM_FFI_DLL_EXPORT_TYPED_FUNC)\s*\("
)


class RegistrationMacros:
    """Answers for the macros of one tree whether they can register anything: a cheap no for nearly all of them."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: dict[str, bool] = {}

    def may_register(self, name: str, depth: int = 0) -> bool:
        """Whether a macro can come to a registration: by its own name, or by what any definition of it mentions."""
        if _KNOWN.match(name):
            return True
        if name not in self._known:
            self._known[name] = False  # a macro that mentions itself
            if depth < 6 and name in self._index.names_of_kind("macro"):
                words: set[str] = set()
                for _, event in self._index.entries(name, ("macro",), lambda facts: facts.macros):
                    words.update(re.findall(r"[A-Za-z_]\w*", event.body or ""))
                self._known[name] = any(
                    _KNOWN.match(w) or (w.isupper() and w != name and self.may_register(w, depth + 1)) for w in words
                )
        return self._known[name]


def known_uses(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The known registration macros that a text uses, with their arguments."""
    out = []
    for match in BLOCK_TEXT.finditer(text):
        close = match_bracket(text, match.end() - 1)
        if close > 0:
            out.append(
                (
                    match.group(1),
                    tuple(
                        " ".join(text[a:b].split()) for a, b in split_commas(text, match.end(), close - 1, angles=False)
                    ),
                )
            )
    return out


def bare(text: str) -> str:
    """The variable that an argument passes on, by value, reference or pointer."""
    text = text.strip().lstrip("&* ")
    wrapped = re.match(r"(?:std::)?(?:c?ref|move)\s*\(\s*(\w+)\s*\)\Z", text)
    return wrapped.group(1) if wrapped else text


def class_variable(plain: str, call: BindingCall) -> str | None:
    """The name of a variable that is declared as ``py::class_<T> name(m, "T")``."""
    before = plain[call.offset : call.argument_offsets[0] - 1] if call.argument_offsets else ""
    word = re.search(r">\s*(\w+)\s*\(?\s*\Z", before)
    if word:
        return word.group(1)
    line = plain[plain.rfind("\n", 0, call.offset) + 1 : call.offset]
    assigned = re.search(r"(\w+)\s*=\s*(?:\w+::)*\Z", line)
    return assigned.group(1) if assigned else None


def assigned_variable(plain: str, call: BindingCall) -> str | None:
    """The name of the variable that a call's result initialises."""
    line = plain[max(plain.rfind(";", 0, call.offset), plain.rfind("{", 0, call.offset)) + 1 : call.offset]
    assigned = re.search(r"(\w+)\s*(?:=|\()\s*\Z", line)
    return assigned.group(1) if assigned else None


def merged(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    """Conditions that hold together, each once."""
    return inner if not outer or inner[: len(outer)] == outer else tuple(dict.fromkeys((*outer, *inner)))


@lru_cache(maxsize=4096)
def switched_off(terms: tuple[str, ...]) -> bool:
    """Whether no build at all reads what stands under these conditions, as under ``#if 0``."""
    return holds(terms, lambda name: (None, None)) is False
