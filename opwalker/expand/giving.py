"""Which functions and variables can give a kernel by what they write: the others need not be read.

In: a definition. Out: yes or no. Words stand for all that bears their name, macros for all that they may be made to
say: a yes may be wrong, a no is not, as far as the tree's own text goes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence, Set

from opwalker.expand.files import Files
from opwalker.expand.resolve import Candidate, is_header, is_internal
from opwalker.link.index import Index
from opwalker.model.cpp import Function, Parameter
from opwalker.notation.regex import Regex

_WORD = Regex(r"[A-Za-z_]\w*")
_TOKEN = Regex(r"\w+")
#: What stands before the last sign of an assignment, and names that are declared with a value in brackets.
_ASSIGNED = Regex(r"([\s\S]*)(?<![=!<>])=(?!=)")
_DECLARED = Regex(r"[\w>*&\]](?:\s+|(?<=[*&>])\s*)([A-Za-z_]\w*)\s*[({]")
PLAIN_RETURNS = frozenset(
    "void bool int float double size_t int64_t uint32_t dim3 cudaStream_t std::string torch::Tensor at::Tensor".split()
)
#: The type of a variable that is a number.
NUMBER = Regex(r"\b(?:bool|char|short|int|long|unsigned|float|double|size_t|u?int\d+_t)(?:\s+const)?\s*\Z")
#: What a name stands behind, and before, where it is declared; and words that values stand behind.
_TYPED = Regex(r"(\w+|>)(?:\s*[&*]+\s*|\s+)\Z")
_DECLARES = Regex(r"\s*[=;({\[,)]")
_LONGEST_TYPE = 80
_BEFORE_VALUES = frozenset(
    "return co_return co_yield throw new delete else do case goto sizeof operator and or not typename".split()
)
#: Stand among words before a kernel's name, alone for whatever may be one, and for words that a macro puts together.
_KERNEL, _PASTED = "<<<", "##"

#: A name in the unit of a file.
_Node = tuple[str, str]
#: A function, its file, and the unit that it is read in.
Definition = tuple[str, Function, str]


class Giving:
    """Asks what can give a kernel, in one tree."""

    def __init__(self, index: Index, files: Files) -> None:
        self._index = index
        self._files = files
        self._forget()

    def _forget(self) -> None:
        self._changes = self._index.changes
        self._said: dict[tuple[str, int], frozenset[str]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._macros: dict[str, frozenset[str]] = {}
        self._marks: dict[str, bool] = {}
        self._beginnings: dict[str, frozenset[str]] = {}
        self._kernels: dict[tuple[str, str], bool] = {}
        self._seen: dict[tuple[str, str], list[Definition]] = {}
        #: Names in units that were found to give a kernel, and those that give none.
        self._gives: set[_Node] = set()
        self._gives_nothing: set[_Node] = set()

    def gives(self, candidate: Candidate, root: str) -> bool:
        """Whether a function can return a kernel, in the unit that begins at ``root``."""
        if self._changes != self._index.changes:
            self._forget()
        return self._any(self._in_unit(self._of_function(candidate.path, candidate.function), root))

    def _any(self, nodes: Set[_Node]) -> bool:
        """Whether any of some names gives a kernel: a search over names, each looked at once."""
        if not self._gives.isdisjoint(nodes):
            return True
        came: dict[_Node, _Node | None] = {}
        pending: deque[_Node] = deque()

        def enter(nodes: Set[_Node], by: _Node | None) -> bool:
            for node in nodes:
                if node[0].startswith(_KERNEL) or node in self._gives:
                    return True
                if node not in came and node not in self._gives_nothing:
                    came[node] = by
                    pending.append(node)
            return False

        found = enter(nodes, None)
        while pending and not found:
            node = pending.popleft()
            if enter(self._of_name(*node), node):
                found = True
                way: _Node | None = node
                while way is not None:
                    self._gives.add(way)
                    way = came[way]
        if not found:
            self._gives_nothing.update(came)
        return found

    def _in_unit(self, words: frozenset[str], root: str) -> set[_Node]:
        """Names as a unit sees them, without kernels that it does not see."""
        at = len(_KERNEL)
        return {(word, root) for word in words if not word.startswith(_KERNEL) or self._sees_kernel(word[at:], root)}

    def _sees_kernel(self, name: str, root: str) -> bool:
        held = self._kernels.get((name, root))
        if held is None:
            found = self.definitions(name, root) if name else ()
            held = not name or any("global" in function.flags for _, function, _ in found)
            self._kernels[name, root] = held
        return held

    def definitions(self, name: str, root: str) -> list[Definition]:
        """The functions of a name that a unit may mean, each with the unit that it is read in: those that it includes,
        and those of other units that something in sight declares."""
        found = self._seen.get((name, root))
        if found is None:
            closure = self._index.closure(root)
            everything = self._index.functions(name)
            declared = any(path in closure for path, _ in everything)
            found = self._seen[name, root] = []
            for path, function in everything:
                if not function.body_end:
                    continue
                if path in closure:
                    found.append((path, function, root))
                elif not is_header(path) and not is_internal(function):
                    if declared or self._sees_class(function, closure):
                        found.append((path, function, path))
        return found

    def _sees_class(self, function: Function, closure: Set[str]) -> bool:
        if not function.scope:
            return False
        classes = self._index.entries(function.scope[-1], ("class",), lambda facts: facts.classes)
        return any(path in closure for path, _ in classes)

    def _of_name(self, name: str, root: str) -> set[_Node]:
        """What everything of a name gives: functions, and variables outside functions."""
        found: set[_Node] = set()
        if name in self._index.names_of_kind("function"):
            for path, function, unit in self.definitions(name, root):
                found |= self._in_unit(self._of_function(path, function), unit)
        if name in self._index.names_of_kind("variable"):
            found |= self._in_unit(self._of_variable(name), root)
        return found

    def _of_variable(self, name: str) -> frozenset[str]:
        words = self._names.get(name)
        if words is None:
            held = self._index.entries(name, ("variable",), lambda facts: facts.variables)
            values = [one.value for _, one in held if one.value and not NUMBER.search(one.type)]
            words = self._names[name] = frozenset().union(*(self._told(value, value) for value in values))
        return words

    def _of_function(self, path: str, function: Function) -> frozenset[str]:
        """The names in what a function returns, and in what its variables among them are given."""
        if function.return_type in PLAIN_RETURNS or ("device" in function.flags and "host" not in function.flags):
            return frozenset()
        key = (path, function.offset)
        found = self._said.get(key)
        if found is None:
            begin, end = function.body_start, function.body_end
            if any(begin < offset < end for offset, _ in self._index.includes(path)):
                found = frozenset((_KERNEL,))  # what it includes may be anything
            else:
                text = self._files.plain(path, begin, end)
                # What device code calls gives no kernels.
                given = "" if self.runs_on_device(function) else _returned(text)
                found = self._told(text, given, function.parameters)
            self._said[key] = found
        return found

    def runs_on_device(self, function: Function) -> bool:
        """Whether a function is made for device code as well; a macro before its result may say so."""
        words = (word for word in function.return_type.split() if word.isidentifier())
        return "device" in function.flags or any(self._marks_device(word) for word in words)

    def _marks_device(self, word: str) -> bool:
        held = self._marks.get(word)
        if held is None:
            bodies: list[str] = []
            if word in self._index.names_of_kind("macro"):
                found = self._index.entries(word, ("macro",), lambda facts: facts.macros)
                bodies = [event.body for _, event in found if event.body]
            held = self._marks[word] = any("__device__" in body for body in bodies)
        return held

    # -- words --------------------------------------------------------------------------------------------------------

    def names_kernel(self, text: str, root: str, parameters: Sequence[Parameter] = ()) -> bool:
        """Whether a text of code names a kernel that a unit sees as a value: not a member or a parameter, nor a
        variable that the text declares, nor a function that it calls."""
        return any(self._sees_kernel(name, root) for name in self._kernels_in(text, parameters))

    def _kernels_in(self, text: str, parameters: Sequence[Parameter] = ()) -> set[str]:
        found = self._index.names_of_kind("kernel") & set(_WORD.findall(text))
        found -= {parameter.name for parameter in parameters}
        return {name for name in found if _is_value(text, name)}

    def _told(self, text: str, given: str, parameters: Sequence[Parameter] = ()) -> frozenset[str]:
        """The names of functions and variables in what a text gives, macros read as all that they may say. A kernel
        anywhere in the text is one that it may give."""
        index = self._index
        macros = index.names_of_kind("macro")
        words = set(_TOKEN.findall(text))
        made = frozenset().union(*(self._of_macro(word) for word in words & macros))
        kernels = self._kernels_in(text, parameters) | (index.names_of_kind("kernel") & made)
        if _PASTED in made:
            kernels |= self._pasted(words | made, ("kernel",))
        if kernels:
            return frozenset(_KERNEL + name for name in kernels) | self._named(text, given)
        return self._named(text, given)

    def _named(self, text: str, given: str) -> frozenset[str]:
        index = self._index
        macros = index.names_of_kind("macro")
        if not given:
            return frozenset()
        words = set(_TOKEN.findall(given))
        # What a macro returns may stand anywhere.
        made = frozenset().union(*(m for m in map(self._of_macro, words & macros)), self._returning(text, macros))
        named = words | made
        if _PASTED in made:
            named |= self._pasted(named, ("function", "variable"))
        return frozenset(named & (index.names_of_kind("function") | index.names_of_kind("variable")))

    def _returning(self, text: str, macros: Set[str]) -> frozenset[str]:
        """The words of the macros in a text that return something."""
        found = map(self._of_macro, set(_WORD.findall(text)) & macros)
        return frozenset().union(*(words for words in found if "return" in words))

    def _of_macro(self, name: str) -> frozenset[str]:
        """The words of a macro's bodies, and of those of the macros that they name."""
        found = self._macros.get(name)
        if found is None:
            macros = self._index.names_of_kind("macro")
            words: set[str] = set()
            pending = [name]
            seen = {name}
            while pending:
                for _, event in self._index.entries(pending.pop(), ("macro",), lambda facts: facts.macros):
                    body = event.body or ""
                    if "##" in body:
                        words.add(_PASTED)
                    here = set(_TOKEN.findall(body)).difference(event.parameters or ())
                    words |= here
                    pending += (here & macros) - seen
                    seen |= here & macros
            found = self._macros[name] = frozenset(words)
        return found

    def _pasted(self, words: Set[str], kinds: tuple[str, ...]) -> set[str]:
        """The names of some kinds that can be put together from words."""
        names = frozenset().union(*(self._index.names_of_kind(kind) for kind in kinds))
        begins = self._beginnings.get(kinds[0])
        if begins is None:
            begins = frozenset(name[:length] for name in names for length in range(1, len(name) + 1))
            self._beginnings[kinds[0]] = begins
        pending = [word for word in words if word in begins]
        seen = set(pending)
        out: set[str] = set()
        while pending:
            begin = pending.pop()
            for word in words:
                made = begin + word
                if made in begins and made not in seen:
                    seen.add(made)
                    pending.append(made)
                    if made in names:
                        out.add(made)
        return out


def _is_value(text: str, name: str) -> bool:
    """Whether a text may mean a kernel by a name, and nothing else that bears it."""
    mentions = list(re.finditer(rf"(?<![.\w])(?<!->){name}\b(\s*[(<])?", text))
    if all((one[1] or "").endswith("(") for one in mentions):
        return False
    if any((one[1] or "").endswith("<") for one in mentions):
        return True
    first = mentions[0]
    typed = _TYPED.search(text, max(0, first.start() - _LONGEST_TYPE), first.start())
    declared = typed is not None and typed[1] not in _BEFORE_VALUES and _DECLARES.match(text, first.start() + len(name))
    return not declared


def _returned(text: str) -> str:
    """The statements of a body that return something, and those that give their words a value."""
    statements = text.split(";")
    giving: dict[str, list[int]] = {}
    pending: set[int] = set()
    for number, statement in enumerate(statements):
        words = _WORD.findall(statement)
        if "return" in words:
            pending.add(number)
        if "for" in words:
            targets = words
        else:
            assigned = _ASSIGNED.match(statement)
            targets = _WORD.findall(assigned[1]) if assigned else []
            targets += _DECLARED.findall(statement)
        for word in targets:
            giving.setdefault(word, []).append(number)
    taken: set[int] = set()
    known: set[str] = set()
    while pending:
        number = pending.pop()
        taken.add(number)
        fresh = set(_WORD.findall(statements[number])) - known
        known |= fresh
        pending.update(n for word in fresh for n in giving.get(word, ()) if n not in taken)
    return ";".join(statements[number] for number in sorted(taken))
