"""Python expressions of build scripts, as far as they can be known without running anything.

In: a syntax tree and the state of the evaluation. Out: values (``build_py_values``). An operation on what is not
known is unknown and keeps its source text. Calls of extension helpers are reported by ``build_extensions``.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from opwalker.link.build_events import Event
from opwalker.link.build_guard import Branches, Guard, LimitReached, Literal, guard_text, join, without
from opwalker.link.build_py_literals import comprehension, joined, mapping, sequence
from opwalker.link.build_py_nodes import decorators_of, names_in
from opwalker.link.build_py_operators import (
    MAX_ELEMENTS,
    UNCOMPUTED,
    compared,
    operate,
    subscripted,
)
from opwalker.link.build_py_paths import path_attribute
from opwalker.link.build_py_values import (
    ABSENT,
    Choice,
    Class,
    Element,
    Frame,
    Function,
    Map,
    Module,
    Obj,
    PathText,
    Ref,
    Seq,
    Unknown,
    elements_of,
    identity_of,
    merge_values,
    options_of,
    settled,
    truth_of,
)
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_tree import Tree
from opwalker.link.build_values import MARK

#: An evaluation that has looked at more expressions than this is cut off.
MAX_EVALUATIONS = 500_000

#: What the library's constants are on the systems that libraries are built on.
_CONSTANTS = {"os.sep": "/", "os.pathsep": ":", "os.curdir": ".", "os.pardir": "..", "os.path.sep": "/"}


class Evaluator(ABC):
    """The state of an evaluation and its expressions. ``events`` and ``problems`` are what is reported."""

    frame: Frame

    def __init__(self, tree: Tree, seeds: Seeds, texts: dict[int, str]) -> None:
        self.tree = tree
        self.seeds = seeds
        self.branches = Branches(merge_values, absent=ABSENT)
        self.events: list[Event] = []
        self.problems: list[tuple[str, int, str, str]] = []
        self.branches.logs.extend((self.events, self.problems))
        self.environment = Map(dict(seeds.environment))
        self.line = 0
        self.called: set[Any] = set()
        self.stopped: set[str] = set()
        self._numbers = 0
        self._texts = texts
        self._evaluations = 0

    # --- what the statements need ------------------------------------------------------------------------------

    @abstractmethod
    def call_function(self, function: Function, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Evaluate a call of a function of the scripts."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Any, element: Element | None = None) -> None:
        """Bind a target: a name, an attribute, a subscript, or several of them."""

    @abstractmethod
    def call(self, node: ast.Call) -> Any:
        """Evaluate any call."""

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def text(self, node: ast.AST) -> str:
        """The source of an expression, as one line."""
        known = self._texts.get(id(node))
        if known is None:
            try:
                known = ast.unparse(node)
            except (ValueError, RecursionError):
                known = "an expression"
            known = known if len(known) < 200 else known[:197] + "..."
            self._texts[id(node)] = known
        return known

    def guard_text(self, guard: Guard) -> str:
        return guard_text(guard) or ""

    def problem(self, node: ast.AST, kind: str, message: str) -> None:
        self.problems.append((self.frame.module.path, getattr(node, "lineno", self.line), kind, message))

    def unknown(self, node: ast.AST, truth: bool | None = None) -> Unknown:
        """A value that cannot be computed, told apart from every other one."""
        return Unknown(self.text(node), truth, self.next_number())

    def test(self, node: ast.expr) -> tuple[bool | None, Literal | None]:
        """The truth of a condition, or the literal that stands for it where it is undecided here."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth, literal = self.test(node.operand)
            return (None if truth is None else not truth), (literal.negated() if literal else None)
        value = self.eval(node)
        truth = truth_of(value)
        if truth is not None:
            return truth, None
        identity = (self.text(node), tuple((name, identity_of(self.name(name))) for name in names_in(node)))
        literal = self.branches.literal(identity, self.text(node))
        decided = self.branches.decided(literal)
        return (decided, None) if decided is not None else (None, literal)

    # --- expressions -------------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Any:
        """The value of an expression."""
        self._evaluations += 1
        if self._evaluations > MAX_EVALUATIONS:
            raise LimitReached
        handler = _EXPRESSIONS.get(type(node))
        return handler(self, node) if handler else self.unknown(node)

    def name(self, name: str) -> Any:
        """The value of a name here."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.vars and frame.vars[name] is not ABSENT:
                return self.given(settled(frame.vars[name], self.branches.guard))
            frame = frame.outer
        return self.given(Ref(name))

    def given(self, value: Any) -> Any:
        """A reference or unknown whose name tells the kinds of build apart, as it is in this one."""
        if isinstance(value, Ref) and value.name == "os.environ":
            return self.environment
        if isinstance(value, (Ref, Unknown)):
            text = value.name if isinstance(value, Ref) else value.text
            if text.endswith("is_available") or "(" in text or " " in text:
                return value
            if text in _CONSTANTS:
                return _CONSTANTS[text]
            truth = self.seeds.python_name(text)
            if truth is not None:
                return Unknown(text, True) if truth else None
            seeded = self.seeds.variable(text.rpartition(".")[2])
            if seeded is not None:
                return {"ON": True, "OFF": False, "TRUE": True, "FALSE": False}.get(seeded, seeded)
        return value

    def _name(self, node: ast.Name) -> Any:
        return self.name(node.id)

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.eval(node.value)
        found = self.spread(owner, lambda option: self.attribute(option, node.attr, node))
        return self.given(settled(found, self.branches.guard))

    def attribute(self, owner: Any, name: str, node: ast.AST) -> Any:
        """``owner.name``"""
        if isinstance(owner, Ref):
            return Ref(f"{owner.name}.{name}")
        if isinstance(owner, Module):
            return owner.frame.vars.get(name, Ref(f"{owner.path.removesuffix('.py').replace('/', '.')}.{name}"))
        if isinstance(owner, Obj):
            if name in owner.attrs:
                return owner.attrs[name]
            return self._inherited(owner.cls, owner, name, node)
        if isinstance(owner, Class):
            return self._inherited(owner, None, name, node)
        if isinstance(owner, PathText):
            return path_attribute(owner, name)
        if isinstance(owner, Unknown):
            return Unknown(f"{owner.text}.{name}", None, owner.number)
        return Ref(f"{MARK}.{name}")

    def _inherited(self, cls: Class, receiver: Obj | None, name: str, node: ast.AST) -> Any:
        if name == "__class__" and receiver is not None:
            return cls
        for ancestor in cls.lineage():
            if name in ancestor.attrs:
                found = ancestor.attrs[name]
                return self._bound(found, receiver, cls) if isinstance(found, Function) else found
        return self.unknown(node)

    def _bound(self, function: Function, receiver: Obj | None, cls: Class) -> Any:
        decorators = decorators_of(function.node)
        if "staticmethod" in decorators:
            return function
        target: Any = cls if "classmethod" in decorators else receiver
        bound = Function(function.node, function.frame, function.owner, target)
        if receiver is not None and decorators & {"property", "cached_property"}:
            return self.call_function(bound, [], {})
        return bound

    def spread(self, value: Any, apply: Callable[[Any], Any]) -> Any:
        """Apply to every value that there may be, and put the results together."""
        if not isinstance(value, Choice):
            return apply(value)
        found = [(guard, apply(option)) for guard, option in value.options]
        merged = merge_values(found, "a choice")
        return None if merged is ABSENT else merged

    def spread_all(self, values: list[Any], apply: Callable[[list[Any]], Any]) -> Any:
        """Apply to every combination of what several values may be."""
        rows: list[tuple[Guard, list[Any]]] = [((), [])]
        for value in values:
            rows = [(join(g, more), [*row, option]) for g, row in rows for more, option in options_of(value)][:12]
        if len(rows) == 1:
            return apply(rows[0][1])
        return merge_values([(guard, apply(row)) for guard, row in rows], "a choice")

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def iterate(self, node: ast.expr) -> tuple[Element, ...]:
        """The elements of an expression; an unknown one that may be any number of them, if it is not known."""
        value = self.eval(node)
        elements = elements_of(value)
        if elements is None:
            return (Element(self.unknown(node), (), self.frame.module.path, node.lineno),)
        return elements

    def _conditional(self, node: ast.IfExp) -> Any:
        truth, literal = self.test(node.test)
        if literal is None:
            return self.eval(node.body if truth else node.orelse)
        results = self.branches.run(
            [((literal,), lambda: self.eval(node.body)), ((literal.negated(),), lambda: self.eval(node.orelse))]
        )
        return merge_values([(guard, value) for guard, value in results], "a choice")

    def _boolean(self, node: ast.BoolOp) -> Any:
        decisive = isinstance(node.op, ast.Or)
        value: Any = None
        undecided = False
        for operand in node.values:
            value = self.eval(operand)
            truth = truth_of(value)
            if truth is decisive:
                return Unknown(self.text(node), decisive) if undecided else value
            undecided = undecided or truth is None
        return self.unknown(node) if undecided else value

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.eval(node.operand)
        if isinstance(node.op, ast.Not):
            truth = truth_of(value)
            return self.unknown(node) if truth is None else not truth
        if isinstance(value, (int, float)) and isinstance(node.op, ast.USub):
            return -value
        return self.unknown(node)

    def _compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            return self.unknown(node)
        left, right = self.eval(node.left), self.eval(node.comparators[0])
        truths = {compared(node.ops[0], a, b) for _, a in options_of(left) for _, b in options_of(right)}
        truth = truths.pop() if len(truths) == 1 else None
        return self.unknown(node) if truth is None else truth

    def _binary_operation(self, node: ast.BinOp) -> Any:
        return self.binary(node.op, self.eval(node.left), self.eval(node.right), node)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        """``left op right``"""
        found: list[tuple[Guard, Any]] = []
        for guard, a in options_of(left):
            for more, b in options_of(right):
                value = operate(op, a, b)
                found.append((join(guard, more), self._partly(a, b, op, node) if value is UNCOMPUTED else value))
        return found[0][1] if len(found) == 1 else merge_values(found, "a choice")

    def _partly(self, left: Any, right: Any, op: ast.operator, node: ast.AST) -> Any:
        """A list with something unknown put to it is at least that list."""
        if isinstance(op, ast.Add) and isinstance(left, Seq) != isinstance(right, Seq):
            rest = (Element(self.unknown(node)),)
            return Seq((*left.items, *rest), left.kind) if isinstance(left, Seq) else Seq((*rest, *right.items))
        return self.unknown(node)

    def extend(self, target: Any, added: Any) -> bool:
        """Put elements into a list in place; False if it is no list."""
        done = False
        for guard, option in options_of(target):
            if isinstance(option, Seq):
                elements = elements_of(added)
                if elements is None:
                    elements = (Element(added, (), self.frame.module.path, self.line),)
                more = tuple(element.under(without(guard, self.branches.guard)) for element in elements)
                self.branches.put(option.store, "items", (*option.items, *more)[:MAX_ELEMENTS])
                done = True
        return done

    def _subscript(self, node: ast.Subscript) -> Any:
        owner = self.eval(node.value)
        if isinstance(node.slice, ast.Slice):
            key: Any = [b if b is None else self.eval(b) for b in (node.slice.lower, node.slice.upper, node.slice.step)]
        else:
            key = self.eval(node.slice)

        def one(option: Any) -> Any:
            found = subscripted(option, key)
            return self.unknown(node) if found is UNCOMPUTED else found

        return settled(self.spread(owner, one), self.branches.guard)

    def _lambda(self, node: ast.Lambda) -> Function:
        return Function(node, self.frame, self.frame.owner)

    def _call(self, node: ast.Call) -> Any:
        return self.call(node)

    def _walrus(self, node: ast.NamedExpr) -> Any:
        value = self.eval(node.value)
        self.assign(node.target, value)
        return value


_EXPRESSIONS: dict[type, Callable[[Evaluator, Any], Any]] = {
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.Constant: Evaluator._constant,
    ast.List: sequence,
    ast.Tuple: sequence,
    ast.Set: sequence,
    ast.Dict: mapping,
    ast.JoinedStr: joined,
    ast.IfExp: Evaluator._conditional,
    ast.BoolOp: Evaluator._boolean,
    ast.UnaryOp: Evaluator._unary,
    ast.Compare: Evaluator._compare,
    ast.BinOp: Evaluator._binary_operation,
    ast.Subscript: Evaluator._subscript,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.Lambda: Evaluator._lambda,
    ast.Call: Evaluator._call,
    ast.NamedExpr: Evaluator._walrus,
}
