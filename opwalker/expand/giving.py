"""Which functions and variables can give a kernel by what they write: the others need not be read.

In: a definition. Out: yes or no. Words stand for all that bears their name, macros for all that they may be made to
say: a yes may be wrong, a no is not, as far as the tree's own text goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set

from opwalker.expand.files import Files
from opwalker.expand.resolve import Candidate
from opwalker.link.index import Index
from opwalker.model.cpp import Function
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
#: Stand among words for a kernel, or what may be one, and for words that a macro puts together.
_ANYTHING, _PASTED = "<<<", "##"


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
        #: Names that were found to give a kernel, and those that give none.
        self._gives: set[str] = set()
        self._gives_nothing: set[str] = set()

    def gives(self, candidate: Candidate) -> bool:
        """Whether a function can return a kernel."""
        if self._changes != self._index.changes:
            self._forget()
        return self._any(self._of_function(candidate.path, candidate.function))

    def _any(self, words: frozenset[str]) -> bool:
        """Whether any of some words gives a kernel: a search over names, each looked at once."""
        if _ANYTHING in words or not self._gives.isdisjoint(words):
            return True
        came: dict[str, str] = dict.fromkeys(words - self._gives_nothing, "")
        pending = deque(came)
        while pending:
            word = pending.popleft()
            further = self._of_name(word)
            if _ANYTHING in further or not self._gives.isdisjoint(further):
                while word:
                    self._gives.add(word)
                    word = came[word]
                return True
            for other in further - self._gives_nothing:
                if other not in came:
                    came[other] = word
                    pending.append(other)
        self._gives_nothing.update(came)
        return False

    def _of_name(self, name: str) -> frozenset[str]:
        """What everything of a name gives: functions, and variables outside functions."""
        found = self._names.get(name)
        if found is None:
            words: set[str] = set()
            if name in self._index.names_of_kind("function"):
                for path, function in self._index.functions(name):
                    if function.body_end:
                        words |= self._of_function(path, function)
            if name in self._index.names_of_kind("variable"):
                for _, held in self._index.entries(name, ("variable",), lambda facts: facts.variables):
                    if held.value and not NUMBER.search(held.type):
                        words |= self._told(held.value, held.value)
            found = self._names[name] = frozenset(words)
        return found

    def _of_function(self, path: str, function: Function) -> frozenset[str]:
        """The names in what a function returns, and in what its variables among them are given."""
        if function.return_type in PLAIN_RETURNS or ("device" in function.flags and "host" not in function.flags):
            return frozenset()
        key = (path, function.offset)
        found = self._said.get(key)
        if found is None:
            begin, end = function.body_start, function.body_end
            if any(begin < offset < end for offset, _ in self._index.includes(path)):
                found = frozenset((_ANYTHING,))
            else:
                text = self._files.plain(path, begin, end)
                # What device code calls gives no kernels.
                found = self._told(text, "" if self.runs_on_device(function) else _returned(text))
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

    def _told(self, text: str, given: str) -> frozenset[str]:
        """The names of functions and variables in what a text gives, macros read as all that they may say. A kernel
        anywhere in the text is one that it may give."""
        index = self._index
        kernels, macros = index.names_of_kind("kernel"), index.names_of_kind("macro")
        words = set(_TOKEN.findall(text))
        made = frozenset().union(*(self._of_macro(word) for word in words & macros))
        if not kernels.isdisjoint(words | made) or (_PASTED in made and self._pasted(words | made, ("kernel",))):
            return frozenset((_ANYTHING,))
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
                    here = set(_TOKEN.findall(body))
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
