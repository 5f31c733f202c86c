"""The kernels of a note: parameters, shared memory, barriers, what is cut at compile time.

In: one implementation. Out: a section a kernel.
"""

from __future__ import annotations

from opwalker.model.layout import LayoutFact
from opwalker.model.notes import Block, Cell, NoteSection, Statement, Statements, Table
from opwalker.model.walk import Implementation, Kernel, Span
from opwalker.views.notes.words import cell, code, codes, line, statement


def kernel_sections(chosen: Implementation) -> tuple[NoteSection, ...]:
    """Each kernel once, in the order of the launches."""
    return tuple(_kernel(number, kernel) for number, kernel in enumerate(chosen.kernels, start=1))


def _kernel(number: int, kernel: Kernel) -> NoteSection:
    at = Span(kernel.file, kernel.line, kernel.end_line)
    blocks: list[Block] = [Statements((statement("Defined here.", at=[at]), *_facts(kernel)))]
    if kernel.parameters:
        rows = tuple(
            (
                Cell(code(one.name)),
                Cell(code(one.type)),
                Cell(code(one.shape_text), one.shape_span) if one.shape_text else cell(""),
            )
            for one in kernel.parameters
        )
        blocks.append(Table(("Parameter", "type", "documented shape"), rows))
    if kernel.layouts:
        blocks.append(Statements(tuple(_layout(fact) for fact in kernel.layouts)))
    return NoteSection(f"kernel-{number}", f"Kernel {kernel.name}", tuple(blocks))


def _facts(kernel: Kernel) -> list[Statement]:
    out = [
        statement(f"{fact.says[0].upper()}{fact.says[1:]}.", at=[line(kernel.file, fact.line)]) for fact in kernel.work
    ]
    if kernel.template_parameters:
        out.append(statement("Template parameters: ", codes(kernel.template_parameters), "."))
    if kernel.launch_bounds:
        out.append(statement("Launch bounds ", code(kernel.launch_bounds), "."))
    for held in kernel.shared:
        size = ", as much as the launch gives" if held.dynamic else f", {held.size} bytes" if held.size else ""
        out.append(
            statement("Shared: ", code(f"{held.type} {held.name}"), size, ".", at=[line(kernel.file, held.line)])
        )
    if kernel.shared_memory and not kernel.shared:
        out.append(statement("Shared memory: ", codes(kernel.shared_memory), "."))
    for cut in kernel.if_constexpr:
        out.append(statement("Cut at compile time by ", code(cut.condition), ".", at=[line(kernel.file, cut.line)]))
    for barrier in kernel.barriers:
        out.append(statement("Barrier ", code(barrier.call), ".", at=[line(kernel.file, barrier.line)]))
    for found in kernel.reductions:
        at = [line(kernel.file, found.line), *([found.at] if found.at else [])]
        out.append(statement(f"Reduction over a {found.over}: ", code(found.text), f", {found.how}.", at=at))
    out += [statement("Atomic ", code(fact.text), ".", at=[line(kernel.file, fact.line)]) for fact in kernel.atomics]
    out += _assembly(kernel)
    for wide in kernel.vectors:
        size = f", {wide.size} bytes an access" if wide.size else ""
        out.append(statement("Wide access through ", code(wide.type), size, ".", at=[line(kernel.file, wide.line)]))
    for call in kernel.calls:
        out.append(statement("Calls ", code(call.name), ".", at=[line(kernel.file, call.line), call.at]))
    if kernel.device_functions and not kernel.calls:
        out.append(statement("Calls ", codes(kernel.device_functions), "."))
    return out


def _begun(text: str) -> str:
    """A sentence's beginning: a name of the source keeps its letters."""
    return text[0].upper() + text[1:] if text.startswith(("one ", "the ", "blocks ")) else text


def _assembly(kernel: Kernel) -> list[Statement]:
    """Each instruction in words, at its place."""
    out: dict[Statement, None] = {}
    for fact in kernel.assembly:
        under = (", under ", code(f"#if {fact.condition}")) if fact.condition else ()
        for one in fact.instructions:
            means = f", {one.means}" if one.means else ""
            said = statement("Inline assembly ", code(one.text), means, *under, ".", at=[line(fact.file, fact.line)])
            out[said] = None
    return list(out)


def _layout(fact: LayoutFact) -> Statement:
    """Whether the index that a kernel computes is that of the documented shape."""
    below = []
    if fact.coordinates:
        index = ", ".join(f"{part.dim}: {part.value}" for part in fact.coordinates)
        below.append(statement("By dimension: ", code(index), "."))
    if fact.computed:
        below.append(statement("The index is ", code(fact.computed), "."))
    below += [statement("Given that ", code(text), ".") for text in fact.given]
    below += [statement(f"Requires that {text}.") for text in fact.requires]
    if fact.under:
        below.append(statement("In the branch ", code(fact.under), "."))
    said = {
        "equal": " is addressed as its documented shape ",
        "equal_with_strides": " is addressed as its documented shape, with strides that the host passes: ",
        "differs": " is not addressed as its documented shape ",
        "not_decided": ": not decided whether it is addressed as its documented shape ",
    }[fact.verdict]
    reason = f": {fact.reason}" if fact.reason else ""
    at = [line(fact.file, fact.line), fact.documented_at]
    inside = (" in ", code(fact.through)) if fact.through else ()
    return statement(
        code(fact.parameter),
        f" ({fact.access}",
        *inside,
        ")",
        said,
        code(fact.documented),
        reason,
        ".",
        at=at,
        below=below,
    )
