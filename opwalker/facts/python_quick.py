"""Plain calls read off a Python text without parsing it.

In: a layout and the places found in it. Out: the calls, with the functions and classes around them, or None where some
place is more than a plain call (an op that is stored, a name that a function may bind anew, an f-string): then the text
must be parsed. On what it does answer, it agrees with the parsed reading.
"""

from __future__ import annotations

import re

from opwalker.facts.python_layout import Head, Layout
from opwalker.facts.python_needles import CALLED, Needles
from opwalker.facts.python_words import is_word, occurrences
from opwalker.model.python import PyCall, PyClass, PyFunction, PyOpCall
from opwalker.notation.regex import Regex

_OP = Regex(r"\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?:\.([A-Za-z]\w*))?([ \t]*\(|(?=[ \t]*[,)\]]))")
#: ``torch.ops`` or a namespace of it as an argument: nothing is called and nothing bound.
_NAMESPACE = Regex(r"(?:\.[A-Za-z_]\w*)?[ \t]*[,)]")
_COMPARED = Regex(r"(?:[=!]=|\bis|\bis not|\bin|\bnot in)[ \t\r\n]*\(?[ \t\r\n]*\Z")
_COMPARED_OP = Regex(r"(?:\.[A-Za-z_]\w*)+(?![ \t]*[\w(.])")
#: Before an op that is handed on: the name and bracket of a call, the bracket of a list, or a comma.
_HANDED_ON = Regex(r"(?:(?<![\w.])([A-Za-z_][\w.]*)\(|(?<![\w)\]])[ \t]*\[|,)\s*\Z")
_NOT_CALLED_ON = frozenset("getattr setattr delattr str repr id type return in and or not".split())
#: Ways to bind a name anew inside a function: what follows the name, what stands before it on its line.
_BINDS_AFTER = Regex(r"[ \t]*(?::[^=\n]*)?(?:=(?!=)|:=)")
_BINDS_TUPLE = Regex(r"[ \t]*,[^\n=]*(?<![=<>!])=(?!=)")
_BINDS_BEFORE = Regex(r"\b(?:for|as|global|nonlocal|lambda|del|import)\b[^\n]*\Z")
#: What follows a parameter's name; an import's name is bound too, and resolved with its scope.
_PARAMETER = Regex(r"[ \t]*(?:[:,=)]|\Z)")
_IMPORTED = Regex(r"[ \t]*(?:from[ \t]|import[ \t]|\w+[ \t]+as[ \t]+\Z)")
_NAMES_ONLY = Regex(r"[\w \t.,*]*\Z")
_CHAIN = Regex(r"[A-Za-z_][\w.]*")
_GUARD = Regex(r"\b(?:hasattr|isinstance|callable)\([ \t\r\n]*\Z")
_LOADING = Regex(r"\.(?:load_library|import_module|loaded_libraries)\b")
_OWNER = Regex(r"(?:\bsuper\(\)|(?<![\w.)\]}\"'])[A-Za-z_]\w*)\.\Z")
_CLASS = Regex(r"class[ \t]+\w+[ \t]*(?:\(([^()]*(?:\([^()]*\)[^()]*)*)\))?[ \t]*:")
_SELF = ("self", "cls", "super()")
#: Third words of a chain that are no overload; the parsed reading knows what they are.
_NOT_OVERLOADS = frozenset({"overloads", "op", "schemas", "name", "tags", "namespace", "redispatch", "decompose"})


class NotPlain(Exception):
    """A place that only parsing can judge."""


class Quick:
    """The plain calls of one text. ``read`` says whether they are all there is."""

    def __init__(self, layout: Layout, needles: Needles) -> None:
        self.layout = layout
        self.text = layout.text
        self.needles = needles
        self.op_calls: dict[int, PyOpCall] = {}
        self.calls: dict[int, PyCall] = {}
        self.functions: dict[int, PyFunction] = {}
        self.classes: dict[int, PyClass] = {}
        self._checked: set[tuple[int, str]] = set()

    def read(self) -> bool:
        """Read every place; false where one of them needs parsing, and then nothing here counts."""
        if self.needles.registering or any(target != "torch.ops" for target in self.needles.roots.values()):
            return False
        try:
            for place in sorted(self.needles.hits):
                if not self._in_string_or_comment(place):
                    self._look(place, self.needles.hits[place])
        except NotPlain:
            return False
        return True

    def _in_string_or_comment(self, place: int) -> bool:
        """Whether a place is no code; ``NotPlain`` where it may be code in an f-string."""
        token = self.layout.token_at(place)
        if token is not None and "{" in self.text[token[0] : place]:
            raise NotPlain
        return token is not None

    def _look(self, place: int, word: str) -> None:
        if not word:
            raise NotPlain
        if word in self.needles.roots:
            self._op(place, word)
            return
        if word.startswith("."):
            owner = _OWNER.search(self.text, max(0, place - 80), place)
            if owner is None:
                return
            head = owner.group().rstrip(".")
            if head not in _SELF and (is_word(head[0]) and head in ("return", "yield", "await", "in", "not")):
                return
            self._add_call(place - len(owner.group()), f"{head}.{word[1:]}", head)
            return
        chain = _CHAIN.match(self.text, place)
        if chain is not None and CALLED.match(self.text, chain.end()) and not chain.group().endswith("."):
            self._add_call(place, chain.group(), chain.group().split(".", 1)[0])

    def _op(self, place: int, root: str) -> None:
        end = place + len(root)
        if _GUARD.search(self.text, max(0, place - 60), place) or _LOADING.match(self.text, end):
            return
        start = max(0, place - 200)
        if _COMPARED.search(self.text, start, place) and _COMPARED_OP.match(self.text, end):
            return
        handed_on = _HANDED_ON.search(self.text, start, place)
        plainly = handed_on is not None and handed_on.group(1) not in _NOT_CALLED_ON
        if plainly and _NAMESPACE.match(self.text, end):
            return
        found = _OP.match(self.text, end)
        if found is None or found.group(3) in _NOT_OVERLOADS:
            raise NotPlain
        called = found.group().endswith("(")
        if not called and not plainly:
            raise NotPlain
        function = self._function_of(self._around(place))
        text = self.text[place : found.end()].rstrip("( \t")
        namespace, op, overload, _ = found.groups()
        self.op_calls[place] = PyOpCall(namespace, op, overload, self.layout.line_of(place), function, text, called)

    def _add_call(self, place: int, callee: str, head: str) -> None:
        around = self._around(place)
        functions = [one for one in around if not one.is_class]
        if functions and head not in _SELF:
            self._check_binding(functions[-1], head)
        self.calls[place] = PyCall(callee, self.layout.line_of(place), self._function_of(around))

    def _check_binding(self, function: Head, name: str) -> None:
        """Raise ``NotPlain`` where the function may bind the name anew; note a nested function of that name."""
        key = (function.start, name)
        if key in self._checked:
            return
        self._checked.add(key)
        start, end = function.start, self.layout.end_of(function)
        for at in occurrences(self.text[start:end], name):
            at += start
            after = at + len(name)
            line = self.text.rfind("\n", 0, at) + 1
            before = self.text[line:at]
            if before.lstrip() in ("def ", "async def ", "class "):
                if at > start + function.indent + len("async def "):
                    self._function_of(self.layout.around(after + 1))
            elif self._in_signature(at):
                if _PARAMETER.match(self.text, after):
                    raise NotPlain
            elif self._binds(before, after):
                raise NotPlain

    def _in_signature(self, place: int) -> bool:
        """Whether a place stands in the head of the innermost definition around it."""
        around = self.layout.around(place)
        return bool(around) and self.layout.signature_end(around[0]) >= place

    def _binds(self, before: str, after: int) -> bool:
        """Whether a name between ``before``, which starts its line, and ``after`` may be bound there."""
        if _BINDS_AFTER.match(self.text, after):
            return "(" not in before or "lambda" in before
        if _BINDS_TUPLE.match(self.text, after) and _NAMES_ONLY.match(before):
            return True
        if CALLED.match(self.text, after) or self.text.startswith(".", after) or "#" in before:
            return False
        return _BINDS_BEFORE.search(before) is not None and not _IMPORTED.match(before)

    def _around(self, place: int) -> list[Head]:
        """The definitions around a place; what stands in a signature belongs outside."""
        around = self.layout.around(place)
        while around and self.layout.signature_end(around[0]) >= place:
            around = around[1:]
        return around

    def _function_of(self, around: list[Head]) -> str | None:
        """The qualname of the innermost function, which is noted with the class that it stands in."""
        function: str | None = None
        for at, head in enumerate(around):
            if head.is_class:
                continue
            qualname = ".".join(one.name for one in reversed(around[at:]))
            function = function or qualname
            if head.start not in self.functions:
                owner = around[at + 1] if at + 1 < len(around) and around[at + 1].is_class else None
                method_of = qualname.rpartition(".")[0] if owner is not None else None
                start, end = self._line_span(head)
                self.functions[head.start] = PyFunction(qualname, start, end, method_of=method_of)
                if owner is not None and method_of is not None:
                    self._add_class(owner, method_of)
        return function

    def _line_span(self, head: Head) -> tuple[int, int]:
        start = self.layout.line_of(head.start)
        body = self.text[head.start : self.layout.end_of(head)].rstrip()
        while True:
            last = body.rfind("\n") + 1
            if not body[last:].lstrip().startswith("#") or not last:
                return start, start + body.count("\n")
            body = body[:last].rstrip()

    def _add_class(self, head: Head, qualname: str) -> None:
        if head.start in self.classes:
            return
        found = _CLASS.match(self.text, head.start + head.indent)
        if found is None:
            raise NotPlain
        end = self.layout.end_of(head)
        inner = [one for one in self.layout.heads if head.start < one.start < end]
        indent = min((one.indent for one in inner), default=0)
        methods = dict.fromkeys(one.name for one in inner if one.indent == indent and not one.is_class)
        bases = tuple(_split(found.group(1) or ""))
        self.classes[head.start] = PyClass(qualname, self._line_span(head)[0], bases, tuple(methods))


def _split(listed: str) -> list[str]:
    """The positional items of a comma-separated list, brackets respected, without blanks."""
    found, depth, current = [], 0, ""
    for character in listed + ",":
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth <= 0:
            text = "".join(current.split())
            if text and not re.match(r"\w+=", text):
                found.append(text)
            current = ""
        else:
            current += character
    return found
