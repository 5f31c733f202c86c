"""Comes in: an ``AuditResult``. Goes out: its page: what nothing explains first, then libraries, kernels, the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opwalker.model.audit import AuditResult, ForeignKernels, KernelAudit, LibraryAudit, OpAudit, Provenance
from opwalker.model.binary import DeviceCode
from opwalker.serve.render.page import Group, Page, Row, Section, Spans
from opwalker.serve.render.words import Reading, at, count, listed, named, titled

#: Names shown of a list; the rest is counted.
SHOWN = 6
_WHERE = {"both": "in both", "source_only": "only in the source", "binary_only": "only in the libraries"}


def audit_page(result: AuditResult, reading: Reading) -> Page:
    """The whole comparison; of one op alone, that op and its kernels in full."""
    sections = [_head(result), *_unexplained(result)]
    if result.op is not None:
        sections += [*_ops(result.ops), _kernels("Kernels", result.kernels, reading)]
        return Page((*sections, _libraries(result.libraries)))
    unequal = [k for k in result.kernels if k.status == "both" and (reading.instances or k.verdict != "equal")]
    sections.append(_libraries(result.libraries))
    if unequal:
        sections.append(
            _kernels(
                "Kernels" if reading.instances else "Kernels that are not built exactly as predicted", unequal, reading
            )
        )
    sections += [
        *_reasons("Only in the source", result, "source_only"),
        *_reasons("Only in the libraries", result, "binary_only"),
        *_foreign(result.foreign),
    ]
    return Page(tuple(sections))


def _head(result: AuditResult) -> Section:
    numbers = result.counts
    said = f"{count(numbers.unexplained, 'difference')} not explained" if numbers.unexplained else "all is explained"
    title = titled(
        ((f"{named(result.source)}: source and libraries", "title"),),
        ((f"build {result.build} · ", "quiet"), (said, "warn" if numbers.unexplained else "proved")),
    )
    ops = (numbers.ops_both, numbers.ops_source_only, numbers.ops_binary_only)
    verdicts = (
        (numbers.kernels_equal, "exactly as predicted"),
        (numbers.kernels_incomplete, "with a prediction that is not whole"),
        (numbers.kernels_different, "different"),
    )
    groups = [Group("libraries", (Row((((", ".join(result.wheels) or _libraries_in(result), "place"),),)),))]
    if result.unread:
        rows = tuple(Row((((one.reason, "warn"),),)) for one in result.unread)
        groups.append(Group("not read", rows))
    groups.append(Group("ops", (_line(_counted(zip(ops, _WHERE.values(), strict=True)) or "none"),)))
    both = f"{numbers.kernels_both:,} in both"
    detail = _counted(verdicts)
    only = f", {numbers.kernels_source_only:,} only in the source" if numbers.kernels_source_only else ""
    groups.append(Group("kernels", (_line(both + (f" ({detail})" if detail else "") + only),)))
    groups.append(Group("instances", (_line(f"{numbers.instances_both:,} predicted and built"),)))
    if numbers.foreign_instances:
        text = f"{count(numbers.foreign_instances, 'instance')} of {count(numbers.foreign_kernels, 'kernel')}"
        groups.append(Group("from elsewhere", (_line(text),)))
    if result.op is None:
        groups.append(Group("architectures", tuple(_architectures(result))))
    return Section(title, groups=tuple(groups))


def _architectures(result: AuditResult) -> Iterator[Row]:
    found = result.architectures
    yield _line("built: " + (", ".join(found.built) or "no device code"))
    if found.only_built:
        yield _line(f"built and not named by the build files: {', '.join(found.only_built)}")
    if found.only_named:
        yield _line(f"named by the build files and not built: {', '.join(found.only_named)}")
    if found.reason and found.built:
        yield Row((((found.reason, "quiet"),),))


def _libraries_in(result: AuditResult) -> str:
    return _few([library.path for library in result.libraries])


def _counted(numbers: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{number:,} {words}" for number, words in numbers if number)


def _line(text: str) -> Row:
    return Row((((text, ""),),))


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN:,} more"


def _unexplained(result: AuditResult) -> list[Section]:
    rows: list[Row] = []
    for op in result.ops:
        if not op.explained:
            rows.append(Row((((f"op {op.name}", "name"),), ((_WHERE[op.status], "warn"),), ((op.reason or "", ""),))))
            schemas = (("source   ", op.schema), ("library  ", op.built_schema)) if op.status == "both" else ()
            rows += [Row((((label, "label"), (text, "")),), indent=4) for label, text in schemas if text]
    for kernel in result.kernels:
        if not kernel.explained:
            where: Spans = ((_WHERE[kernel.status], "warn"),)
            rows.append(Row((((f"kernel {kernel.name}", "name"),), where, ((kernel.reason or "", ""),))))
            rows += _differences(kernel, False)
    for group in result.foreign:
        if not group.explained:
            rows.append(Row((((_few(group.kernels), "name"),), ((group.library, "place"),), ((group.reason, "warn"),))))
    return [Section(((f"Not explained ({result.counts.unexplained})", "heading"),), rows=tuple(rows))] if rows else []


def _differences(kernel: KernelAudit, everything: bool) -> Iterator[Row]:
    for sign, instances in (("predicted, not built", kernel.missing), ("built, not predicted", kernel.extra)):
        shown = instances if everything else instances[:SHOWN]
        yield from (Row((((f"{sign}: ", "label"), (f"<{one}>", "type")),), indent=4) for one in shown)
        if len(instances) > len(shown):
            yield Row((((f"{sign}: {len(instances) - len(shown):,} more (--instances)", "quiet"),),), indent=4)


def _libraries(libraries: Sequence[LibraryAudit]) -> Section:
    rows: list[Row] = []
    for library in libraries:
        rows.append(Row((((library.path, "name"),), _about(library))))
        rows += [Row((cell,), indent=4) for cell in _inside(library)]
    return Section(((f"Libraries ({len(libraries)})", "heading"),), rows=tuple(rows))


def _about(library: LibraryAudit) -> Spans:
    stripped = ", stripped" if library.stripped else ""
    made = [(t.name, at_line) for t in library.targets for at_line in (f"{t.file}:{t.line}",)]
    size = f"{library.size / 1e6:,.1f} MB" if library.size >= 100_000 else f"{library.size / 1e3:,.0f} kB"
    words = [(f"{size}, {library.machine}{stripped}", "quiet")]
    words += [(f"target {name} ({place})", "place") for name, place in made]
    return listed(words)


def _inside(library: LibraryAudit) -> Iterator[Spans]:
    if library.left_out:
        yield ((f"not compared: {library.left_out}", "warn"),)
    held = _counted(((library.ops, "ops"), (library.kernels, "kernels"), (library.instances, "instances")))
    if held:
        namespaces = f" · namespaces {', '.join(library.namespaces)}" if library.namespaces else ""
        yield ((held + namespaces, ""),)
    else:
        functions = [name for name in library.exports if not name.startswith("PyInit_")]
        if functions:
            yield (("exports ", "label"), (_few(functions), ""))
    if library.needed:
        yield (("needs ", "label"), (", ".join(library.needed), ""))
    for form, label in (("elf", "machine code"), ("ptx", "PTX")):
        codes = [code for code in library.device_code if code.form == form]
        if codes:
            yield ((f"{label} ", "label"), (", ".join(_arch(code) for code in codes), ""))
    for origin in library.origins:
        yield _origin(origin)
    if library.also:
        yield ((f"also for other Pythons, or again: {_few(library.also)}", "quiet"),)
    for text in library.cannot_tell:
        yield ((f"cannot tell: {text}", "gap"),)


def _arch(code: DeviceCode) -> str:
    return code.arch if code.kernels is None else f"{code.arch} ({count(code.kernels, 'kernel')})"


def _origin(origin: Provenance) -> Spans:
    words = {"fetched": "fetched: ", "generated": "generated by ", "library": "headers of "}[origin.kind]
    place: Spans = ((" ", ""), at(origin.span)) if origin.span else ()
    made: Spans = ((f"  {_few(origin.makes)}", "quiet"),) if origin.kind == "generated" and origin.makes else ()
    return ((words, "label"), (origin.name, ""), *place, *made)


def _ops(ops: Sequence[OpAudit]) -> Iterator[Section]:
    for op in ops:
        groups = [Group("where", (Row((((_WHERE[op.status], ""),), (((_few(op.libraries)), "place"),))),))]
        if op.schema:
            groups.append(Group("schema", (_line(op.schema),)))
        built = "not told" if op.built_keys is None else ", ".join(op.built_keys) or "none"
        groups.append(Group("keys", (_line(f"source {', '.join(op.keys) or 'none'} · libraries {built}"),)))
        if op.span is not None:
            groups.append(Group("registered", (Row(((at(op.span),),)),)))
        if op.reason:
            groups.append(Group("reason", (_line(op.reason),)))
        yield Section(((op.name, "heading"),), groups=tuple(groups))


def _kernels(heading: str, kernels: Sequence[KernelAudit], reading: Reading) -> Section:
    rows: list[Row] = []
    for kernel in kernels:
        place: Spans = (at(kernel.spans[0]),) if kernel.spans else ()
        rows.append(Row((((kernel.name, "name"),), place, _verdict(kernel))))
        if kernel.status == "both":
            rows.append(Row((_for(kernel),), indent=4))
        if kernel.reason:
            rows.append(Row((((kernel.reason, "quiet"),),), indent=4))
        if reading.instances:
            unequal = kernel.missing or kernel.extra
            rows += _differences(kernel, True) if unequal else _instances(kernel)
    nothing = ((("no kernel of the source is reached", "quiet"),),) if not rows else ()
    return Section(((f"{heading} ({len(kernels)})", "heading"),), rows=tuple(rows), paragraphs=nothing)


def _instances(kernel: KernelAudit) -> Iterator[Row]:
    return (Row((((f"<{one}>", "type"),),), indent=4) for one in kernel.instances if one)


def _verdict(kernel: KernelAudit) -> Spans:
    if kernel.status != "both":
        return ((_WHERE[kernel.status], "warn"),)
    built = count(kernel.built, "instance")
    if kernel.verdict == "equal":
        return ((f"{built}, exactly as predicted", "proved"),)
    style = "matched" if kernel.verdict == "incomplete" else "warn"
    return ((f"{built} built, {kernel.predicted:,} predicted: {kernel.verdict}", style),)


def _for(kernel: KernelAudit) -> Spans:
    where = f"in {_few(kernel.libraries)}"
    if kernel.archs is None:
        return ((f"{where}, for which architectures is not told", "quiet"),)
    every = f"{where} for {', '.join(kernel.archs) or 'no architecture in full'}"
    return ((every + (f"; in part for {', '.join(kernel.some_archs)}" if kernel.some_archs else ""), "quiet"),)


def _reasons(heading: str, result: AuditResult, status: str) -> Iterator[Section]:
    """What is on one side and explained, by the reason."""
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for number, found in enumerate((result.ops, result.kernels)):
        for one in found:
            if one.status == status and one.explained:
                groups.setdefault(one.reason or "", ([], []))[number].append(one.name)
    rows = []
    for reason, (ops, kernels) in groups.items():
        numbers = [count(len(ops), "op")] if ops else []
        numbers += [count(len(kernels), "kernel")] if kernels else []
        rows.append(Row((((", ".join(numbers), "name"),), ((reason, ""),))))
        rows.append(Row((((_few([*ops, *kernels]), "quiet"),),), indent=4))
    if rows:
        yield Section(((heading, "heading"),), rows=tuple(rows))


def _foreign(groups: Sequence[ForeignKernels]) -> Iterator[Section]:
    rows = []
    for group in groups:
        if group.explained:
            number = f"{count(group.instances, 'instance')} of {count(len(group.kernels), 'kernel')}"
            rows.append(Row((((group.library, "place"),), ((number, ""),), ((group.reason, ""),))))
            rows.append(Row((((_few(group.kernels), "quiet"),),), indent=4))
    if rows:
        yield Section((("Kernels from elsewhere", "heading"),), rows=tuple(rows))
