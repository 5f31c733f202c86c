"""The parsed form of a Python text, and the few questions that the reader asks it.

In: text. Out: a ``Tree`` that answers where a place stands (function, class), what chain of attributes begins there,
and what a function's signature is. tree-sitter's nodes do not leave the facts layer. No meaning is given to any name
here.
"""

from __future__ import annotations

import tree_sitter
import tree_sitter_python
from msgspec import Struct

from opwalker.model.python import PyClass, PyFunction
from opwalker.notation.regex import Regex

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
#: Levels of syntax around a place, and parts of a dotted name, beyond which a text is not looked into.
_DEEPEST_PLACE = 400
_LONGEST_CHAIN = 50
_SPACE = Regex(r"\s+")


def text_of(node: Node) -> str:
    """The node's text."""
    raw = node.text
    return raw.decode("utf-8", "replace") if raw else ""


def plain(node: Node) -> str:
    """The node's text without any white space, and without a star in front."""
    return _SPACE.sub("", text_of(node)).lstrip("*")


def line_of(node: Node) -> int:
    """The 1-based line of the node's first character."""
    return int(node.start_point[0]) + 1


def last_line_of(node: Node) -> int:
    """The 1-based line of the node's last character; a block's trailing line end does not count."""
    row, column = node.end_point
    return int(row) + (1 if column else 0)


class TooDeep(Exception):
    """Something stands deeper in the text than anybody writes by hand; ``line`` is where."""

    def __init__(self, line: int) -> None:
        super().__init__("nested too deeply to be read")
        self.line = line


class Place(Struct, frozen=True):
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
        """The names that a function binds: parameters, assignments, loops; not those of functions in it."""
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
            inner = [(one.start_byte, one.end_byte) for several in nested.values() for one in several]
            own = [
                name
                for name in found.get("name", [])
                if not any(start <= name.start_byte < end for start, end in inner)
            ]
            known = frozenset(text_of(name) for name in own), nested
            self._bound[function.id] = known
        return known


def place_of(node: Node) -> Place:
    """The functions and classes around a node. A decorator, a default value and an annotation stand outside the
    function that they belong to."""
    names: list[tuple[str, bool]] = []
    functions: list[Node] = []
    child, parent = node, node.parent
    steps = 0
    while parent is not None:
        steps += 1
        if steps > _DEEPEST_PLACE:
            raise TooDeep(line_of(node))
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
    """The name of a function or class."""
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
    listed = bases.named_children if bases is not None else []
    texts = [plain(base) for base in listed if base.type != "keyword_argument"]
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
    for _ in range(_LONGEST_CHAIN):
        parent = attribute_of(node)
        if parent is None:
            break
        node = parent
    return node


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
