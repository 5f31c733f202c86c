"""Early returns of a body, and what holds behind them: where ``if (n == 0) return;`` was passed, ``n`` is not 0.

In: a body. Out: ``ReturnFact`` values in source order, and ``Guard`` lists for a place. Returns out of
loops and ``switch`` are not read; nor is what tests whether a call has worked: behind it the call has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwalker.expand.bodies import Body
from opwalker.expand.macros import KNOWN
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.model.body import ExitFact
from opwalker.model.host import ReturnFact
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import Expr, name, negated, print_expression
from opwalker.notation.regex import Regex
from opwalker.notation.said_once import truth_of
from opwalker.notation.some_builds import in_some_builds
from opwalker.views.branches import Branches, Guard, needed
from opwalker.views.ops import shown_condition

_TRUE = name("true")
#: What tests whether a call before it has worked.
_WORKED = Regex(
    r"[sS]uccess\b|SUCCESS\b|(?<![\w.:>])(?:\w*_)?(?:err|error|status|ret|rc|res|result)\b(?!\s*(?:[.(\[]|->))"
)
#: Branches around a place that are put into words.
_TOLD = 100
_CHOICE = ("if", "else", "if constexpr", "else constexpr")


class Returns(Branches):
    """The branches of one body with its early returns."""

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self._out: dict[int, list[ExitFact]] = {}
        for exit_ in body.facts.exits:
            if exit_.kind == "return":
                self._out.setdefault(exit_.block, []).append(exit_)
        self._choices: dict[int, list[int]] = body.kept.setdefault("choices beside", {})
        self._left: dict[int, Expr | None] = body.kept.setdefault("left", {})
        self._places: dict[int, tuple[int, ...]] = body.kept.setdefault("places that return", {})
        self._holds: dict[int, Expr | None] = body.kept.setdefault("holds", {})

    def early(self) -> tuple[ReturnFact, ...]:
        """The returns of the function itself that leave steps behind them undone."""
        body, found = self._body, {}
        places = [call.start for call in (*body.facts.calls, *body.facts.launches)]
        for number, exits in self._out.items():
            chain = self.chain(number)
            if not chain or any(self._blocks[one].kind not in _CHOICE for one in chain):
                continue
            guards = self.around(number)
            if len(guards) != len(chain) or any(guard.condition.kind == "raw" for guard in guards):
                continue
            for exit_ in exits:
                if body.expanded.origin(exit_.start)[0] == KNOWN or _WORKED.search(_printed(guards[-1:])):
                    continue
                behind = [at for at in places if at >= exit_.end and not self.holds(chain[0], at)]
                if not any(self.together(number, self.innermost(at)) for at in behind):
                    continue
                value = body.written(exit_.value).strip() if exit_.value is not None else None
                compiled = shown_condition(body.conditions_around(exit_.start))
                fact = ReturnFact(_printed(guards), words_of(guards), value, body.use_line(exit_.start), compiled)
                found.setdefault((exit_.start, fact), fact)
        return tuple(fact for _, fact in sorted(found.items(), key=lambda item: item[0][0]))

    def past(self, number: int, offset: int, same: bool = True) -> tuple[Guard, ...]:
        """What holds at an offset in the block ``number`` because nothing before it has returned; ``same`` is false
        to leave out returns that stand in that block itself."""
        if not self._out:
            return ()
        out = []
        for other in self._beside(number):
            block = self._blocks[other]
            if block.start >= offset:
                break
            if block.end > offset or (block.parent == number and not same):
                continue
            holds = self._behind(other)
            only = self._only_where(other, offset) if holds is not None else None
            if holds is not None and only is not None and block.condition is not None:
                if only:
                    holds = in_some_builds(holds, shown_condition(only) or "")
                own = not self._body.expanded.origin(block.start)[2]
                out.append(Guard(holds, block.condition[0], own, other))
        return tuple(out)

    def _only_where(self, number: int, offset: int) -> tuple[str, ...] | None:
        """The preprocessor conditions that the returns of a branch and those around them stand under and a place does
        not; None where no build compiles both."""
        out: dict[str, None] = {}
        for at in self._standing(number):
            only = self._body.only_where(at, offset)
            if only is None:
                return None
            out.update(dict.fromkeys(only))
        return tuple(out)

    def _standing(self, number: int) -> tuple[int, ...]:
        """Places that have to be compiled for a branch to return where it is known to."""
        if number not in self._places:
            self._places[number] = tuple(self._read_standing(number))
        return self._places[number]

    def _read_standing(self, number: int) -> Iterator[int]:
        block = self._blocks[number]
        yield block.condition[0] if block.condition is not None else block.start
        exits = [one.start for one in self._out.get(number, ()) if self._body.expanded.origin(one.start)[0] != KNOWN]
        if exits:
            # One of two branches of the preprocessor that both return is always there.
            apart = any(self._body.only_where(a, b) is None for a in exits for b in exits)
            if not apart:
                yield min(exits, key=lambda at: len(self._body.conditions_around(at)))
            return
        for other, inner in enumerate(self._blocks):
            if inner.parent == number and inner.kind in _CHOICE and self._leaves(other) is not None:
                yield from self._standing(other)

    def _beside(self, number: int) -> list[int]:
        """The choices that may return before what stands in a block: those that are not around it. A macro's own
        within a lambda are left out."""
        found = self._choices.get(number)
        if found is None:
            around = {*self.chain(number), -1}
            found = self._choices[number] = [
                other
                for other, block in enumerate(self._blocks)
                if block.kind in _CHOICE
                and block.parent in around
                and self.together(other, number)
                and not (
                    self._body.expanded.origin(block.start)[2]
                    and any(self._blocks[one].kind == "lambda" for one in self.chain(other))
                )
            ]
        return found

    def place(self, offset: int, own: bool = False) -> tuple[str, ...]:
        """What holds at an offset, in words: as nothing has returned before it, and around it; with ``own``, only what
        the function itself tests. Nothing where more branches stand around it than anyone reads."""
        block = self.innermost(offset)
        if len(self.chain(block)) > _TOLD:
            return ()
        around = [guard for guard in self.around(block) if guard.own or not own]
        return (*past_words(self.past(block, offset), around), *words_of(around))

    def tests(self, offset: int) -> dict[str, Expr]:
        """The conditions at an offset by their words."""
        block = self.innermost(offset)
        if len(self.chain(block)) > _TOLD:
            return {}
        guards = (*self.past(block, offset), *self.around(block))
        return {said(one.condition): one.condition for one in guards if one.condition.kind != "raw"}

    def loops_around(self, offset: int) -> tuple[str, ...]:
        """The heads of the function's own loops around an offset, outermost first: ``for (int i = 0; i < n; i++)``."""
        out = []
        full = self._body.expanded.full
        for number in self.chain(self.innermost(offset)):
            block = self._blocks[number]
            if block.kind == "loop" and self.plain(number) == number and full.startswith(("for", "while"), block.start):
                opened = full.find("(", block.start)
                close = match_bracket(full, opened, block.end)
                if close > 0 and not self._body.expanded.origin(block.start)[2]:
                    out.append(self._body.written((block.start, close)))
        return tuple(out)

    def _behind(self, number: int) -> Expr | None:
        """What holds behind a branch as far as it returns; None where nothing is known."""
        if number not in self._holds:
            self._holds[number] = self._read_behind(number)
        return self._holds[number]

    def _read_behind(self, number: int) -> Expr | None:
        left = self._leaves(number)
        if left is None:
            return None
        guards = self.around(number, self._blocks[number].parent)
        if len(guards) != 1 or guards[0].condition.kind == "raw":
            return None
        block, condition = self._blocks[number], guards[0].condition
        if block.kind.startswith("else"):
            first = next((n for n, b in enumerate(self._blocks) if b.condition == block.condition), number)
            if first != number and self._leaves(first) == _TRUE:
                # The branch before it has returned as well: what is left is the rest of the chain.
                return None if left == _TRUE else negated(left)
        whole = condition if left == _TRUE else Expr("binary", "&&", (condition, left))
        printed = print_expression(whole)
        if _WORKED.search(printed) or printed in ("true", "false", "0", "1"):
            return None
        return negated(whole)

    def _leaves(self, number: int) -> Expr | None:
        """Where control that enters a block returns within it."""
        if number not in self._left:
            self._left[number] = self._read_leaves(number)
        return self._left[number]

    def _read_leaves(self, number: int) -> Expr | None:
        exits = self._out.get(number, ())
        if any(self._body.expanded.origin(one.start)[0] != KNOWN for one in exits):
            return _TRUE
        found: Expr | None = None
        for other, block in enumerate(self._blocks):
            if block.parent != number or block.kind not in _CHOICE:
                continue
            left = self._leaves(other)
            guards = self.around(other, number)
            if left is None or len(guards) != 1 or guards[0].condition.kind == "raw":
                continue
            condition = guards[0].condition
            part = condition if left == _TRUE else Expr("binary", "&&", (condition, left))
            found = part if found is None else Expr("binary", "||", (found, part))
        return found


def all_of(texts: Sequence[str]) -> str:
    """Conditions in words that all hold, as one; one that is a choice itself gets brackets."""
    return " and ".join(f"({text})" if " or " in text and len(texts) > 1 else text for text in texts)


def words_of(guards: Sequence[Guard]) -> tuple[str, ...]:
    """What guards say, in words, each once."""
    return tuple(dict.fromkeys(said(guard.condition) for guard in needed(guards)))


def past_words(guards: Sequence[Guard], around: Sequence[Guard] = ()) -> tuple[str, ...]:
    """Guards in words; without what the branches ``around`` say already."""
    told = {said(guard.condition) for guard in around}
    words = (said(guard.condition) for guard in needed([*guards, *around]) if guard not in around)
    return tuple(dict.fromkeys(word for word in words if word not in told))


def _printed(guards: Sequence[Guard]) -> str:
    guards = [guard for guard in guards if truth_of(guard.condition) is not True] or guards
    whole = guards[0].condition
    for guard in guards[1:]:
        whole = Expr("binary", "&&", (whole, guard.condition))
    return print_expression(whole)
