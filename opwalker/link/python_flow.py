"""Registrations in Python, found by following what is handed to them.

In: a ``Graph`` over full facts. Out: ``Found``s: every registration, at the place where all that it needs is known: a
decorator, a call of torch, or a call of a project's helper that ends in one. Functions are followed into, a few levels
deep, with the values that they are called with; conditions that cannot be decided are kept as text. Nothing is
executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.link.python_calls import Caller
from opwalker.link.python_graph import Graph
from opwalker.link.python_torch import Arguments, Effect
from opwalker.link.python_values import (
    Class,
    Const,
    Defined,
    Frame,
    Func,
    Given,
    InModule,
    Instance,
    Outer,
    Partial,
    Seq,
    Unknown,
    Value,
    choice,
    is_given,
    truth,
)
from opwalker.model.python import PyFunction, PyGuard, PyImport, PyStep

#: How deep calls are followed: a helper, a class that it makes, a method of that, and the helper below.
DEEPEST = 8
_MOST_ROUNDS = 64
#: A condition with this in it asks whether the op is there already, or about an object's state; not about the build.
_SAYS_NOTHING = ("hasattr(", "self.")


class Found(Struct, frozen=True):
    """A registration and its place: ``origin`` is the torch call that is reached, ``condition`` what stays open."""

    effect: Effect
    path: str
    line: int
    end_line: int
    condition: str | None
    origin: tuple[str, int]


class Context(Struct):
    """What holds while one entry is followed. ``found`` is None where effects do not count."""

    path: str
    found: list[Found] | None
    step: PyStep | None = None
    inner: tuple[str, int] = ("", 0)
    conditions: list[str] = field(default_factory=list)
    active: set[tuple[str, str]] = field(default_factory=set)
    depth: int = 0


class Flow:
    """Follows the steps of a file, and those of others that it leads to.

    ``results`` holds what decorators returned, by file, decorated function and line of the decorator. What a name
    stands for is worked out once, so that an answer can depend on what was asked before: one flow for each file, and
    its answers depend on the facts alone.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.caller = Caller(self)
        self._steps: dict[str, dict[str | None, list[PyStep]]] = {}
        self._values: dict[tuple[str, str, int | None], Value] = {}
        self._pending: set[tuple[str, str, int | None]] = set()
        self.results: dict[tuple[str, str, int], Value] = {}
        self._alone: dict[tuple[str, str], tuple[list[Found], Frame]] = {}

    def found_in(self, path: str) -> list[Found]:
        """All registrations that a file makes, each once, by line."""
        found: dict[tuple[Effect, int], Found] = {}
        for scope in list(self.steps(path)):
            function = scope is not None and scope in self.graph.functions(path)
            entries = self.alone(path, scope)[0] if function and scope is not None else self._module(path, scope)
            for one in entries:
                key = (one.effect, one.line)
                if one.effect.name is None and one.effect.given:
                    continue
                if key not in found or len(one.condition or "") < len(found[key].condition or ""):
                    found[key] = one
        return sorted(found.values(), key=lambda one: (one.line, one.effect.name or "", one.effect.action))

    # -- entries

    def steps(self, path: str) -> dict[str | None, list[PyStep]]:
        """The steps of a file by scope."""
        known = self._steps.get(path)
        if known is None:
            known = self._steps[path] = {}
            facts = self.graph.facts(path)
            for step in facts.steps if facts is not None else ():
                known.setdefault(step.scope, []).append(step)
        return known

    def _module(self, path: str, scope: str | None) -> list[Found]:
        """What a module, or the body of a class, registers when it is run."""
        context = Context(path, [])
        frame = Frame(path, scope or "", {})
        self.run(frame, self.steps(path).get(scope, []), context)
        return context.found or []

    def alone(self, path: str, scope: str) -> tuple[list[Found], Frame]:
        """What a function registers whoever calls it, and its names then; parameters without a default are open."""
        key = (path, scope)
        known = self._alone.get(key)
        if known is not None:
            return known
        outer = scope.rpartition(".")[0]
        frame = Frame(path, scope, {})
        self._alone[key] = ([], frame)
        if outer in self.graph.functions(path):
            frame.outer = self.alone(path, outer)[1]
        context = Context(path, [], active={key})
        for function in self.definitions(path, scope):
            frame.names.update({name: Given(name) for name, *_ in function.parameters})
            self.run(frame, self.steps_of(function, path), context)
        self._alone[key] = (context.found or [], frame)
        return self._alone[key]

    def definitions(self, path: str, qualname: str) -> list[PyFunction]:
        """The definitions of a function; those that only declare an overload of its type are left out."""
        known = self.graph.functions(path).get(qualname, [])
        real = [one for one in known if not any(name.rpartition(".")[2] == "overload" for name in one.decorators)]
        return real or known

    def steps_of(self, function: PyFunction, path: str) -> list[PyStep]:
        """The steps of one definition of a function."""
        steps = self.steps(path).get(function.qualname, [])
        return [step for step in steps if function.line <= step.line <= function.end_line]

    # -- running

    def run(self, frame: Frame, steps: Sequence[PyStep], context: Context, level: int = 0) -> tuple[Value | None, bool]:
        """Run steps in order: the value that they return, if any, and whether they are sure to return."""
        returns: list[Value] = []
        at = 0
        while at < len(steps):
            guard = steps[at].guards[level] if level < len(steps[at].guards) else None
            if guard is None:
                step = steps[at]
                at += 1
                value = self._step(frame, step, context)
                if step.kind == "return":
                    return choice([*returns, value]), True
                continue
            end = at
            while end < len(steps) and level < len(steps[end].guards) and steps[end].guards[level] == guard:
                end += 1
            result, sure = self._guarded(frame, guard, steps[at:end], context, level)
            at = end
            if result is not None:
                returns.append(result)
            if sure:
                return choice(returns) if returns else None, True
        return choice(returns) if returns else None, False

    def _guarded(
        self, frame: Frame, guard: PyGuard, steps: Sequence[PyStep], context: Context, level: int
    ) -> tuple[Value | None, bool]:
        """Run steps under a condition or in a loop: the value that they return, and whether they are sure to."""
        if guard.kind == "for":
            return self._loop(frame, guard, steps, context, level), False
        outcome = truth(self.evaluate(frame, guard.test, context))
        if outcome is not None:
            return self.run(frame, steps, context, level + 1) if outcome == guard.wanted else (None, False)
        before = dict(frame.names)
        text = guard.text if guard.wanted else f"not ({guard.text})"
        telling = guard.text and not any(word in guard.text for word in _SAYS_NOTHING)
        with _under(context, text if telling else None):
            value, ended = self.run(frame, steps, context, level + 1)
        if ended:
            frame.names = before
            return value, False
        for name, new in frame.names.items():
            if before.get(name) != new:
                old = before[name] if name in before else self.module_value(frame.path, name)
                if name in before or old == _FLAG or not isinstance(old, Unknown):
                    frame.names[name] = choice([old, new])
        return value, False

    def _loop(
        self, frame: Frame, guard: PyGuard, steps: Sequence[PyStep], context: Context, level: int
    ) -> Value | None:
        over = self.evaluate(frame, guard.test, context)
        name = guard.target or ""
        items: tuple[Value, ...] = (Unknown(f"taken from a loop over {guard.text}"),)
        if isinstance(over, Seq):
            items = over.items[:_MOST_ROUNDS]
        elif is_given(over):
            items = (Given(name),)
        for item in items:
            targets = [part.strip() for part in name.strip("()").split(",")]
            parts = item.items if isinstance(item, Seq) and len(targets) > 1 else (item,)
            for target, part in zip(targets, parts, strict=False):
                frame.names[target] = part
            value, _ = self.run(frame, steps, context, level + 1)
            if value is not None:
                return value
        return None

    def _step(self, frame: Frame, step: PyStep, context: Context) -> Value:
        if not context.depth:
            context.step = step
        context.inner = (frame.path, step.line)
        if step.kind == "decorate":
            return self._decorate(frame, step, context)
        value = self.evaluate(frame, step.value, context)
        if step.kind == "assign" and step.target is not None:
            self._assign(frame, step.target, value)
        return value

    def _assign(self, frame: Frame, target: str, value: Value) -> None:
        owner, _, name = target.rpartition(".")
        if not owner:
            frame.names[target] = value
            return
        holder = frame.find(owner)
        if isinstance(holder, Instance):
            holder.state.attributes[name] = value

    def _decorate(self, frame: Frame, step: PyStep, context: Context) -> Value:
        qualname = step.target or ""
        name = qualname.rpartition(".")[2]
        own = self.function(frame.path, qualname, frame if frame.scope else None, step.line)
        # A decorator gets what those below it made, of this definition and of no other of its name.
        known = frame.names.get(name, own) if frame.decorated.get(name) == own.line else own
        frame.decorated[name] = own.line
        decorator = self.evaluate(frame, step.value, context)
        result = self.caller.call(decorator, Arguments((known,), ()), context, step.value)
        self.results[frame.path, qualname, step.line] = result
        # A wrapper made by an ordinary decorator keeps the name and the signature of what it wraps.
        settled = result if isinstance(result, Defined | Instance | Partial) else known
        frame.names[name] = settled
        return settled

    def function(self, path: str, qualname: str, frame: Frame | None = None, line: int = 0) -> Func:
        """The function of that name; of several definitions the first one from ``line`` on."""
        known = self.definitions(path, qualname)
        after = [one for one in known if one.line >= line] or known
        return Func(path, qualname, after[0].line if after else line, frame)

    def record(self, effects: Sequence[Effect], context: Context) -> None:
        """Keep effects at the place of the entry's own step."""
        if context.found is None or context.step is None:
            return
        condition = " and ".join(dict.fromkeys(context.conditions)) or None
        for effect in effects:
            step = context.step
            found = Found(effect, context.path, step.line, step.end_line, condition, context.inner)
            if found not in context.found:
                context.found.append(found)

    # -- names

    def evaluate(self, frame: Frame, value: object, context: Context) -> Value:
        """The value of an expression in a frame."""
        return self.caller.evaluate(frame, value, context)

    def named(self, frame: Frame, name: str, line: int) -> Value:
        """The value of a bare name in a frame; ``line`` is where it is used, which counts outside of functions."""
        found = frame.find(name)
        if found is not None:
            return found
        scope, outer = frame.scope, frame
        while scope:
            nested = f"{scope}.{name}"
            if nested in self.graph.functions(frame.path) and scope in self.graph.functions(frame.path):
                return self.function(frame.path, nested, outer)
            outer = outer.outer if outer.outer is not None and outer.outer.scope else outer
            local = [one for one in self.graph.imports(frame.path).get(name, ()) if one.scope == scope]
            if local:
                return choice([self._imported(frame.path, one) for one in local])
            scope = scope.rpartition(".")[0]
        return self.module_value(frame.path, name, None if frame.scope else line)

    def module_value(self, path: str, name: str, before: int | None = None) -> Value:
        """The value of a module-level name of a file; with ``before``, what it is just before that line."""
        key = (path, name, before)
        known = self._values.get(key)
        if known is not None:
            return known
        if key in self._pending:
            return Unknown(f"defined by itself: {name}")
        self._pending.add(key)
        try:
            self._values[key] = self._module_value(path, name, before)
        finally:
            self._pending.discard(key)
        return self._values[key]

    def _module_value(self, path: str, name: str, before: int | None) -> Value:
        graph, imports = self.graph, self.graph.imports(path)
        frame, context = Frame(path, "", {}), Context(path, None)
        events: list[tuple[int, bool, PyStep | PyImport | None]] = []
        for step in self.steps(path).get(None, []):
            if step.kind == "assign" and step.target == name:
                events.append((step.line, not step.guards, step))
        events += [(one.line, False, one) for one in imports.get(name, ()) if one.scope is None]
        events += [(one.line, False, None) for one in self.definitions(path, name)[:1]]
        events.sort(key=lambda event: event[0])
        candidates: list[Value] = []
        for line, sure, event in events:
            if before is not None and line >= before:
                break
            if sure:
                candidates.clear()
            if isinstance(event, PyStep):
                context.inner = (path, event.line)
                value = self.evaluate(frame, event.value, context)
                candidates.append(_FLAG if isinstance(value, Const) and not isinstance(value.value, str) else value)
            elif isinstance(event, PyImport):
                candidates.append(self._imported(path, event))
            else:
                candidates.append(self._decorated(path, name, frame, context))
        if name in graph.classes(path):
            candidates.append(Class(path, name))
        if not candidates:
            for alias, bound in imports.items():
                if alias.startswith(f"{name}.") and bound[0].name is None:
                    target = graph.modules.module(path, name)
                    return InModule(target) if target is not None else Outer(name)
            for one in imports.get("*", ()):
                candidates += [self._imported(path, replace(one, name=name, alias=name))]
        candidates = [one for one in candidates if one == _FLAG or not isinstance(one, Unknown)] or candidates
        if not candidates and name in _BUILTINS:
            return Outer(f"builtins.{name}")
        return choice(candidates) if candidates else Unknown(f"{name}, which is not defined where it can be read")

    def constant(self, path: str, name: str) -> Value:
        """The number or truth value that a module-level name gets, where it is assigned only once."""
        assigned = [step for step in self.steps(path).get(None, []) if step.kind == "assign" and step.target == name]
        if not assigned:
            found = [one for one in self.graph.origins(path, (name,)) if one != (path, name)]
            return self.constant(*found[0]) if len(found) == 1 else Unknown(f"{name}, a variable")
        if len(assigned) != 1 or assigned[0].guards:
            return Unknown(f"{name}, a variable")
        context = Context(path, None, inner=(path, assigned[0].line))
        return self.evaluate(Frame(path, "", {}), assigned[0].value, context)

    def _decorated(self, path: str, name: str, frame: Frame, context: Context) -> Value:
        value = self.function(path, name)
        for step in self.steps(path).get(None, []):
            if step.kind == "decorate" and step.target == name:
                context.inner = (path, step.line)
                value = self._decorate(frame, step, context)
        return value

    def _imported(self, path: str, one: PyImport) -> Value:
        bounds = self.graph.modules.bound(path, one)
        if not bounds:
            if one.level:
                return Unknown(f"{one.alias}, whose module is not in this tree")
            return Outer(one.module if one.name is None else f"{one.module}.{one.name}")
        values: list[Value] = []
        for bound in bounds:
            if bound.name is None:
                values.append(InModule(bound.target))
                continue
            for origin, name in self.graph.modules.origins(bound.target, bound.name):
                values.append(InModule(origin) if name is None else self.module_value(origin, name))
        return choice(values)


_BUILTINS = frozenset("getattr hasattr staticmethod classmethod property list tuple set str super".split())


#: A module-level truth value or number: functions may set it anew, so that it decides nothing.
_FLAG = Unknown("a variable of the module, which may change")


@contextmanager
def _under(context: Context, condition: str | None) -> Iterator[None]:
    """Run with one more condition that stays open."""
    if condition is None:
        yield
        return
    context.conditions.append(condition)
    try:
        yield
    finally:
        context.conditions.pop()
