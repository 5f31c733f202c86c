"""Uses of ``torch.ops`` in a parsed Python text: calls, references and aliases.

In: a ``Tree`` and the spellings of ``torch.ops`` in it. Out: every op that is called or handed on, with the function
around it, and the names that stand for a namespace or an op. ``hasattr`` guards, loading of libraries and attributes of
an op are neither calls nor references.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opwalker.facts.python_expr import string_of
from opwalker.facts.python_tree import (
    Node,
    Tree,
    arguments_of,
    attribute_of,
    chain_from,
    is_called,
    line_of,
    place_of,
    plain,
    text_of,
)
from opwalker.facts.python_words import occurrences
from opwalker.model.python import COMPILED, PyAlias, PyOpCall

#: Attributes of ``torch.ops`` itself that are no namespaces.
_NOT_NAMESPACES = frozenset({"load_library", "import_module", "loaded_libraries"})
#: Attributes of an op that are no overloads.
_NOT_OVERLOADS = frozenset({"overloads", "op", "schemas", "name", "tags", "namespace"})
#: Methods of an op whose call runs the op.
_RUNS_OP = frozenset({"redispatch", "decompose", "__call__"})
_HANDED_ON = frozenset(
    {
        "argument_list",
        "keyword_argument",
        "list",
        "tuple",
        "set",
        "pair",
        "return_statement",
        "default_parameter",
        "typed_default_parameter",
        "lambda",
        "expression_list",
        "dictionary",
        "yield",
    }
)
_THROUGH = frozenset({"conditional_expression", "boolean_operator", "parenthesized_expression"})
_ROUNDS = 4
#: Brackets and conditions between an op and the statement that binds it, beyond which nobody writes.
_FARTHEST = 30


class OpReader:
    """Collects the uses of ops of one text."""

    def __init__(self, tree: Tree, byte_of: Callable[[int], int], text: str) -> None:
        self._tree = tree
        self._byte_of = byte_of
        self._text = text
        self.uses: dict[tuple[int, int, str], PyOpCall] = {}
        self.aliases: list[PyAlias] = []
        self.functions: dict[int, Node] = {}

    def read(self, roots: Mapping[str, str]) -> None:
        """Fill ``uses`` and ``aliases`` from the spellings ``{"torch.ops": "torch.ops"}``."""
        for spelled, target in roots.items():
            for at in occurrences(self._text, spelled):
                self._look(at, spelled, target, None)
        done = 0
        for _ in range(_ROUNDS):
            fresh = self.aliases[done:]
            done = len(self.aliases)
            for alias in fresh:
                for at in occurrences(self._text, alias.name):
                    self._look(at, alias.name, alias.target, alias)

    def _look(self, at: int, spelled: str, target: str, alias: PyAlias | None) -> None:
        node = self._tree.node_at(self._byte_of(at))
        if node is None or node.type != "identifier":
            return
        if alias is None and f".{COMPILED}" in target:
            # A compiled module: what it is imported as stands for it, here and for files that take it from this one.
            if _imports(node):
                self._add_alias(PyAlias(spelled, target, place_of(node).qualname, line_of(node)))
            return
        start = node
        while plain(start) != spelled:
            parent = attribute_of(start)
            if parent is None:
                return
            start = parent
        if alias is not None and not self._sees(start, alias):
            return
        node, rest = self._follow(start)
        parts = [part for part in target.split(".")[2:] if part] + rest
        if node.start_byte == start.start_byte and self._is_target(node):
            return
        self._record(node, parts)

    def _is_target(self, node: Node) -> bool:
        parent = node.parent
        return (
            parent is not None
            and parent.type in ("assignment", "keyword_argument", "pattern_list")
            and node in (parent.child_by_field_name("left"), parent.child_by_field_name("name"))
        )

    def _sees(self, node: Node, alias: PyAlias) -> bool:
        """Whether the name at ``node`` is the alias: same scope, and not bound anew in between."""
        place = place_of(node)
        owner, _, _ = alias.name.rpartition(".")
        if owner in ("self", "cls"):
            outer = (alias.scope or "").rpartition(".")[0] if owner else ""
            return bool(place.qualname and place.qualname.startswith(f"{outer}."))
        if owner:
            return True
        if alias.scope is not None:
            if place.qualname is None or not f"{place.qualname}.".startswith(f"{alias.scope}."):
                return False
        for function in place.functions:
            if alias.scope is not None and place.function == alias.scope:
                break
            if alias.name in self._tree.bound_in(function):
                return alias.scope is not None and self._binds(function, alias)
        return True

    def _binds(self, function: Node, alias: PyAlias) -> bool:
        inner = place_of(function).qualname
        own = function.child_by_field_name("name")
        qualname = text_of(own) if own is not None else ""
        return (f"{inner}.{qualname}" if inner else qualname) == alias.scope

    def _follow(self, start: Node) -> tuple[Node, list[str]]:
        """The node of the whole chain from ``start``, through ``getattr`` with a literal name, and its parts."""
        parts: list[str] = []
        node = start
        while True:
            chain = chain_from(node)
            spelled, own = plain(chain), plain(node)
            parts += [part for part in spelled[len(own) :].split(".") if part]
            node = chain
            call = node.parent.parent if node.parent is not None and node.parent.type == "argument_list" else None
            if call is None or call.type != "call":
                return node, parts
            callee = call.child_by_field_name("function")
            arguments = arguments_of(call)
            if callee is None or text_of(callee) != "getattr" or len(arguments) < 2 or arguments[0] != node:
                return node, parts
            name = string_of(arguments[1])
            if name is None:
                return node, [*parts, ""]
            parts.append(name)
            node = call

    def _record(self, node: Node, parts: list[str]) -> None:
        if not parts or "" in parts or parts[0] in _NOT_NAMESPACES or _guarded(node):
            if not parts or "" in parts:
                return
            if parts[0] in _NOT_NAMESPACES or len(parts) > 1:
                return
        called = is_called(node)
        self._bind(node, parts)
        if len(parts) < 2:
            return
        namespace, op, *rest = parts
        if called and rest and rest[-1] in _RUNS_OP:
            rest.pop()
        if len(rest) > 1 or (rest and (rest[0].startswith("_") or rest[0] in _NOT_OVERLOADS)):
            return
        if not called and not _handed_on(node):
            return
        place = place_of(node)
        overload = rest[0] if rest else None
        use = PyOpCall(namespace, op, overload, line_of(node), place.function, plain(node), called)
        # A name that several branches bind stands for several ops at one place.
        self.uses[node.start_byte, node.end_byte, f"{namespace}.{op}.{overload}"] = use
        for function in place.functions:
            self.functions[function.id] = function

    def _bind(self, node: Node, parts: list[str]) -> None:
        """Record the name that the chain is assigned to, if any."""
        child, parent = node, node.parent
        position: int | None = None
        for _ in range(_FARTHEST):
            if parent is None or parent.type not in (*_THROUGH, "expression_list", "call", "argument_list"):
                break
            if parent.type == "expression_list":
                position = parent.named_children.index(child)
            elif parent.type == "call":
                callee = parent.child_by_field_name("function")
                if callee is None or callee == child or text_of(callee) not in ("staticmethod", "getattr"):
                    return
            child, parent = parent, parent.parent
        if parent is None or parent.type != "assignment" or parent.child_by_field_name("right") != child:
            return
        left = parent.child_by_field_name("left")
        if left is not None and position is not None:
            names = left.named_children if left.type in ("pattern_list", "tuple_pattern") else []
            left = names[position] if position < len(names) else None
        if left is None or left.type not in ("identifier", "attribute"):
            return
        name = plain(left)
        if left.type == "attribute" and name.split(".")[0] not in ("self", "cls"):
            return
        target = ".".join(["torch", "ops", *parts])
        self._add_alias(PyAlias(name, target, place_of(node).qualname, line_of(node)))

    def _add_alias(self, alias: PyAlias) -> None:
        if alias not in self.aliases:
            self.aliases.append(alias)


def _imports(node: Node) -> bool:
    """Whether a name stands in an import statement."""
    around = node.parent
    while around is not None and around.type in ("dotted_name", "aliased_import"):
        around = around.parent
    return around is not None and around.type in ("import_statement", "import_from_statement")


def _guarded(node: Node) -> bool:
    """Whether the chain is the first argument of ``hasattr`` or another question about it."""
    parent = node.parent
    if parent is None or parent.type != "argument_list" or parent.parent is None:
        return False
    callee = parent.parent.child_by_field_name("function")
    return callee is not None and text_of(callee) in ("hasattr", "isinstance", "id", "type", "str", "repr", "callable")


def _handed_on(node: Node) -> bool:
    """Whether the op at ``node`` is passed on or stored."""
    parent = node.parent
    for _ in range(_FARTHEST):
        if parent is None or parent.type not in _THROUGH:
            break
        if parent.type == "conditional_expression" and parent.named_children[1] == node:
            return False
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type == "assignment":
        return parent.child_by_field_name("right") == node
    return parent.type in _HANDED_ON
