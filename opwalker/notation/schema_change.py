"""What changed between two schemas of one op, and whether a caller of the old one notices.

In: two parsed schemas. Out: ``SchemaChange`` values in reading order. What counts as breaking is what torch's
``FunctionSchema.is_backward_compatible_with`` refuses: it goes by position also behind ``*``, wants equal defaults and
equal alias sets, and lets a type widen in an argument and narrow in a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.model.schema import OpSchema, SchemaArgument, SchemaReturn, SchemaType
from opwalker.notation.schema_text import print_alias, print_type

#: Types that the schema language tells apart and a call does not: all three are integers when they arrive.
_INTEGERS = {"SymInt": "int", "ScalarType": "int", "MemoryFormat": "int", "Layout": "int"}
_INTEGERS |= {"SymFloat": "float", "SymBool": "bool"}
#: Types that a ``Scalar`` (torch's number type) takes as well.
_NUMBERS = ("int", "float", "complex", "Scalar")


class SchemaChange(Struct, frozen=True):
    """One difference: in words, and whether torch calls it incompatible."""

    text: str
    breaking: bool


def schema_changes(old: OpSchema, new: OpSchema) -> tuple[SchemaChange, ...]:
    """Every difference between two schemas, besides their namespace; empty where they are the same."""
    return tuple(_changes(old, new))


def _changes(old: OpSchema, new: OpSchema) -> Iterator[SchemaChange]:
    if old.name != new.name:
        yield SchemaChange(f"name {old.name} became {new.name}", True)
    if (old.overload or "") != (new.overload or ""):
        yield SchemaChange(f"overload {old.overload or 'default'} became {new.overload or 'default'}", True)
    if old.vararg != new.vararg:
        yield SchemaChange(f"further arguments (...) {'are' if new.vararg else 'no longer'} taken", True)
    if old.varret != new.varret:
        yield SchemaChange(f"further results (...) {'are' if new.varret else 'no longer'} given", True)
    yield from _argument_changes(old.arguments, new.arguments)
    yield from _return_changes(old.returns, new.returns)


def _argument_changes(old: Sequence[SchemaArgument], new: Sequence[SchemaArgument]) -> Iterator[SchemaChange]:
    old_out, new_out = _outs(old), _outs(new)
    before, after = old[: len(old) - old_out], new[: len(new) - new_out]
    old_names, new_names = [a.name for a in before], [a.name for a in after]
    renamed = _renamed(before, after)
    for argument in before:
        if argument.name not in new_names and argument.name not in renamed:
            yield SchemaChange(f"argument {argument.name} removed", True)
    for number, argument in enumerate(after):
        if argument.name in old_names or argument.name in renamed.values():
            continue
        added = f"argument {argument.name} ({print_type(argument.type)}) added"
        if number < len(before):
            yield SchemaChange(f"{added} before others", True)
        elif argument.default is None:
            yield SchemaChange(f"{added} without a default", True)
        else:
            yield SchemaChange(f"{added} with default {argument.default}", False)
    for was, now in renamed.items():
        yield SchemaChange(f"argument {was} renamed to {now}", True)
    by_name = {a.name: (i, a) for i, a in enumerate(after)}
    for number, argument in enumerate(before):
        at = by_name.get(renamed.get(argument.name, argument.name))
        if at is None:
            continue
        if at[0] != number and _order(before, after, argument.name):
            yield SchemaChange(f"argument {argument.name} moved from place {number + 1} to {at[0] + 1}", True)
        yield from _argument_change(argument, at[1])
    yield from _out_changes(old[len(old) - old_out :], new[len(new) - new_out :])


def _order(before: Sequence[SchemaArgument], after: Sequence[SchemaArgument], name: str) -> bool:
    """Whether an argument stands in another order among those that both have."""
    kept = {a.name for a in before} & {a.name for a in after}
    old = [a.name for a in before if a.name in kept]
    new = [a.name for a in after if a.name in kept]
    return name in kept and old.index(name) != new.index(name)


def _outs(arguments: Sequence[SchemaArgument]) -> int:
    """How many arguments at the end are out arguments: keyword-only and written."""
    count = 0
    for argument in reversed(arguments):
        if not (argument.kwarg_only and argument.type.alias is not None and argument.type.alias.mutated):
            break
        count += 1
    return count


def _renamed(before: Sequence[SchemaArgument], after: Sequence[SchemaArgument]) -> dict[str, str]:
    """Old name → new name where one argument at the same place and of the same type has another name."""
    olds, news = {a.name for a in before}, {a.name for a in after}
    out = {}
    for old, new in zip(before, after, strict=False):
        if old.name not in news and new.name not in olds and _same(old.type, new.type):
            out[old.name] = new.name
    return out


def _argument_change(old: SchemaArgument, new: SchemaArgument) -> Iterator[SchemaChange]:
    name = new.name
    if not _same(old.type, new.type):
        fits = _takes(_plain(new.type), _plain(old.type))
        yield SchemaChange(
            f"argument {name}: {print_type(old.type, aliases=False)} became {print_type(new.type, aliases=False)}",
            not fits,
        )
    yield from _alias_change(f"argument {name}", old.type, new.type)
    if not _same_value(old.default, new.default):
        if old.default is None:
            yield SchemaChange(f"argument {name}: default {new.default} added", False)
        elif new.default is None:
            yield SchemaChange(f"argument {name}: default {old.default} removed", True)
        else:
            yield SchemaChange(f"argument {name}: default {old.default} became {new.default}", True)
    if old.kwarg_only != new.kwarg_only:
        how = "is keyword-only now" if new.kwarg_only else "may be given by position now"
        yield SchemaChange(f"argument {name} {how}", new.kwarg_only)


def _same_value(old: str | None, new: str | None) -> bool:
    """Whether two defaults are one value: ``7.0`` and ``7.`` are."""
    if old is None or new is None or old == new:
        return old == new
    try:
        return float(old) == float(new)
    except ValueError:
        return False


def _out_changes(old: Sequence[SchemaArgument], new: Sequence[SchemaArgument]) -> Iterator[SchemaChange]:
    for number in range(max(len(old), len(new))):
        if number >= len(new):
            yield SchemaChange(f"out argument {old[number].name} removed", True)
        elif number >= len(old):
            yield SchemaChange(f"out argument {new[number].name} added", True)
        else:
            if old[number].name != new[number].name:
                yield SchemaChange(f"out argument {old[number].name} renamed to {new[number].name}", True)
            yield from _argument_change(old[number], new[number])


def _return_changes(old: Sequence[SchemaReturn], new: Sequence[SchemaReturn]) -> Iterator[SchemaChange]:
    if len(old) != len(new):
        yield SchemaChange(f"{_results(len(old))} became {len(new)}", True)
        return
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        which = f"result {number + 1}" if len(old) > 1 else "the result"
        if not _same(before.type, after.type):
            fits = _takes(_plain(before.type), _plain(after.type))
            yield SchemaChange(
                f"{which}: {print_type(before.type, aliases=False)} became {print_type(after.type, aliases=False)}",
                not fits,
            )
        yield from _alias_change(which, before.type, after.type)
        if before.name != after.name:
            yield SchemaChange(f"{which}: name {before.name or 'none'} became {after.name or 'none'}", True)


def _results(count: int) -> str:
    return "1 result" if count == 1 else f"{count} results"


def _alias_change(what: str, old: SchemaType, new: SchemaType) -> Iterator[SchemaChange]:
    if (old.alias, old.more_aliases) == (new.alias, new.more_aliases):
        return
    was = old.alias is not None and old.alias.mutated
    now = new.alias is not None and new.alias.mutated
    if was != now:
        yield SchemaChange(f"{what} is {'now' if now else 'no longer'} written", True)
        return
    shown = [print_alias(alias) if alias is not None else "none" for alias in (old.alias, new.alias)]
    yield SchemaChange(f"{what}: alias set {shown[0]} became {shown[1]}", True)


def _plain(type: SchemaType) -> SchemaType:
    """A type without alias sets, each integer kind being ``int``."""
    return replace(
        type,
        base=_INTEGERS.get(type.base, type.base),
        alias=None,
        alias_at=0,
        items=tuple(_plain(item) for item in type.items),
        more_aliases=(),
    )


def _same(old: SchemaType, new: SchemaType) -> bool:
    return replace(old, alias=None, alias_at=0, more_aliases=()) == replace(
        new, alias=None, alias_at=0, more_aliases=()
    )


def _takes(wide: SchemaType, narrow: SchemaType) -> bool:
    """Whether what has the type ``narrow`` may stand where ``wide`` is expected."""
    if wide == narrow:
        return True
    if wide.suffixes[-1:] == ("?",):
        inner = replace(wide, suffixes=wide.suffixes[:-1])
        bare = replace(narrow, suffixes=narrow.suffixes[:-1]) if narrow.suffixes[-1:] == ("?",) else narrow
        return _takes(inner, bare)
    if wide.suffixes or narrow.suffixes or wide.items or narrow.items:
        return False  # lists are not covariant: the callee may put something in
    return wide.base == "Scalar" and narrow.base in _NUMBERS
