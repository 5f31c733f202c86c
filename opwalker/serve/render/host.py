"""The host side of an implementation as steps: the host function with what its body says, and the dispatch."""

from __future__ import annotations

from collections.abc import Iterable

from opwalker.model.held import HeldFact
from opwalker.model.walk import (
    CheckFact,
    ContiguousFact,
    GuardFact,
    Host,
    Op,
    ParameterFact,
    ReturnFact,
    SizeFact,
    StreamFact,
)
from opwalker.notation.schema_types import is_by_value
from opwalker.serve.render.page import Group, Row, Spans, Step
from opwalker.serve.render.shapes import shape_groups
from opwalker.serve.render.words import both, line_mark, listed, place, titled, under

#: Checks that are told with a dispatch or a choice: ``(file, line, message)``.
Told = frozenset[tuple[str, int, str | None]]


def host_step(host: Host, op: Op | None, told: Told = frozenset()) -> Step:
    """The host function: parameters with schema argument and shape, then the facts of its body by kind."""
    title = titled(
        (("Host function ", "step"), (host.name, "name")),
        (place(host.file, host.line, host.end_line),),
        under(host.condition),
    )
    marked = [argument for argument in op.arguments if argument.mutated] if op else []
    mutated = frozenset(argument.name for argument in marked if not is_by_value(argument.type))
    groups = []
    if host.signature and not host.parameters:
        groups.append(Group("signature", (Row((((host.signature, ""),),)),)))
    if host.parameters:
        groups.append(Group("parameters", tuple(parameter_row(fact, mutated) for fact in host.parameters)))
        groups += shape_groups(host.parameters, host.file)
    kinds = _kinds(host, told)
    groups += [Group(label, tuple(rows)) for label, rows in kinds if rows]
    missing = [("checks", host.checks), ("guards", host.guards), ("stream", host.streams)]
    groups += none_found(label for label, facts in missing if not facts)
    return Step(title, tuple(groups))


def _kinds(host: Host, told: Told) -> list[tuple[str, list[Row]]]:
    """What a body says, by kind."""
    checks = [fact for fact in host.checks if (host.file, fact.line, fact.message) not in told]
    return [
        ("entered where", [Row((((both(host.under), ""),),))] if host.under else []),
        ("returns early", [_return(fact) for fact in host.returns]),
        ("sizes", [_size(fact) for fact in host.sizes]),
        ("strides", [_size(fact) for fact in host.strides]),
        ("checks", [_check(fact) for fact in checks]),
        ("with", held_rows((*(host.held if checks else ()), *host.named))),
        ("guards", [_guard(fact) for fact in host.guards]),
        ("stream", [_stream(fact) for fact in host.streams]),
        (
            "contiguous",
            [
                Row((line_mark(fact.line), ((f"{fact.tensor}.contiguous()", ""), *_where(fact))))
                for fact in host.contiguous_calls
            ],
        ),
    ]


def helper_step(host: Host, told: Told = frozenset()) -> Step:
    """A function between the host function and the launches: what its own body says."""
    title = titled(
        (("On the way ", "step"), (host.name, "name")),
        (place(host.file, host.line, host.end_line),),
        under(host.condition),
    )
    return Step(title, tuple(Group(label, tuple(rows)) for label, rows in _kinds(host, told) if rows))


def parameter_row(fact: ParameterFact, mutated: frozenset[str] = frozenset()) -> Row:
    """Name, type, the schema argument at the same place (``!`` where it is written), and the shape from a comment."""
    argument: Spans = ()
    if fact.argument:
        written = fact.argument in mutated
        argument = (("= ", "quiet"), (fact.argument + "!" if written else fact.argument, "mutated" if written else ""))
    shape: list[tuple[str, str]] = []
    if fact.shape_text:
        shape += listed(((size, "shape") for size in fact.shape_text.split(", ")), ",")
        if fact.shape_span:
            shape += [("  ", ""), (f":{fact.shape_span.line}", "place")]
    if fact.unused:
        shape += [("  " if shape else "", ""), ("not used", "quiet")]
    return Row((((fact.name, "name"),), ((fact.type, "type"),), argument, tuple(shape)))


def none_found(labels: Iterable[str]) -> list[Group]:
    """One line for the kinds of fact that the body has none of: their absence is worth knowing."""
    missing = list(labels)
    return [Group("none found", (Row((((", ".join(missing), "quiet"),),)),))] if missing else []


def held_rows(facts: Iterable[HeldFact]) -> list[Row]:
    """What locals hold that other rows name."""
    rows = []
    for fact in facts:
        cases = [f"{one.value} where {both(one.under)}" for one in fact.cases]
        head: Spans = ((fact.name, "name"), (" written by " if fact.filled else " = ", "quiet"))
        rows.append(
            Row((line_mark(fact.line) if fact.line else (), (*head, (", else ".join(cases) or fact.value, ""))))
        )
    return rows


def _return(fact: ReturnFact) -> Row:
    value: Spans = ((f"{fact.value} ", ""),) if fact.value else ()
    return Row(
        (line_mark(fact.line), (*value, (f"where {both(fact.words)}", "quiet" if value else ""), *_compiled(fact)))
    )


def _stream(fact: StreamFact) -> Row:
    unused: Spans = (("  no launch runs on it", "quiet"),) if fact.unused else ()
    return Row((line_mark(fact.line), ((fact.value, ""), *_where(fact), *unused)))


def _where(fact: CheckFact | GuardFact | StreamFact | ContiguousFact) -> Spans:
    """What holds where a fact stands: as nothing has returned before it, around it, in the build."""
    held = (*getattr(fact, "past", ()), *fact.under)
    return (*(((f"  where {both(held)}", "quiet"),) if held else ()), *_compiled(fact))


def _compiled(fact: CheckFact | GuardFact | StreamFact | ContiguousFact | ReturnFact) -> Spans:
    return ((f"  #if {fact.compiled}", "quiet"),) if fact.compiled else ()


def _size(fact: SizeFact) -> Row:
    text: list[tuple[str, str]] = []
    if fact.type:
        text.append((fact.type + " ", "type"))
    if fact.name:
        text += [(fact.name, "name"), (" = ", "quiet")]
    text.append((fact.value, ""))
    return Row((line_mark(fact.line), tuple(text), (("narrowed", "warn"),) if fact.narrowed else ()))


def _check(fact: CheckFact) -> Row:
    """What is demanded, in words where there are some; then where that counts, which macro says so, and its message."""
    source = f"{fact.kind} in {fact.via}" if fact.via else fact.kind
    if fact.words:
        said: list[tuple[str, str]] = [(fact.words, "")]
    else:
        said = [(fact.kind, "step"), ("(", ""), (fact.condition, ""), (")", "")]
        source = f"in {fact.via}" if fact.via else ""
    said += _where(fact)
    message: Spans = ((fact.message, "quiet"),) if fact.message else ()
    cells = [line_mark(fact.line), tuple(said)]
    cells += [cell for cell in ((((source, "step"),) if source else ()), message) if cell]
    return Row(tuple(cells))


def _guard(fact: GuardFact) -> Row:
    of: Spans = (("of ", "quiet"), (fact.of, ""), *_where(fact)) if fact.of else _where(fact)
    # The expression says whose device it is, unless it goes over variables.
    words: Spans = ((fact.device, "quiet"),) if fact.device and not _says(fact) else ()
    return Row(
        (line_mark(fact.line), ((fact.type, "type"),), of, words)
        if words
        else (line_mark(fact.line), ((fact.type, "type"),), of)
    )


def _says(fact: GuardFact) -> bool:
    """Whether the expression of a guard names the tensor itself."""
    return fact.of is not None and fact.device is not None and fact.device.rsplit(" ", 1)[-1] in fact.of
