"""Host functions that an expression can hold: named in it, in a variable's values, in a table, or returned by a call.

In: a span of a body that is called. Out: ``Named`` values: a definition, and the place that names it, where its
explicit template arguments stand. Kernels are found by ``expand/kernels.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.frames import Frame, Named, unit_of
from opwalker.expand.giving import PLAIN_RETURNS
from opwalker.expand.instances import InstanceReader
from opwalker.expand.mentions import NAME, whole_name, written_arguments
from opwalker.expand.resolve import Candidate, Context, Resolver, strip_arguments
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.link.index import Index
from opwalker.model.body import Span2
from opwalker.notation.regex import Regex

_MAX_RETURNS = 3
_BLANKS = Regex(r"\s*")


class HostFinder:
    """Follows expressions to host functions."""

    def __init__(self, index: Index, resolver: Resolver, bodies: Bodies, instances: InstanceReader) -> None:
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._instances = instances

    def held_by(self, body: Body, span: Span2, frame: Frame) -> list[Named]:
        """Host functions that a called variable can hold: named in its initialiser, in assignments to it, or returned
        by a function that either calls."""
        text = body.text(span)
        word = re.match(r"\(?\s*\*?\s*(\w+)", text)
        if word is None:
            return []
        name = word.group(1)
        out: dict[tuple, Named] = {}
        if name not in body.locals:
            if text.endswith(")"):
                self._collect(body, span, frame, out, 0)
            else:
                self._tabled(name, body, frame, out)
            return list(out.values())
        spans = [f.value for f in body.locals_at(name, span[0]) if f.value and body.lambda_at(f.value) is None]
        spans += [a.value for a in body.assigns_at(name, span[0])]
        for found in spans:
            self._collect(body, found, frame, out, 0)
        return list(out.values())

    def _tabled(self, name: str, body: Body, frame: Frame, out: dict) -> None:
        """Functions named in the initialiser of a variable outside functions."""
        near = self._index.near(frame.root, body.path)
        names = self._index.names_of_kind("function")
        for path, variable in self._index.entries(name, ("variable",), lambda facts: facts.variables):
            for match in NAME.finditer(variable.value or "") if path in near else ():
                found = "".join(match.group().split())
                if found.split("::")[-1] in names:
                    context = Context(path, frame.root, variable.scope)
                    written = written_arguments(variable.value, match.end())
                    for candidate in self._resolver.function(found, context, None, kernel=False).candidates:
                        out[(*candidate.key, written)] = Named(candidate, context=context, written=written)

    def _collect(self, body: Body, span: Span2, frame: Frame, out: dict, depth: int) -> None:
        """Functions named in a span; where one is called there, those that it returns."""
        names = self._index.names_of_kind("function")
        text = body.expanded.full
        at = span[0]
        for match in NAME.finditer(text, *span):
            if match.start() < at:
                continue
            name, at = whole_name(text, match, span[1])
            if name.split("::")[-1] not in names or name in body.locals:
                continue
            after, given = at, ()
            if text.startswith("<", after):
                close = match_angle(text[: span[1]], after)
                if close > 0:
                    given = tuple(split_commas(text, after + 1, close - 1))
                    after = close
            called = text.startswith("(", _BLANKS.match(text, after).end())
            found = self._resolver.function(name, frame.context(body), None, kernel=False).candidates
            if not called:
                for candidate in found:
                    out[(*candidate.key, body.key, match.start())] = Named(candidate, body, frame, match.start(), given)
            elif depth < _MAX_RETURNS:
                usable = [c for c in found if c.function.return_type not in PLAIN_RETURNS]
                for held in self._entered(usable, body, frame, name, match.start()):
                    inner = self._bodies.of(held.candidate, held.root)
                    for returned in inner.facts.returns:
                        self._collect(inner, returned, held, out, depth + 1)

    def _entered(
        self, candidates: list[Candidate], body: Body, frame: Frame, name: str, offset: int
    ) -> Iterator[Frame]:
        """The frames in which functions are read whose results are called."""
        simple = strip_arguments(name).split("::")[-1]
        call = next((c for c in body.facts.calls if c.callee[0] == offset and c.simple == simple), None)
        if not candidates:
            return
        if call is None:
            for candidate in candidates:
                yield Frame(candidate, unit_of(self._index, candidate, frame.root), frame.steps, {}, dict(frame.types))
            return
        for fit, _, doubt in self._instances.entries(candidates, body, frame, call):
            yield Frame(
                fit.candidate, unit_of(self._index, fit.candidate, frame.root), frame.steps, {}, dict(frame.types),
                fit.bound, fit.why, frame.certain, owner=fit.owner, given=fit.given, doubt=doubt,
            )  # fmt: skip
