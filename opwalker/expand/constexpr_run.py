"""Bodies of constexpr functions, run: declarations, assignments, branches, loops, returns.

In: a body's text and an environment whose ``bound`` holds the arguments. Out: what it returns; ``Unknown`` where a
statement is not understood or too many steps are taken. ``bound`` is written to: it is the function's memory.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

from opwalker.expand.arithmetic import apply
from opwalker.expand.deduction import as_type
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.terms import ClosureTerm, ConstTerm, ListTerm, Term, Unknown
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.notation.regex import Regex

#: Statements that one call may run.
MAX_STEPS = 20000
_WORD = Regex(r"\s*([A-Za-z_]\w*)")
_SPACES = Regex(r"\s*")
_DECLARED = Regex(
    r"((?:(?:constexpr|const|static|auto|unsigned|signed|typename)\s+)*[A-Za-z_][\w:]*(?:\s*<.*?>)?(?:::\w+)*(?:\s+(?:const|int|long|char))*"
    r"[\s&]+)([A-Za-z_]\w*)\s*(\[[^\]]*\])?\s*(=|\{|\(|\Z)",
    re.DOTALL,
)
_ASSIGNED = Regex(r"([A-Za-z_]\w*)\s*((?:\[[^=]*\])*)\s*(<<|>>|[-+*/%&|^])?=(?!=)\s*(.*)\Z", re.DOTALL)
_STEPPED = Regex(r"(?:(\+\+|--)\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*(\+\+|--))\Z")
_IGNORED = frozenset(("static_assert", "assert", "typename"))
#: Checks by macros: where one fails there is no constant, so a program that compiles passes them all.
_CHECK = Regex(r"[A-Z][A-Z0-9_]*(?:CHECK|ASSERT)[A-Z0-9_]*\Z")
_SPREAD = Regex(r"(?:(?:const|constexpr)\s+)*auto\s*(?:const\s*)?&{0,2}\s*\[([\w\s,]+)\]\s*=\s*(.*)\Z", re.DOTALL)
_CLOSURE = Regex(r"(?:(?:const|constexpr)\s+)*auto\s+(?:const\s*)?&{0,2}\s*(\w+)\s*=\s*(\[.*)\Z", re.DOTALL)
_RANGE = Regex(r"(?:const\s+)?[\w:]+\s*(?:const\s*)?&{0,2}\s*([A-Za-z_]\w*)\s*:(?!:)\s*(.*)\Z", re.DOTALL)


class _Return(Exception):
    def __init__(self, value: Term | None) -> None:
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def run(body: str, scope: Any) -> Term:
    """What a body, braces included, returns."""
    machine = _Machine(scope)
    try:
        machine.statements(body.strip()[1:-1])
    except _Return as done:
        if done.value is not None:
            return done.value
    except (_Break, _Continue):
        pass
    raise Unknown("a constant function returned nothing")


class _Machine:
    def __init__(self, scope: Any) -> None:
        self._scope = scope
        self._left = MAX_STEPS

    def statements(self, text: str) -> None:
        """Run statements one after the other."""
        at = _SPACES.match(text).end()
        while at < len(text):
            at = self._statement(text, at)
            at = _SPACES.match(text, at).end()

    def _statement(self, text: str, at: int, live: bool = True) -> int:
        """Run (or pass over) the statement at an offset; the offset behind it."""
        self._left -= 1
        if self._left < 0:
            raise Unknown(f"a constant function takes more than {MAX_STEPS} steps")
        at = _SPACES.match(text, at).end()
        if text.startswith("{", at):
            close = self._close(text, at)
            if live:
                self.statements(text[at + 1 : close - 1])
            return close
        word = _WORD.match(text, at)
        name = word.group(1) if word else ""
        if name == "if":
            return self._if(text, word.end(), live)
        if name == "while":
            return self._while(text, word.end(), live)
        if name == "for":
            return self._for(text, word.end(), live)
        if name == "switch":
            return self._switch(text, word.end(), live)
        if name == "do":
            raise Unknown("a loop of this kind is not run")
        end = self._end(text, at)
        if live:
            self._simple(text[at:end].strip(), name)
        return end + 1

    @staticmethod
    def _close(text: str, at: int) -> int:
        close = match_bracket(text, at)
        if close < 0:
            raise Unknown("a bracket in a constant function stays open")
        return close

    def _end(self, text: str, at: int) -> int:
        """Where the semicolon of a simple statement stands."""
        while at < len(text):
            if text[at] in "([{":
                at = self._close(text, at)
            elif text[at] == ";":
                return at
            else:
                at += 1
        return at

    def _holds(self, text: str) -> bool:
        value = value_of(evaluate(text, self._scope))
        if value is None:
            raise Unknown(f"`{text.strip()[:80]}` is not a constant that could be worked out")
        return bool(value.value)

    def _group(self, text: str, at: int) -> tuple[str, int]:
        at = _SPACES.match(text, at).end()
        if not text.startswith("(", at):
            raise Unknown("a statement of a constant function is not understood")
        close = self._close(text, at)
        return text[at + 1 : close - 1], close

    def _if(self, text: str, at: int, live: bool) -> int:
        constexpr = re.compile(r"\s*constexpr\b").match(text, at)
        condition, at = self._group(text, constexpr.end() if constexpr else at)
        taken = live and self._holds(condition)
        at = self._statement(text, at, taken)
        following = re.compile(r"\s*else\b").match(text, at)
        return self._statement(text, following.end(), live and not taken) if following else at

    def _while(self, text: str, at: int, live: bool) -> int:
        condition, at = self._group(text, at)
        end = self._statement(text, at, False)
        try:
            while live and self._holds(condition):
                try:
                    self._statement(text, at)
                except _Continue:
                    continue
        except _Break:
            pass
        return end

    def _for(self, text: str, at: int, live: bool) -> int:
        head, at = self._group(text, at)
        end = self._statement(text, at, False)
        if not live:
            return end
        each = _RANGE.match(head.strip())
        try:
            if each:
                held = evaluate(each.group(2), self._scope)
                if not isinstance(held, ListTerm):
                    raise Unknown(f"`{each.group(2)[:60]}` is no list that is known")
                for item in held.items:
                    self._scope.bound[each.group(1)] = item
                    self._once(text, at)
                return end
            first, condition, step = (head.split(";") + ["", ""])[:3]
            if first.strip():
                self._simple(first.strip(), "")
            while not condition.strip() or self._holds(condition):
                self._once(text, at)
                for a, b in split_commas(step):
                    self._simple(step[a:b].strip(), "")
        except _Break:
            pass
        return end

    def _once(self, text: str, at: int) -> None:
        try:
            self._statement(text, at)
        except _Continue:
            return

    def _switch(self, text: str, at: int, live: bool) -> int:
        subject, at = self._group(text, at)
        at = _SPACES.match(text, at).end()
        close = self._close(text, at)
        if not live:
            return close
        body = text[at + 1 : close - 1]
        value = value_of(evaluate(subject, self._scope))
        labels = list(re.finditer(r"\bcase\b(.*?)(?<!:):(?!:)|\bdefault\s*:(?!:)", body, re.DOTALL))
        chosen = next((m for m in labels if m.group(1) and self._equal(m.group(1), value)), None)
        chosen = chosen or next((m for m in labels if m.group(1) is None), None)
        if chosen is None or value is None:
            return close
        rest = body[chosen.end() :]
        rest = re.sub(r"\bcase\b(?:.*?)(?<!:):(?!:)|\bdefault\s*:(?!:)", " ", rest, flags=re.DOTALL)
        with contextlib.suppress(_Break):
            self.statements(rest)
        return close

    def _equal(self, label: str, value: ConstTerm | None) -> bool:
        found = value_of(evaluate(label, self._scope))
        return found is not None and value is not None and found.value == value.value

    def _simple(self, text: str, word: str) -> None:
        """A declaration, an assignment, a step, a return."""
        if not text or word in _IGNORED or _CHECK.match(word):
            return
        if word == "return":
            rest = text[len("return") :].strip()
            raise _Return(evaluate(rest, self._scope) if rest else None)
        if text == "break":
            raise _Break
        if text == "continue":
            raise _Continue
        if word == "using" and "=" in text:
            name, _, target = text[len("using") :].partition("=")
            self._scope.bound[name.strip()] = self._scope.type(target)
            return
        stepped = _STEPPED.match(text)
        if stepped:
            name, sign = stepped.group(2) or stepped.group(3), (stepped.group(1) or stepped.group(4))[0]
            self._assign(name, "", sign, ConstTerm(1))
            return
        assigned = _ASSIGNED.match(text)
        if assigned and assigned.group(1) in self._scope.bound:
            name, index, operator, value = assigned.groups()
            self._assign(name, index, operator, evaluate(value, self._scope))
            return
        if not self._declare(text):
            raise Unknown(f"`{text[:80]}` in a constant function is not understood")

    def _assign(self, name: str, index: str, operator: str | None, value: Term) -> None:
        bound = self._scope.bound
        if name not in bound:
            raise Unknown(f"`{name}` is not a variable of the constant function")
        if index:
            bound[name] = self._with_element(bound[name], index, operator, value)
            return
        bound[name] = self._combined(bound[name], operator, value)

    def _with_element(self, held: Term | None, index: str, operator: str | None, value: Term) -> Term:
        number = value_of(evaluate(index.strip()[1:-1], self._scope)) if index.count("[") == 1 else None
        if not isinstance(held, ListTerm) or number is None or not 0 <= number.value < len(held.items):
            raise Unknown("an element of an array is not known")
        items = list(held.items)
        items[int(number.value)] = self._combined(items[int(number.value)], operator, value)
        return ListTerm(tuple(items), held.type)

    @staticmethod
    def _combined(held: Term | None, operator: str | None, value: Term) -> Term:
        old, new = value_of(held) if held is not None else None, value_of(value)
        if operator is None:
            return as_type(new, old.type) if old is not None and new is not None else value
        found = apply(operator, old, new) if old is not None and new is not None else None
        if found is None or old is None:
            raise Unknown("an assignment of a constant function has no value")
        return as_type(found, old.type)

    def _declare(self, text: str) -> bool:
        """``T a = 1, b = 2``, ``T a{1}``, ``T a[4] = {…}``, ``T a``, ``auto [a, b] = …``, ``auto a = [](…) {…}``."""
        spread = _SPREAD.match(text)
        if spread:
            held = evaluate(spread.group(2), self._scope)
            names = [name.strip() for name in spread.group(1).split(",")]
            if not isinstance(held, ListTerm) or len(held.items) != len(names):
                raise Unknown(f"`{spread.group(2)[:60]}` is not known")
            self._scope.bound.update(zip(names, held.items, strict=True))
            return True
        closure = _CLOSURE.match(text)
        if closure:
            self._scope.bound[closure.group(1)] = ClosureTerm(closure.group(2), self._scope)
            return True
        declared = _DECLARED.match(text)
        if declared is None:
            return False
        kind = declared.group(1).strip().rstrip("& ")
        rest = text[declared.start(2) :]
        for a, b in split_commas(rest):
            piece = re.match(r"\s*([A-Za-z_]\w*)\s*(\[[^\]]*\])?\s*=?\s*(.*)\Z", rest[a:b], re.DOTALL)
            if piece is None:
                return False
            name, extent, value = piece.group(1), piece.group(2) or "", piece.group(3).strip()
            if value:
                self._scope.bound[name] = self._scope.initialiser(value, kind + extent)
            elif extent:
                count = value_of(evaluate(extent[1:-1], self._scope))
                if count is None or not 0 <= count.value <= MAX_STEPS:
                    raise Unknown("the size of an array is not known")
                zero = as_type(ConstTerm(0), self._scope.type(kind).text)
                self._scope.bound[name] = ListTerm((zero,) * int(count.value))
            else:
                self._scope.bound[name] = as_type(ConstTerm(0), self._scope.type(kind).text)
        return True
