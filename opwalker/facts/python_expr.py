"""Expressions and conditions of a parsed Python text as plain values.

In: nodes. Out: ``PyExpr`` and ``PyGuard``, as far as the flow of a registration needs them; what is not needed is kept
as text. Nothing is evaluated.
"""

from __future__ import annotations

import re

from opwalker.facts.python_tree import Node, arguments_of, text_of
from opwalker.model.python import PyExpr, PyGuard
from opwalker.notation.regex import Regex

_COMMENT = Regex(r"(?<=\s)#[^\n\"']*(?=\n)")
_ESCAPE = Regex(r"\\(?:\r?\n|([abfnrtv\\'\"])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OPERATORS = {"is": "is", "is not": "isnot", "in": "in", "not in": "notin", "==": "eq", "!=": "ne"}
_WRAPPED = ("parenthesized_expression", "await")
#: An expression nested deeper than this is kept as text: nobody writes a registration that way.
_DEEPEST = 24


def string_of(node: Node) -> str | None:
    """The value of a plain string literal, adjacent ones joined; None for f-strings, bytes and all else."""
    if node.type == "concatenated_string":
        parts = [string_of(child) for child in node.named_children if child.type != "comment"]
        return None if None in parts else "".join(part for part in parts if part is not None)
    if node.type != "string":
        return None
    start = node.children[0]
    prefix = text_of(start).rstrip("'\"").lower()
    if "f" in prefix or "b" in prefix or "t" in prefix:
        return None
    inner = "".join(text_of(child) for child in node.children if child.type == "string_content")
    return inner if "r" in prefix or "\\" not in inner else _ESCAPE.sub(_unescape, inner)


def _unescape(found: re.Match[str]) -> str:
    simple, octal, *coded = found.groups()
    if simple:
        return _ESCAPED.get(simple, simple)
    if octal:
        return chr(int(octal, 8))
    code = next((int(digits, 16) for digits in coded if digits), None)
    return "" if code is None or code > 0x10FFFF else chr(code)


def guards_of(node: Node) -> tuple[PyGuard, ...]:
    """The conditions and loops that a statement stands under, outermost first, up to the function or module."""
    found: list[PyGuard] = []
    child, parent = node, node.parent
    while parent is not None and parent.type not in ("function_definition", "class_definition"):
        kind = parent.type
        if kind in ("if_statement", "elif_clause") and child == parent.child_by_field_name("consequence"):
            found.append(_guard(parent.child_by_field_name("condition"), True))
        elif kind == "if_statement" and child.type in ("elif_clause", "else_clause"):
            for earlier in parent.children:
                if earlier == child:
                    break
                if earlier.type == "elif_clause":
                    found.append(_guard(earlier.child_by_field_name("condition"), False))
            found.append(_guard(parent.child_by_field_name("condition"), False))
        elif kind == "for_statement" and child == parent.child_by_field_name("body"):
            left, right = parent.child_by_field_name("left"), parent.child_by_field_name("right")
            if left is not None and right is not None:
                found.append(PyGuard(expr(right), True, "for", text_of(left), text_of(right)))
        child, parent = parent, parent.parent
    found.reverse()
    return tuple(found)


def _guard(condition: Node | None, wanted: bool) -> PyGuard:
    if condition is None:
        return PyGuard(PyExpr("other"), wanted)
    while condition.type == "parenthesized_expression" and len(condition.named_children) == 1:
        condition = condition.named_children[0]
    return PyGuard(expr(condition), wanted, text=" ".join(_COMMENT.sub("", text_of(condition)).split()))


def expr(node: Node, depth: int = 0) -> PyExpr:
    """The node as ``PyExpr``."""
    kind = node.type
    if depth > _DEEPEST:
        return PyExpr("other", text_of(node))
    if kind == "identifier":
        return PyExpr("name", text_of(node))
    if kind in _WRAPPED and node.named_children:
        return expr(node.named_children[-1], depth + 1)
    if kind in ("string", "concatenated_string"):
        return _string(node, depth)
    if kind == "attribute":
        named = node.child_by_field_name("attribute")
        return PyExpr("attr", text_of(named) if named is not None else "", _fields(node, depth, "object"))
    if kind == "call":
        items = tuple(expr(argument, depth + 1) for argument in arguments_of(node))
        return PyExpr("call", "", _fields(node, depth, "function") + items)
    if kind == "keyword_argument":
        named = node.child_by_field_name("name")
        return PyExpr("keyword", text_of(named) if named is not None else "", _fields(node, depth, "value"))
    if kind in ("list_splat", "dictionary_splat"):
        return PyExpr("star" if kind == "list_splat" else "dstar", "", _children(node, depth))
    if kind in ("none", "true", "false", "integer", "float"):
        return PyExpr("const", text_of(node))
    if kind in ("list", "tuple", "set", "expression_list"):
        return PyExpr("seq", kind, _children(node, depth))
    if kind == "dictionary":
        pairs = [child for child in node.named_children if child.type == "pair"]
        if len(pairs) == sum(child.type != "comment" for child in node.named_children):
            return PyExpr("dict", "", tuple(item for pair in pairs for item in _fields(pair, depth, "key", "value")))
    if kind == "subscript":
        return PyExpr("index", "", _fields(node, depth, "value", "subscript"))
    if kind == "conditional_expression" and len(node.named_children) == 3:
        then, condition, otherwise = node.named_children
        return PyExpr("ifexp", "", tuple(expr(child, depth + 1) for child in (condition, then, otherwise)))
    if kind == "lambda":
        return PyExpr("lambda", text_of(node))
    return _operation(node, depth)


def _operation(node: Node, depth: int) -> PyExpr:
    kind = node.type
    if kind == "boolean_operator":
        operator = node.child_by_field_name("operator")
        return PyExpr(text_of(operator) if operator is not None else "other", "", _fields(node, depth, "left", "right"))
    if kind == "not_operator":
        return PyExpr("not", "", _fields(node, depth, "argument"))
    if kind == "binary_operator":
        operator = node.child_by_field_name("operator")
        if operator is not None and text_of(operator) == "+":
            return PyExpr("add", "", _fields(node, depth, "left", "right"))
    if kind == "comparison_operator" and len(node.named_children) == 2:
        signs = " ".join(text_of(child) for child in node.children if not child.is_named)
        if signs in _OPERATORS:
            return PyExpr(_OPERATORS[signs], "", _children(node, depth))
    return PyExpr("other", " ".join(text_of(node).split()))


def _string(node: Node, depth: int) -> PyExpr:
    value = string_of(node)
    if value is not None:
        return PyExpr("str", value)
    if node.type == "concatenated_string":
        return PyExpr("fstring", text_of(node), _children(node, depth))
    parts: list[PyExpr] = []
    for child in node.children:
        if child.type == "string_content":
            parts.append(PyExpr("str", text_of(child)))
        elif child.type == "interpolation":
            inner = child.child_by_field_name("expression")
            if inner is not None and len(child.named_children) == 1:
                parts.append(expr(inner, depth + 1))
            else:
                parts.append(PyExpr("other", text_of(child)))
    return PyExpr("fstring" if "f" in text_of(node.children[0]).lower() else "other", text_of(node), tuple(parts))


def _fields(node: Node, depth: int, *names: str) -> tuple[PyExpr, ...]:
    found = [node.child_by_field_name(name) for name in names]
    return tuple(expr(child, depth + 1) if child is not None else PyExpr("other") for child in found)


def _children(node: Node, depth: int) -> tuple[PyExpr, ...]:
    return tuple(expr(child, depth + 1) for child in node.named_children if child.type != "comment")
