"""Which functions can return a kernel: asked before a call in the place of a kernel is entered.

In: a function of the index. Out: yes or no, on the generous side. Which kernels, and with which arguments, is not said.
"""

from __future__ import annotations

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.giving import NUMBER, PLAIN_RETURNS
from opwalker.expand.resolve import Candidate, Resolver
from opwalker.link.index import Index
from opwalker.model.cpp import Variable
from opwalker.notation.regex import Regex

_WORD = Regex(r"[A-Za-z_]\w*")


class Returning:
    """Tells the functions that can return a kernel from the many that cannot."""

    def __init__(self, index: Index, resolver: Resolver, bodies: Bodies) -> None:
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._giving = bodies.giving(index)
        self._known: dict[tuple, bool] = {}
        self._holding: dict[str, bool] = {}

    def may_return(self, candidate: Candidate, root: str) -> bool:
        """Whether a function can return a kernel: it names one, or returns what a function gives that can."""
        function = candidate.function
        if function.return_type in PLAIN_RETURNS or ("device" in function.flags and "host" not in function.flags):
            return False
        key = (*candidate.key, root)
        held = self._known.get(key)
        if held is None and not self._giving.gives(candidate):
            return False
        if held is None:
            self._known[key] = False  # one that only returns itself
            held = self._known[key] = self._returns_kernel(candidate, root)
        return held

    def _returns_kernel(self, candidate: Candidate, root: str) -> bool:
        body = self._bodies.of(candidate, root)
        if not self._index.names_of_kind("kernel").isdisjoint(_WORD.findall(body.expanded.full)):
            return True
        if self._giving.runs_on_device(candidate.function):
            return False  # what device code calls gives no kernels
        returned = _returned_words(body)
        if any(self._may_hold(name) for name in sorted(returned & self._index.names_of_kind("variable"))):
            return True
        for name in sorted(returned & self._index.names_of_kind("function")):
            found = self._resolver.function(name, body.context, None, kernel=False).candidates
            # A member is found through its class, which only the call tells.
            members = [Candidate(p, f) for p, f in self._index.functions(name) if f.body_end and f.scope]
            for other in (*found, *members):
                near = other.path in self._index.closure(root)
                if self.may_return(other, root if near else other.path):
                    return True
        return False

    def _may_hold(self, name: str) -> bool:
        """Whether a variable outside functions may be initialised with kernels: it names one, a table of them or a
        function that returns them, its macros expanded."""
        held = self._holding.get(name)
        if held is None:
            self._holding[name] = False  # one that only names itself
            entries = self._index.entries(name, ("variable",), lambda facts: facts.variables)
            held = self._holding[name] = any(
                self._holds_kernel(path, v) for path, v in entries if v.value and not NUMBER.search(v.type)
            )
        return held

    def _holds_kernel(self, path: str, variable: Variable) -> bool:
        index, text = self._index, variable.value or ""
        if not index.names_of_kind("macro").isdisjoint(_WORD.findall(text)):
            text = self._bodies.expand(path, text, variable.offset)
        inside = set(_WORD.findall(text))
        if not index.names_of_kind("kernel").isdisjoint(inside):
            return True
        if any(self._may_hold(name) for name in sorted(inside & index.names_of_kind("variable"))):
            return True
        for name in sorted(inside & index.names_of_kind("function")):
            found = [Candidate(p, f) for p, f in index.functions(name) if f.body_end]
            if any(self.may_return(one, one.path) for one in found):
                return True
        return False


def _returned_words(body: Body) -> set[str]:
    """The words of what a body returns, and of what the variables among them are given."""
    words: set[str] = set()
    pending = {word for span in body.facts.returns for word in _WORD.findall(body.text(span))}
    while pending:
        word = pending.pop()
        words.add(word)
        spans = [held.value for held in body.locals.get(word, ()) if held.value is not None]
        spans += [assign.value for assign in body.assigns.get(word, ())]
        pending |= {other for span in spans for other in _WORD.findall(body.text(span))} - words
    return words
