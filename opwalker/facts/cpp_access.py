"""How a function body touches memory: subscripts, dereferences, loops with their parts, guards that leave, changes.

In: the expanded text of a body (``{ … }``), pure ASCII. Out: ``AccessFacts``. Read only for bodies whose index
expressions are asked for; ``cpp_body`` reads what every walk needs.
"""

from __future__ import annotations

from functools import lru_cache

from opwalker import resources
from opwalker.facts.cpp_body import mask
from opwalker.model.access import LOADS, STORES, Access, AccessFacts, Change, Leave, Loop
from opwalker.model.body import Block, Span2

_HEAD = "void _(){"
_LEAVING = {"return_statement": "return", "continue_statement": "continue", "break_statement": "break"}


@lru_cache(maxsize=1)
def _tools():
    import tree_sitter
    import tree_sitter_cuda

    language = tree_sitter.Language(tree_sitter_cuda.language())
    query = tree_sitter.Query(language, resources.text("grammars/queries/cuda/access.scm"))
    return tree_sitter.Parser(language), query, tree_sitter.QueryCursor


def read_accesses(text: str, blocks: tuple[Block, ...]) -> AccessFacts:
    """Read a body's text, braces included; ``blocks`` are those that ``read_body`` found in it."""
    parser, query, cursor = _tools()
    source = _HEAD + mask(text) + "}"
    tree = parser.parse(source.encode("ascii"))
    return _Reader(source, tree.root_node, cursor(query).captures(tree.root_node), blocks).facts()


def _moving(node) -> tuple[bool, bool] | None:
    """Whether a call writes and reads the element that its first argument points at; None for any other call."""
    callee = node.child_by_field_name("function") if node.type == "call_expression" else None
    name = callee.text.decode() if callee is not None and callee.type == "identifier" else ""
    return (name in STORES, name in LOADS) if name in STORES | LOADS else None


def _whole(node):
    """An expression, or the largest one that it is the object of: ``a[i].x[0]`` of ``a[i]``."""
    outer = node.parent
    while outer is not None and (
        outer.type == "parenthesized_expression"
        or (
            outer.type in ("field_expression", "subscript_expression")
            and outer.child_by_field_name("argument") == node
            and not any(child.type == "->" for child in outer.children)
        )
    ):
        node, outer = outer, outer.parent
    return node


def _declares(node) -> bool:
    """Whether a name stands where a variable or parameter is declared by it."""
    around = node.parent
    kind = around.type if around is not None else ""
    return kind.endswith(("declarator", "declaration")) and around.child_by_field_name("value") != node


def _first(node):
    """A call's first argument."""
    listed = node.child_by_field_name("arguments") if node.type == "call_expression" else None
    return next((child for child in listed.named_children if child.type != "comment"), None) if listed else None


class _Reader:
    def __init__(self, source: str, root, captures: dict, blocks: tuple[Block, ...]) -> None:
        self._source = source
        self._root = root
        #: The places of each name; read where a reference is met.
        self._named: dict[str, list] | None = None
        self._captures = captures
        self._blocks = blocks

    def facts(self) -> AccessFacts:
        """All facts of the body."""
        accesses = [
            made for kind in ("index", "deref", "arrow") for n in self._nodes(kind) if (made := self._access(n, kind))
        ] + [made for n in self._nodes("call") if (made := self._moved(n))]
        loops = [self._for(n) for n in self._nodes("for")] + [self._while(n) for n in self._nodes("while")]
        leaves = [made for name in ("leave", "leave_block") for n in self._nodes(name) if (made := self._leave(n))]
        changes = [self._assigned(n) for n in self._nodes("assignment")] + [
            self._updated(n) for n in self._nodes("update")
        ]
        return AccessFacts(
            tuple(sorted(accesses, key=lambda a: (a.start, -a.end))),
            tuple(sorted(loops, key=lambda one: (one.start, -one.end))),
            tuple(sorted(leaves, key=lambda one: one.start)),
            tuple(sorted(changes, key=lambda one: one.start)),
            tuple(sorted((self._while(n) for n in self._nodes("do")), key=lambda one: (one.start, -one.end))),
        )

    def _nodes(self, name: str) -> list:
        return self._captures.get(name, [])

    def _span(self, node) -> Span2:
        return node.start_byte - len(_HEAD), node.end_byte - len(_HEAD)

    def _text(self, node) -> str:
        return " ".join(self._source[node.start_byte : node.end_byte].split())

    def _block(self, at: int) -> int:
        """The innermost block around an offset, -1 for none."""
        found = -1
        for number, block in enumerate(self._blocks):
            if block.start > at:
                break
            if at < block.end:
                found = number
        return found

    def _access(self, node, kind: str) -> Access | None:
        base = node.child_by_field_name("argument")
        if base is None:
            return None
        index = None
        if kind == "index":
            listed = node.child_by_field_name("indices") or node.child_by_field_name("index")
            if listed is None:
                return None
            start, end = self._span(listed)
            index = (start + 1, end - 1) if listed.type == "subscript_argument_list" else (start, end)
        uses = self._uses(node)
        written, read = any(one[1] for one in uses), any(one[2] for one in uses)
        start, end = self._span(node)
        through = tuple(uses) if [one[0] for one in uses] != [start] else ()
        return Access(kind, start, end, self._span(base), index, written, read, self._block(start), through)

    def _moved(self, node) -> Access | None:
        """``__ldg(p + i)``; of ``__ldg(&p[i])`` the element is the access."""
        base, how = _first(node), _moving(node)
        if how is None or base is None or (base.type == "pointer_expression" and base.children[0].type == "&"):
            return None
        start, end = self._span(node)
        return Access("call", start, end, self._span(base), None, *how, self._block(start))

    def _uses(self, node) -> list[tuple[int, bool, bool]]:
        """Where a place is used, whether it is written and whether its value is read; parts of it count as it, and so
        does a reference that is bound to it."""
        bound = self._bound(node)
        if bound is not None:
            return [use for one in bound for use in self._uses(one)]
        return [(self._span(node)[0], *self._used(node))]

    @staticmethod
    def _used(node) -> tuple[bool, bool]:
        """Whether a place is written and whether its value is read."""
        inner = _whole(node)
        outer = inner.parent
        if outer is not None:
            kind = outer.type
            if kind == "assignment_expression" and outer.child_by_field_name("left") == inner:
                operator = outer.child_by_field_name("operator")
                return True, operator is not None and operator.text != b"="
            if kind == "update_expression":
                return True, True
            if kind == "pointer_expression" and outer.children[0].type == "&":
                around = outer.parent.parent if outer.parent is not None else None
                how = _moving(around) if around is not None and _first(around) == outer else None
                return how or (False, False)
        return False, True

    def _bound(self, node) -> list | None:
        """Where the reference is named that a place is bound to and that may change it; None for no such reference."""
        whole = _whole(node)
        bound = whole.parent
        if bound is None or bound.type != "init_declarator" or bound.child_by_field_name("value") != whole:
            return None
        declarator, declaration = bound.child_by_field_name("declarator"), bound.parent
        name = next(iter(declarator.named_children), None) if declarator.type == "reference_declarator" else None
        scope = declaration.parent
        if name is None or name.type != "identifier" or scope is None or scope.type != "compound_statement":
            return None
        if any(child.type == "type_qualifier" and child.text == b"const" for child in declaration.children):
            return None
        uses = [one for one in self._places(name.text) if bound.end_byte <= one.start_byte < scope.end_byte]
        # Another variable of the name may hide it.
        return uses if not any(_declares(one) for one in uses) else None

    def _places(self, name: bytes) -> list:
        """The places where a name stands as a variable, in order."""
        if self._named is None:
            self._named, waiting = {}, [self._root]
            while waiting:
                node = waiting.pop()
                if node.type == "identifier":
                    self._named.setdefault(node.text, []).append(node)
                waiting += reversed(node.named_children)
        return self._named.get(name, [])

    def _for(self, node) -> Loop:
        body = node.child_by_field_name("body")
        parts = [node.child_by_field_name(name) for name in ("initializer", "condition", "update")]
        spans = [self._span(part) if part is not None else None for part in parts]
        return Loop(*self._span(node), *spans, self._span(body if body is not None else node))

    def _while(self, node) -> Loop:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        inside = (self._span(condition)[0] + 1, self._span(condition)[1] - 1) if condition is not None else None
        return Loop(*self._span(node), None, inside, None, self._span(body if body is not None else node))

    def _leave(self, node) -> Leave | None:
        taken, condition = node.child_by_field_name("consequence"), node.child_by_field_name("condition")
        last = taken
        if taken.type == "compound_statement":
            inside = [child for child in taken.named_children if child.type != "comment"]
            last = inside[-1] if inside else None
        if last is None or condition is None or last.type not in _LEAVING or node.child_by_field_name("alternative"):
            return None
        start, end = self._span(condition)
        around = node.parent
        while around is not None and around.type not in ("compound_statement", "case_statement"):
            around = around.parent
        until = self._span(around) if around is not None else (0, len(self._source))
        return Leave(_LEAVING[last.type], (start + 1, end - 1), self._span(node)[1], until)

    def _assigned(self, node) -> Change:
        operator = node.child_by_field_name("operator")
        text = operator.text.decode() if operator is not None else "="
        value = self._span(node.child_by_field_name("right"))
        return Change(self._text(node.child_by_field_name("left")), text, value, self._span(node)[0])

    def _updated(self, node) -> Change:
        operator = node.child_by_field_name("operator")
        text = operator.text.decode() if operator is not None else "++"
        return Change(self._text(node.child_by_field_name("argument")), text, None, self._span(node)[0])
