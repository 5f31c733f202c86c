"""Ops of the source beside what the libraries register.

In: ops, libraries, the source side. Out: ``OpAudit`` values. An op counts as found when a library registers its schema
under its namespace, exports its symbol, or, for pybind11 and TVM-FFI, holds its name where it has to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from opwalker.model.audit import OpAudit, Provenance
from opwalker.model.binary import BuiltOp, LibraryFacts
from opwalker.model.ops import Op, OpDef
from opwalker.model.places import Span
from opwalker.notation.schema_text import normalise_schema_text
from opwalker.views.audit.side import SourceSide

#: Ops that no library holds: Python registers them, or torch's own tables do.
_NOT_BUILT = ("python", "aten")
_FFI = "__tvm_ffi_"
#: A constructor has no string of its own: it is there where its class is.
_CONSTRUCTOR = "__init__"


class _Found(Struct, frozen=True):
    library: str
    op: BuiltOp


def audit_ops(side: SourceSide, ops: Sequence[Op], libraries: Sequence[LibraryFacts]) -> list[OpAudit]:
    """Every compiled op of the source, and every schema that only a library has, by name."""
    built = _index(libraries)
    audits = [
        _torch(side, op, built) if op.kind == "torch_library" else _other(side, op, libraries)
        for op in ops
        if op.kind not in _NOT_BUILT
    ]
    known = {op.name for op in ops}
    audits += _binary_only(side, built, known)
    return sorted(audits, key=lambda audit: (audit.name, audit.status))


def _index(libraries: Iterable[LibraryFacts]) -> dict[str, list[_Found]]:
    """What is registered, by full name; a namespace that is not told leaves the bare name."""
    found: dict[str, list[_Found]] = {}
    for library in libraries:
        for op in library.ops:
            name = normalise_schema_text(op.text).partition("(")[0].strip() if op.role == "schema" else op.text
            full = name if "::" in name or op.namespace is None else f"{op.namespace}::{name}"
            found.setdefault(full.removesuffix(".default"), []).append(_Found(library.path, op))
    return found


def _torch(side: SourceSide, op: Op, built: dict[str, list[_Found]]) -> OpAudit:
    here = [d for d in op.defs if d.builds is None or side.build in d.builds]
    bare = op.name.partition("::")[2]
    found = built.get(op.name, [])
    # A library whose symbols are stripped does not say the namespace: then its schema alone is what is found.
    unplaced = [one for one in built.get(bare, ()) if one.op.namespace is None and "::" not in one.op.text]
    defining = [one for one in (*found, *unplaced) if one.op.role in ("schema", "name")]
    if not op.defs:
        defining = found
    keys = tuple(sorted({i.key for i in op.impls if i.key and (i.builds is None or side.build in i.builds)}))
    span = _span(here or op.defs) or next((Span(i.file, i.line, i.line) for i in op.impls), None)
    schema = next((d.schema for d in here if d.schema), None) or op.schema
    if not defining:
        reason = _why_absent(side, op, here)
        return OpAudit(
            op.name, op.kind, "source_only", schema=schema, keys=keys, span=span,
            reason=reason or "no library registers it, and nothing in the build files says why",
            explained=reason is not None,
        )  # fmt: skip
    schemas = {normalise_schema_text(one.op.text): None for one in defining if one.op.role == "schema"}
    other = next((text for text in schemas if schema is not None and not _same(text, schema)), None)
    built_keys = _keys(found)
    differences: list[str] = []
    remarks: list[str] = []
    if other is not None and schema is not None and _is_cut(other, schema):
        # A compiler may keep no more of a string than it copies from memory.
        remarks.append("its string is cut in the library behind what is the same")
        other = None
    elif other is not None:
        differences.append("the schemas differ")
    if built_keys is not None and set(built_keys) - set(keys):
        differences.append(f"the libraries implement it for {', '.join(sorted(set(built_keys) - set(keys)))} as well")
    if not any(one.op.namespace for one in defining):
        remarks.append("its schema is there; the library does not show under which namespace")
    elif not here and op.defs:
        differences.append(f"the source registers it for {', '.join(_builds(op))} only")
    return OpAudit(
        op.name, op.kind, "both", tuple(dict.fromkeys(one.library for one in defining)), schema,
        other if schema is not None else next(iter(schemas), None), keys, built_keys, span,
        "; ".join((*differences, *remarks)) or None, not differences,
    )  # fmt: skip


def _same(one: str, other: str) -> bool:
    """Whether two schemas say the same: as texts, or else once they are read."""
    bare = [text.partition("(")[0].rpartition("::")[2] + "(" + text.partition("(")[2] for text in (one, other)]
    if bare[0].replace(" ", "") == bare[1].replace(" ", ""):
        return True
    from opwalker.notation.op_schema import SchemaError, parse_schema

    try:
        return parse_schema(bare[0]) == parse_schema(bare[1])
    except SchemaError:
        return False


def _is_cut(built: str, schema: str) -> bool:
    """Whether what a library holds is a schema's arguments, with something behind them that is none of a schema."""
    arguments = schema.rpartition("->")[0]
    return built.startswith(arguments) and not _is_schema(built)


def _keys(found: Iterable[_Found]) -> tuple[str, ...] | None:
    """The dispatch keys that blocks of implementations show; None where one of them does not say its key."""
    keys = [one.op.key for one in found if one.op.role == "impl"]
    return tuple(sorted({key for key in keys if key})) if keys and None not in keys else None


def _builds(op: Op) -> list[str]:
    return list(dict.fromkeys(build for d in op.defs for build in d.builds or ()))


def _span(defs: Iterable[OpDef]) -> Span | None:
    return next((Span(d.file, d.line, d.line) for d in defs), None)


def _why_absent(side: SourceSide, op: Op, here: Sequence[OpDef]) -> str | None:
    """Why the libraries need not have an op, as far as the source says."""
    if op.defs and not here:
        builds = _builds(op)
        under = [f"`#if {d.condition}`" for d in op.defs if d.condition]
        if not builds and under:
            return f"it stands under {under[0]}, which no build of the build files sets"
        return f"it is registered for {', '.join(builds)} only" if builds else "no build compiles its file"
    places = [(d.file, d.condition) for d in here] or [(i.file, i.condition) for i in op.impls]
    reasons = [side.absent(file) or (f"it stands under `#if {condition}`" if condition else None)
               for file, condition in places]  # fmt: skip
    return reasons[0] if reasons and all(reasons) else None


def _other(side: SourceSide, op: Op, libraries: Sequence[LibraryFacts]) -> OpAudit:
    """An op of another binding: found by the symbol that its library exports, or by module and name."""
    name = op.name.rpartition("::")[2].rpartition(".")[2]
    owner = op.name.rpartition(".")[0].rpartition(".")[2]
    makers = {library for place in (*op.defs, *op.impls) for library in side.libraries_of(place.file)}
    found = []
    for library in libraries:
        words = library.words
        if op.kind == "ctypes":
            there = name in library.exports
        elif op.kind == "tvm_ffi":
            # A global function goes by its whole name, a method by its own, in the library that its file goes into.
            method = library.path in makers and (name in words or (name == _CONSTRUCTOR and owner != ""))
            there = f"{_FFI}{name}" in library.exports or op.name in words or method
        else:
            there = op.name.partition(".")[0] in library.modules and (name in words or name == _CONSTRUCTOR)
        if there:
            found.append(library.path)
    places = op.defs or op.impls
    span = Span(places[0].file, places[0].line, places[0].line) if places else None
    if found:
        return OpAudit(op.name, op.kind, "both", tuple(found), op.schema, span=span)
    here = [d for d in op.defs if d.builds is None or side.build in d.builds]
    reason = _why_absent(side, op, here)
    return OpAudit(
        op.name, op.kind, "source_only", schema=op.schema, span=span,
        reason=reason or "no library has its name, and nothing in the build files says why",
        explained=reason is not None,
    )  # fmt: skip


def _binary_only(side: SourceSide, built: dict[str, list[_Found]], known: set[str]) -> Iterable[OpAudit]:
    """Schemas that only libraries have."""
    bare = {name.partition("::")[2] for name in known}
    for name, found in built.items():
        schemas = [one for one in found if one.op.role == "schema"]
        unplaced = all(one.op.namespace is None for one in schemas) and "::" not in name
        if not schemas or name in known or (unplaced and name in bare):
            continue
        text = normalise_schema_text(schemas[0].op.text)
        if not _is_schema(text):
            continue
        libraries = tuple(dict.fromkeys(one.library for one in schemas))
        origins: dict[Provenance, None] = {}
        for library in libraries:
            origins.update(dict.fromkeys(side.provenances(library)))
        reason = (
            f"it comes from {', '.join(one.name for one in origins)}, which the build fetches"
            if origins
            else "nothing in the source registers it"
        )
        yield OpAudit(
            name, "torch_library", "binary_only", libraries, built_schema=text, built_keys=_keys(found), reason=reason,
            explained=bool(origins),
        )  # fmt: skip


def _is_schema(text: str) -> bool:
    from opwalker.notation.op_schema import SchemaError, parse_schema

    try:
        parse_schema(text)
    except SchemaError:
        return False
    return True
