"""What one Python file says about ops, each name in it resolved: calls and uses of ops, and what registrations lean on.

In: a ``Graph`` and a file. Out: ``Resolved``, plain data that is kept, and so written without the names of its fields:
where a call leads is told by file and name, never by a line of another file. What follows from all files together is
the business of ``python_wanted`` and ``python_ops``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opwalker.link.python_graph import Graph, Node, Slot
from opwalker.model.python import COMPILED, PyAlias, PyExpr, PyFacts, PyFunction, PyOpCall, PyStep
from opwalker.notation.regex import Regex

_NAME = Regex(r"[A-Za-z_]\w*")
#: The last words of calls that register.
REGISTERING = frozenset(
    {"define", "impl", "fallback", "_register_fake", "register_fake", "impl_abstract", "custom_op", "triton_op"}
    | {"register_kernel", "register_autograd", "Library"}
)

#: ``(file, name)``.
Place = tuple[str, str]


class Target(msgspec.Struct, frozen=True, array_like=True):
    """What a callee can mean: a ``function`` or class of a file, which ``enters`` its constructor; an ``op``, by
    ``name`` as spelt from ``torch.ops`` on; or a ``slot``, a name of a file that may hold an op, with what is taken of
    it as ``rest``."""

    kind: str
    path: str
    name: str
    rest: str = ""
    enters: Place | None = None


class ResolvedCall(msgspec.Struct, frozen=True, array_like=True):
    """A call. ``defined`` is the line at which the function around it is defined, None where that is not known."""

    callee: str
    line: int
    function: str | None
    defined: int | None
    targets: tuple[Target, ...]


class OpUse(msgspec.Struct, frozen=True, array_like=True):
    """A use of an op by its full name: ``op`` is ``namespace::name``, ``callee`` how torch spells it."""

    op: str
    callee: str
    line: int
    function: str | None
    defined: int | None
    called: bool


class FlowStep(msgspec.Struct, frozen=True, array_like=True):
    """What a step of the flow asks of other files.

    ``registers`` tells a call that registers something, ``known`` one whose words do so by themselves, ``custom`` one
    whose result is an op. ``exported`` is the module-level name under which others reach what the step does with what
    they hand in. ``result`` is ``(class, name)`` or ``("", name)`` that the value is bound to. ``origins`` are the
    places that its names begin with; ``decorates`` marks a decorator.
    """

    registers: bool
    known: bool
    custom: bool
    decorates: bool
    exported: str | None
    result: tuple[str, str] | None
    origins: tuple[Place, ...]


class Resolved(msgspec.Struct, frozen=True, array_like=True):
    """A file. ``callers`` are, by function that calls anything, the names by which others call it, as ``(name, what
    follows)``; ``aliases`` the same for names that stand for ops; ``given`` what signatures lean on."""

    calls: tuple[ResolvedCall, ...] = ()
    uses: tuple[OpUse, ...] = ()
    steps: tuple[FlowStep, ...] = ()
    callers: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    given: tuple[Place, ...] = ()


def resolve(graph: Graph, path: str) -> Resolved | None:
    """The resolved names of a file; None where nothing in it matters to others."""
    facts = graph.facts(path)
    if facts is None:
        return None
    calls = tuple(_calls(graph, path, facts))
    uses = tuple(_use(graph, path, use) for use in facts.op_calls)
    steps = _steps(graph, path, facts)
    aliases = tuple(ask for name, known in graph.aliases(path).items() for one in known for ask in _aliased(name, one))
    callers = dict.fromkeys(one.function for one in (*calls, *uses) if one.function is not None)
    if not (calls or uses or steps or aliases):
        return None
    return Resolved(
        calls,
        uses,
        steps,
        tuple((name, tuple(_called_as(graph, path, name))) for name in callers),
        aliases,
        tuple(_given(graph, path, facts)),
    )


def spelled(namespace: str, op: str, overload: str | None) -> str:
    """An op as Python spells it; a function of a compiled module as an attribute of that module."""
    if namespace.startswith(COMPILED):
        return f"{namespace.removeprefix(COMPILED)}.{op}" + (f".{overload}" if overload else "")
    return f"torch.ops.{namespace}.{op}" + (f".{overload}" if overload else "")


# -- calls


def _calls(graph: Graph, path: str, facts: PyFacts) -> Iterator[ResolvedCall]:
    for call in facts.calls:
        targets = tuple(dict.fromkeys(_target(graph, meaning) for meaning in graph.meanings(path, call)))
        if targets:
            defined = _definition_line(graph, path, call.function, call.line)
            yield ResolvedCall(call.callee, call.line, call.function, defined, targets)


def _target(graph: Graph, meaning: Node | PyAlias | Slot) -> Target:
    match meaning:
        case PyAlias():
            return Target("op", "", meaning.target)
        case Slot():
            return Target("slot", meaning.path, meaning.name, meaning.rest)
    enters = None
    if meaning.qualname in graph.classes(meaning.path):
        found = graph.method(meaning.path, meaning.qualname, "__init__")
        enters = (found.path, found.qualname) if found is not None else None
    return Target("function", meaning.path, meaning.qualname, enters=enters)


def _use(graph: Graph, path: str, use: PyOpCall) -> OpUse:
    callee = spelled(use.namespace, use.op, use.overload)
    defined = _definition_line(graph, path, use.function, use.line)
    return OpUse(f"{use.namespace}::{use.op}", callee, use.line, use.function, defined, use.called)


def _definition_line(graph: Graph, path: str, function: str | None, line: int) -> int | None:
    """Where the function around a call is defined: the last definition above the call."""
    known = graph.functions(path).get(function, ()) if function is not None else ()
    return max((one.line for one in known if one.line <= line), default=None)


def _called_as(graph: Graph, path: str, qualname: str) -> Iterator[tuple[str, str]]:
    """By which module-level names, and what after them, other files call a function."""
    owner, _, name = qualname.rpartition(".")
    if not owner:
        yield name, ""
    elif "." not in owner and any(one.method_of == owner for one in graph.functions(path).get(qualname, ())):
        if name == "__init__":
            yield owner, ""
        elif not name.startswith("__"):
            yield owner, f".{name}"
            if name == "forward" and graph.is_autograd(path, owner):
                yield owner, ".apply"


def _aliased(name: str, alias: PyAlias) -> Iterator[tuple[str, str]]:
    """By which names others use a name that stands for a namespace or an op."""
    owner, _, own = name.rpartition(".")
    if owner:
        yield owner, f".{own}"
        return
    words = alias.target.count(".") + 1
    if words > 3:
        yield own, ""
    if words < 5:
        yield own, ".*"


# -- steps


def _steps(graph: Graph, path: str, facts: PyFacts) -> tuple[FlowStep, ...]:
    assigned: dict[str | None, set[str]] = {}
    for step in facts.steps:
        if step.kind == "assign" and step.target:
            assigned.setdefault(step.scope, set()).add(step.target)
    found = []
    for step in facts.steps:
        words = _words(step.value)
        known = not words.isdisjoint(REGISTERING)
        origins = [one for name in _dotted_names(step.value) for one in graph.origins(path, name)]
        found.append(
            FlowStep(
                known or _hands_out(step.value),
                known,
                not words.isdisjoint(("custom_op", "triton_op")),
                step.kind == "decorate",
                _exported(graph, path, step, assigned),
                _result(step),
                tuple(dict.fromkeys(origins)),
            )
        )
    return tuple(found)


def _result(step: PyStep) -> tuple[str, str] | None:
    """What a step's value is bound to, where others can see it."""
    if step.target is None or step.kind not in ("assign", "decorate"):
        return None
    if step.scope is None:
        return ("", step.target) if "." not in step.target else None
    return (step.scope, step.target) if "." not in step.scope and step.kind == "assign" else None


def _exported(graph: Graph, path: str, step: PyStep, assigned: dict[str | None, set[str]]) -> str | None:
    """The module-level name under which others reach what a step does with what they hand in."""
    if step.scope is not None:
        opened = step.kind != "decorate" and _is_open(graph, path, step, assigned.get(step.scope, set()))
        return step.scope.partition(".")[0] if opened else None
    return step.target if step.kind == "assign" and step.target and "." not in step.target else None


def _is_open(graph: Graph, path: str, step: PyStep, assigned: set[str]) -> bool:
    """Whether a step inside a function uses what the function was given: a parameter, ``self`` or a local name."""
    scope = step.scope
    bound = {"self", "cls"} | assigned
    while scope:
        for function in graph.functions(path).get(scope, ()):
            bound.update(name for name, *_ in function.parameters)
        scope = scope.rpartition(".")[0]
    arguments = step.value.items[1:] if step.value.kind == "call" else step.value.items
    return any(not _words(argument).isdisjoint(bound) for argument in arguments)


def _hands_out(value: PyExpr) -> bool:
    """Whether an expression looks up an op by a name that is not written there."""
    pending = [value]
    while pending:
        one = pending.pop()
        if one.kind == "call" and _dotted(one.items[0]) == ("getattr",) and len(one.items) > 2:
            if one.items[2].kind != "str" and "ops" in _words(one.items[1]):
                return True
        pending.extend(one.items)
    return False


def _words(value: PyExpr) -> set[str]:
    """All names and attributes in an expression."""
    found: set[str] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if one.kind in ("attr", "name"):
            found.add(one.text)
        pending.extend(one.items)
    return found


def _dotted_names(value: PyExpr) -> Iterator[tuple[str, ...]]:
    """The dotted names in an expression, each as long as it is written."""
    pending = [value]
    while pending:
        one = pending.pop()
        words = _dotted(one)
        if words:
            yield words
        else:
            pending.extend(one.items)


def _dotted(value: PyExpr) -> tuple[str, ...]:
    """The words of ``a.b.c``, empty for anything else."""
    words: list[str] = []
    while value.kind == "attr" and value.items:
        words.append(value.text)
        value = value.items[0]
    if value.kind != "name":
        return ()
    return (value.text, *reversed(words))


def _given(graph: Graph, path: str, facts: PyFacts) -> Iterable[Place]:
    """Where the names in signatures come from, in a file that has steps."""
    names: set[str] = set()
    for function in facts.functions if facts.steps else ():
        names.update(_names_in(function))
    return dict.fromkeys(origin for name in sorted(names) for origin in graph.origins(path, (name,)))


def _names_in(function: PyFunction) -> Iterator[str]:
    for _, note, default, _ in function.parameters:
        yield from _NAME.findall(f"{note or ''} {default or ''}")
