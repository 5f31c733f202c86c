"""Functions that are stored under a key by one macro and called through the key by another.

In: uses of macros at namespace level that come to ``OBJECT.store(…, function)``. Out: by the text of OBJECT, the
functions that any such use stores there. An expression without side effects that is spelt the same is taken for the
same object, as ``Registry<decltype(&key), key>::instance()`` is: so whoever is handed it may call what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from opwalker.expand.bodies import Bodies
from opwalker.expand.resolve import Candidate, Context, Resolver
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.link.index import Index
from opwalker.model.walk import PathStep
from opwalker.notation.regex import Regex

_STORES = Regex(r"(?:\.|->)\s*([A-Za-z_]\w*)\s*\(")
_OBJECT = Regex(r"[\w:]+\s*<.*>\s*::\s*\w+\s*\(\s*\)\Z|[\w:]*::\s*\w+\s*\(\s*\)\Z", re.DOTALL)
_CALLED = Regex(r"::\s*\w+\s*\(\s*\)\Z")
_FUNCTION = Regex(r"\s*&?\s*((?:::)?[A-Za-z_][\w:]*)\s*\Z")
#: A macro that may put a function into an object, and the name of such an object.
_FILLS = Regex(r"(?i)stub|dispatch|register|fill|bind|install|hook|\bset_")
_STUB = Regex(r"_(?:stub|hook|fn|impl|dispatch)\Z")
#: What may stand before an object in a statement.
_BEGINS = Regex(r"[;{}=(,]")


class Registries:
    """The stores of one tree, read when first asked for."""

    def __init__(
        self,
        index: Index,
        resolver: Resolver,
        bodies: Bodies,
        modules_of: Callable[[str], Sequence[str]] = lambda path: (),
    ) -> None:
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._modules_of = modules_of

    def stored(self, text: str, root: str) -> tuple[Candidate, ...]:
        """The functions that are stored in the object that an expression gives, in the module that the unit at ``root``
        is built into where that is known; none where it is no such object."""
        if not _names_object(text):
            return ()
        found = self._stores.get("".join(text.split()), {})
        modules = set(self._modules_of(root)) if found else set()
        linked = [c for (path, _), c in found.items() if not modules.isdisjoint(self._modules_of(path))]
        return tuple(dict.fromkeys(linked or found.values()))

    def knows(self, text: str) -> bool:
        """Whether anything is stored in the object that an expression gives."""
        return bool(_names_object(text) and self._stores.get("".join(text.split())))

    @cached_property
    def _stores(self) -> dict[str, dict[tuple[str, tuple], Candidate]]:
        """By object, the functions; each with the file that stores it."""
        out: dict[str, dict[tuple[str, tuple], Candidate]] = {}
        uses, macros = self._index.names_of_kind("invocation"), self._index.names_of_kind("macro")
        for name in sorted(uses & macros):
            if not self._may_store(name):
                continue
            for path in self._index.store.paths_of(name, ("invocation",)):
                facts = self._index.facts(path)
                for use in facts.invocations if facts else ():
                    if use.name == name and use.arguments is not None and not use.body_end:
                        code = self._bodies.files.view(path).blanked.code[use.offset : use.end]
                        text = self._bodies.expand(path, code, use.offset)
                        for place, function in _stored_in(text):
                            self._take(out, place, function, Context(path, path, use.scope))
        return out

    def filled(self, name: str) -> tuple[tuple[Candidate, PathStep], ...]:
        """The functions that a macro at namespace level puts into an object that is called like a function, as
        ``REGISTER_DISPATCH(name, &function)`` does, whatever it is called; each with the place of the macro."""
        if not (_STUB.search(name) or name in self._index.names_of_kind("variable")):
            return ()
        return self._fills.get(name.rsplit("::", 1)[-1], ())

    @cached_property
    def _fills(self) -> dict[str, tuple[tuple[Candidate, PathStep], ...]]:
        """By the object's name, the functions."""
        out: dict[str, list[tuple[Candidate, PathStep]]] = {}
        for name in sorted(filter(_FILLS.search, self._index.names_of_kind("invocation"))):
            for path in self._index.store.paths_of(name, ("invocation",)):
                facts = self._index.facts(path)
                for use in facts.invocations if facts else ():
                    if use.name != name or len(use.arguments or ()) < 2 or use.body_end:
                        continue
                    place = use.arguments[0].strip()
                    for function in filter(None, map(_FUNCTION.match, use.arguments[1:])):
                        found: dict[str, dict[tuple[str, tuple], Candidate]] = {}
                        self._take(found, place, function[1], Context(path, path, use.scope))
                        step = PathStep(place, path, use.line)
                        out.setdefault(place, []).extend((one, step) for one in found.get(place, {}).values())
        return {place: tuple(dict.fromkeys(found)) for place, found in out.items()}

    def _may_store(self, name: str) -> bool:
        """Whether any definition of a macro calls a method with one of the macro's parameters."""
        for _, event in self._index.entries(name, ("macro",), lambda facts: facts.macros):
            body = event.body or ""
            for match in _STORES.finditer(body) if event.parameters else ():
                close = match_bracket(body, match.end() - 1)
                words = set(re.findall(r"\w+", body[match.end() : close])) if close > 0 else set()
                if not words.isdisjoint(event.parameters):
                    return True
        return False

    def _take(self, out: dict, place: str, function: str, context: Context) -> None:
        if function.split("::")[-1] in self._index.names_of_kind("function"):
            for candidate in self._resolver.function(function, context, None, kernel=False).candidates:
                out.setdefault(place, {})[context.path, candidate.key] = candidate


def _names_object(text: str) -> bool:
    """As ``_OBJECT`` finds it anywhere in a text: both of its kinds end so, and whatever ends so is of the second."""
    return text.endswith(")") and _CALLED.match(text, max(0, text.rfind("::"))) is not None


def _stored_in(text: str) -> Iterator[tuple[str, str]]:
    """``(object, function)`` of the method calls in a text that are given a name and nothing else."""
    for match in _STORES.finditer(text):
        close = match_bracket(text, match.end() - 1)
        receiver = _receiver(text, match.start())
        if close < 0 or not _OBJECT.search(receiver):
            continue
        for start, end in split_commas(text, match.end(), close - 1):
            named = _FUNCTION.match(text[start:end])
            if named is not None:
                yield "".join(receiver.split()), named.group(1)


def _receiver(text: str, end: int) -> str:
    """The object before a member access: back to where its statement or argument begins, over brackets."""
    depth = 0
    for at in range(end - 1, -1, -1):
        if text[at] in ")]>":
            depth += 1
        elif text[at] in "([<":
            depth -= 1
            if depth < 0:
                return text[at + 1 : end].strip()
        elif not depth and _BEGINS.match(text[at]):
            return text[at + 1 : end].strip()
    return text[:end].strip()
