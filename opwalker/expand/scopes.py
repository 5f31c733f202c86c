"""Functions of one name by the scopes that they stand in: where there are many, few can be meant.

In: all functions of a name, and how a name is written where. Out: those that can be meant, in order; every one that is
left out stands in a scope that does not fit. How well a scope fits is ``resolve``'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from opwalker.expand.qualified import strip_arguments, visible
from opwalker.link.index import Index
from opwalker.model.cpp import Function

Named = tuple[str, Function]
Scope = tuple[str, ...]

#: Functions of one name that are looked at one by one.
FEW = 48
#: How near a using-declaration brings a name that stands in no scope around it.
_BROUGHT = 150


class Scopes:
    """The functions of one name."""

    def __init__(self, functions: Sequence[Named]) -> None:
        self.functions = functions
        self._by_scope: dict[Scope, list[int]] = {}
        self._by_last: dict[str, list[int]] = {}
        self._by_path: dict[str, list[int]] = {}
        for number, (path, function) in enumerate(functions):
            scope = visible(function.scope)
            self._by_scope.setdefault(scope, []).append(number)
            self._by_path.setdefault(path, []).append(number)
            if scope:
                self._by_last.setdefault(scope[-1], []).append(number)

    def qualified(self, qualifiers: Scope) -> Iterable[Named]:
        """Those whose scope ends as the qualifiers do."""
        return self._of(self._by_last.get(qualifiers[-1], ()))

    def near(self, scopes: Iterable[Scope], paths: Set[str]) -> Iterable[Named]:
        """Those of some scopes, and those of some files."""
        numbers = [number for scope in scopes for number in self._by_scope.get(scope, ())]
        here = self._by_path.keys() & paths
        numbers += [number for path in here for number in self._by_path[path]]
        return self._of(numbers)

    def _of(self, numbers: Iterable[int]) -> list[Named]:
        return [self.functions[number] for number in sorted(set(numbers))]


def used_names(index: Index, name: str, scope: Scope, near: Set[str]) -> dict[Scope, int]:
    """The scopes from which using-declarations in some files bring a name in, and how many scopes further out than
    ``scope`` each of them stands."""
    around = visible(scope)
    out: dict[Scope, int] = {}
    for path, alias in index.entries(name, ("alias",), lambda facts: facts.aliases):
        if alias.kind == "using" and path in near:
            of = tuple(p for p in strip_arguments(alias.target).split("::") if p)[:-1]
            into = visible(alias.scope)
            rank = len(around) - len(into) if around[: len(into)] == into else _BROUGHT
            out[of] = min(rank, out.get(of, rank))
    return out


def used_here(aliases: Iterable[tuple[str, str]], name: str, functions: Iterable[Named]) -> list[str] | None:
    """The parts of the name that a using-declaration of the function at hand brings in, if it is one of ``functions``:
    where it is a library's, what is meant may as well be one of them."""
    for alias, target in aliases:
        if alias == name and target.endswith(f"::{name}"):
            parts = [part for part in target.split("::") if part]
            if any(visible(function.scope)[1 - len(parts) :] == tuple(parts[:-1]) for _, function in functions):
                return parts
    return None
