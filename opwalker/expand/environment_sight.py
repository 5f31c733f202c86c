"""What of the tree can be seen from a place: the part of ``Environment`` that narrows entries of a name to those meant.

In: entries of one simple name, as ``Index.entries`` gives them. Out: those that the translation unit reads, and of them
those that qualifiers, or the scopes around the place, can mean. What they say is not looked at. Names are asked for
again and again, so each answer is kept for as long as the list of entries is the same.
"""

from __future__ import annotations

from collections.abc import Callable

from opwalker.expand.resolve import visible
from opwalker.expand.terms import Term, Unknown

#: Up to this depth what cannot be worked out is not tried again.
_SHALLOW = 12


class Sight:
    """Entries of names narrowed by files, conditions and scopes."""

    def once(self, memo: dict, key: tuple, read: Callable[[], Term]) -> Term:
        """What is read the first time for a key; or what is raised then, where no more lies behind."""
        held = memo.get(key)
        if held is None:
            try:
                held = read()
            except Unknown as unknown:
                if self.depth > _SHALLOW:
                    raise
                held = unknown
            memo[key] = held
        if isinstance(held, Unknown):
            raise held.with_traceback(None)  # or each time adds where it went, and keeps that alive
        return held

    def _seen(self, entries):
        """Entries of files that the translation unit reads, in conditions that may hold; nearest scope first."""
        context = self.context
        key = "seen", id(entries), context.root, context.path
        held = self.tools.memo.get(key)
        if held is None:
            # What stands beside the answer keeps the list alive: its identity is nobody else's meanwhile.
            held = self.tools.memo[key] = entries, self._read_here(entries)
        return held[1]

    def _read_here(self, entries) -> list:
        near = self.tools.index.near(self.context.root, self.context.path)
        out = []
        for path, entry in entries:
            if path not in near:
                continue
            facts = self.tools.index.declared(path)
            terms = facts.conditions[entry.condition]
            if terms and self.tools.resolver.holds(path, terms, entry.offset) is False:
                continue
            out.append((path, entry))
        if len({path for path, _ in out}) > 1:
            # Of two headers that stand in for one another, the build reads one.
            read = self.tools.resolver.read_by(self.context.root)
            out = [item for item in out if item[0] in read or item[0] == self.context.path] or out
        return sorted(out, key=lambda item: -len(item[1].scope))

    def _declared(self, name: str):
        """The classes of a simple name that are declared, and of which no definition need be in the source."""
        return self.tools.index.entries(name, ("declared class",), lambda facts: facts.declared_classes)

    def _in_reach(self, scope: tuple[str, ...], from_scope: tuple[str, ...]) -> bool:
        context = self.context
        key = "reach", scope, from_scope, context.root, context.usings
        found = self.tools.memo.get(key)
        if found is None:
            found = self.tools.memo[key] = self._reaches(scope, from_scope)
        return found

    def _reaches(self, scope: tuple[str, ...], from_scope: tuple[str, ...]) -> bool:
        seen = visible(scope)
        if seen == from_scope[: len(seen)]:
            return True
        outer = self._outer(scope)
        if outer == self._outer(from_scope)[: len(outer)]:
            return True
        return any(used in (seen, outer) for used in self.tools.resolver.used_namespaces(self.context))

    def _outer(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        return self.tools.resolver.outer(scope, self.context)

    def _ends_with(self, scope: tuple[str, ...], wanted: tuple[str, ...], outer: tuple[str, ...]) -> bool:
        """Whether qualifiers can mean a scope, as they are written or without the inline namespaces (``outer``)."""
        return visible(scope)[-len(wanted) :] == wanted or (bool(outer) and self._outer(scope)[-len(outer) :] == outer)

    def _meant(self, entries, wanted: tuple[str, ...]):
        """Of entries of one simple name, those that qualifiers mean; without any, those in reach if there are any."""
        context = self.context
        key = "meant", id(entries), wanted, context.root, context.path, context.scope, context.usings
        held = self.tools.memo.get(key)
        if held is None:
            held = self.tools.memo[key] = entries, self._of_scope(self._seen(entries), wanted)
        return held[1]

    def _of_scope(self, found, wanted: tuple[str, ...]):
        if wanted:
            outer = self._outer(wanted)
            return [item for item in found if self._ends_with(item[1].scope, wanted, outer)]
        scopes = visible(self.context.scope)
        near = [item for item in found if self._in_reach(item[1].scope, scopes)]
        if not near:
            return found
        inner = max(len(visible(item[1].scope)) for item in near)
        return [item for item in near if len(visible(item[1].scope)) == inner]
