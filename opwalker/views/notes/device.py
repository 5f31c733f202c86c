"""The kernels of a note: parameters, shared memory, barriers, what is cut at compile time.

In: one implementation. Out: a section a kernel.
"""

from __future__ import annotations

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
    return NoteSection(f"kernel-{number}", f"Kernel {kernel.name}", tuple(blocks))


def _facts(kernel: Kernel) -> list[Statement]:
    out: list[Statement] = []
    if kernel.template_parameters:
        out.append(statement("Template parameters: ", codes(kernel.template_parameters), "."))
    if kernel.launch_bounds:
        out.append(statement("Launch bounds ", code(kernel.launch_bounds), "."))
    if kernel.shared_memory:
        out.append(statement("Shared memory: ", codes(kernel.shared_memory), "."))
    for cut in kernel.if_constexpr:
        out.append(statement("Cut at compile time by ", code(cut.condition), ".", at=[line(kernel.file, cut.line)]))
    for barrier in kernel.barriers:
        out.append(statement("Barrier ", code(barrier.call), ".", at=[line(kernel.file, barrier.line)]))
    for word, facts in (
        ("Atomic", kernel.atomics), ("Inline assembly", kernel.inline_asm), ("Vector access", kernel.vector_accesses),
    ):  # fmt: skip
        out += [statement(f"{word} ", code(fact.text), ".", at=[line(kernel.file, fact.line)]) for fact in facts]
    if kernel.device_functions:
        out.append(statement("Calls ", codes(kernel.device_functions), "."))
    return out
