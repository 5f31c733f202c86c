"""Which places of a Python text matter, found by looking for words.

In: a text, its layout and the names that other files want looked for. Out: ``Needles``: the words to look at once the
text is parsed, and the outermost functions that must be parsed with their bodies. It follows callers inside the file for
two levels, and helpers of registration for three, by name alone: too much may be kept, never too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from opwalker.facts.python_layout import Head, Layout
from opwalker.facts.python_light import import_statements
from opwalker.model.python import PyImport
from opwalker.notation.python_imports import parse_import

#: How many levels of callers are followed inside a file, and how many of helpers of registration.
CALLER_LEVELS = 2
HELPER_LEVELS = 3

_WORD = re.compile(r"\w")
_RESULT = re.compile(r"[\w.]*\(")
_CALLED = re.compile(r"[ \t]*\(")
_ASSIGNED = re.compile(r"[ \t]*((?:self\.|cls\.)?[A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)[ \t]*(?::[^=\n]+)?=(?!=)")
#: Uses of a ``Library`` object, and of what ``custom_op`` returns.
LIBRARY_USE = re.compile(
    r"\.(?:define|impl|fallback|_register_fake|register_fake|register_kernel|register_autograd|impl_abstract)[ \t]*\("
)
DEFINED_USE = re.compile(r"\.(?:_register_fake|register_fake|register_kernel|register_autograd|impl_abstract)\b")
_SELF_USE = re.compile(r"\b(?:self|cls)\.(\w+)")
#: What ``torch.library`` has that registers; the rest of it only reads or tests.
_REGISTERING = frozenset(
    {"Library", "define", "impl", "custom_op", "triton_op", "register_fake", "impl_abstract", "register_kernel"}
    | {"register_autograd"}
)
_REGISTRAR_LIKE = re.compile(r"custom_op(?!s)")


@dataclass(slots=True)
class Needles:
    """What to look at.

    ``roots`` spell ``torch.ops`` or something below it (``{"ops": "torch.ops"}``); ``names`` are bare names of functions
    and classes, ``methods`` names reached through ``self`` or a class, ``heads`` aliases of modules whose attributes are
    called, ``dotted`` exact spellings. ``registrars`` are words whose statement takes part in a registration.
    ``kept`` are starts of functions to parse whole, ``signed`` of those of which the signature is enough.
    """

    roots: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    heads: set[str] = field(default_factory=set)
    dotted: set[str] = field(default_factory=set)
    registrars: set[str] = field(default_factory=set)
    library_use: re.Pattern[str] | None = None
    kept: set[int] = field(default_factory=set)
    signed: set[int] = field(default_factory=set)
    wanted: set[str] = field(default_factory=set)
    anything: bool = False


def occurrences(text: str, words: str, attribute: bool = False) -> Iterator[int]:
    """The places where ``words`` stands as whole words and, unless ``attribute``, not behind a dot."""
    at = text.find(words)
    size = len(words)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + size : at + size + 1]
        if not _is_word(after) and (attribute or before != ".") and not _is_word(before):
            yield at
        at = text.find(words, at + size)


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()


def telling_imports(text: str) -> list[PyImport]:
    """The names that imports bind to torch or to what looks like a helper of registration, wherever they stand."""
    return [
        bound
        for statement in import_statements(text)
        if "torch" in statement or _REGISTRAR_LIKE.search(statement)
        for bound in parse_import(statement)
    ]


class Finder:
    """Collects the needles of one text."""

    def __init__(self, layout: Layout, imports: Iterable[PyImport], watch: Iterable[str]) -> None:
        self.layout = layout
        self.text = layout.text
        self.needles = Needles()
        self._seen: set[tuple[str, str]] = set()
        self._take_imports(imports)
        for entry in watch:
            self._take_watch(entry)

    def _take_imports(self, imports: Iterable[PyImport]) -> None:
        needles = self.needles
        needles.roots["torch.ops"] = "torch.ops"
        for bound in imports:
            whole = bound.module if bound.name is None else f"{bound.module}.{bound.name}"
            if bound.level:
                continue
            if whole == "torch" and bound.alias != "torch":
                needles.roots[f"{bound.alias}.ops"] = "torch.ops"
                needles.registrars.update(f"{bound.alias}.library.{name}" for name in _REGISTERING)
            elif whole == "torch.ops" or whole.startswith("torch.ops."):
                if bound.alias != whole:
                    needles.roots[bound.alias] = whole
            elif whole == "torch.library":
                needles.registrars.add(bound.alias)
            elif bound.module.startswith(("torch.library", "torch._library", "torch._custom_op")):
                if bound.name in _REGISTERING or bound.name == "*":
                    needles.registrars.update(_REGISTERING if bound.name == "*" else {bound.alias})
            elif bound.name is not None and bound.module.split(".", 1)[0] != "torch" and _REGISTRAR_LIKE.search(bound.name):
                needles.registrars.add(bound.alias)
        for bound in imports:
            if bound.level and bound.name is not None and _REGISTRAR_LIKE.search(bound.name):
                needles.registrars.add(bound.alias)
        if "torch.library." in self.text:
            needles.registrars.update(f"torch.library.{name}" for name in _REGISTERING if f"library.{name}" in self.text)

    def _take_watch(self, entry: str) -> None:
        """``call:f``, ``call:mod.*``, ``call:Class.method``, ``reg:f``, ``reg:mod.*`` or ``def:f``."""
        kind, _, name = entry.partition(":")
        needles = self.needles
        if kind == "def":
            needles.wanted.add(name)
        elif kind == "reg":
            needles.registrars.add(name.removesuffix(".*"))
        elif name.endswith(".*"):
            needles.heads.add(name[:-2])
        elif "." in name:
            needles.dotted.add(name)
            owner, _, method = name.rpartition(".")
            if re.search(rf"class[ \t]+\w+[ \t]*\([^)]*\b{re.escape(owner)}\b", self.text):
                needles.methods.add(method)
        else:
            needles.names.add(name)

    def find(self) -> Needles:
        """All needles, callers and helpers inside the file followed."""
        needles = self.needles
        for root in list(needles.roots):
            for at in occurrences(self.text, root):
                self._used(at, CALLER_LEVELS)
                self._aliased(at)
        for head in list(needles.heads):
            for at in occurrences(self.text, f"{head}."):
                self._used(at, CALLER_LEVELS)
        for name in list(needles.dotted):
            for at in occurrences(self.text, name):
                self._used(at, CALLER_LEVELS)
        for name in list(needles.names):
            self._callers(name, False, CALLER_LEVELS + 1)
        for name in list(needles.methods):
            self._callers(name, True, CALLER_LEVELS + 1)
        self._registrations()
        for name in needles.wanted:
            needles.anything = True
            needles.signed.update(head.start for head in self.layout.named(name))
        return needles

    def _used(self, place: int, levels: int) -> None:
        """Something at ``place`` matters: keep the function around it, and look for its callers."""
        needles = self.needles
        needles.anything = True
        around = self.layout.around(place)
        functions = [head for head in around if not head.is_class]
        if not functions:
            decorated = self.layout.decorated(place)
            if decorated is not None:
                needles.signed.add(decorated.start)
            return
        needles.kept.add(functions[-1].start)
        if levels:
            self._callers_of(functions[0], around, levels)

    def _callers_of(self, function: Head, around: list[Head], levels: int) -> None:
        at = around.index(function)
        owner = around[at + 1] if at + 1 < len(around) else None
        if owner is not None and owner.is_class:
            if function.name == "__init__":
                self._callers(owner.name, False, levels)
            else:
                self._callers(function.name, True, levels)
                if function.name == "forward":
                    self._callers("apply", True, levels)
        else:
            self._callers(function.name, False, levels)

    def _callers(self, name: str, attribute: bool, levels: int) -> None:
        key = (name, "method" if attribute else "name")
        if key in self._seen:
            return
        self._seen.add(key)
        (self.needles.methods if attribute else self.needles.names).add(name)
        for at in occurrences(self.text, name, attribute):
            if (self.text[at - 1 : at] == ".") != attribute:
                continue
            if _CALLED.match(self.text, at + len(name)) and not self.text.endswith(("def ", "class "), 0, at):
                self._used(at, levels - 1)

    def _aliased(self, place: int) -> None:
        """An op that is bound to a name outside of functions, or to ``self``: its uses matter too."""
        if _RESULT.match(self.text, place):
            return
        line = self.text.rfind("\n", 0, place) + 1
        for _ in range(3):
            found = _ASSIGNED.match(self.text, line)
            if found:
                for name in found.group(1).split(","):
                    name = name.strip()
                    _, _, attribute = name.rpartition(".")
                    for at in occurrences(self.text, attribute, True):
                        self._used(at, CALLER_LEVELS)
                return
            line = self.text.rfind("\n", 0, max(line - 1, 0)) + 1

    def _registrations(self) -> None:
        """The words of registration and the helpers that they make."""
        needles, text = self.needles, self.text
        needles.library_use = LIBRARY_USE if "Library(" in text else DEFINED_USE if needles.registrars else None
        if needles.library_use is not None:
            for found in needles.library_use.finditer(text):
                self._registers(found.start(), HELPER_LEVELS)
        for word in list(needles.registrars):
            for at in occurrences(text, word):
                self._registers(at, HELPER_LEVELS)

    def _registers(self, place: int, levels: int) -> None:
        needles = self.needles
        line = self.text.rfind("\n", 0, place) + 1
        if self.text.startswith(("from ", "import "), line + len(self.text[line:place]) - len(self.text[line:place].lstrip())):
            return
        self._used(place, 0)
        around = self.layout.around(place)
        functions = [head for head in around if not head.is_class]
        name = None
        if functions:
            outermost = functions[-1]
            owner = around[around.index(outermost) + 1 :]
            name = owner[0].name if owner else outermost.name
            if owner:
                self._keep_method_flow(outermost, owner[0])
        else:
            found = _ASSIGNED.match(self.text, line)
            if found and "," not in found.group(1) and "." not in found.group(1):
                name = found.group(1)
        if name is None or not levels or (name, "registrar") in self._seen:
            return
        self._seen.add((name, "registrar"))
        needles.registrars.add(name)
        for at in occurrences(self.text, name):
            if not self.text.endswith(("def ", "class "), 0, at):
                self._registers(at, levels - 1)

    def _keep_method_flow(self, method: Head, owner: Head) -> None:
        """Keep what a registering method relies on: the constructor and the methods it reads through ``self``."""
        if (str(method.start), "flow") in self._seen:
            return
        self._seen.add((str(method.start), "flow"))
        text = self.text[method.start : self.layout.end_of(method)]
        wanted = {"__init__", *_SELF_USE.findall(text)}
        end = self.layout.end_of(owner)
        for head in self.layout.heads:
            if owner.start < head.start < end and not head.is_class and head.name in wanted:
                self.needles.kept.add(head.start)
