"""The parsed form of a Python text, and the few questions that the reader asks it.

In: text. Out: a ``Tree`` that answers where a place stands (function, class, statement, conditions), what chain of
attributes begins there, what a function's signature is, and what an expression says as ``PyExpr``. tree-sitter's nodes
do not leave the facts layer. No meaning is given to any name here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import tree_sitter
import tree_sitter_python

from opwalker.model.python import PyClass, PyExpr, PyFunction, PyGuard

Node = tree_sitter.Node

_LANGUAGE = tree_sitter.Language(tree_sitter_python.language())
_BOUND = tree_sitter.Query(
    _LANGUAGE,
    """
    (assignment left: (identifier) @name)
    (assignment left: (pattern_list (identifier) @name))
    (parameters (identifier) @name)
    (lambda_parameters (identifier) @name)
    (typed_parameter . (identifier) @name)
    (default_parameter name: (identifier) @name)
    (typed_default_parameter name: (identifier) @name)
    (list_splat_pattern (identifier) @name)
    (dictionary_splat_pattern (identifier) @name)
    (for_statement left: (identifier) @name)
    (for_statement left: (pattern_list (identifier) @name))
    (for_in_clause left: (identifier) @name)
    (as_pattern_target (identifier) @name)
    (named_expression name: (identifier) @name)
    (block (function_definition name: (identifier) @nested))
    (block (decorated_definition definition: (function_definition name: (identifier) @nested)))
    """,
)
_SPACE = re.compile(r"\s+")
_COMMENT = re.compile(r"(?<=\s)#[^\n\"']*(?=\n)")
_ESCAPE = re.compile(r"\\(?:\r?\n|([abfnrtv\\'\"])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OPERATORS = {"is": "is", "is not": "isnot", "in": "in", "not in": "notin", "==": "eq", "!=": "ne"}
_WRAPPED = ("parenthesized_expression", "await")
#: An expression nested deeper than this is kept as text: nobody writes a registration that way.
_DEEPEST = 24


def text_of(node: Node) -> str:
    """The node's text."""
    raw = node.text
    return raw.decode("utf-8", "replace") if raw else ""


def plain(node: Node) -> str:
    """The node's text without any white space, and without a star in front."""
    return _SPACE.sub("", text_of(node)).lstrip("*")


def line_of(node: Node) -> int:
    return int(node.start_point[0]) + 1


def last_line_of(node: Node) -> int:
    """The 1-based line of the node's last character; a block's trailing line end does not count."""
    row, column = node.end_point
    return int(row) + (1 if column else 0)


@dataclass(frozen=True, slots=True)
class Place:
    """What surrounds a node. ``functions`` and ``classes`` are nodes, innermost first."""

    qualname: str | None
    function: str | None
    functions: tuple[Node, ...]
    scope: str | None


class Tree:
    """One parsed text."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "surrogatepass")
        self._tree = tree_sitter.Parser(_LANGUAGE).parse(self.data)
        self.root = self._tree.root_node
        self._bound: dict[int, tuple[frozenset[str], dict[str, list[Node]]]] = {}

    @property
    def faulty(self) -> bool:
        """Whether some of the text could not be read."""
        return self.root.has_error

    def node_at(self, place: int) -> Node | None:
        """The smallest node at a byte offset, None where it is a comment or part of a string."""
        node = self.root.descendant_for_byte_range(place, place)
        if node is None or node.type in ("comment", "string_content", "string_start", "string_end", "string"):
            return None
        return node

    def bound_in(self, function: Node) -> frozenset[str]:
        """The names that a function binds: parameters, assignments, loops. Nested functions' own count in."""
        return self._bindings(function)[0]

    def nested_in(self, function: Node, name: str) -> list[Node]:
        """The definitions of nested functions of that name."""
        return self._bindings(function)[1].get(name, [])

    def _bindings(self, function: Node) -> tuple[frozenset[str], dict[str, list[Node]]]:
        known = self._bound.get(function.id)
        if known is None:
            found = tree_sitter.QueryCursor(_BOUND).captures(function)
            nested: dict[str, list[Node]] = {}
            for name in found.get("nested", []):
                if name.parent is not None and name.parent != function:
                    nested.setdefault(text_of(name), []).append(name.parent)
            known = frozenset(text_of(name) for name in found.get("name", [])), nested
            self._bound[function.id] = known
        return known


def place_of(node: Node) -> Place:
    """The functions and classes around a node. A decorator, a default value and an annotation stand outside the
    function that they belong to."""
    names: list[tuple[str, bool]] = []
    functions: list[Node] = []
    child, parent = node, node.parent
    while parent is not None:
        kind = parent.type
        if kind == "function_definition" and child.type == "block":
            functions.append(parent)
            names.append((name_of(parent), True))
        elif kind == "class_definition" and child.type == "block":
            names.append((name_of(parent), False))
        child, parent = parent, parent.parent
    names.reverse()
    qualname = ".".join(name for name, _ in names) or None
    reach = max((at for at, (_, is_function) in enumerate(names) if is_function), default=-1)
    function = ".".join(name for name, _ in names[: reach + 1]) or None
    return Place(qualname, function, tuple(functions), qualname)


def name_of(definition: Node) -> str:
    name = definition.child_by_field_name("name")
    return text_of(name) if name is not None else "?"


def qualname_of(definition: Node) -> tuple[str, str | None]:
    """``(qualname of a function or class, qualname of the class whose body it stands in or None)``."""
    outer = place_of(definition).qualname
    own = name_of(definition)
    if outer is None:
        return own, None
    return f"{outer}.{own}", outer if _in_class_body(definition) else None


def _in_class_body(definition: Node) -> bool:
    parent = definition.parent
    while parent is not None and parent.type != "function_definition":
        if parent.type == "class_definition":
            return True
        parent = parent.parent
    return False


def decorators_of(definition: Node) -> list[Node]:
    """The expressions of a definition's decorators, top first."""
    parent = definition.parent
    if parent is None or parent.type != "decorated_definition":
        return []
    return [child.named_children[0] for child in parent.children if child.type == "decorator" and child.named_children]


def function_of(definition: Node, signed: bool) -> PyFunction:
    """The facts of a function definition; the signature only where ``signed``."""
    qualname, method_of = qualname_of(definition)
    returns = definition.child_by_field_name("return_type")
    return PyFunction(
        qualname,
        line_of(definition),
        last_line_of(definition),
        tuple(parameters_of(definition)) if signed else (),
        text_of(returns) if signed and returns is not None else None,
        tuple(plain(decorator) for decorator in decorators_of(definition)) if signed else (),
        method_of,
        signed,
    )


def class_of(definition: Node) -> PyClass:
    """The facts of a class definition."""
    bases = definition.child_by_field_name("superclasses")
    texts = [plain(base) for base in bases.named_children if base.type != "keyword_argument"] if bases is not None else []
    body = definition.child_by_field_name("body")
    methods = []
    for child in body.named_children if body is not None else []:
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is not None and inner.type == "function_definition":
            methods.append(name_of(inner))
    return PyClass(qualname_of(definition)[0], line_of(definition), tuple(texts), tuple(dict.fromkeys(methods)))


def parameters_of(definition: Node) -> list[tuple[str, str | None, str | None, str]]:
    """``(name, annotation, default, kind)`` of every parameter, as ``PyFunction`` describes them."""
    found: list[tuple[str, str | None, str | None, str]] = []
    listed = definition.child_by_field_name("parameters")
    kind = "pos"
    for node in listed.named_children if listed is not None else []:
        if node.type == "keyword_separator":
            kind = "kwonly"
            continue
        if node.type == "positional_separator":
            found = [(name, note, default, "posonly") for name, note, default, _ in found]
            continue
        if node.type == "comment":
            continue
        name = node.child_by_field_name("name") or node
        note, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if node.type == "typed_parameter" and node.named_children:
            name = node.named_children[0]
        own = kind
        if name.type in ("list_splat_pattern", "dictionary_splat_pattern"):
            own = "vararg" if name.type == "list_splat_pattern" else "kwarg"
            kind = "kwonly"
        found.append(
            (
                text_of(name).lstrip("*"),
                text_of(note) if note is not None else None,
                text_of(value) if value is not None else None,
                own,
            )
        )
    return found


def attribute_of(node: Node) -> Node | None:
    """The attribute whose object the node is: for ``a`` in ``a.b.c`` the node of ``a.b``; None where there is none."""
    parent = node.parent
    if parent is not None and parent.type == "list_splat":
        # The grammar reads ``return a, *b.c(x)`` as if the star belonged to ``b`` alone.
        node, parent = parent, parent.parent
    if parent is None or parent.type != "attribute" or parent.child_by_field_name("object") != node:
        return None
    return parent


def chain_from(node: Node) -> Node:
    """The longest attribute chain that begins with ``node``: for ``a`` in ``a.b.c(x)`` the node of ``a.b.c``."""
    while True:
        parent = attribute_of(node)
        if parent is None:
            return node
        node = parent


def is_called(node: Node) -> bool:
    """Whether the node is the callee of a call."""
    parent = node.parent
    if parent is not None and parent.type == "list_splat":
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "call" and parent.child_by_field_name("function") == node


def arguments_of(call: Node) -> list[Node]:
    """The argument nodes of a call, comments left out."""
    listed = call.child_by_field_name("arguments")
    if listed is None:
        return []
    if listed.type != "argument_list":
        return [listed]
    return [node for node in listed.named_children if node.type != "comment"]


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
    while parent is not None and not (parent.type in ("function_definition", "class_definition")):
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
            plain_form = inner is not None and len(child.named_children) == 1
            parts.append(expr(inner, depth + 1) if inner is not None and plain_form else PyExpr("other", text_of(child)))
    return PyExpr("fstring" if "f" in text_of(node.children[0]).lower() else "other", text_of(node), tuple(parts))


def _fields(node: Node, depth: int, *names: str) -> tuple[PyExpr, ...]:
    found = [node.child_by_field_name(name) for name in names]
    return tuple(expr(child, depth + 1) if child is not None else PyExpr("other") for child in found)


def _children(node: Node, depth: int) -> tuple[PyExpr, ...]:
    return tuple(expr(child, depth + 1) for child in node.named_children if child.type != "comment")
