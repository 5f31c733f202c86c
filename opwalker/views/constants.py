"""What a tree says of names outside of a body: the values of constants, and functions that change what they are given.

In: a name and the body that it stands in. Out: the text of a constant's value, nothing where several are possible;
whether a function takes a reference.
"""

from __future__ import annotations

from functools import partial

from opwalker.expand.bodies import Body
from opwalker.expand.resolve import visible
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.cpp import Variable
from opwalker.views.value_facts import Known

#: The value of a constant is at most so long.
_LONG = 60


def constant_seen(workbench: Workbench, unit: Unit, name: str, body: Body) -> str | None:
    """The value's text of a constant that the body sees, where there is one such text."""
    index = workbench.index
    *qualifiers, simple = [part for part in name.split("::") if part]
    if not simple.isidentifier() or simple not in index.names_of_kind("variable"):
        return None
    closure = index.closure(body.root)
    around = visible(body.context.scope)
    values = set()
    for path, entry in index.entries(simple, ("variable",), lambda facts: facts.variables):
        if path not in closure or not isinstance(entry, Variable) or not (entry.constant and entry.value):
            continue
        scope = visible(entry.scope)
        end = len(scope) - len(qualifiers)
        if end < 0 or list(scope[end:]) != qualifiers or scope[:end] != around[:end]:
            continue
        terms = index.declared(path).conditions[entry.condition]
        if unit.macros.truth(path, terms, entry.offset, body.root) is not False:
            values.add(entry.value.strip().strip("{}= "))
    return values.pop() if len(values) == 1 and len(next(iter(values))) < _LONG else None


def takes_reference(workbench: Workbench, name: str, position: int) -> bool:
    """Whether some function of the tree with this name takes a reference there that is not constant."""
    types = [f.parameters[position].type for _, f in workbench.index.functions(name) if position < len(f.parameters)]
    return any(t.rstrip().endswith("&") and not _is_constant(t) for t in types)


def known_of(workbench: Workbench, unit: Unit | None = None) -> Known:
    """What the tree knows beyond a body; without a unit, nothing of constants."""
    changed = partial(takes_reference, workbench)
    if unit is None:
        return Known(takes_reference=changed)
    return Known(partial(constant_seen, workbench, unit), changed)


def _is_constant(type_text: str) -> bool:
    return type_text.lstrip().startswith("const ") or " const" in type_text or type_text.rstrip().endswith("&&")
