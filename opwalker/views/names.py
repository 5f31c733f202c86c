"""What a user typed, as an op of the tree: spellings understood, ambiguity and misspelling answered with candidates."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from opwalker.errors import InputError
from opwalker.model.walk import Op, PythonRef
from opwalker.notation.regex import Regex

_TORCH_OPS = Regex(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?\Z")


def spellings(name: str) -> tuple[str, ...]:
    """Full names that a text can stand for: ``torch.ops.ns.op.overload`` is ``ns::op.overload``."""
    match = _TORCH_OPS.match(name)
    if match:
        namespace, op, overload = match.groups()
        if overload and overload != "default":
            return (f"{namespace}::{op}.{overload}",)
        return (f"{namespace}::{op}",)
    return (name,)


def last_part(name: str) -> str:
    """The op's own name: without namespace, module and overload."""
    if "::" in name:
        return name.rsplit("::", 1)[1].split(".", 1)[0]
    return name.rsplit(".", 1)[-1]


def find_op(names: Sequence[str], name: str, build: str, op_of: Callable[[str], Op]) -> Op | None:
    """The op that a name means; None when no op fits. Raises InputError with the candidates when several do.

    ``op_of`` works an op out by its full name: only for those that fit.
    """
    known = set(names)
    for spelling in spellings(name):
        if spelling in known:
            return op_of(spelling)
    wanted = spellings(name)[0]
    if "::" in wanted:
        # `ns::op` with overloads only, or `ns::op.default`.
        base = wanted.removesuffix(".default")
        found = [full for full in names if full == base or full.startswith(base + ".")]
    else:
        found = [full for full in names if last_part(full) == wanted or full.endswith("." + wanted)]
    ops = [op_of(full) for full in found]
    if len(ops) > 1:
        ops = [op for op in ops if _in_build(op, build)] or ops
    if len(ops) > 1:
        raise InputError(f"{name} is ambiguous", "it can be " + ", ".join(op.name for op in ops[:12]))
    return ops[0] if ops else None


def _in_build(op: Op, build: str) -> bool:
    places = (*op.defs, *op.impls)
    return not places or any(p.builds is None or build in p.builds for p in places)


def nearest(names: Iterable[str], name: str, count: int = 5) -> list[str]:
    """Names that look like ``name``: full ones for a full name, otherwise by their own part."""
    everything = list(dict.fromkeys(names))
    wanted = spellings(name)[0]
    found = difflib.get_close_matches(wanted, everything, count, 0.6)
    by_part: dict[str, list[str]] = {}
    for full in everything:
        by_part.setdefault(last_part(full), []).append(full)
    for part in difflib.get_close_matches(last_part(wanted), by_part, count, 0.6):
        found += by_part[part]
    return list(dict.fromkeys(found))[:count]


def foreign_imports(texts: Mapping[str, str], paths: Iterable[str]) -> list[str]:
    """What files import from outside the tree, as ```name` (file:line)``: it may be what registers an op.

    ``texts`` are the files; the standard library and torch are left out.
    """
    own = {part.removesuffix(".py") for path in paths for part in path.split("/")}
    out = []
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), start=1):
            found = re.match(r"\s*(?:import|from)\s+([A-Za-z_]\w*)", line)
            if found and found[1] not in own and found[1] != "torch" and found[1] not in sys.stdlib_module_names:
                out.append(f"`{found[1]}` ({file}:{number})")
    return out


def not_found(
    name: str,
    names: Sequence[str],
    callers: Mapping[str, Sequence[PythonRef]],
    text: Callable[[str], str],
    paths: Iterable[str],
) -> InputError:
    """What a user needs to know when nothing registers a name: who calls it, what was seen instead."""
    wanted = spellings(name)[0]
    evidence = []
    calls = [c for c in callers.get(wanted, ()) if c.depth == 0]
    if calls:
        evidence.append("called at " + ", ".join(f"{c.file}:{c.call_line or c.line}" for c in calls[:3]))
        imported = foreign_imports({c.file: text(c.file) for c in calls[:3]}, paths)
        if imported:
            evidence.append("imported there from outside this source: " + ", ".join(imported[:4]))
    namespaces = sorted({full.split("::")[0] for full in names if "::" in full})
    if "::" in wanted or calls:
        evidence.append(f"namespaces seen: {', '.join(namespaces[:12]) or 'none'}")
    message = f"no registration of `{wanted}` in the indexed roots"
    if evidence:
        message += f" ({'; '.join(evidence)})"
    near = nearest(names, name)
    return InputError(message, f"nearest: {', '.join(near)}" if near else "`opwalker ops` lists what there is")
