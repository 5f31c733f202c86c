"""Registrations in Python as records of ops.

In: a ``Graph``. Out: what each file registers, in plain data that can be kept; and of all files together
``PythonRegistrations``: the ops that Python defines, and what Python adds to ops defined elsewhere (implementations,
fakes), as ``Op``s without a definition; and the gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.link.python_attach import PythonRegistrations
from opwalker.link.python_flow import Context, Flow, Found
from opwalker.link.python_graph import Graph
from opwalker.link.python_results import op_names
from opwalker.link.python_schema import Names, NoSchema, infer_schema, signature_of
from opwalker.link.python_torch import Effect
from opwalker.link.python_values import (
    Choice,
    Const,
    Defined,
    Dict,
    Func,
    Lambda,
    Outer,
    Partial,
    Schema,
    Seq,
    Value,
    reason_of,
)
from opwalker.model.python import PyFunction
from opwalker.model.walk import Gap, HostRef, Op, OpDef, OpImpl, PythonRef, Span


class Registered(Struct, frozen=True):
    """One registration, with everything that other files say of it settled.

    ``action`` is as in ``Effect``; ``name`` is None where only ``gaps`` come of it. ``function`` is the function behind
    it, by file and qualname. Of ``definition``, ``implementation`` and ``fake`` at most one is there.
    """

    action: str
    name: str | None
    function: tuple[str, str] | None = None
    schema: str | None = None
    signature: str | None = None
    definition: OpDef | None = None
    implementation: OpImpl | None = None
    fake: PythonRef | None = None
    gaps: tuple[Gap, ...] = ()


class FileRegistrations(Struct, frozen=True):
    """What one file registers, by line, and the names in it that stand for ops: ``(name or Class.name, the op)``."""

    made: tuple[Registered, ...] = ()
    names: tuple[tuple[str, str], ...] = ()


def file_registrations(graph: Graph, path: str) -> FileRegistrations | None:
    """What a file registers; None where it has no steps to follow."""
    facts = graph.facts(path)
    if facts is None or not facts.steps:
        return None
    flow = Flow(graph)
    made = tuple(_registered(flow, found) for found in flow.found_in(path))
    return FileRegistrations(made, tuple(dict.fromkeys(op_names(flow, path))))


def _registered(flow: Flow, found: Found) -> Registered:
    effect = found.effect
    span = Span(found.path, found.line, found.end_line)
    if effect.name is None:
        return Registered(effect.action, None, gaps=(Gap("python_registration", span, effect.why),))
    known = _definition(flow, effect.function)
    function = (known[0], known[1].qualname) if known is not None else None
    if effect.action == "define":
        return replace(_define(flow, found, span), function=function)
    if effect.action == "impl":
        implementation, gaps = _implement(flow, found)
        return Registered("impl", effect.name, function, implementation=implementation, gaps=tuple(gaps))
    fake = _reference(flow, effect.function, found) if effect.action == "fake" else None
    return Registered(effect.action, effect.name, fake=fake)


class _Op(Struct):
    """An op while it is put together."""

    schemas: list[str] = field(default_factory=list)
    signature: str | None = None
    defs: dict[OpDef, None] = field(default_factory=dict)
    impls: dict[OpImpl, None] = field(default_factory=dict)
    fake: dict[PythonRef, None] = field(default_factory=dict)


def registrations(files: Mapping[str, FileRegistrations]) -> PythonRegistrations:
    """All registrations of all files."""
    ops: dict[str, _Op] = {}
    gaps: dict[Gap, None] = {}
    functions: dict[tuple[tuple[str, str], str], None] = {}
    for path in sorted(files):
        for one in files[path].made:
            gaps.update(dict.fromkeys(one.gaps))
            if one.name is None:
                continue
            op = ops.setdefault(one.name, _Op())
            if one.function is not None:
                functions[one.function, one.name] = None
            if one.schema is not None:
                op.schemas.append(one.schema)
            if op.signature is None:
                op.signature = one.signature
            for row, into in ((one.definition, op.defs), (one.implementation, op.impls), (one.fake, op.fake)):
                if row is not None:
                    into[row] = None
    return PythonRegistrations(
        tuple(_finished(name, ops[name]) for name in sorted(ops)), tuple(gaps), tuple(sorted(functions))
    )


def _finished(name: str, op: _Op) -> Op:
    schema = op.schemas[0] if len(set(op.schemas)) == 1 else None
    if schema is None and op.schemas:
        schema = op.schemas[0]
    return Op(
        name,
        "python",
        schema,
        signature=op.signature if schema is None else None,
        defs=tuple(op.defs),
        impls=tuple(op.impls),
        fake=tuple(sorted(op.fake, key=lambda one: (one.file, one.line))),
    )


def _define(flow: Flow, found: Found, span: Span) -> Registered:
    """A definition: its schema, or the gap that says why there is none."""
    text, why = schema_text(flow, found.effect)
    gaps = (Gap("python_schema", span, f"{found.effect.name}: {why}"),) if text is None else ()
    source = found.effect.schema.function if isinstance(found.effect.schema, Schema) else found.effect.function
    known = _definition(flow, source)
    library = found.effect.library
    origin = Span(library.path, library.line, library.line) if library is not None else None
    definition = OpDef(found.path, found.line, found.condition, namespace_at=origin)
    signature = signature_of(known[1]) if known is not None else None
    return Registered("define", found.effect.name, None, text, signature, definition, gaps=gaps)


def schema_text(flow: Flow, effect: Effect) -> tuple[str | None, str]:
    """``(schema, "")`` as the dispatcher is given it, or ``(None, why there is none)``."""
    match effect.schema:
        case Const(str() as text):
            return " ".join(text.split()), ""
        case Schema(function, mutates, name):
            known = _definition(flow, function)
            if known is None:
                return None, reason_of(function, "the function whose annotations give the schema")
            names = _names(flow, known[0])
            written = list(_mutated(mutates))
            if not written or not isinstance(name, Const):
                return None, reason_of(mutates, "the list of mutated arguments")
            try:
                return infer_schema(known[1], written[0], names, str(name.value or "")), ""
            except NoSchema as refusal:
                return None, str(refusal)
    return None, reason_of(effect.schema, "the schema")


def _mutated(value: Value) -> Iterator[list[str] | None]:
    """One list of mutated names, None in its place for "unknown"; nothing where it is not known."""
    match value:
        case Const("unknown"):
            yield None
        case Const(None):
            yield []
        case Seq(items) if all(isinstance(item, Const) and isinstance(item.value, str) for item in items):
            yield [str(item.value) for item in items if isinstance(item, Const)]
        case Dict(pairs) if all(isinstance(key, Const) and isinstance(key.value, str) for key, _ in pairs):
            # ``mutates_args={}``: a dict is asked for its keys.
            yield [str(key.value) for key, _ in pairs if isinstance(key, Const)]
        case Choice(values):
            # ``mutates_args or []``: of an empty list and a list that is not known, nothing is known.
            lists = [found for one in values for found in _mutated(one)]
            if len(lists) == len(values) and all(one == lists[0] for one in lists):
                yield lists[0]


def _names(flow: Flow, path: str) -> Names:
    context = Context(path, None)
    return Names(
        lambda name: flow.module_value(path, name),
        lambda text: flow.caller.default(path, text, context),
    )


def _definition(flow: Flow, value: Value) -> tuple[str, PyFunction] | None:
    """The file and the facts of the function that a value stands for."""
    match value:
        case Func(path, qualname, line):
            known = flow.definitions(path, qualname)
            exact = [one for one in known if one.line == line] or known
            return (path, exact[0]) if exact else None
        case Defined(_, function) | Partial(function, _, _):
            return _definition(flow, function)
    return None


def _reference(flow: Flow, value: Value, found: Found) -> PythonRef:
    known = _definition(flow, value)
    if known is not None:
        return PythonRef(known[0], known[1].line, known[1].qualname)
    if isinstance(value, Lambda):
        return PythonRef(value.path, value.line, "lambda")
    return PythonRef(found.path, found.line, value.dotted if isinstance(value, Outer) else None)


def _implement(flow: Flow, found: Found) -> tuple[OpImpl, list[Gap]]:
    """An implementation; a key or function that is not known is a gap."""
    effect = found.effect
    gaps = []
    key = str(effect.key.value) if isinstance(effect.key, Const) and effect.key.value else None
    if key is None:
        place = Span(found.origin[0], found.origin[1], found.origin[1])
        gaps.append(Gap("python_dispatch_key", place, reason_of(effect.key, "the dispatch key")))
    known = _definition(flow, effect.function)
    host = HostRef(known[0], known[1].line, known[1].end_line) if known is not None else None
    name = known[1].qualname if known is not None else None
    if known is None and isinstance(effect.function, Lambda):
        name = "lambda"
        host = HostRef(effect.function.path, effect.function.line, effect.function.line)
    elif known is None:
        name = effect.function.dotted if isinstance(effect.function, Outer) else None
        span = Span(found.path, found.line, found.end_line)
        gaps.append(Gap("python_function", span, f"{effect.name}: {reason_of(effect.function, 'the function')}"))
    return OpImpl(key, name, found.path, found.line, found.condition, host), gaps


def by_function(python: PythonRegistrations) -> Mapping[tuple[str, str], list[str]]:
    """The ops that each function stands behind, by ``(file, qualname)``."""
    found: dict[tuple[str, str], list[str]] = {}
    for function, name in python.functions:
        found.setdefault(function, []).append(name)
    return found
