"""The names in a kernel's index that stand for something: what each of them holds.

In: an index and the world that its symbols are of. Out: ``IndexName`` values, those that the index itself has first.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from opwalker.expand.value_words import closes
from opwalker.expand.values import World, shown
from opwalker.model.layout import IndexName, LayoutFact
from opwalker.notation.polynomial import Atom, Poly

#: Names that are told of one index, and how long what one holds may be.
_MOST, _LONG = 8, 100


def names_of(world: World, index: Poly) -> tuple[IndexName, ...]:
    """What the names of an index hold, and the names in that; a name of two different things is left out."""
    out: dict[str, IndexName] = {}
    left = sorted(index.all_atoms())
    seen: set[Atom] = set()
    while left and len(out) < _MOST:
        atom = left.pop(0)
        if atom in seen:
            continue
        seen.add(atom)
        made = world.definitions.get(atom)
        cases = world.choices.get(atom, ())
        for part in (*((made,) if made is not None else ()), *(value for _, value in cases)):
            left += sorted(part.all_atoms())
        found = _named(atom.name.rstrip("'"), made, cases)
        if found is not None and out.setdefault(found.name, found) != found:
            return ()
    # A symbol with a mark is another thing of the same name.
    plain = {atom.name.rstrip("'") for atom in seen if atom.name.endswith("'")}
    both = {atom.name for atom in seen} & plain
    return tuple(one for one in out.values() if one.name not in both)


def clear_names(world: World, facts: Iterable[LayoutFact]) -> list[LayoutFact]:
    """Facts without names that stand for something else where another index has them: a loop's counter, say."""
    out = []
    for fact in facts:
        kept = tuple(one for one in fact.names if _is_clear(world, one))
        out.append(replace(fact, names=kept) if kept != fact.names else fact)
    return out


def _is_clear(world: World, held: IndexName) -> bool:
    same = world.namesakes(held.name)
    return all(_named(held.name, world.definitions.get(a), world.choices.get(a, ())) == held for a in same)


def _named(name: str, made: Poly | None, cases: tuple[tuple[str, Poly], ...]) -> IndexName | None:
    if made is not None and len(text := _bare(made)) <= _LONG and text != name:
        return IndexName(name, text)
    told = tuple((under, _bare(value)) for under, value in cases)
    return IndexName(name, cases=told) if told and all(len(text) <= _LONG for _, text in told) else None


def _bare(value: Poly) -> str:
    """A value without brackets around all of it."""
    text = shown(value)
    return text[1:-1] if text.startswith("(") and closes(text) else text
