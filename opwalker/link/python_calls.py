"""Expressions and calls, for ``python_flow``: what a name, an attribute or a call stands for.

In: an expression, the names of the running function, and the context of the entry. Out: its value; what it registers is
recorded in the context. Functions of the tree are followed into; calls of anything else are unknown.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opwalker.link.python_torch import (
    Arguments,
    call_function,
    call_method,
    call_waiting,
    is_library_method,
    is_transparent,
    joined,
    library_function,
    stray_effects,
)
from opwalker.link.python_values import (
    Choice,
    Class,
    Const,
    Defined,
    Dict,
    Frame,
    Func,
    Given,
    InModule,
    Instance,
    InstanceState,
    Lambda,
    Library,
    Method,
    Outer,
    Partial,
    Seq,
    Unknown,
    Value,
    choice,
    is_given,
    truth,
)
from opwalker.model.python import PyExpr, PyFunction
from opwalker.notation.regex import Regex

if TYPE_CHECKING:
    from opwalker.link.python_flow import Context, Flow

DEEPEST = 8
_DOTTED = Regex(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)*\Z")
_IDENTITY = Regex(r"lambda[ \t]+(\w+)[^:]*:[ \t]*(\w+)\Z")
_PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})


class Caller:
    """Evaluates expressions on behalf of a ``Flow``."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def evaluate(self, frame: Frame, value: object, context: Context) -> Value:
        """The value of an expression."""
        assert isinstance(value, PyExpr)
        items = value.items
        match value.kind:
            case "name":
                return self._flow.named(frame, value.text, context.inner[1])
            case "str":
                return Const(value.text)
            case "const":
                return literal(value.text)
            case "attr":
                return self.attribute(self.evaluate(frame, items[0], context), value.text, context)
            case "call":
                return self._call(frame, value, context)
            case "seq":
                return Seq(tuple(self.evaluate(frame, item, context) for item in items))
            case "dict":
                values = [self.evaluate(frame, item, context) for item in items]
                return Dict(tuple(zip(values[::2], values[1::2], strict=True)))
            case "add" | "fstring":
                return self._joined(frame, value, context)
            case "lambda":
                return Lambda(value.text, frame.path, context.inner[1])
            case "index":
                return _indexed(*(self.evaluate(frame, item, context) for item in items))
            case "ifexp":
                outcome = truth(self.evaluate(frame, items[0], context))
                if outcome is not None:
                    return self.evaluate(frame, items[1 if outcome else 2], context)
                return choice([self.evaluate(frame, item, context) for item in items[1:]])
        return self._logic(frame, value, context)

    def _logic(self, frame: Frame, value: PyExpr, context: Context) -> Value:
        """Truth values, and ``or``/``and``, which are no such thing."""
        if value.kind not in ("or", "and", "not", "is", "isnot", "eq", "ne", "in", "notin"):
            return Unknown(f"computed at run time: {value.text}" if value.text else "computed at run time")
        left = self.evaluate(frame, value.items[0], context)
        outcome = truth(left)
        if value.kind == "not":
            return Unknown("open") if outcome is None else Const(not outcome)
        if value.kind in ("or", "and"):
            if outcome is not None and outcome == (value.kind == "or"):
                return left
            right = self.evaluate(frame, value.items[1], context)
            return right if outcome is not None else choice([left, right])
        return _compared(value.kind, left, self.evaluate(frame, value.items[1], context))

    def _joined(self, frame: Frame, value: PyExpr, context: Context) -> Value:
        parts = [self.evaluate(frame, item, context) for item in value.items]
        if value.kind == "add" and all(isinstance(part, Seq) for part in parts):
            return Seq(tuple(item for part in parts if isinstance(part, Seq) for item in part.items))
        result = joined(parts)
        if isinstance(result, Unknown):
            return Unknown(f"put together at run time: {value.text}" if value.text else result.reason)
        return result

    def attribute(self, owner: Value, name: str, context: Context) -> Value:
        """The value of ``owner.name``."""
        match owner:
            case Outer(dotted):
                return Outer(f"{dotted}.{name}")
            case InModule(path):
                inner = self._flow.graph.modules.below(path, name)
                value = Unknown(name) if path.endswith("/") else self._flow.module_value(path, name)
                return InModule(inner) if isinstance(value, Unknown) and inner is not None else value
            case Instance():
                return self._of_instance(owner, name, context)
            case Class(path, qualname):
                return self._of_class(path, qualname, name, context)
            case Func(qualname=qualname) if name in ("__name__", "__qualname__"):
                return Const(qualname.rpartition(".")[2] if name == "__name__" else qualname)
            case Defined(full, _) if name in ("__name__", "_name"):
                return Const(full.partition("::")[2])
            case Library(namespace=namespace) if name == "ns":
                return namespace
            case Given(text):
                return Given(f"{text}.{name}")
            case Choice(values):
                return choice([self.attribute(one, name, context) for one in values])
        if is_library_method(owner, name):
            return Method(owner, name)
        return Unknown(f"an attribute that is not known: .{name}")

    def _of_instance(self, owner: Instance, name: str, context: Context) -> Value:
        if owner.above is None and name in owner.state.attributes:
            return owner.state.attributes[name]
        graph = self._flow.graph
        path, qualname = owner.above or (owner.path, owner.qualname)
        found = graph.method(path, qualname, name, skip_own=owner.above is not None)
        if found is None:
            return self._of_class(owner.path, owner.qualname, name, context)
        me = Instance(owner.path, owner.qualname, owner.state)
        known = self._flow.definitions(found.path, found.qualname)
        function = Func(found.path, found.qualname, known[0].line if known else 0, None, me)
        if known and _PROPERTIES & set(known[0].decorators):
            return self.call(function, Arguments((), ()), context)
        if known and "staticmethod" in known[0].decorators:
            return Func(found.path, found.qualname, known[0].line)
        return function

    def _of_class(self, path: str, qualname: str, name: str, context: Context) -> Value:
        for step in self._flow.steps(path).get(qualname, []):
            if step.kind == "assign" and step.target == name:
                return self.evaluate(Frame(path, qualname, {}), step.value, context)
        found = self._flow.graph.method(path, qualname, name)
        if found is not None:
            return self._flow.function(found.path, found.qualname)
        return Unknown(f"an attribute that is not known: {qualname}.{name}")

    def _call(self, frame: Frame, value: PyExpr, context: Context) -> Value:
        callee, arguments = value.items[0], value.items[1:]
        if callee.kind == "name" and callee.text == "super" and not arguments:
            me = frame.find("self")
            above = (frame.path, frame.scope.rpartition(".")[0])
            return Instance(me.path, me.qualname, me.state, above) if isinstance(me, Instance) else Unknown("super()")
        inner = context.inner
        given = self._arguments(frame, arguments, context)
        context.inner = inner
        if callee.kind == "attr":
            owner = self.evaluate(frame, callee.items[0], context)
            self._flow.record(stray_effects(owner, callee.text, given), context)
            function = self.attribute(owner, callee.text, context)
        else:
            function = self.evaluate(frame, callee, context)
        context.inner = inner
        return self.call(function, given, context, value)

    def _arguments(self, frame: Frame, arguments: tuple[PyExpr, ...], context: Context) -> Arguments:
        positional: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        open_ended = False
        for argument in arguments:
            if argument.kind == "keyword":
                keywords.append((argument.text, self.evaluate(frame, argument.items[0], context)))
            elif argument.kind in ("star", "dstar"):
                spread = self.evaluate(frame, argument.items[0], context)
                if isinstance(spread, Seq) and argument.kind == "star":
                    positional += spread.items
                elif isinstance(spread, Dict) and all(isinstance(key, Const) for key, _ in spread.pairs):
                    keywords += [(str(key.value), item) for key, item in spread.pairs if isinstance(key, Const)]
                else:
                    open_ended = True
            else:
                positional.append(self.evaluate(frame, argument, context))
        return Arguments(tuple(positional), tuple(keywords), open_ended)

    def call(self, function: Value, given: Arguments, context: Context, written: PyExpr | None = None) -> Value:
        """The value of a call; what it registers goes into the context."""
        match function:
            case Choice(values):
                return choice([self.call(one, given, context, written) for one in values])
            case Partial(Outer(dotted), _, bound) if dotted.startswith("waiting."):
                if not given.positional:
                    return function
                result, effects = call_waiting(dotted.removeprefix("waiting."), dict(bound), given.positional[0])
                self._flow.record(effects, context)
                return result
            case Partial(inner, positional, keywords):
                later = {name for name, _ in given.keywords}
                kept = tuple((name, value) for name, value in keywords if name not in later)
                whole = Arguments((*positional, *given.positional), (*kept, *given.keywords), given.open_ended)
                return self.call(inner, whole, context, written)
            case Method():
                result, effects = call_method(function, given)
                self._flow.record(effects, context)
                return result
            case Outer(dotted):
                return self._call_outer(dotted, given, context)
            case Func():
                return self._follow(function, given, context)
            case Class(path, qualname):
                return self._make(path, qualname, given, context)
            case Lambda(text):
                same = _IDENTITY.match(" ".join(text.split()))
                if same and same.group(1) == same.group(2) and given.positional:
                    return given.positional[0]
        if is_given(function) or any(is_given(value) for value in given.positional):
            return Given("the result of a call")
        return Unknown("the result of a call that is not followed")

    def _call_outer(self, dotted: str, given: Arguments, context: Context) -> Value:
        name = library_function(dotted)
        if name is not None:
            result, effects = call_function(name, given, *context.inner)
            self._flow.record(effects, context)
            return result
        first = given.positional[0] if given.positional else None
        if dotted in ("functools.partial", "partial"):
            return Partial(first, given.positional[1:], given.keywords) if first is not None else Unknown("partial()")
        if dotted == "builtins.getattr" and len(given.positional) > 1:
            second = given.positional[1]
            if isinstance(second, Const) and isinstance(second.value, str) and first is not None:
                return self.attribute(first, second.value, context)
            return Given("getattr") if is_given(second) else Unknown("looked up by a name that is not known")
        if dotted in ("functools.wraps", "builtins.property"):
            return Outer("builtins.staticmethod")
        if is_transparent(dotted.removeprefix("builtins.")):
            return first if first is not None else Outer("builtins.staticmethod")
        if any(is_given(value) for value in given.positional):
            return Given(f"the result of {dotted}()")
        return Unknown(f"the result of {dotted}(), which is not in this tree")

    def _make(self, path: str, qualname: str, given: Arguments, context: Context) -> Value:
        """An object of a class of the tree; what its methods register on their own counts as done."""
        graph = self._flow.graph
        made = Instance(path, qualname, InstanceState())
        start = graph.method(path, qualname, "__init__")
        if start is not None:
            self._follow(Func(start.path, start.qualname, 0, None, made), given, context)
        known = graph.classes(path).get(qualname)
        for name in known.methods if known is not None else ():
            method = f"{qualname}.{name}"
            for one in self._flow.definitions(path, method):
                needs = [p for p in one.parameters[1:] if p[2] is None and p[3] in ("pos", "posonly", "kwonly")]
                if name != "__init__" and one.signed and not needs and self._flow.steps_of(one, path):
                    self._follow(Func(path, method, one.line, None, made), Arguments((), ()), context)
        return made

    def _follow(self, function: Func, given: Arguments, context: Context) -> Value:
        """Run a function of the tree with the values that it is given."""
        flow, key = self._flow, (function.path, function.qualname)
        opened = any(is_given(value) for value in (*given.positional, *(value for _, value in given.keywords)))
        result: Value = Given("the result of a call") if opened else Unknown(f"the result of {function.qualname}()")
        definitions = [one for one in flow.definitions(*key) if one.signed and flow.steps_of(one, function.path)]
        if not definitions or key in context.active or context.depth >= DEEPEST:
            return result
        fixed = {(one.origin, one.effect.action, one.effect.name) for one in flow.alone(*key)[0] if one.effect.name}
        before = len(context.found) if context.found is not None else 0
        inner = context.inner
        context.active.add(key)
        context.depth += 1
        values: list[Value] = []
        for one in definitions:
            frame = Frame(function.path, function.qualname, {}, function.closure)
            if not self._bind(frame, one, function, given, context):
                values.append(result)
                continue
            value, _ = flow.run(frame, flow.steps_of(one, function.path), context)
            values.append(value if value is not None else Const(None))
        context.depth -= 1
        context.active.discard(key)
        context.inner = inner
        if context.found is not None:
            fresh = [
                one for one in context.found[before:] if (one.origin, one.effect.action, one.effect.name) not in fixed
            ]
            context.found[before:] = fresh
        return choice(values)

    def _bind(self, frame: Frame, one: PyFunction, function: Func, given: Arguments, context: Context) -> bool:
        """Give the parameters of a function their values; false where the call does not fit the function."""
        positional = list(given.positional)
        if function.owner is not None and "staticmethod" not in one.decorators:
            positional.insert(0, function.owner)
        keywords = dict(given.keywords)
        for name, _, default, kind in one.parameters:
            if kind == "vararg":
                frame.names[name] = Seq(tuple(positional))
                positional.clear()
            elif kind == "kwarg":
                frame.names[name] = Dict(tuple((Const(key), value) for key, value in keywords.items()))
            elif kind in ("pos", "posonly") and positional:
                frame.names[name] = positional.pop(0)
            elif name in keywords:
                frame.names[name] = keywords.pop(name)
            elif given.open_ended:
                frame.names[name] = Unknown(f"{name}, which is handed on as part of *args or **kwargs")
            elif default is not None:
                frame.names[name] = self.default(frame.path, default, context)
            else:
                return False
        return not positional and (not keywords or any(kind == "kwarg" for *_, kind in one.parameters))

    def default(self, path: str, text: str, context: Context) -> Value:
        """The value of a parameter's default, from its text."""
        value = literal(text)
        if isinstance(value, Unknown) and _DOTTED.match(text):
            head, *rest = text.split(".")
            value = self._flow.module_value(path, head)
            if isinstance(value, Unknown) and not rest:
                value = self._flow.constant(path, head)
            for name in rest:
                value = self.attribute(value, name, context)
        return value


def literal(text: str) -> Value:
    """The value of a literal's text, unknown for anything else."""
    try:
        found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return Unknown(f"computed at run time: {text}")
    return _value_of(found, text)


def _value_of(found: object, text: str) -> Value:
    if found is None or isinstance(found, str | int | float | bool):
        return Const(found)
    if isinstance(found, list | tuple | set | frozenset):
        return Seq(tuple(_value_of(item, text) for item in found))
    if isinstance(found, dict):
        return Dict(tuple((_value_of(key, text), _value_of(item, text)) for key, item in found.items()))
    return Unknown(f"computed at run time: {text}")


def _indexed(owner: Value, key: Value) -> Value:
    if isinstance(owner, Dict) and isinstance(key, Const):
        return next((value for one, value in owner.pairs if one == key), Unknown("an entry that is not known"))
    if isinstance(owner, Seq) and isinstance(key, Const) and isinstance(key.value, int):
        if -len(owner.items) <= key.value < len(owner.items):
            return owner.items[key.value]
    return Given("an entry") if is_given(owner) or is_given(key) else Unknown("an entry that is not known")


def _compared(kind: str, left: Value, right: Value) -> Value:
    """The outcome of a comparison, as far as it is certain."""
    if kind in ("in", "notin"):
        if isinstance(left, Const) and isinstance(right, Dict | Seq):
            members = [key for key, _ in right.pairs] if isinstance(right, Dict) else list(right.items)
            if all(isinstance(one, Const) for one in members):
                return Const((left in members) == (kind == "in"))
        return Unknown("open")
    equal: bool | None = None
    if isinstance(left, Const) and isinstance(right, Const):
        equal = left == right
    elif right == Const(None) and not isinstance(left, Unknown | Given | Choice | Outer):
        equal = False
    return Unknown("open") if equal is None else Const(equal == (kind in ("is", "eq")))
