"""Explicit instantiations of a unit, written as uses: of instances, clang shows those that something refers to.

In: the index and a unit. Out: C++ text to be read behind the unit's own, one line an instantiation. A line that clang
cannot read (a type that is not visible where the unit ends) is an error of that line and costs its instance.
"""

from __future__ import annotations

from opwalker.link.index import Index
from opwalker.model.cpp import Function

#: Instantiations of one unit that are written.
_MOST = 400


def instantiation_uses(index: Index, path: str) -> str:
    """The text for a unit; empty where it instantiates nothing explicitly."""
    classes = index.names_of_kind("class")
    lines: dict[str, None] = {}
    for file in sorted(index.closure(path)):
        facts = index.facts(file)
        for function in facts.functions if facts else ():
            if "explicit_instantiation" not in function.flags or "global" in function.flags:
                continue
            if any(part in classes for part in function.scope) or len(lines) >= _MOST:
                continue
            lines[_use(function, len(lines))] = None
    return "\n".join(lines)


def _use(function: Function, number: int) -> str:
    """A pointer to one instance, in the scope that the instantiation stands in."""
    arguments = f"<{function.specialisation}>" if function.specialisation is not None else ""
    parameters = ", ".join(parameter.type for parameter in function.parameters)
    cast = f"static_cast<{function.return_type} (*)({parameters})>(&{function.name}{arguments})"
    opened = "".join("namespace { " if part.startswith("(") else f"namespace {part} {{ " for part in function.scope)
    text = f"{opened}[[maybe_unused]] static const auto opwalker_{number} = {cast};{' }' * len(function.scope)}"
    return " ".join(text.split())
