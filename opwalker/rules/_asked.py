"""Whether the last error is asked for behind a launch: in the statement that follows it, wherever that stands.

In: a tree. Out: an answer for a statement of a routine. What follows the last statement of a block follows the block,
what follows a ``break`` follows its loop or ``switch``, what follows a ``return`` its lambda or routine; behind the end
of a local lambda stands what follows its calls, behind the end of a routine what follows the calls of it in the source.
Where several ways go on, each has to ask.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from opwalker.model.check import CheckedTree
from opwalker.model.statements import CallText, Routine, Statement
from opwalker.rules._launches import ASKS

_CHECK = re.compile(r"(?i)\b\w*(?:launch_?check|check\w*_?launch|check_?last|check_cuda_last|post_?launch)\w*\s*\(")
#: Asked, and the answer dropped: with it goes the error.
_DROPPED = re.compile(r"(?:\(\s*void\s*\)\s*)?(?:::)?(?:cuda|hip)(?:Get|PeekAt)LastError\s*\(\s*\)")
_HARMLESS = re.compile(r"(?:STD_)?TORCH_(?:INTERNAL_ASSERT|CHECK)\w*|nvtx(?:Range|DomainRange|Mark)\w*")
_LOOPS = frozenset(("for", "range for", "while", "do", "switch"))
_DEEPEST = 10


class _Next(Struct, frozen=True):
    """What comes behind a statement: a statement, else the end of a local lambda, else that of the routine."""

    statement: Statement | None = None
    function: str | None = None


class Asked:
    """The question, for one tree."""

    def __init__(self, tree: CheckedTree) -> None:
        self._tree = tree
        self._checks = frozenset(tree.settings.launch_checks)
        self._nexts: dict[int, tuple[Routine, dict[int, _Next]]] = {}
        self._asking: dict[tuple[str, int, str], bool] = {}

    def at(self, routine: Routine, one: Statement) -> bool:
        """Whether a statement itself asks, or the first of a block does."""
        return self._asks(routine, one)

    def behind(self, routine: Routine, one: Statement, depth: int = 0) -> bool:
        """Whether what follows a statement asks on every way."""
        after = self._order(routine).get(id(one))
        if after is None or depth > _DEEPEST:
            return False
        if after.statement is not None:
            if _starts_nothing(after.statement) and self.behind(routine, after.statement, depth + 1):
                return True
            return self._asks(routine, after.statement) or (
                after.statement.kind == "return" and self.behind(routine, after.statement, depth + 1)
            )
        if after.function is not None:
            calls = [held for held in routine.walk() if any(_names(call, after.function) for call in held.calls)]
            return bool(calls) and all(self._behind_last(routine, held, calls, depth + 1) for held in calls)
        return self._above(routine, depth)

    def shared(self, routine: Routine, one: Statement) -> Statement | None:
        """The question that follows a launch when further launches in a row have run."""
        after = self._order(routine)[id(one)].statement
        while after is not None and after.kind == "expression" and after.launches:
            after = self._order(routine)[id(after)].statement
        return after if after is not None and self._asks(routine, after) else None

    def _behind_last(self, routine: Routine, one: Statement, calls: Sequence[Statement], depth: int) -> bool:
        """Whether what follows a call of a lambda asks, further calls of it in a row passed over."""
        after = self._order(routine).get(id(one))
        while after is not None and any(after.statement is held for held in calls):
            one, after = after.statement, self._order(routine).get(id(after.statement))
        return self.behind(routine, one, depth)

    def _above(self, routine: Routine, depth: int) -> bool:
        above = self._tree.callers(routine)
        return bool(above) and depth < _DEEPEST and all(
            self._behind_call(site.caller, site.call, depth + 1) for site in above
        )  # fmt: skip

    def _behind_call(self, caller: Routine, call: CallText, depth: int) -> bool:
        holding = [one for one in caller.walk() if any(c.line == call.line and c.name == call.name for c in one.calls)]
        return bool(holding) and all(self.behind(caller, one, depth) for one in holding)

    def _order(self, routine: Routine) -> dict[int, _Next]:
        # By the object: a macro may write several routines on a line. It is kept, so that no other gets its number.
        if id(routine) not in self._nexts:
            self._nexts[id(routine)] = (routine, {})
            _follow(routine.statements, _Next(), _Next(), _Next(), self._nexts[id(routine)][1])
        return self._nexts[id(routine)][1]

    def _asks(self, routine: Routine, one: Statement) -> bool:
        if one.kind in ("block", "case", "do", "try") and one.body:
            return self._asks(routine, one.body[0])
        if one.kind == "expression" and one.macro is None and _DROPPED.fullmatch(one.text):
            return False
        if ASKS.search(one.text) or _CHECK.search(one.text):
            return True
        if one.kind == "expression" and any(held.body and self._asks(routine, held.body[0]) for held in one.lambdas):
            return True  # a check that is a lambda called at once
        return any(call.simple in self._checks or self._wraps(routine, call) for call in one.calls)

    def _wraps(self, routine: Routine, call: CallText) -> bool:
        """Whether a call is that of a function of the source which asks and launches nothing."""
        if call.receiver is not None:
            return False
        for target in self._tree.targets(routine, call):
            key = (target.file, target.line, target.name)
            if key not in self._asking:
                held = list(target.walk())
                launches = any(one.launches for one in held) or len(held) > 12
                self._asking[key] = not launches and any(ASKS.search(one.text) for one in held)
            if self._asking[key]:
                return True
        return False


def _follow(statements: Sequence[Statement], after: _Next, out_of: _Next, end: _Next, found: dict[int, _Next]) -> None:
    """Enters what comes behind each statement; ``after`` is behind the block, ``out_of`` behind its loop, ``end``
    behind the lambda or routine."""
    for number, one in enumerate(statements):
        rest = statements[number + 1 :]
        following = after if not rest else out_of if rest[0].kind == "break" and not rest[0].text else _Next(rest[0])
        if one.kind == "return":
            following = end
        found[id(one)] = following
        inner = following if one.kind in _LOOPS else out_of
        _follow(one.head, following, inner, end, found)
        _follow(one.body, following, inner, end, found)
        _follow(one.orelse, following, inner, end, found)
        named = next((d.name for d in one.declares), None) if one.kind == "declaration" else None
        for held in one.lambdas:
            behind = _Next(function=named) if named else following
            _follow(held.body, behind, behind, behind, found)


def _names(call: CallText, name: str) -> bool:
    """Whether a call is that of a local lambda, or is handed it."""
    if (call.name == name and call.receiver is None) or (call.receiver or "").split(".", 1)[0].strip() == name:
        return True
    return any(argument.strip() == name for argument in call.arguments)


def _starts_nothing(one: Statement) -> bool:
    """Whether a statement checks something on the host, by a framework's macro or a throw of its own, or marks a range
    for a profiler."""
    if one.kind == "block":
        return not one.body and one.line == one.end_line and not one.text  # the semicolon behind a macro
    if one.kind == "if":
        body = one.body[0].body if len(one.body) == 1 and one.body[0].kind == "block" else one.body
        return [held.kind for held in body] == ["throw"] and not one.orelse
    return one.kind == "expression" and any(_HARMLESS.fullmatch(call.simple) for call in one.calls)
