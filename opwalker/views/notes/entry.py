"""The first part of a note: who calls the op, what its schema says, which builds implement it.

In: a walk. Out: sections. An entry that is no op (a file, a function, a class, a kernel) has no schema: its section
says what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.model.notes import Block, Cell, Code, NoteSection, Statement, Statements, Table, Text
from opwalker.model.walk import Argument, Implementation, Op, ParameterFact, PythonRef, Span, Walk
from opwalker.notation.schema_types import is_by_value
from opwalker.views.notes.words import cell, code, codes, count, line, of_kind, say, statement

#: More callers than this are told apart: the calls of the op itself, and those further out.
_CALLERS = 12
_HEAD = ("Caller", "calls", "at")


def entry_section(walk: Walk) -> NoteSection:
    """Who calls it, from the outside in."""
    blocks: list[Block] = []
    if walk.op is None:
        entry = walk.entry
        if entry is None:
            return NoteSection("entry", "Entry point")
        at = Span(entry.file, entry.line, entry.end_line)
        own: list[Block] = [Statements((statement(f"A {entry.kind} of this source.", at=[at]),))]
        host = next((one.host for one in walk.implementations if one.host and one.host.name == entry.name), None)
        if host and host.parameters:
            rows = tuple((Cell(code(one.name)), Cell(code(one.type))) for one in host.parameters)
            own.append(Table(("Parameter", "type"), rows))
        return NoteSection("entry", "Entry point", tuple(own))
    callers = sorted(walk.python, key=lambda ref: -ref.depth)
    if len(callers) > _CALLERS:
        outer = [ref for ref in callers if ref.depth]
        direct = [ref for ref in callers if not ref.depth]
        if outer:
            fold = f"{len(outer)} calls further out that were found"
            blocks.append(Table(_HEAD, tuple(_caller(ref) for ref in outer), fold))
        fold = f"{len(direct)} calls of the op itself" if len(direct) > _CALLERS else ""
        blocks.append(Table(_HEAD, tuple(_caller(ref) for ref in direct), fold))
        lead: Text = say("What calls the op itself; who calls that is folded above it.")
    elif callers:
        blocks.append(Table(_HEAD, tuple(_caller(ref) for ref in callers)))
        lead = say("Calls of the op and, above them, two levels of callers that were found: the furthest stand first.")
    else:
        lead = say("No call from Python was found in this source.")
    return NoteSection("entry", "Entry point", tuple(blocks), lead)


def _caller(ref: PythonRef) -> tuple[Cell, ...]:
    name = code(ref.function) if ref.function else say("at module level")
    return (Cell(name), Cell(code(ref.callee)) if ref.callee else cell(""), _place(ref.file, ref.call_line or ref.line))


def _place(file: str, number: int) -> Cell:
    return Cell(code(f"{file}:{number}"), line(file, number))


def contract_section(op: Op, chosen: Implementation | None) -> NoteSection:
    """The schema, argument by argument, with the C++ parameter at the same place."""
    blocks: list[Block] = []
    if op.schema:
        blocks.append(Code(op.schema, "text"))
    elif op.signature:
        blocks.append(Code(op.signature, "cpp"))
    blocks.append(Statements(tuple(_contract(op))))
    if op.arguments:
        parameters = chosen.host.parameters if chosen and chosen.host else ()
        by_argument = {p.argument: p for p in parameters if p.argument}
        rows = []
        for argument in op.arguments:
            parameter = by_argument.get(argument.name)
            rows.append(
                (
                    Cell(code(argument.name)),
                    Cell(code(argument.type)),
                    cell(_use(argument, parameter)),
                    Cell(code(_declared(parameter, argument.name))) if parameter else cell(""),
                    cell(_details(argument.optional, argument.default, argument.kwarg_only)),
                )
            )
        blocks.append(Table(("Argument", "type", "use", "in C++", "details"), tuple(rows)))
    return NoteSection("contract", "Definition and schema", tuple(blocks))


def _use(argument: Argument, parameter: ParameterFact | None) -> str:
    """What becomes of an argument, by its schema; that nothing does, by the function that gets it."""
    if parameter is not None and parameter.unused:
        return "not used"
    return "written" if argument.mutated and _is_written(argument) else "read"


def _declared(parameter: ParameterFact, argument: str) -> str:
    """The type of a C++ parameter, and its name where it is another than the argument's: later sections use it."""
    return parameter.type if parameter.name in ("", argument) else f"{parameter.type} {parameter.name}"


def _contract(op: Op) -> list[Statement]:
    out = []
    mutated = [argument.name for argument in op.arguments if argument.mutated and _is_written(argument)]
    if op.arguments or op.schema:
        if mutated:
            out.append(statement("Writes ", codes(mutated), " in place: calls cannot be dropped or reordered."))
        else:
            out.append(statement("Writes none of its arguments."))
        if op.returns:
            kinds = codes([one.type for one in op.returns])
            out.append(statement("Returns ", kinds, "."))
        else:
            out.append(statement("Returns nothing" + (": results go there and nowhere else." if mutated else ".")))
    for argument in op.arguments:
        if argument.mutated and not _is_written(argument):
            kind = argument.type.rstrip("?")
            out.append(
                statement(
                    "The schema marks ", code(argument.name), " as written too, yet ", code(kind),
                    " is passed by value: nothing can be written to it.",
                )
            )  # fmt: skip
    for one in op.defs:
        where = f" in the build for {', '.join(one.builds)}" if one.builds else ""
        under = (" under ", code(f"#if {one.condition}")) if one.condition else ()
        other = (", there as ", code(one.schema)) if one.schema else ()
        out.append(statement(f"Defined{where}", *under, *other, ".", at=[line(one.file, one.line)]))
    for impl in op.impls:
        function = (code(impl.function),) if impl.function else ("a function without a name",)
        key = (code(impl.key),) if impl.key else ("every key",)
        where = f" in the build for {', '.join(impl.builds)}" if impl.builds else ""
        out.append(statement("Implemented for ", *key, " by ", *function, f"{where}.", at=[line(impl.file, impl.line)]))
    for ref in op.fake:
        name = (code(ref.function), " ") if ref.function else ()
        out.append(statement("Fake implementation ", *name, "for tracing.", at=[line(ref.file, ref.line)]))
    if not op.fake and op.kind == "torch_library" and not _is_composite(op):
        out.append(_no_fake(bool(mutated) and not op.returns))
    return out


def _is_composite(op: Op) -> bool:
    """Whether torch looks through the op's implementation in every build: what is so in one helps no other."""
    composite = [impl for impl in op.impls if (impl.key or "").startswith("Comp")]
    builds = {build for impl in composite for build in impl.builds or ()}
    others = {build for impl in op.impls if impl not in composite for build in impl.builds or ()}
    return bool(composite) and (any(impl.builds is None for impl in composite) or others <= builds)


def _is_written(argument: Argument) -> bool:
    """Whether what the schema marks as written can be: a number is passed by value."""
    return not is_by_value(argument.type)


def _no_fake(trivial: bool) -> Statement:
    """What it means that no fake implementation is there: torch makes one of its own where nothing is returned."""
    if trivial:
        return statement("No fake implementation was found; as it only writes arguments, torch traces it without one.")
    return statement("No fake implementation was found: `torch.compile` cannot trace through it here.")


def _details(optional: bool, default: str | None, kwarg_only: bool) -> str:
    words = []
    if optional:
        words.append("may be None")
    if default is not None:
        words.append(f"default `{default}`")
    if kwarg_only:
        words.append("keyword only")
    return ", ".join(words)


def summary(walk: Walk, chosen: Implementation | None) -> Text:
    """One sentence: what it is, what it writes, what it launches."""
    parts: list[str] = []
    op = walk.op
    if op is not None:
        mutated = [f"`{one.name}`" for one in op.arguments if one.mutated and _is_written(one)]
        if mutated:
            parts.append(f"writes {_and(mutated)}")
        elif op.schema:
            parts.append("writes no argument")
    if chosen is not None:
        kernels = list(dict.fromkeys(launch.kernel for launch in chosen.launches))
        if kernels:
            known = {(launch.kernel, one) for launch in chosen.launches for one in launch.instances}
            least = "" if all(launch.complete for launch in chosen.launches) else "at least "
            parts.append(f"launches {count(len(kernels), 'kernel')} ({least}{count(len(known), 'instance')})")
        elif op is None and walk.ownership.resources:
            kinds = list(dict.fromkeys(of_kind(one.kind) for one in walk.ownership.resources))
            parts.append(f"acquires {_and(kinds)}")
        elif chosen.terminals:
            ends = list(dict.fromkeys(f"`{end.name}`" for end in chosen.terminals if end.kind != "host"))
            others = " and others" if len(ends) > 3 else ""
            parts.append(f"ends in {_and(ends[:3])}{others}" if ends else "no device work was found")
    if op is None and walk.outline and chosen is None:
        kinds: dict[str, int] = {}
        for item in walk.outline:
            kinds[item.kind] = kinds.get(item.kind, 0) + 1
        parts.append("holds " + _and([_many(number, kind) for kind, number in kinds.items()]))
    followed = chosen is not None and chosen.host is not None
    nothing = "no launch and no other end was found" if followed else "nothing was found behind it"
    said = "; ".join(parts) or nothing
    return say(f"{said[0].upper()}{said[1:]}.")


def _many(number: int, kind: str) -> str:
    return count(number, kind) if number == 1 or not kind.endswith("s") else f"{number:,} {kind}es"


def _and(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1] if words else ""
