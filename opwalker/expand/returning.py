"""Which functions can return a kernel: asked before a call in the place of a kernel is entered.

In: a function of the index. Out: yes or no, on the generous side. Which kernels, and with which arguments, is not said.
"""

from __future__ import annotations

from collections import deque

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.giving import NUMBER, PLAIN_RETURNS
from opwalker.expand.resolve import Candidate, Resolver
from opwalker.link.index import Index
from opwalker.model.cpp import Variable
from opwalker.notation.regex import Regex

_WORD = Regex(r"[A-Za-z_]\w*")


#: A function in a unit, or the name of a variable outside functions.
_Node = tuple[Candidate, str] | str


class Returning:
    """Tells the functions that can return a kernel from the many that cannot."""

    def __init__(self, index: Index, resolver: Resolver, bodies: Bodies) -> None:
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._giving = bodies.giving(index)
        self._known: dict[tuple | str, bool] = {}
        self._read: dict[tuple | str, tuple[bool, list[_Node]]] = {}
        #: By unit and name of a variable outside functions, whether it can hold a kernel.
        self._holds: dict[str, dict[str, bool]] = {}
        #: By the name of functions and unit, whether any of them can return a kernel.
        self._any: dict[tuple[str, str], bool] = {}

    def may_return(self, candidate: Candidate, root: str) -> bool:
        """Whether a function can return a kernel: it names one, or returns what a function gives that can."""
        if not self._may(candidate, root):
            return False
        first = (candidate, root)
        held = self._known.get(_key(first))
        return self._search(first) if held is None else held

    def may_hold(self, name: str, root: str) -> bool:
        """Whether the initialiser of a variable outside functions that bears a simple name can name a kernel, or a
        function that returns one in the unit that begins at ``root``: itself, or through other variables."""
        known = self._holds.setdefault(root, {})
        if name not in known:
            seen, pending, found = {name}, deque([name]), False
            while pending and not found:
                found, further = self._held_by(pending.popleft(), root)
                pending.extend(other for other in sorted(further - seen) if known.get(other) is not False)
                seen |= further
            # Of a search that ends in nothing, nothing that was met on the way holds a kernel either.
            known.update({name: True} if found else dict.fromkeys(seen, False))
        return known[name]

    def _held_by(self, name: str, root: str) -> tuple[bool, set[str]]:
        """Whether an initialiser of a variable of the name can give a kernel, and the variables that it names."""
        index = self._index
        further: set[str] = set()
        for path, variable in index.entries(name, ("variable",), lambda facts: facts.variables):
            if not variable.value:
                continue
            inside = self._words_of(path, variable)
            if not index.names_of_kind("kernel").isdisjoint(inside):
                return True, further
            further |= inside & index.names_of_kind("variable")
            if any(self.any_may_return(other, root) for other in sorted(inside & index.names_of_kind("function"))):
                return True, further
        return False, further

    def any_may_return(self, name: str, root: str) -> bool:
        """Whether any function of a simple name can return a kernel, called in the unit that begins at ``root``."""
        held = self._any.get((name, root))
        if held is None:
            closure = self._index.closure(root)
            found = [Candidate(path, function) for path, function in self._index.functions(name) if function.body_end]
            units = [(one, root if one.path in closure else one.path) for one in found]
            held = self._any[name, root] = any(self.may_return(*one) for one in units)
        return held

    def _words_of(self, path: str, variable: Variable) -> set[str]:
        """The words of a variable's initialiser, its macros expanded."""
        text = variable.value or ""
        if not self._index.names_of_kind("macro").isdisjoint(_WORD.findall(text)):
            text = self._bodies.expand(path, text, variable.offset)
        return set(_WORD.findall(text))

    def _may(self, candidate: Candidate, root: str) -> bool:
        function = candidate.function
        if function.return_type in PLAIN_RETURNS or ("device" in function.flags and "host" not in function.flags):
            return False
        return self._giving.gives(candidate, root)

    def _search(self, first: _Node) -> bool:
        """Whether a kernel is named by a function, or by anything that it returns what it gets from; each is read
        once, the nearest first."""
        came: dict[tuple | str, tuple | str | None] = {_key(first): None}
        pending = deque([first])
        while pending:
            node = pending.popleft()
            key: tuple | str | None = _key(node)
            names_kernel, further = self._read_node(node)
            if names_kernel or any(self._known.get(_key(other)) for other in further):
                while key is not None:
                    self._known[key] = True
                    key = came[key]
                return True
            for other in further:
                if _key(other) not in came and self._known.get(_key(other)) is None:
                    came[_key(other)] = key
                    pending.append(other)
        self._known.update(dict.fromkeys(came, False))
        return False

    def _read_node(self, node: _Node) -> tuple[bool, list[_Node]]:
        """Whether something names a kernel, and what else it may get one from."""
        key = _key(node)
        if key not in self._read:
            self._read[key] = self._of_variable(node) if isinstance(node, str) else self._of_function(*node)
        return self._read[key]

    def _of_function(self, candidate: Candidate, root: str) -> tuple[bool, list[_Node]]:
        body = self._bodies.of(candidate, root)
        if self._giving.names_kernel(body.expanded.full, root, candidate.function.parameters):
            return True, []
        if self._giving.runs_on_device(candidate.function):
            return False, []  # what device code calls gives no kernels
        returned = _returned_words(body)
        out: list[_Node] = sorted(returned & self._index.names_of_kind("variable"))
        for name in sorted(returned & self._index.names_of_kind("function")):
            found = self._resolver.function(name, body.context, None, kernel=False).candidates
            # A member is found through its class, which only the call tells.
            seen = self._giving.definitions(name, root)
            members = [Candidate(path, function) for path, function, _ in seen if function.scope]
            closure = self._index.closure(root)
            units = ((c, root if c.path in closure else c.path) for c in (*found, *members))
            out += [(c, unit) for c, unit in units if self._may(c, unit)]
        return False, out

    def _of_variable(self, name: str) -> tuple[bool, list[_Node]]:
        """A variable outside functions may be initialised with kernels: it names one, a table of them or a function
        that returns them, its macros expanded."""
        index = self._index
        out: list[_Node] = []
        for path, variable in index.entries(name, ("variable",), lambda facts: facts.variables):
            if not variable.value or NUMBER.search(variable.type):
                continue
            inside = self._words_of(path, variable)
            if not index.names_of_kind("kernel").isdisjoint(inside):
                return True, []
            out += sorted(inside & index.names_of_kind("variable"))
            for other in sorted(inside & index.names_of_kind("function")):
                found = [Candidate(p, f) for p, f in index.functions(other) if f.body_end]
                out += [(one, one.path) for one in found if self._may(one, one.path)]
        return False, out


def _key(node: _Node) -> tuple | str:
    return node if isinstance(node, str) else (*node[0].key, node[1])


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
