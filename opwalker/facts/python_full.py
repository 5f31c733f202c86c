"""The full facts of a Python file: ops called and handed on, registrations, wrappers and calls of them.

In: a file's text, and the names that other files want looked for. Out: ``PyFacts``, which depend on these two alone.
Text that holds only plain calls is not parsed; of the rest only the functions of interest are. Names are not resolved
across files here.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from opwalker.facts.python_foreign import foreign_names, may_be_foreign
from opwalker.facts.python_layout import Layout
from opwalker.facts.python_light import block_end, located_imports, mentions_ops
from opwalker.facts.python_needles import Finder, Needles, may_matter, plan
from opwalker.facts.python_quick import Quick
from opwalker.facts.python_reader import Reader
from opwalker.facts.python_tree import TooDeep
from opwalker.model.python import PyFacts
from opwalker.model.source import Problem, SourceFile
from opwalker.notation.python_imports import parse_import


def full(source: SourceFile, watch: Iterable[str] = (), known: PyFacts | None = None) -> PyFacts:
    """The full facts of ``source``; ``watch`` are names as ``link.python_scope.needed`` asks for them. Never raises.

    With ``known``, the facts of the same text for fewer names, only the further names are looked for; the result is the
    same.
    """
    if known is None:
        return _read(source, set(watch), mentions_ops(source.text))
    fresh = set(watch) - set(known.watched)
    return _merged(known, _read(source, fresh, False)) if fresh else known


def _read(source: SourceFile, watch: set[str], mentions: bool) -> PyFacts:
    needles = plan(source.text, watch, mentions)
    nothing = PyFacts(watched=tuple(sorted(watch | needles.implied)), problems=source.problems)
    if not may_matter(source.text, needles) and not (mentions and may_be_foreign(source.text)):
        return nothing
    layout = Layout(source.text)
    Finder(layout, needles).find()
    foreign = foreign_names(layout) if mentions else ()
    if not needles.anything:
        return replace(nothing, foreign=foreign)
    try:
        facts = _facts_of(layout, needles, source.problems)
    except TooDeep as fault:
        facts = PyFacts(problems=(*source.problems, Problem("too-deep", str(fault), fault.line)))
    return replace(facts, foreign=foreign, watched=nothing.watched)


def _facts_of(layout: Layout, needles: Needles, problems: tuple[Problem, ...]) -> PyFacts:
    quick = Quick(layout, needles)
    if not needles.wanted and quick.read():
        return replace(quick_facts(quick), problems=problems)
    reader = Reader(layout, needles)
    reader.read()
    return _sorted(reader.facts(problems))


def quick_facts(quick: Quick) -> PyFacts:
    """What was read without parsing, frozen and in source order."""
    used = {call.callee.split(".", 1)[0] for call in quick.calls.values()}
    for found in quick.classes.values():
        used |= {base.split(".", 1)[0].split("[", 1)[0] for base in found.bases}
    used |= {use.text.split(".", 1)[0] for use in quick.op_calls.values()}
    imports = []
    for place, written in located_imports(quick.text):
        if not written.endswith("*") and not any(word in written for word in used):
            continue
        bound = [one for one in parse_import(written) if one.name == "*" or one.alias.split(".", 1)[0] in used]
        if bound and not quick.layout.in_string(place):
            around = quick.layout.around(place)
            inner = next((at for at, head in enumerate(around) if not head.is_class), None)
            scope = ".".join(head.name for head in reversed(around[inner:])) if inner is not None else None
            line = quick.layout.line_of(place)
            until = block_end(quick.text, place) if scope is not None else 0
            imports += [replace(one, line=line, scope=scope, until=until) for one in bound]
    return _sorted(
        PyFacts(
            imports=tuple(imports),
            functions=tuple(quick.functions.values()),
            classes=tuple(quick.classes.values()),
            op_calls=tuple(quick.op_calls.values()),
            calls=tuple(quick.calls.values()),
        )
    )


def _sorted(facts: PyFacts) -> PyFacts:
    return replace(
        facts,
        imports=tuple(sorted(facts.imports, key=lambda one: (one.line, one.alias))),
        functions=tuple(sorted(facts.functions, key=lambda one: (one.line, one.qualname))),
        classes=tuple(sorted(facts.classes, key=lambda one: (one.line, one.qualname))),
        op_calls=tuple(sorted(facts.op_calls, key=lambda one: (one.line, one.text))),
        calls=tuple(sorted(facts.calls, key=lambda one: (one.line, one.callee))),
        aliases=tuple(sorted(facts.aliases, key=lambda one: (one.line, one.name))),
        steps=tuple(sorted(facts.steps, key=lambda one: (one.line, one.end_line))),
    )


def _merged(known: PyFacts, more: PyFacts) -> PyFacts:
    """Both facts of one text in one, each thing once; of two readings of a function the one with the signature."""
    functions = {(one.qualname, one.line): one for one in known.functions}
    for one in more.functions:
        if one.signed or (one.qualname, one.line) not in functions:
            functions[one.qualname, one.line] = one
    return _sorted(
        PyFacts(
            imports=tuple(dict.fromkeys([*known.imports, *more.imports])),
            functions=tuple(functions.values()),
            classes=tuple({(one.qualname, one.line): one for one in [*more.classes, *known.classes]}.values()),
            op_calls=tuple(dict.fromkeys([*known.op_calls, *more.op_calls])),
            calls=tuple(dict.fromkeys([*known.calls, *more.calls])),
            aliases=tuple(dict.fromkeys([*known.aliases, *more.aliases])),
            steps=tuple(dict.fromkeys([*known.steps, *more.steps])),
            foreign=known.foreign or more.foreign,
            watched=tuple(sorted({*known.watched, *more.watched})),
            problems=tuple(dict.fromkeys([*known.problems, *more.problems])),
        )
    )
