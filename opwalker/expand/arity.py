"""How many arguments functions take, with the defaults that other declarations of them give.

In: functions. Out: yes or no for a number of arguments. Types are not looked at.
"""

from __future__ import annotations

from opwalker.link.index import Index
from opwalker.model.cpp import Function, Parameter


def is_pack(parameter: Parameter) -> bool:
    """Whether a function parameter takes any number of arguments."""
    kind = parameter.type
    return ("..." in kind and kind.rstrip(" &").endswith("...")) or "..." in parameter.name


def accepts(function: Function, count: int) -> bool:
    """Whether a function can be called with ``count`` arguments."""
    required, packs = 0, False
    for parameter in function.parameters:
        if is_pack(parameter):
            packs = True
        elif parameter.default is None:
            required += 1
    return required <= count and (packs or count <= len(function.parameters))


class Arity:
    """The functions of one tree, by how many arguments they take."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._declared: dict[str, list[Function]] = {}

    def takes(self, function: Function, count: int) -> bool:
        """Whether a function takes ``count`` arguments; defaults may stand in a declaration of it elsewhere."""
        if accepts(function, count):
            return True
        if count > len(function.parameters) or not function.body_end:
            return False
        scope = tuple(part for part in function.scope if not part.startswith("("))
        return any(
            len(other.parameters) == len(function.parameters)
            and accepts(other, count)
            and tuple(part for part in other.scope if not part.startswith("("))[-1:] == scope[-1:]
            for other in self._with_defaults(function.name)
        )

    def _with_defaults(self, name: str) -> list[Function]:
        """The declarations of a name that say more than its definition does: those with a default."""
        found = self._declared.get(name)
        if found is None:
            found = self._declared[name] = [
                function
                for _, function in self._index.functions(name)
                if not function.body_end and any(p.default is not None for p in function.parameters)
            ]
        return found
