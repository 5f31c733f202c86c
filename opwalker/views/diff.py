"""Two versions of a source side by side: ops, schemas, dispatch keys, kernels, instances, launches, shapes.

In: the ops, kernels and surveys of both. Out: a ``DiffResult``. Only what the build in question compiles is compared;
what one side does not know for sure is never called a change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from opwalker.model.diff import (
    DiffResult,
    InstancesChanged,
    KernelMoved,
    KernelPlace,
    KernelsDiff,
    KeysChanged,
    LaunchChanged,
    OpChanged,
    OpMoved,
    OpPlace,
    OpsDiff,
    OpSurvey,
    ShapeChanged,
    Survey,
)
from opwalker.model.walk import Gap, KernelEntry, Op, SourceInfo
from opwalker.notation.op_schema import SchemaError, parse_schema
from opwalker.notation.schema_change import schema_changes

_FIELDS = ("grid", "block", "shared")


class Version(Struct, frozen=True):
    """One side of a comparison."""

    source: SourceInfo
    ops: tuple[Op, ...]
    kernels: tuple[KernelEntry, ...]
    survey: Survey
    gaps: tuple[Gap, ...] = ()


def ops_of_build(ops: Iterable[Op], build: str) -> tuple[Op, ...]:
    """The ops that a build has: those with a definition (or, without one, an implementation) that it compiles."""
    return tuple(op for op in ops if any(o.builds is None or build in o.builds for o in (op.defs or op.impls)))


def compare(old: Version, new: Version, build: str) -> DiffResult:
    """What changed from ``old`` to ``new`` in what ``build`` compiles."""
    before = {op.name: op for op in old.ops}
    after = {op.name: op for op in new.ops}
    moved = _moved_namespace(before, after)
    pairs = {name: name for name in before if name in after} | moved
    ops = OpsDiff(
        added=tuple(_place(after[n]) for n in sorted(after) if n not in before and n not in moved.values()),
        removed=tuple(_place(before[n]) for n in sorted(before) if n not in pairs),
        moved=_moved(before, after, pairs),
        changed=tuple(c for c in (_changed(before[n], after[m]) for n, m in sorted(pairs.items())) if c),
        keys=tuple(k for k in (_keys(before[n], after[m], build) for n, m in sorted(pairs.items())) if k),
    )
    kernels = _kernels(old.kernels, new.kernels)
    launches, shapes = _ways(dict(old.survey.ops), dict(new.survey.ops), pairs)
    gaps, old_gaps = _without(new.gaps, old.gaps), _without(old.gaps, new.gaps)
    return DiffResult(
        old=old.source,
        new=new.source,
        build=build,
        ops=ops,
        kernels=kernels,
        launches=launches,
        shapes=shapes,
        breaking=tuple(_breaking(ops)),
        gaps=gaps,
        old_gaps=old_gaps,
        gaps_in_both=len(set(new.gaps)) - len(gaps),
    )


def _without(gaps: Iterable[Gap], others: Iterable[Gap]) -> tuple[Gap, ...]:
    """The gaps of one version that the other has not: of as many alike in both, wherever they stand, none."""
    left = Counter((one.kind, one.reason) for one in set(others))
    out = []
    for one in dict.fromkeys(gaps):
        left[one.kind, one.reason] -= 1
        if left[one.kind, one.reason] < 0:
            out.append(one)
    return tuple(out)


def _place(op: Op) -> OpPlace:
    at = next(iter((*op.defs, *op.impls)), None)
    return OpPlace(op.name, op.schema or op.signature, at.file if at else None, at.line if at else None)


def _moved_namespace(before: dict[str, Op], after: dict[str, Op]) -> dict[str, str]:
    """Old name → new name of ops that are gone from one namespace and new, under the same short name, in one other."""
    gone: dict[str, list[str]] = {}
    came: dict[str, list[str]] = {}
    for names, other, short in ((before, after, gone), (after, before, came)):
        for name in names:
            if name not in other and "::" in name:
                short.setdefault(name.partition("::")[2], []).append(name)
    return {
        found[0]: came[short][0] for short, found in gone.items() if len(found) == 1 and len(came.get(short, ())) == 1
    }


def _moved(before: dict[str, Op], after: dict[str, Op], pairs: dict[str, str]) -> tuple[OpMoved, ...]:
    out = []
    for name, to in sorted(pairs.items()):
        old, new = _place(before[name]).file, _place(after[to]).file
        stayed = {d.file for d in before[name].defs} & {d.file for d in after[to].defs}
        if name != to or (old != new and not stayed):
            out.append(OpMoved(name, to, old, new, name != to))
    return tuple(out)


def _changed(old: Op, new: Op) -> OpChanged | None:
    if old.schema is None or new.schema is None:
        was, now = old.schema or old.signature, new.schema or new.signature
        if was is None or now is None or was == now:
            return None
        # Without two schemas there is no rule for what still fits: only that it differs is known.
        said = "signature differs" if old.schema == new.schema else "a schema on one side, a signature on the other"
        return OpChanged(new.name, was, now, (f"{said}: not judged",), False)
    if old.schema == new.schema:
        return None
    try:
        changes = schema_changes(parse_schema(old.schema), parse_schema(new.schema))
    except SchemaError as error:
        return OpChanged(new.name, old.schema, new.schema, (f"schema differs, and cannot be read: {error}",), True)
    if not changes:
        return None
    said = tuple(change.text for change in changes)
    return OpChanged(new.name, old.schema, new.schema, said, any(change.breaking for change in changes))


def _keys(old: Op, new: Op, build: str) -> KeysChanged | None:
    was, now = _keys_of(old, build), _keys_of(new, build)
    if was == now:
        return None
    return KeysChanged(new.name, tuple(sorted(now - was)), tuple(sorted(was - now)))


def _keys_of(op: Op, build: str) -> set[str]:
    return {i.key for i in op.impls if i.key and (i.builds is None or build in i.builds)}


def _kernels(old: Sequence[KernelEntry], new: Sequence[KernelEntry]) -> KernelsDiff:
    before, after = _by_name(old), _by_name(new)
    both = sorted(before.keys() & after.keys())
    return KernelsDiff(
        added=tuple(_kernel(n, after[n]) for n in sorted(after.keys() - before.keys())),
        removed=tuple(_kernel(n, before[n]) for n in sorted(before.keys() - after.keys())),
        moved=tuple(
            KernelMoved(n, _files(before[n]), _files(after[n]))
            for n in both
            if not set(_files(before[n])) & set(_files(after[n]))
        ),
        instances=tuple(c for c in (_instances(n, before[n], after[n]) for n in both) if c),
    )


def _by_name(kernels: Sequence[KernelEntry]) -> dict[str, list[KernelEntry]]:
    out: dict[str, list[KernelEntry]] = {}
    for kernel in kernels:
        out.setdefault(kernel.name, []).append(kernel)
    return out


def _files(entries: Sequence[KernelEntry]) -> tuple[str, ...]:
    return tuple(sorted({entry.file for entry in entries}))


def _kernel(name: str, entries: Sequence[KernelEntry]) -> KernelPlace:
    ops = tuple(sorted({op for entry in entries for op in entry.ops}))
    return KernelPlace(name, _files(entries), ops, len({i for entry in entries for i in entry.instances}))


def _instances(name: str, old: Sequence[KernelEntry], new: Sequence[KernelEntry]) -> InstancesChanged | None:
    was = {i for entry in old for i in entry.instances}
    now = {i for entry in new for i in entry.instances}
    # What is not known in full may hold the rest: then nothing is called new, or gone.
    known_old = all(entry.complete for entry in old)
    known_new = all(entry.complete for entry in new)
    added = tuple(sorted(now - was)) if known_old else ()
    removed = tuple(sorted(was - now)) if known_new else ()
    if not added and not removed:
        return None
    sides = [side for side, known in (("old", known_old), ("new", known_new)) if not known]
    note = f"the instances of the {sides[0]} version are not all known" if sides else None
    return InstancesChanged(name, added, removed, note)


def _ways(
    old: dict[str, OpSurvey], new: dict[str, OpSurvey], pairs: dict[str, str]
) -> tuple[tuple[LaunchChanged, ...], tuple[ShapeChanged, ...]]:
    launches: list[LaunchChanged] = []
    shapes: list[ShapeChanged] = []
    for name, to in sorted(pairs.items()):
        if name not in old or to not in new:
            continue
        before, after = old[name], new[to]
        kernels = sorted({form.kernel for form in before.launches} & {form.kernel for form in after.launches})
        for kernel in kernels:
            for one in _FIELDS:
                was, now = _forms(before, kernel, one), _forms(after, kernel, one)
                if was != now:
                    gone, came = tuple(sorted(was - now)), tuple(sorted(now - was))
                    launches.append(LaunchChanged(to, kernel, one, gone, came))
        was_shaped, now_shaped = dict(before.shapes), dict(after.shapes)
        for argument in sorted(was_shaped.keys() | now_shaped.keys()):
            if was_shaped.get(argument) != now_shaped.get(argument):
                shapes.append(ShapeChanged(to, argument, was_shaped.get(argument), now_shaped.get(argument)))
    return tuple(launches), tuple(shapes)


def _forms(one: OpSurvey, kernel: str, name: str) -> set[str]:
    values = (getattr(form, name) for form in one.launches if form.kernel == kernel)
    return {value for value in values if value is not None}


def _breaking(ops: OpsDiff) -> Iterable[str]:
    for gone in ops.removed:
        yield f"{gone.name} removed"
    for moved in ops.moved:
        if moved.breaking:
            yield f"{moved.name} is {moved.to} now"
    for changed in ops.changed:
        if changed.breaking:
            yield f"{changed.name}: {'; '.join(changed.changes)}"
    for keys in ops.keys:
        if keys.removed:
            yield f"{keys.name} lost {', '.join(keys.removed)}"
