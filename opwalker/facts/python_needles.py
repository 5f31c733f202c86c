"""Which places of a Python text matter, found by looking for words.

In: a text, its layout and the names that other files want looked for. Out: ``Needles``: the words to look at, the
places where they were found, and the outermost functions that must be parsed with their bodies. Callers inside the file
are followed for two levels and helpers of registration for three, by name alone: too much may be found, never too
little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from opwalker.facts.python_layout import Head, Layout
from opwalker.facts.python_light import import_statements
from opwalker.facts.python_words import occurrences, owners, word_at
from opwalker.model.python import PyImport
from opwalker.notation.python_imports import parse_import
from opwalker.notation.regex import Regex

#: How many levels of callers are followed inside a file, and how many of helpers of registration.
CALLER_LEVELS = 2
HELPER_LEVELS = 3

_RESULT = Regex(r"[\w.]*\(")
CALLED = Regex(r"[ \t]*\(")
_ASSIGNED = Regex(r"[ \t]*((?:self\.|cls\.)?[A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)[ \t]*(?::[^=\n]+)?=(?!=)")
#: A line that ends so goes on in the next one.
_OPENED = Regex(r"(?:[(\[{,=\\]|\b(?:or|and|if|else))[ \t\r]*(?:#[^\n]*)?\Z")
#: Calls that hand their first argument on.
_TRANSPARENT = ("getattr", "staticmethod")
_FARTHEST_BACK = 400
#: Uses of a ``Library`` object, and of what ``custom_op`` returns.
LIBRARY_USE = Regex(
    r"\.(?:define|impl|fallback|_register_fake|register_fake|register_kernel|register_autograd|impl_abstract)[ \t]*\("
)
DEFINED_USE = Regex(
    r"\.(?:(?:_register_fake|register_fake|register_kernel|register_autograd|impl_abstract)\b|(?:define|impl)\(\s*[\"'])"
)
#: Words without which ``DEFINED_USE`` cannot match; looking for them first is far quicker.
_DEFINED_WORDS = ("register_fake", "register_kernel", "register_autograd", "impl_abstract", ".define(", ".impl(")
_LOOKED_UP = Regex(r"\bgetattr\(\s*(getattr\(\s*)?\Z")
_OPEN_NAME = Regex(r"torch\.ops[\w.]*\s*,\s*(?![\"'])")
_SELF_USE = Regex(r"\b(?:self|cls)\.(\w+)")
#: What ``torch.library`` has that registers; the rest of it only reads or tests.
_REGISTERING = frozenset(
    {"Library", "define", "impl", "custom_op", "triton_op", "register_fake", "impl_abstract", "register_kernel"}
    | {"register_autograd"}
)
#: Imported names that are looked at before it is known what they are, which saves reading their file twice.
_REGISTRAR_LIKE = Regex(r"custom_op(?!s)")
_OPS_LIKE = Regex(r"_ops\b")
_WORD = Regex(r"\w+")


class Needles(Struct):
    """What to look at.

    ``roots`` spell ``torch.ops`` or something below it (``{"ops": "torch.ops"}``); ``names`` are bare names of
    functions and classes, ``methods`` names reached through ``self`` or a class, ``heads`` aliases of modules whose
    attributes are called, ``dotted`` the wanted attributes of a name (``""`` among them: a class here has the name as
    its base). ``registrars`` are words whose statement takes part in a registration. ``kept`` are starts of functions
    to parse whole, ``signed`` of those of which the signature is enough. ``hits`` are places of words that may be
    calls; ``registering`` says that some places must be parsed. ``implied`` are names looked for without being asked,
    spelled as they would be asked for.
    """

    roots: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    heads: set[str] = field(default_factory=set)
    dotted: dict[str, set[str]] = field(default_factory=dict)
    registrars: set[str] = field(default_factory=set)
    library_use: re.Pattern[str] | None = None
    kept: set[int] = field(default_factory=set)
    signed: set[int] = field(default_factory=set)
    wanted: set[str] = field(default_factory=set)
    hits: dict[int, str] = field(default_factory=dict)
    registering: bool = False
    implied: set[str] = field(default_factory=set)

    @property
    def anything(self) -> bool:
        """Whether there is anything to read."""
        return bool(self.hits or self.registering or self.wanted)


def getters(text: str) -> Iterator[int]:
    """The places of ``getattr`` that look up an op by a name which is not written there: a function hands out ops."""
    for at in occurrences(text, "torch.ops"):
        found = _LOOKED_UP.search(text, max(0, at - 60), at)
        if found and (found.group(1) or _OPEN_NAME.match(text, at)):
            yield found.start()


def _telling_imports(text: str) -> Iterator[PyImport]:
    """The names that imports bind to torch or to what looks like a helper of registration, wherever they stand."""
    for statement in import_statements(text):
        if "torch" in statement or "custom_op" in statement or "_ops" in statement:
            yield from parse_import(statement)


def plan(text: str, watch: Iterable[str], mentions: bool) -> Needles:
    """What to look for in a text: the watched names, and with ``mentions`` all that concerns ops by itself."""
    needles = Needles()
    if mentions:
        needles.roots["torch.ops"] = "torch.ops"
        for bound in _telling_imports(text):
            _take_import(needles, bound)
        if "torch.library." in text:
            words = {f"torch.library.{name}" for name in _REGISTERING if f"library.{name}" in text}
            needles.registrars.update(words)
    for entry in watch:
        _take_watch(needles, entry)
    if needles.dotted:
        bases = _base_words(text)
        for owner, methods in needles.dotted.items():
            if owner in bases:
                methods.add("")
    return needles


def _base_words(text: str) -> set[str]:
    """The words in the heads of all classes."""
    found: set[str] = set()
    at = text.find("class ")
    while at >= 0:
        end = text.find(":", at)
        if end < 0:
            break
        found.update(_WORD.findall(text[at : min(end, at + 400)]))
        at = text.find("class ", at + 6)
    return found


def _take_import(needles: Needles, bound: PyImport) -> None:
    whole = bound.module if bound.name is None else f"{bound.module}.{bound.name}"
    if bound.level or bound.module.split(".", 1)[0] != "torch":
        if bound.name is not None and _REGISTRAR_LIKE.search(bound.name):
            needles.registrars.add(bound.alias)
            needles.implied.add(f"reg:{bound.alias}")
        elif _OPS_LIKE.search(bound.name or bound.module):
            needles.heads.add(bound.alias)
            needles.implied.add(f"call:{bound.alias}.*")
    elif whole == "torch" and bound.alias != "torch":
        needles.roots[f"{bound.alias}.ops"] = "torch.ops"
        needles.registrars.update(f"{bound.alias}.library.{name}" for name in _REGISTERING)
    elif whole == "torch.ops" or whole.startswith("torch.ops."):
        if bound.alias != whole:
            needles.roots[bound.alias] = whole
    elif whole == "torch.library":
        if bound.alias != whole:
            needles.registrars.add(bound.alias)
    elif bound.module.startswith(("torch.library", "torch._library", "torch._custom_op")):
        if bound.name in _REGISTERING or bound.name == "*":
            needles.registrars.update(_REGISTERING if bound.name == "*" else {bound.alias})


def _take_watch(needles: Needles, entry: str) -> None:
    """``call:f``, ``call:mod.*``, ``call:Class.method``, ``reg:f``, ``reg:mod.f``, ``def:f``, ``mod:alias=module``."""
    kind, _, name = entry.partition(":")
    if kind == "mod":
        alias, _, module = name.partition("=")
        needles.roots[alias] = f"torch.ops.{module}"
    elif kind == "def":
        needles.wanted.add(name)
    elif kind == "reg":
        needles.registrars.add(name)
    elif name.endswith(".*"):
        needles.heads.add(name[:-2])
    elif "." in name:
        owner, _, method = name.rpartition(".")
        needles.dotted.setdefault(owner, set()).add(method)
    else:
        needles.names.add(name)


def may_matter(text: str, needles: Needles) -> bool:
    """Whether any of the needles stands in the text otherwise than in an import; cheap, and may be wrong one way."""
    if needles.wanted or any(word in text for word in needles.registrars):
        return True
    if any(root in text for root in needles.roots):
        return True
    if any(f"{name}(" in text or f"{name} (" in text for name in needles.names):
        return True
    if any(True for head in needles.heads for _ in owners(text, head)):
        return True
    for owner, methods in needles.dotted.items():
        if "" in methods or any(word_at(text, at + len(owner) + 1) in methods for at in owners(text, owner)):
            return True
    return False


class Finder:
    """Finds the needles in one text."""

    def __init__(self, layout: Layout, needles: Needles) -> None:
        self.layout = layout
        self.text = layout.text
        self.needles = needles
        #: How many levels a name was followed; one that is met again with more of them is followed again.
        self._followed: dict[tuple[str, str], int] = {}

    def find(self) -> None:
        """Fill in all places, callers and helpers inside the file followed."""
        needles = self.needles
        for root in list(needles.roots):
            for at in occurrences(self.text, root):
                self._used(at, root, CALLER_LEVELS)
                self._aliased(at)
        for head in needles.heads | set(needles.dotted):
            methods = needles.dotted.get(head)
            for at in owners(self.text, head):
                if head in needles.heads or word_at(self.text, at + len(head) + 1) in (methods or ()):
                    self._used(at, head, CALLER_LEVELS)
        for name in list(needles.names):
            self._callers(name, False, CALLER_LEVELS + 1)
        for methods in needles.dotted.values():
            if "" in methods:
                for name in methods - {""}:
                    self._callers(name, True, CALLER_LEVELS + 1)
        self._registrations()
        for name in needles.wanted:
            needles.signed.update(head.start for head in self.layout.named(name))

    def _used(self, place: int, word: str, levels: int, parse: bool = False) -> None:
        """Something at ``place`` matters: keep the function around it, and look for its callers."""
        needles = self.needles
        if parse:
            needles.registering = True
        else:
            needles.hits[place] = word
        around = self.layout.around(place)
        functions = [head for head in around if not head.is_class]
        if not functions:
            decorated = self.layout.decorated(place) if parse else None
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
            elif not function.name.startswith("__"):
                self._callers(function.name, True, levels)
                if function.name == "forward":
                    self._callers("apply", True, levels)
        else:
            self._callers(function.name, False, levels)

    def _callers(self, name: str, attribute: bool, levels: int) -> None:
        key = (name, "method" if attribute else "name")
        if self._followed.get(key, -1) >= levels:
            return
        self._followed[key] = levels
        (self.needles.methods if attribute else self.needles.names).add(name)
        for at in occurrences(self.text, name, attribute):
            if (self.text[at - 1 : at] == ".") != attribute:
                continue
            if CALLED.match(self.text, at + len(name)) and not self.text.endswith(("def ", "class "), 0, at):
                self._used(at, f".{name}" if attribute else name, levels - 1)

    def _aliased(self, place: int) -> None:
        """An op that is bound to a name outside of functions, or to ``self``: its uses matter too."""
        if _RESULT.match(self.text, place):
            return
        found = _ASSIGNED.match(self.text, self._statement_line(place))
        if found is None:
            return
        local = any(not head.is_class for head in self.layout.around(place))
        for name in found.group(1).split(","):
            owner, _, attribute = name.strip().rpartition(".")
            if owner or not local:
                for at in occurrences(self.text, attribute, True):
                    self._used(at, "", CALLER_LEVELS)

    def _statement_line(self, place: int, through_calls: bool = False) -> int:
        """The start of the line on which the statement around ``place`` begins.

        ``place`` itself where it is an argument of a call that does not hand it on, unless ``through_calls``.
        """
        text, depth = self.text, 0
        for at in range(place - 1, max(-1, place - _FARTHEST_BACK), -1):
            character = text[at]
            if character in ")]}":
                depth += 1
            elif character in "([{" and depth:
                depth -= 1
            elif character in "([{":
                if not through_calls and text[at - 1 : at].isalnum() and not text.endswith(_TRANSPARENT, 0, at):
                    return place
            elif character == "\n" and not depth and _OPENED.search(text, max(0, at - 200), at) is None:
                return at + 1
        return text.rfind("\n", 0, place) + 1

    def _registrations(self) -> None:
        """The words of registration and the helpers that they make."""
        needles, text = self.needles, self.text
        if needles.registrars or needles.roots:
            if "Library(" in text:
                needles.library_use = LIBRARY_USE
            elif needles.registrars and any(word in text for word in _DEFINED_WORDS):
                needles.library_use = DEFINED_USE
        if needles.library_use is not None:
            for found in needles.library_use.finditer(text):
                self._registers(found.start(), HELPER_LEVELS)
        if needles.roots:
            for at in getters(text):
                self._registers(at, HELPER_LEVELS)
        for word in list(needles.registrars):
            for at in occurrences(text, word):
                self._registers(at, HELPER_LEVELS)

    def _registers(self, place: int, levels: int) -> None:
        needles = self.needles
        line = self.text.rfind("\n", 0, place) + 1
        if self.text[line:place].lstrip().startswith(("from ", "import ")):
            return
        self._used(place, "", 0, parse=True)
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
            found = _ASSIGNED.match(self.text, self._statement_line(place, through_calls=True))
            word = word_at(self.text, place)
            result = word != "Library" and CALLED.match(self.text, place + len(word)) is not None
            decorated = self.layout.decorated(place)
            if decorated is not None:
                self._callers(decorated.name, False, CALLER_LEVELS + 1)
            elif found and result:
                self._result(found.group(1), bool(around))
            elif found and "," not in found.group(1) and "." not in found.group(1):
                name = found.group(1)
        if name is None or self._followed.get((name, "registrar"), 0) >= levels:
            return
        self._followed[name, "registrar"] = levels
        needles.registrars.add(name)
        for at in occurrences(self.text, name):
            if not self.text.endswith(("def ", "class "), 0, at):
                self._registers(at, levels - 1)

    def _result(self, targets: str, in_class: bool) -> None:
        """What a helper of registration returns is bound to names: calls of them may be calls of an op."""
        for target in targets.split(","):
            owner, _, name = target.strip().rpartition(".")
            self._callers(name, bool(owner) or in_class, CALLER_LEVELS + 1)

    def _keep_method_flow(self, method: Head, owner: Head) -> None:
        """Keep what a registering method relies on: the constructor and the methods it reads through ``self``."""
        if (str(method.start), "flow") in self._followed:
            return
        self._followed[str(method.start), "flow"] = 1
        text = self.text[method.start : self.layout.end_of(method)]
        wanted = {"__init__", *_SELF_USE.findall(text)}
        end = self.layout.end_of(owner)
        for head in self.layout.heads:
            if owner.start < head.start < end and not head.is_class and head.name in wanted:
                self.needles.kept.add(head.start)
