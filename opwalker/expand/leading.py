"""Which functions can lead to a launch at all, by their words: the others need not be told apart by what they bind.

In: definitions. Out: yes or no. A function leads to a launch if its text names a kernel or a launch, or a function,
macro or class that does; one that calls what it is given may always. Names are not resolved: a yes may be wrong, a no
is not, as far as the tree's own text goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from functools import cached_property, reduce
from operator import or_

from opwalker.expand.files import Files
from opwalker.expand.resolve import Candidate
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terminals import KERNEL_QUERIES, LAUNCH_CALLS
from opwalker.link.index import Index
from opwalker.model.cpp import Function
from opwalker.notation.regex import Regex, compiled

_WORD = Regex(r"[A-Za-z_]\w*")
#: A name that is called where it stands, and what is given to a function that calls what it is given.
_CALLED = Regex(r"\b(\w+)(?=\s*(?:\.\.\.)?\s*\)?\s*(?:\(|\.\s*(?:template\s+)?operator))")
#: The last template argument of what is called, and the name that the arguments stand behind.
_GIVEN = Regex(r"\b(\w+)(?=\s*(?:\.\.\.)?\s*>\s*(?:\(|\.\s*(?:template\s+)?operator))")
_CALLEE = Regex(r"\b(\w+)\s*<(?:[^<>;(){}]*,)?\s*\Z")
#: Characters before a last template argument in which the others are looked for.
_NEAR = 300
_INVOKED = Regex(r"invoke\s*\(([^;]*)")
#: A parameter's type that may be of a function.
_CALLABLE = Regex(r"\bauto\b|\(|function")
_NAME = Regex(r"\w+")
_LAUNCH = "<<<"
_APIS = frozenset(LAUNCH_CALLS)


class Leading:
    """Asks what leads to a launch, in one tree."""

    def __init__(self, index: Index, files: Files) -> None:
        self._index = index
        self._files = files
        self._words: dict[tuple[str, int], frozenset[str]] = {}
        self._names: dict[str, frozenset[str]] = {}
        #: Names that were found to lead to a launch, and those that lead to none.
        self._leads: set[str] = set()
        self._leads_nowhere: set[str] = set()
        self._candidates: dict[tuple[str, int], bool] = {}
        self._calling: dict[str, bool] = {}

    def leads(self, candidate: Candidate) -> bool:
        """Whether a function can lead to a launch."""
        held = self._candidates.get(candidate.key)
        if held is None:
            words = self._body(candidate.path, candidate.function)
            held = self._calls_what_it_gets(candidate) or self._is_start(words) or self._any(words)
            self._candidates[candidate.key] = held
        return held

    # -- words ------------------------------------------------------------------------------------------------------

    def _body(self, path: str, function: Function) -> frozenset[str]:
        """The words of a function's head and body; ``<<<`` among them where it launches."""
        key = (path, function.offset)
        found = self._words.get(key)
        if found is None:
            text = self._files.plain(path, function.body_start, function.body_end)
            words = set(_WORD.findall(text))
            for head in (function.return_type, function.template or "", *(p.type for p in function.parameters)):
                words.update(_WORD.findall(head))
            if _LAUNCH in text:
                words.add(_LAUNCH)
            found = self._words[key] = frozenset(words)
        return found

    def _is_start(self, words: frozenset[str]) -> bool:
        if _LAUNCH in words or not self._index.names_of_kind("kernel").isdisjoint(words):
            return True
        if not _APIS.isdisjoint(words):
            return True
        return any(word[:2] in ("cu", "hi") and KERNEL_QUERIES.match(word) for word in words)

    def _of_name(self, name: str) -> frozenset[str]:
        """The words of everything that a name can mean: functions, macros, the functions of a class."""
        found = self._names.get(name)
        if found is None:
            words: set[str] = set()
            if name in self._index.names_of_kind("function"):
                for path, function in self._index.functions(name):
                    if function.body_end:
                        words |= self._body(path, function)
            if name in self._index.names_of_kind("macro"):
                for _, event in self._index.entries(name, ("macro",), lambda facts: facts.macros):
                    words.update(_WORD.findall(event.body or ""))
                    if _LAUNCH in (event.body or ""):
                        words.add(_LAUNCH)
            if name in self._index.names_of_kind("class"):
                words |= self._of_class(name)
            if name in self._index.names_of_kind("alias"):
                for _, alias in self._index.entries(name, ("alias",), lambda facts: facts.aliases):
                    words.update(_WORD.findall(alias.target))
            if name in self._index.names_of_kind("variable"):
                for _, variable in self._index.entries(name, ("variable",), lambda facts: facts.variables):
                    words.update(_WORD.findall(f"{variable.type} {variable.value or ''}"))
            words.discard(name)
            found = self._names[name] = frozenset(words)
        return found

    def _of_class(self, name: str) -> set[str]:
        words: set[str] = set()
        for path, made in self._index.entries(name, ("class",), lambda facts: facts.classes):
            for base in made.bases:
                words.update(_WORD.findall(base))
            if not made.body_end:
                continue
            text = self._files.plain(path, made.body_start, made.body_end)
            words.update(_WORD.findall(text))
            if _LAUNCH in text:
                words.add(_LAUNCH)
        return words

    # -- following --------------------------------------------------------------------------------------------------

    def _any(self, words: frozenset[str]) -> bool:
        """Whether any of some words leads to a launch: a search over names, each looked at once, the nearest first.

        Most searches end at a name that an earlier one has found: names of few letters lead nearly anywhere.
        """
        if not self._leads.isdisjoint(words):
            return True
        came: dict[str, str] = dict.fromkeys((words & self._all_names) - self._leads_nowhere, "")
        pending = deque(came)
        while pending:
            word = pending.popleft()
            further = self._of_name(word)
            if not self._leads.isdisjoint(further) or self._is_start(further):
                while word:
                    self._leads.add(word)
                    word = came[word]
                return True
            for other in (further & self._all_names) - self._leads_nowhere:
                if other not in came:
                    came[other] = word
                    pending.append(other)
        self._leads_nowhere.update(came)
        return False

    @cached_property
    def _all_names(self) -> Set[str]:
        kinds = ("function", "macro", "class", "alias", "variable")
        return reduce(or_, (self._index.names_of_kind(kind) for kind in kinds))

    def _calls_what_it_gets(self, candidate: Candidate) -> bool:
        """Whether a function calls a parameter, or something of a type that it is a template of."""
        function = candidate.function
        heads = [function.template, *(c.template for c in self._around(candidate))]
        held = [p for head in heads for p in template_parameters(head) if p.name]
        types = [p.name for p in held if p.type is None or p.is_template]
        callable_ = any(_CALLABLE.search(p.type) for p in function.parameters)
        named = [p.name for p in function.parameters if p.name] if types or callable_ else []
        named += [p.name for p in held if p.type is not None and _CALLABLE.search(p.type)]
        if not types and not named:
            return False
        text = self._files.plain(candidate.path, function.body_start, function.body_end)
        for name in types:
            if compiled(rf"\b{name}\s*(?:<[^;]*>)?\s*(?:\{{\s*\}}|\(\s*\))\s*\(").search(text):
                return True
            named += compiled(rf"\b{name}\b\s*(?:<[^;]*>)?[\s&]+(\w+)\s*[;({{=]").findall(text)
        names = frozenset(named)
        if any(called[1] in names for called in _CALLED.finditer(text)):
            return True
        if any(self._gives(text, given.start()) for given in _GIVEN.finditer(text) if given[1] in names):
            return True
        return any(not names.isdisjoint(_NAME.findall(given[1])) for given in _INVOKED.finditer(text))

    def _gives(self, text: str, at: int) -> bool:
        """Whether the function template that is given the argument at an offset may call it."""
        callee = _CALLEE.search(text[max(0, at - _NEAR) : at])
        return callee is None or self._may_call(callee[1])

    def _may_call(self, name: str) -> bool:
        """Whether a function of a name calls what its template is given; what the tree does not define may."""
        if name not in self._calling:
            self._calling[name] = True  # for one that leads back to itself
            made = [Candidate(path, function) for path, function in self._index.functions(name) if function.body_end]
            self._calling[name] = not made or any(self._calls_what_it_gets(candidate) for candidate in made)
        return self._calling[name]

    def _around(self, candidate: Candidate) -> list:
        facts = self._index.declared(candidate.path)
        at = candidate.function.offset
        return [c for c in (facts.classes if facts else ()) if c.body_start < at < c.body_end]
