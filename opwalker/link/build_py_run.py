"""Python build scripts, statement by statement, without running them.

In: the text of a script and of the files that it imports from the same tree. Out: the state that they leave, and what
the calls of extension helpers report on the way. Both sides of an undecided condition are run; the environment is
taken as unset; steps, loops and calls are bounded.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from opwalker.link.build_guard import LimitReached, Stopped, without
from opwalker.link.build_py_machine import BREAK, CONTINUE, NEXT, RETURN, Machine
from opwalker.link.build_py_names import ParsedFiles, leaves
from opwalker.link.build_py_values import (
    Class,
    Element,
    Frame,
    Function,
    Obj,
    Raised,
    Unknown,
    elements_of,
    options_of,
    settled,
)
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_tree import Tree
from opwalker.model.build import BuildFile

#: Statements of a script, and of each function that is evaluated on its own.
MAX_STEPS = 40_000
MAX_ATTEMPT = 6_000
MAX_ROUNDS = 2_000


class PyRun(Machine):
    """One evaluation of scripts for one kind of build."""

    def __init__(self, files: Mapping[str, BuildFile], parsed: ParsedFiles, tree: Tree, seeds: Seeds) -> None:
        super().__init__(files, parsed, tree, seeds)
        self._left = MAX_STEPS

    def allow_more(self) -> None:
        """Give the next piece of work its own number of statements."""
        self._left = MAX_ATTEMPT

    def run_body(self, statements: Sequence[ast.stmt], start: int = 0) -> str:
        """Run statements from ``start`` on; gives how they ended."""
        index = start
        while index < len(statements):
            node = statements[index]
            index += 1
            self._left -= 1
            if self._left < 0:
                raise LimitReached
            self.line = node.lineno
            if isinstance(node, ast.If):
                status = self._run_if(node, statements, index)
                if status is not None:
                    return status
                continue
            handler = _STATEMENTS.get(type(node))
            status = handler(self, node) if handler else None
            if status is not None and status != NEXT:
                return status
        return NEXT

    def _run_if(self, node: ast.If, statements: Sequence[ast.stmt], rest: int) -> str | None:
        """None: go on behind it; else the whole body is done with this status."""
        truth, literal = self.test(node.test)
        if literal is None:
            status = self.run_body(node.body if truth else node.orelse)
            return status if status != NEXT else None
        leaving = leaves(node.body) or leaves(node.orelse)

        def way(body: Sequence[ast.stmt]) -> Callable[[], str]:
            def run() -> str:
                status = self.run_body(body)
                return self.run_body(statements, rest) if leaving and status == NEXT else status

            return run

        frame = self.frame
        ways = [((literal,), way(node.body)), ((literal.negated(),), way(node.orelse))]
        results = self.branches.run(ways)
        self.frame = frame
        statuses = {status for _, status in results}
        if statuses == {NEXT}:
            return NEXT if leaving else None
        return statuses.pop() if len(statuses) == 1 else NEXT

    def _run_for(self, node: ast.For) -> str | None:
        iterated = self.eval(node.iter)
        elements = elements_of(iterated)
        if elements is None:
            text = self.text(node.iter)
            item = Unknown(f"an element of {text}", None, self.next_number())
            literal = self.branches.literal(("elements", text, self.next_number()), text)
            elements = (Element(item, (literal,), self.frame.module.path, node.lineno),)
        if len(elements) > MAX_ROUNDS:
            self.problem(node, "limit", f"a loop was cut off after {MAX_ROUNDS} rounds")
        for element in elements[:MAX_ROUNDS]:
            status = self._round(node, element)
            if status == BREAK:
                return None
            if status == RETURN:
                return RETURN
        return self.run_body(node.orelse) if node.orelse else None

    def _round(self, node: ast.For, element: Element) -> str:
        guard = without(element.guard, self.branches.guard)

        def turn() -> str:
            self.assign(node.target, element.value, element)
            return self.run_body(node.body)

        if not guard:
            return turn()
        literal = guard[0]
        if len(guard) > 1:
            literal = self.branches.literal(("round", guard), self.guard_text(guard))
        frame = self.frame
        self.branches.run([((literal,), turn), ((literal.negated(),), lambda: NEXT)])
        self.frame = frame
        return NEXT

    def _run_while(self, node: ast.While) -> str | None:
        for _ in range(MAX_ROUNDS):
            truth, literal = self.test(node.test)
            if literal is not None:
                way = partial(self.run_body, node.body)
                self.branches.run([((literal,), way), ((literal.negated(),), lambda: NEXT)])
                return None
            if not truth:
                return None
            status = self.run_body(node.body)
            if status in (BREAK, RETURN):
                return RETURN if status == RETURN else None
        return None

    def _run_try(self, node: ast.Try) -> str | None:
        self.trying += 1
        try:
            status = self.run_body(node.body)
        except Stopped:
            # Which handler fits is not looked into: the first one is as good as any for what a script builds.
            self.trying -= 1
            status = self.run_body(node.handlers[0].body) if node.handlers else NEXT
            self.trying += 1
        else:
            if status == NEXT and node.orelse:
                status = self.run_body(node.orelse)
        finally:
            self.trying -= 1
        if node.finalbody:
            last = self.run_body(node.finalbody)
            status = last if last != NEXT else status
        return status

    def _run_with(self, node: ast.With) -> str | None:
        for item in node.items:
            value = self.eval(item.context_expr)
            if item.optional_vars is not None:
                known = value if isinstance(value, Obj) else Unknown(self.text(item.context_expr))
                self.assign(item.optional_vars, known)
        return self.run_body(node.body)

    def _run_return(self, node: ast.Return) -> str:
        value = self.eval(node.value) if node.value is not None else None
        guard = without(self.branches.guard, self.frame.guard)
        self.frame.returns.append((guard, value))
        return RETURN

    def _run_raise(self, node: ast.Raise) -> str:
        raise Raised

    def _run_assert(self, node: ast.Assert) -> None:
        truth, _ = self.test(node.test)
        if truth is False:
            raise Raised

    def _run_assign(self, node: ast.Assign) -> None:
        value = self.eval(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _run_annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.eval(node.value))

    def _run_augmented(self, node: ast.AugAssign) -> None:
        old = self.eval(_as_load(node.target))
        added = self.eval(node.value)
        if isinstance(node.op, ast.Add) and self.extend(old, added):
            return
        self.assign(node.target, self.binary(node.op, old, added, node))

    def _run_expression(self, node: ast.Expr) -> None:
        self.eval(node.value)

    def _run_def(self, node: ast.FunctionDef) -> None:
        self.bind(node.name, Function(node, self.frame, self.frame.owner))

    def _run_class(self, node: ast.ClassDef) -> None:
        bases = [settled(self.eval(base), self.branches.guard) for base in node.bases]
        flat = [option for base in bases for _, option in options_of(base)]
        cls = Class(node.name, flat, self.frame.module)
        frame = Frame(self.frame, self.frame.module)
        frame.owner = cls
        outer, self.frame = self.frame, frame
        try:
            self.run_body(node.body)
        finally:
            self.frame = outer
        cls.attrs = frame.vars
        for value in cls.attrs.values():
            if isinstance(value, Function):
                value.owner = cls
                value.frame = outer
        outer.module.classes.append(cls)
        self.bind(node.name, cls)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    return target


_STATEMENTS: dict[type, Callable[[PyRun, Any], str | None]] = {
    ast.For: PyRun._run_for,
    ast.While: PyRun._run_while,
    ast.Try: PyRun._run_try,
    ast.With: PyRun._run_with,
    ast.Return: PyRun._run_return,
    ast.Raise: PyRun._run_raise,
    ast.Assert: PyRun._run_assert,
    ast.Assign: PyRun._run_assign,
    ast.AnnAssign: PyRun._run_annotated,
    ast.AugAssign: PyRun._run_augmented,
    ast.Expr: PyRun._run_expression,
    ast.FunctionDef: PyRun._run_def,
    ast.AsyncFunctionDef: PyRun._run_def,
    ast.ClassDef: PyRun._run_class,
    ast.Import: PyRun.run_import,
    ast.ImportFrom: PyRun.run_import,
    ast.Break: lambda run, node: BREAK,
    ast.Continue: lambda run, node: CONTINUE,
}
