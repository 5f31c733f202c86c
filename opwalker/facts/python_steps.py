"""The flow that a registration goes through, read off a parsed Python text.

In: nodes of functions and statements. Out: ``PyStep``s in source order: assignments, calls, returns and decorators,
with the conditions that they stand under. What the steps mean is for the linker.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.facts.python_expr import expr, guards_of
from opwalker.facts.python_tree import (
    Node,
    decorators_of,
    last_line_of,
    line_of,
    place_of,
    plain,
    qualname_of,
    text_of,
)
from opwalker.model.python import PyExpr, PyStep

#: Statements that hold statements; a class inside a function is not followed.
_COMPOUND = (
    "block",
    "if_statement",
    "elif_clause",
    "else_clause",
    "for_statement",
    "while_statement",
    "try_statement",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "with_statement",
    "match_statement",
    "case_clause",
)


def statement_around(node: Node) -> Node:
    """The simple statement, or the decorator, that a node is part of."""
    while True:
        parent = node.parent
        if parent is None or node.type == "decorator" or node.type.endswith("_statement"):
            return node
        if parent.type in ("module", "block"):
            return node
        node = parent


def steps_at(node: Node) -> list[PyStep]:
    """The steps of the statement or decorator that ``node`` is part of."""
    statement = statement_around(node)
    if statement.type == "decorator":
        return _decorations(statement)
    return list(_statement(statement))


def _decorations(decorator: Node) -> list[PyStep]:
    parent = decorator.parent
    definition = parent.child_by_field_name("definition") if parent is not None else None
    if parent is None or definition is None or definition.type != "function_definition":
        return []
    return [step for step in decorate_steps(definition) if step.line == line_of(decorator)]


def decorate_steps(definition: Node) -> list[PyStep]:
    """One step a decorator of a function, in the order in which they act: from the bottom up."""
    qualname, _ = qualname_of(definition)
    scope = place_of(definition).scope
    guards = guards_of(definition.parent if definition.parent is not None else definition)
    found = []
    for decorator in reversed(decorators_of(definition)):
        found.append(
            PyStep("decorate", qualname, expr(decorator), scope, line_of(decorator), last_line_of(decorator), guards)
        )
    return found


def steps_in(definition: Node) -> tuple[list[PyStep], list[Node]]:
    """The steps of a whole function, nested functions included, and the nodes of those nested functions."""
    steps: list[PyStep] = []
    nested: list[Node] = []
    body = definition.child_by_field_name("body")
    pending = [body] if body is not None else []
    while pending:
        node = pending.pop()
        for child in reversed(node.named_children):
            if child.type == "decorated_definition":
                inner = child.child_by_field_name("definition")
                if inner is not None and inner.type == "function_definition":
                    steps.extend(decorate_steps(inner))
                    child = inner
            if child.type == "function_definition":
                nested.append(child)
                body = child.child_by_field_name("body")
                if body is not None:
                    pending.append(body)
            elif child.type in ("expression_statement", "return_statement"):
                steps.extend(_statement(child))
            elif child.type in _COMPOUND:
                pending.append(child)
    steps.sort(key=lambda step: (step.line, step.end_line))
    return steps, nested


def _statement(statement: Node) -> Iterator[PyStep]:
    """The steps of a simple statement."""
    scope = place_of(statement).scope
    line, end_line = line_of(statement), last_line_of(statement)
    if statement.type == "return_statement":
        value = expr(statement.named_children[0]) if statement.named_children else PyExpr("const", "None")
        yield PyStep("return", None, value, scope, line, end_line, guards_of(statement))
        return
    if statement.type != "expression_statement":
        return
    for child in statement.named_children:
        if child.type == "call" or (child.type == "await" and child.named_children):
            yield PyStep("call", None, expr(child), scope, line, end_line, guards_of(statement))
        elif child.type in ("assignment", "augmented_assignment"):
            yield from _assignment(child, scope, line, end_line)


def _assignment(node: Node, scope: str | None, line: int, end_line: int) -> Iterator[PyStep]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return
    guards = guards_of(node)
    targets = [left]
    while right.type == "assignment":
        inner_left, inner_right = right.child_by_field_name("left"), right.child_by_field_name("right")
        if inner_left is None or inner_right is None:
            return
        targets.append(inner_left)
        right = inner_right
    value = expr(right)
    if node.type == "augmented_assignment":
        operator = node.child_by_field_name("operator")
        added = operator is not None and text_of(operator) == "+="
        value = PyExpr("add", "", (expr(left), value)) if added else PyExpr("other", " ".join(text_of(node).split()))
    for target in targets:
        if target.type in ("identifier", "attribute"):
            yield PyStep("assign", plain(target), value, scope, line, end_line, guards)
        elif target.type in ("pattern_list", "tuple_pattern"):
            names = target.named_children
            values = value.items if value.kind == "seq" and len(value.items) == len(names) else None
            for at, name in enumerate(names):
                part = values[at] if values is not None else PyExpr("other", text_of(right))
                yield PyStep("assign", plain(name), part, scope, line, end_line, guards)
