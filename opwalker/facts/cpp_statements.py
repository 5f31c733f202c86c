"""A function body, parsed into a tree of statements.

In: the expanded text of a body (``{ … }``), pure ASCII. Out: ``Node`` values with spans into that text. The parser is
the one of ``cpp_body``; what it could not read is a node of kind ``unread``, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.facts.cpp_body import parse_body
from opwalker.facts.cpp_heads import parse_parameters
from opwalker.facts.cpp_locals import HEAD, declared_in, name_of
from opwalker.model.statements import CallNode, LambdaNode, LaunchNode, Node, Span2

#: Deeper nesting than this is left unread: no person wrote it.
_DEEPEST = 150

_SIMPLE = {
    "break_statement": "break",
    "continue_statement": "continue",
    "goto_statement": "goto",
    "return_statement": "return",
    "co_return_statement": "return",
    "throw_statement": "throw",
}
#: What stands among statements and does nothing when it runs.
_SILENT = frozenset(
    ("comment", ";", "{", "}", "static_assert_declaration", "using_declaration", "namespace_alias_definition",
     "type_definition", "struct_specifier", "class_specifier", "enum_specifier", "union_specifier",
     "template_declaration", "friend_declaration", "preproc_call")
)  # fmt: skip
_IN_PARENTHESES = frozenset(("condition_clause", "parameter_list", "parenthesized_expression"))
_ASSIGNED = frozenset(("assignment_expression", "update_expression"))


def read_statements(text: str) -> tuple[Node, ...]:
    """The statements of a body's text, braces included."""
    source, root = parse_body(text)
    for function in root.named_children:
        body = function.child_by_field_name("body")
        if body is not None:
            inner = next((c for c in body.named_children if c.type == "compound_statement"), None)
            return _Reader(source).block(inner if inner is not None else body, 0)
    return (Node("unread", (0, len(text))),)


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._shift = len(HEAD)

    def span(self, node) -> Span2:
        return node.start_byte - self._shift, node.end_byte - self._shift

    def block(self, node, depth: int) -> tuple[Node, ...]:
        """The statements of a compound statement, or of the single statement that stands in its place."""
        if node is None:
            return ()
        if node.type != "compound_statement":
            return self._statements(node, depth)
        return tuple(one for child in node.children for one in self._statements(child, depth))

    def _statements(self, node, depth: int) -> tuple[Node, ...]:
        if node.type in _SILENT:
            return ()
        return (self._statement(node, depth + 1),)

    def _statement(self, node, depth: int) -> Node:
        kind, span = node.type, self.span(node)
        if depth > _DEEPEST or kind == "ERROR":
            return Node("unread", span)
        if kind == "compound_statement":
            return Node("block", span, body=self.block(node, depth))
        if kind == "else_clause":
            inner = [child for child in node.named_children if child.type != "comment"]
            return self._statement(inner[-1], depth) if inner else Node("block", span)
        reader = getattr(self, f"_{kind}", None)
        if reader is not None:
            return reader(node, depth)
        if kind in _SIMPLE:
            value = next((child for child in node.named_children if child.type != "comment"), None)
            made = Node(_SIMPLE[kind], span, self.span(value) if value is not None else None)
            return self._with(made, [value], depth)
        if kind in ("declaration", "alias_declaration"):
            return self._declared(node, depth)
        if kind == "expression_statement":
            inner = next((child for child in node.named_children if child.type != "comment"), None)
            if inner is None:
                return Node("block", span)
            what = "asm" if inner.type == "gnu_asm_expression" else "expression"
            return self._with(Node(what, span, self.span(inner)), [inner], depth)
        return self._with(Node("expression", span, span), [node], depth)

    def _declared(self, node, depth: int) -> Node:
        span = self.span(node)
        static = any(self._source[c.start_byte : c.end_byte] == "static" for c in node.children)
        declares = self._locals(node, static)
        return self._with(Node("declaration", span, span, declares=declares), [node], depth)

    def _locals(self, node, static: bool = False) -> tuple[tuple[str, str, Span2 | None, int, bool], ...]:
        return tuple((one.name, one.type, one.value, one.start, static) for one in declared_in(self._source, node))

    def _if_statement(self, node, depth: int) -> Node:
        constexpr = any(child.type == "constexpr" for child in node.children)
        condition = node.child_by_field_name("condition")
        made = Node(
            "if constexpr" if constexpr else "if",
            self.span(node),
            self._inside(condition),
            self.block(node.child_by_field_name("consequence"), depth),
            self._else(node.child_by_field_name("alternative"), depth),
        )
        return self._with(made, [condition], depth)

    def _else(self, node, depth: int) -> tuple[Node, ...]:
        if node is None:
            return ()
        inner = [child for child in node.named_children if child.type != "comment"]
        return self.block(inner[-1], depth) if inner else ()

    def _for_statement(self, node, depth: int) -> Node:
        first = node.child_by_field_name("initializer")
        condition, step = node.child_by_field_name("condition"), node.child_by_field_name("update")
        head: tuple[Node, ...] = ()
        if first is not None:
            head = self._statements(first, depth)
        made = Node(
            "for",
            self.span(node),
            self.span(condition) if condition is not None else None,
            self.block(node.child_by_field_name("body"), depth),
            head=head,
            step=self.span(step) if step is not None else None,
        )
        return self._with(made, [condition, step], depth)

    def _for_range_loop(self, node, depth: int) -> Node:
        right = node.child_by_field_name("right")
        made = Node(
            "range for",
            self.span(node),
            self.span(right) if right is not None else None,
            self.block(node.child_by_field_name("body"), depth),
            declares=self._locals(node),
        )
        return self._with(made, [right], depth)

    def _while_statement(self, node, depth: int) -> Node:
        condition = node.child_by_field_name("condition")
        body = self.block(node.child_by_field_name("body"), depth)
        return self._with(Node("while", self.span(node), self._inside(condition), body), [condition], depth)

    def _do_statement(self, node, depth: int) -> Node:
        condition = node.child_by_field_name("condition")
        body = self.block(node.child_by_field_name("body"), depth)
        return self._with(Node("do", self.span(node), self._inside(condition), body), [condition], depth)

    def _switch_statement(self, node, depth: int) -> Node:
        condition = node.child_by_field_name("condition")
        body = self.block(node.child_by_field_name("body"), depth)
        return self._with(Node("switch", self.span(node), self._inside(condition), body), [condition], depth)

    def _case_statement(self, node, depth: int) -> Node:
        value = node.child_by_field_name("value")
        inner = [c for c in node.named_children if value is None or c.start_byte >= value.end_byte]
        body = tuple(one for child in inner for one in self._statements(child, depth))
        return Node("case", self.span(node), self.span(value) if value is not None else None, body)

    def _labeled_statement(self, node, depth: int) -> Node:
        label = node.child_by_field_name("label")
        rest = [c for c in node.named_children if label is None or c.start_byte >= label.end_byte]
        body = tuple(one for child in rest for one in self._statements(child, depth))
        return Node("label", self.span(node), self.span(label) if label is not None else None, body)

    def _try_statement(self, node, depth: int) -> Node:
        body = self.block(node.child_by_field_name("body"), depth)
        caught = tuple(self._catch(c, depth) for c in node.named_children if c.type == "catch_clause")
        return Node("try", self.span(node), None, body, caught)

    def _catch(self, node, depth: int) -> Node:
        caught = self._inside(node.child_by_field_name("parameters"))
        return Node("catch", self.span(node), caught, self.block(node.child_by_field_name("body"), depth))

    def _inside(self, node) -> Span2 | None:
        """The span inside the parentheses of a condition."""
        if node is None:
            return None
        start, end = self.span(node)
        return (start + 1, end - 1) if node.type in _IN_PARENTHESES else (start, end)

    def _with(self, made: Node, parts: list, depth: int) -> Node:
        """The node with what its own expressions hold."""
        calls: list[CallNode] = []
        launches: list[LaunchNode] = []
        assigns: list[tuple[Span2, str, Span2 | None]] = []
        lambdas: list[LambdaNode] = []
        declares = list(made.declares)
        for part in parts:
            for node in self._within(part):
                if node.type == "lambda_expression":
                    lambdas.append(self._lambda(node, depth))
                elif node.type == "call_expression":
                    self._call(node, calls, launches)
                elif node.type == "new_expression":
                    calls.append(self._new(node))
                elif node.type in _ASSIGNED:
                    assigns.append(self._assign(node))
                elif node.type == "declaration" and node is not part and made.kind != "declaration":
                    declares += self._locals(node)
        return Node(
            made.kind, made.span, made.text, made.body, made.orelse, made.head, made.step,
            tuple(calls), tuple(launches), tuple(assigns), tuple(declares), tuple(lambdas),
        )  # fmt: skip

    def _within(self, node) -> Iterator:
        """The nodes of an expression, in source order; what is inside a lambda is left out."""
        stack = [node] if node is not None else []
        while stack:
            one = stack.pop()
            yield one
            if one.type != "lambda_expression":
                stack.extend(reversed(one.named_children))

    def _call(self, node, calls: list[CallNode], launches: list[LaunchNode]) -> None:
        callee = node.child_by_field_name("function")
        if callee is None:
            return
        arguments = self._spans(node.child_by_field_name("arguments"))
        configuration = next((c for c in node.named_children if c.type == "kernel_call_syntax"), None)
        if configuration is not None:
            launches.append(LaunchNode(self.span(node), self.span(callee), self._spans(configuration), arguments))
            return
        receiver, target = None, callee
        if callee.type == "field_expression":
            argument = callee.child_by_field_name("argument")
            receiver = self.span(argument) if argument is not None else None
            target = callee.child_by_field_name("field") or callee
        # What is called where it stands has no name.
        name, template = ("", None) if target.type == "lambda_expression" else name_of(self._source, target)
        calls.append(CallNode(self.span(node), name, receiver, template, arguments))

    def _new(self, node) -> CallNode:
        kind = node.child_by_field_name("type")
        name, template = name_of(self._source, kind)
        arguments = self._spans(node.child_by_field_name("arguments"))
        return CallNode(self.span(node), name, None, template, arguments, made=True)

    def _assign(self, node) -> tuple[Span2, str, Span2 | None]:
        if node.type == "update_expression":
            target = node.child_by_field_name("argument")
            operator = node.child_by_field_name("operator")
            return self.span(target), self._source[operator.start_byte : operator.end_byte], None
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self._source[target.end_byte : value.start_byte].strip()
        return self.span(target), operator or "=", self.span(value)

    def _spans(self, node) -> tuple[Span2, ...]:
        return tuple(self.span(c) for c in node.named_children if c.type != "comment") if node is not None else ()

    def _lambda(self, node, depth: int) -> LambdaNode:
        parameters: tuple[tuple[str, str], ...] = ()
        declarator = node.child_by_field_name("declarator")
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        if listed is not None:
            text = self._source[listed.start_byte + 1 : listed.end_byte - 1]
            parameters = tuple((kind, name) for kind, name, *_ in parse_parameters(text, 0, len(text)))
        inner = node.child_by_field_name("body")
        body = self.block(inner, depth + 1) if depth < _DEEPEST else ()
        start, end = self.span(inner if inner is not None else node)
        return LambdaNode(self.span(node), (start + 1, end - 1), parameters, body)
