"""The kernels of a note: what a block and a thread handle, what they share, what is cut at compile time, whom they
call.

In: one implementation, and the synchronisation points, which are told in a section of their own. Out: a section a
kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from opwalker.model.kernel import WorkFact
from opwalker.model.notes import Block, Cell, NoteSection, Statement, Statements, Table
from opwalker.model.walk import Implementation, Kernel, Launch, Span, SyncPoint
from opwalker.notation.regex import Regex
from opwalker.views.notes.addresses import address_statements, name_statements, untold_statement
from opwalker.views.notes.words import (
    cell,
    code,
    codes,
    count,
    held_statements,
    line,
    marked,
    say,
    sentence,
    statement,
)

#: A name that a condition is told with.
_WITH = Regex(r", with (\w+) = ")
#: A member of a class template that is no standard one's.
_TRAIT = Regex(r"(?<![\w:])(?!std::)(?:\w+::)*\w+<[^<>]*>::\w+")


def kernel_sections(chosen: Implementation, points: Iterable[SyncPoint] = ()) -> tuple[NoteSection, ...]:
    """Each kernel once, in the order of the launches."""
    told = {(point.file, point.line) for point in points}
    told |= {(point.at.file, point.at.line) for point in points if point.at}
    return tuple(
        _kernel(number, kernel, told, _among(kernel, chosen.kernels), chosen.launches)
        for number, kernel in enumerate(chosen.kernels, start=1)
    )


def _among(kernel: Kernel, kernels: Sequence[Kernel]) -> str:
    """Which of several kernels of one name this one is."""
    same = [one for one in kernels if one.name == kernel.name]
    return f", {same.index(kernel) + 1} of {len(same)}" if len(same) > 1 else ""


def _instances(kernel: Kernel, launches: Sequence[Launch]) -> Iterator[Statement]:
    """With which template arguments one of several kernels of a name is meant."""
    place = (kernel.file, kernel.line)
    own = [one for one in launches if one.kernel_at and (one.kernel_at.file, one.kernel_at.line) == place]
    given = list(dict.fromkeys(f"<{', '.join(one.template_arguments)}>" for one in own if one.template_arguments))
    instances = {text for one in own for text in one.instances}
    if given:
        known = "" if all(one.complete for one in own) else "known "
        number = count(len(instances), f"{known}instance")
        asked = " ".join(kernel.asked)
        # A trait of the tree may be specialised under what only a pass for one architecture defines.
        other = ", unless its head's condition comes out otherwise for an architecture" if _TRAIT.search(asked) else ""
        yield statement("Of the launches those with ", codes(given), f" start it: {number}{other}.")


def _kernel(
    number: int, kernel: Kernel, told: set[tuple[str, int]], among: str, launches: Sequence[Launch]
) -> NoteSection:
    at = Span(kernel.file, kernel.line, kernel.end_line)
    condition = (", under ", code(f"#if {kernel.condition}")) if kernel.condition else ()
    template = (" It is a template over ", codes(kernel.template_parameters), ".") if kernel.template_parameters else ()
    head = statement("Defined here", *condition, ".", *template, at=[at])
    told_names = {one.name for one in kernel.held} | {fact.index for fact in kernel.work if fact.index}
    told_names |= {name for fact in kernel.work for name in _WITH.findall(fact.says)}
    held = [*held_statements(kernel.held, kernel.file), *name_statements(kernel.layouts, told_names)]
    started = tuple(_instances(kernel, launches)) if among else ()
    blocks: list[Block] = [Statements((head, *started, *_facts(kernel, told)))]
    if kernel.parameters:
        blocks.append(_parameters(kernel))
    if kernel.layouts or kernel.untold:
        blocks.append(Statements((*address_statements(kernel.layouts), *untold_statement(kernel.untold))))
    if held:
        blocks.append(Statements((statement("Names that are used above:", below=held),)))
    word = "Kernel" if kernel.kind == "kernel" else "Device function"
    return NoteSection(f"kernel-{number}", f"{word} {kernel.name}{among}", tuple(blocks))


def _parameters(kernel: Kernel) -> Table:
    documented = any(one.shape_text for one in kernel.parameters)
    given = {one.parameter: one.value for one in kernel.passed}
    if all(value == f"&{name}" for name, value in given.items()):
        given = {}  # each gets the tensor of its own name
    rows = []
    for one in kernel.parameters:
        shape = Cell(code(one.shape_text), one.shape_span) if one.shape_text else cell("")
        value = given.get(one.name, "")
        of = say("the elements of ") if value.startswith("&") else ()
        passed = Cell((*of, *code(value.removeprefix("&")))) if value else cell("")
        rows.append(
            (
                Cell(code(one.name)),
                Cell(code(one.type)),
                *((shape,) if documented else ()),
                *((passed,) if given else ()),
            )
        )
    heads = (*(("documented shape",) if documented else ()), *(("always passed",) if given else ()))
    return Table(("Parameter", "type", *heads), tuple(rows))


def _facts(kernel: Kernel, told: set[tuple[str, int]]) -> Iterator[Statement]:
    yield from (_work(kernel, fact) for fact in kernel.work)
    if kernel.asked:
        yield statement("Its head takes only template arguments with ", codes(kernel.asked), ".")
    if kernel.launch_bounds:
        yield statement("Launch bounds ", code(kernel.launch_bounds), ".")
    for held in kernel.shared:
        size = (", as much as the launch gives",) if held.dynamic else ()
        if not held.dynamic and held.size:
            size = (
                ", ",
                code(held.size) if not held.size.isdigit() else held.size,
                " byte" if held.size == "1" else " bytes",
            )
        yield statement(
            "Shared memory: ", code(f"{held.type} {held.name}"), *size, ".", at=[line(kernel.file, held.line)]
        )
    if kernel.shared_memory and not kernel.shared:
        yield statement("Shared memory: ", codes(kernel.shared_memory), ".")
    cuts: dict[str, list[Span]] = {}
    for cut in kernel.if_constexpr:
        cuts.setdefault(cut.condition, []).append(line(kernel.file, cut.line))
    for condition, at in cuts.items():
        yield statement("Cut at compile time by ", code(condition), ".", at=at)
    yield from _waits(kernel, told)
    for found in kernel.reductions:
        at = [line(kernel.file, found.line), *([found.at] if found.at else [])]
        if not found.over:
            head = "Exchange of registers between lanes of a warp: "
            yield statement(head, code(found.text), ".", at=at)
            continue
        yield statement(f"Reduction over a {found.over}: ", code(found.text), ", by ", marked(found.how), ".", at=at)
    for fact in kernel.atomics:
        yield statement("Atomic ", code(fact.text), ".", at=[line(kernel.file, fact.line)])
    yield from _assembly(kernel, told)
    wide: dict[tuple[str, str], list[Span]] = {}
    for one in kernel.vectors:
        wide.setdefault((one.type, one.size or ""), []).append(line(kernel.file, one.line))
    for (kind, size), at in wide.items():
        moved = (", ", size if size.isdigit() else code(size), " bytes an element") if size else ()
        yield statement("Memory is also seen as ", code(kind), *moved, ".", at=at)
    calls: dict[tuple[str, bool, int], list[Span]] = {}
    for call in kernel.calls:
        places = (line(kernel.file, call.line), *(() if call.of else (call.at,)))
        calls.setdefault((call.name, call.overloaded, call.of), []).extend(places)
    for (name, overloaded, of), at in calls.items():
        which = f", one of its {of} definitions" if of else ", one of its overloads" if overloaded else ""
        yield statement("Calls ", code(name), f"{which}.", at=at)
    for one in kernel.open_calls:
        decided = ("; what that is, the template argument for ", code(one.on), " decides: it is not followed.")
        yield statement("Calls ", code(one.name), *decided, at=[line(kernel.file, one.line)])
    if kernel.device_functions and not kernel.calls:
        yield statement("Calls ", codes(kernel.device_functions), ".")


def _alone(fact: WorkFact) -> str:
    """What a fact says without the preprocessor condition that it stands under."""
    return fact.says.removesuffix(f", compiled under #if {fact.compiled}")


def _work(kernel: Kernel, fact: WorkFact) -> Statement:
    """What a block or thread handles; ``x is EXPRESSION, if CONDITION`` has both sides as code."""
    at = [line(kernel.file, fact.line)]
    made = re.fullmatch(r"(\w+) is (.*?)(?:, if (.*))?", fact.says)
    if made and made[1] == fact.index and not re.search(r"\Athe |, while ", made[2]):
        under = (", where ", code(made[3])) if made[3] else ()
        return statement(code(made[1]), " is ", code(made[2]), *under, ".", at=at)
    under = (", compiled under ", code(f"#if {fact.compiled}")) if fact.compiled else ()
    held = re.fullmatch(r"(nothing more is done where .*?)(?:, with (\w+) = (.*?))?", _alone(fact))
    if held and fact.value and (held[2] or under):
        with_value = (", with ", code(held[2]), " = ", code(held[3])) if held[2] else ()
        return statement(sentence("nothing more is done where ", code(fact.value), *with_value, *under), at=at)
    unit = re.fullmatch(r"(\w+)( is the (?:lane|warp) of .*)", fact.says)
    if unit:
        return statement(code(unit[1]), marked(unit[2], [fact.extent]), ".", at=at)
    names = [fact.extent, fact.value, fact.index, fact.through, *(one.name for one in kernel.parameters)]
    names += re.findall(r" stride from (.*) to ", fact.says)
    thread = re.fullmatch(r"(one thread .*?), if (.*)", fact.says)
    if thread:
        return statement(sentence(marked(thread[1], names), ", where ", code(thread[2])), at=at)
    strides = re.fullmatch(r"(.*? stride .*?\(\w+\)(?: in \w+)?)(?:, as long as (.*?))?(?:, if (.*))?", fact.says)
    if strides and (strides[2] or strides[3]):
        going = (", as long as ", code(strides[2])) if strides[2] else ()
        where = (", where ", code(strides[3])) if strides[3] else ()
        return statement(sentence(marked(strides[1], names), *going, *where), at=at)
    return statement(sentence(marked(fact.says, names)), at=at)


def _waits(kernel: Kernel, told: set[tuple[str, int]]) -> Iterator[Statement]:
    """Barriers: counted where the section on synchronisation tells them, otherwise each."""
    elsewhere = [one for one in kernel.barriers if (kernel.file, one.line) in told]
    if elsewhere:
        at = [line(kernel.file, one.line) for one in elsewhere]
        other = any("cudaGrid" in one.call or "LaunchCompletion" in one.call for one in elsewhere)
        word = "synchronising call" if other else "barrier"
        yield statement(f"{count(len(elsewhere), word)}, told under Synchronisation points.", at=at[:4])
    for one in kernel.barriers:
        if one not in elsewhere:
            yield statement("Barrier ", code(one.call), ".", at=[line(kernel.file, one.line)])


def _assembly(kernel: Kernel, told: set[tuple[str, int]]) -> list[Statement]:
    """Each instruction in words, at its place; those that synchronise are told with that."""
    out: dict[Statement, None] = {}
    for fact in kernel.assembly:
        if (fact.file, fact.line) in told:
            continue
        under = (", under ", code(f"#if {fact.condition}")) if fact.condition else ()
        for one in fact.instructions:
            means = f", {one.means}" if one.means else ""
            said = statement("Inline assembly ", code(one.text), means, *under, ".", at=[line(fact.file, fact.line)])
            out[said] = None
    return list(out)
