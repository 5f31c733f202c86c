"""What is known of values where several conditions hold together.

In: conditions, each with the environment that it is written in. Out: domains of values; ``Contradiction`` where the
conditions cannot hold together.
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.expand.bodies import Body
from opwalker.expand.environment import Environment
from opwalker.notation.cpp_expression import Expr, negated, print_expression, terms
from opwalker.views.domains import ANY, TRUTH, Domain, combined, compared, divisors, greatest, least, of
from opwalker.views.value_names import COMPARISONS, MAX_STEPS, ValueNames, plain

_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT_NEGATIVE = frozenset("dim ndim size numel element_size itemsize ndimension".split())
_TRUTHS = frozenset("has_value defined is_contiguous is_cuda".split())
_SET = Domain(None, None, None, frozenset((0,)))
#: Ways in which one condition is remembered to have been taken in.
_MOST_WAYS = 8


class Contradiction(Exception):
    """Conditions that cannot hold together; ``str()`` says which and why."""


class _Taken(Struct, frozen=True):
    """How a condition was taken in: what was known of the values that were looked at, and what is known of some since.
    The condition and the body are held so that they stay the same ones."""

    condition: Expr
    body: Body | None
    before: dict[tuple, Domain | None]
    after: dict[tuple, Domain]


class Known:
    """What is known of values, each under the key that its expression has."""

    def __init__(self, names: ValueNames) -> None:
        self._names = names
        self._domains: dict[tuple, Domain] = {}
        self._from: dict[tuple, str] = {}
        #: The keys of values of which more is known than at the beginning.
        self.touched: set[tuple] = set()
        #: What the condition that is being taken in has looked at so far and what it has changed, where it is noted.
        self._before: dict[tuple, Domain | None] | None = None
        self._after: dict[tuple, Domain] = {}

    def copy(self) -> Known:
        """The same knowledge, to be added to by itself."""
        made = Known(self._names)
        made._domains, made._from = dict(self._domains), dict(self._from)
        return made

    def hold(self, condition: Expr, environment: Environment, told: str) -> None:
        """Takes in that a condition holds; ``told`` is what a reader is shown of it. Raises Contradiction.

        Launches by the hundred stand under the same conditions: where the same was known of the values that one looks
        at, it says the same."""
        ways = self._names.taken.setdefault((*self._names.place(condition, environment), told), [])
        for way in ways:
            if all(self._domains.get(key) == domain for key, domain in way.before.items()):
                for key, domain in way.after.items():
                    self._set(key, domain, told)
                return
        self._before, self._after = {}, {}
        try:
            self._hold(condition, environment, told)
            if self._before is not None and len(ways) < _MOST_WAYS:
                ways.append(_Taken(condition, environment.body, self._before, self._after))
        finally:
            self._before = None

    def _hold(self, condition: Expr, environment: Environment, told: str) -> None:
        if condition.kind == "unary" and condition.text == "!":
            turned = negated(condition.parts[0])
            if turned.kind == "unary":
                self._narrow(condition.parts[0], environment, of((0,)), told, condition)
            else:
                self._hold(turned, environment, told)
        elif condition.kind == "binary" and condition.text == "&&":
            for part in terms(condition, "&&"):
                self._hold(part, environment, told)
        elif condition.kind == "binary" and condition.text == "||":
            self._either(condition, environment, told)
        elif condition.kind == "binary" and condition.text in COMPARISONS:
            left, right = condition.parts
            ordered = condition.text not in ("==", "!=")
            if ordered and not all(self._names.is_whole(part, environment) for part in condition.parts):
                return
            a, b = self._domain(left, environment), self._domain(right, environment)
            self._narrow(left, environment, compared(condition.text, b), told, condition)
            self._narrow(right, environment, compared(_TURNED[condition.text], a), told, condition)
        elif condition.kind in ("name", "call", "member", "number", "cast"):
            self._narrow(condition, environment, _SET, told, condition)

    def _either(self, condition: Expr, environment: Environment, told: str) -> None:
        possible: list[Known] = []
        why: Contradiction | None = None
        said: set[tuple] | None = None
        for part in terms(condition, "||"):
            trial = self._trial()
            try:
                trial._hold(part, environment, told)
            except Contradiction as contradiction:
                why = contradiction
                continue
            finally:
                self._looked_at(trial)
            possible.append(trial)
            said = trial.touched if said is None else said & trial.touched
            if not said:
                return  # whatever the further parts say, nothing is said by all of them
        if said is None and why is not None:
            raise why
        # What every part that is left says, holds.
        for key in said or ():
            joined = possible[0]._domains[key]
            for trial in possible[1:]:
                joined = joined.joined(trial._domains[key])
            before = self._domains.get(key, ANY)
            after = before.met(joined)
            if after != before:
                self._set(key, after, told)

    def _trial(self) -> Known:
        """The same knowledge, to see what a part of a condition adds to it."""
        made = self.copy()
        if self._before is not None:
            made._before, made._after = {}, dict(self._after)
        return made

    def _looked_at(self, trial: Known) -> None:
        """Note what a trial has looked at."""
        if self._before is not None:
            for key, found in trial._before.items():
                self._before.setdefault(key, found)

    def _set(self, key: tuple, domain: Domain, told: str) -> None:
        self._domains[key], self._from[key] = domain, told
        self.touched.add(key)
        if self._before is not None:
            self._after[key] = domain

    def _of(self, key: tuple) -> Domain | None:
        """What is known of a value so far."""
        found = self._domains.get(key)
        if self._before is not None and key not in self._after:
            self._before.setdefault(key, found)
        return found

    def _narrow(self, expr: Expr, environment: Environment, wanted: Domain, told: str, condition: Expr) -> None:
        """Takes in that an expression has one of some values."""
        if not wanted.says_something:
            return
        key = self._names.key(expr, environment)
        made = self._made(expr, environment)
        held = (self._of(key) if key is not None else None) or ANY
        if made.met(held).met(wanted).is_empty:
            raise Contradiction(self._why(expr, environment, made, wanted, told, key, condition))
        narrowed = held.met(wanted)
        if key is not None and narrowed != held:
            self._set(key, narrowed, told)

    def _why(
        self,
        expr: Expr,
        environment: Environment,
        made: Domain,
        wanted: Domain,
        told: str,
        key: tuple | None,
        condition: Expr,
    ) -> str:
        if not made.met(wanted).is_empty:
            return f"{told} contradicts {self._from.get(key, 'what is known')}"
        source = self._names.source(expr, environment)
        text = print_expression(expr)
        if source is not None and source[0] in ("false", "true"):
            return f"{told} is asked for, and {text} is {source[0]} (:{source[1]})"
        if source is not None:
            return f"{told}, and {source[0]} (:{source[1]}) is {made.told()}"
        if text in ("false", "0"):
            return f"the condition {told} never holds"
        return f"{told} never holds" if text == print_expression(condition) else f"{told}, and {text} is {made.told()}"

    def _domain(self, expr: Expr, environment: Environment, steps: int = 0) -> Domain:
        """What an expression can be."""
        made = self._made(expr, environment, steps)
        key = self._names.key(expr, environment) if self._domains or self._before is not None else None
        known = self._of(key) if key is not None else None
        return made.met(known) if known is not None else made

    def _made(self, expr: Expr, environment: Environment, steps: int = 0) -> Domain:
        """What an expression can be by what it is made from."""
        if steps > MAX_STEPS or expr.kind in ("raw", "string"):
            return ANY
        value = self._names.constant(expr, environment)
        if value is not None:
            return of((value,))
        inner = plain(expr)
        if inner is not expr:
            return self._made(inner, environment, steps + 1)
        if expr.kind == "name":
            found = self._names.initialiser(expr.text, environment)
            return ANY if found is None else self._made(found[0], found[1], steps + 1)
        if expr.text in (*COMPARISONS, "&&", "||", "!"):
            return TRUTH
        if expr.kind == "binary":
            left, right = (self._domain(part, environment, steps + 1) for part in expr.parts)
            return combined(expr.text, left, right)
        if expr.kind == "ternary":
            taken, other = (self._domain(part, environment, steps + 1) for part in expr.parts[1:])
            return taken.joined(other)
        return self._called(expr, environment, steps) if expr.kind == "call" else ANY

    def _called(self, expr: Expr, environment: Environment, steps: int) -> Domain:
        callee, *arguments = expr.parts
        if callee.kind == "member":
            return Domain(None, 0) if callee.simple in _NOT_NEGATIVE else TRUTH if callee.simple in _TRUTHS else ANY
        if callee.kind != "name" or len(arguments) != 2 or callee.simple not in ("min", "max", "gcd"):
            return ANY
        if not all(self._names.is_whole(argument, environment) for argument in arguments):
            return ANY
        one, two = (self._domain(argument, environment, steps + 1) for argument in arguments)
        if callee.simple == "min":
            return least(one, two)
        if callee.simple == "max":
            return greatest(one, two)
        # Whatever the other number is, the result divides this one.
        sides = [divisors(side.only) for side in (one, two) if side.only is not None and side.only > 0]
        return sides[0].met(sides[-1]) if sides else Domain(None, 0)
