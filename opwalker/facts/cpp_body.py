"""A function body, parsed: calls, launches, locals, control structure.

In: the expanded text of a body (``{ … }``), pure ASCII. Out: ``BodyFacts``. The parser is tree-sitter's CUDA grammar;
its nodes never leave this file.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Any

from opwalker import resources
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.facts.cpp_heads import parse_parameters
from opwalker.facts.cpp_locals import HEAD, declared_in, name_of, one_line
from opwalker.model.body import (
    AssignFact,
    Block,
    BodyFacts,
    CallFact,
    ExitFact,
    LambdaFact,
    LaunchFact,
    LocalFact,
    Span2,
)
from opwalker.notation.regex import Regex

_SPECIFIER = Regex(
    r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)"
    r"|__align__\s*\([^()]*(?:\([^()]*\))?[^()]*\)|alignas\s*\([^()]*(?:\([^()]*\))?[^()]*\)"
    r"|__pragma\s*\([^()]*\)|_Pragma\s*\([^()]*\)|__extension__|\b__restrict__\b|\b__restrict\b|\b__forceinline__\b"
    r"|(?<=\])\s*(?:__host__\s*|__device__\s*)+|\btypename\b(?=\s+\w+(?:\s*<|\s*::))|\btemplate\b(?=\s+[a-zA-Z]\w*\s*<)(?<=::template)"
    r"|\b[A-Z_][A-Z0-9_]{3,}\s+(?=(?:for|while|do|if|switch|return)\b)"
    r"|\[\[[\w:, ]+(?:\([^()]*\))?\]\]|\b__grid_constant__\b|\b__inline__\b|\b__builtin_expect\b"
)


_MADE_UNSIGNED = Regex(r"(?<=[({])unsigned(?=\()")
#: Operators whose operand is never run.
_UNEVALUATED = frozenset(("sizeof", "decltype", "noexcept", "alignof", "typeid", "declval"))


@lru_cache(maxsize=1)
def _tools():
    import tree_sitter
    import tree_sitter_cuda

    language = tree_sitter.Language(tree_sitter_cuda.language())
    query = tree_sitter.Query(language, resources.text("grammars/queries/cuda/body.scm"))
    return tree_sitter.Parser(language), query, tree_sitter.QueryCursor


def mask(text: str) -> str:
    """Blank, at equal length, what the grammar does not read and no fact needs."""
    return _SPECIFIER.sub(lambda m: " " * len(m.group()), text)


def parse_body(text: str) -> tuple[str, Any]:
    """What the parser is given for a body's text, braces included, and the root of the tree that it makes of it."""
    source = HEAD + mask(text) + "}"
    root = _tools()[0].parse(source.encode("ascii")).root_node
    if root.has_error and _MADE_UNSIGNED.search(source):
        # ``dim3 grid(unsigned(n / 4))`` is no cast for the grammar; by another name of that type, as long, it is.
        other = _MADE_UNSIGNED.sub("uint32_t", source)
        again = _tools()[0].parse(other.encode("ascii")).root_node
        if not again.has_error:
            return other, again
    return source, root


def read_body(text: str) -> BodyFacts:
    """Read a body's text, braces included."""
    source, root = parse_body(text)
    _, query, cursor = _tools()
    captures = cursor(query).captures(root)
    return _Reader(source, captures).facts()


class _Reader:
    def __init__(self, source: str, captures: dict) -> None:
        self._source = source
        self._captures = captures
        self._shift = len(HEAD)
        self._blocks: list[Block] = []
        self._starts: list[int] = []

    def _nodes(self, name: str) -> list:
        return sorted(self._captures.get(name, ()), key=lambda n: (n.start_byte, -n.end_byte))

    def _span(self, node) -> Span2:
        return node.start_byte - self._shift, node.end_byte - self._shift

    def _text(self, node) -> str:
        return one_line(self._source, node)

    def facts(self) -> BodyFacts:
        """All facts of the body."""
        lambdas = self._lambdas()
        self._read_blocks()
        configurations = {}
        for node in self._captures.get("launch_configuration", ()):
            configurations[node.parent.start_byte, node.parent.end_byte] = node
        calls: list[CallFact] = []
        launches: list[LaunchFact] = []
        for node in self._nodes("call"):
            configuration = configurations.get((node.start_byte, node.end_byte))
            if configuration is not None:
                launches.append(self._launch(node, configuration))
            else:
                call = self._call(node)
                if call is not None:
                    calls.append(call)
        calls += [self._made(n) for n in self._nodes("new") if n.child_by_field_name("arguments")]
        calls, launches = self._evaluated(calls), self._evaluated(launches)
        locals_ = self._locals()
        calls.sort(key=lambda c: (c.start, -c.end))
        return BodyFacts(
            blocks=tuple(self._blocks),
            calls=tuple(calls),
            launches=tuple(launches),
            locals=tuple(locals_),
            assigns=tuple(
                AssignFact(
                    self._text(n.child_by_field_name("left")),
                    self._span(n.child_by_field_name("right")),
                    n.start_byte - self._shift,
                    self._block(n.start_byte),
                )
                for n in self._nodes("assignment")
            ),
            returns=tuple(self._span(n) for n in self._nodes("returned")),
            lambdas=tuple(lambdas),
            asm=tuple(self._span(n) for n in self._nodes("asm")),
            ternaries=tuple(
                (
                    self._span(n.child_by_field_name("condition")),
                    self._span(n.child_by_field_name("consequence")),
                    self._span(n.child_by_field_name("alternative")),
                )
                for n in self._nodes("ternary")
                if n.child_by_field_name("consequence") and n.child_by_field_name("alternative")
            ),
            errors=tuple(self._span(n) for n in self._nodes("error")),
            braced=tuple(self._braced(n) for n in self._nodes("braced") if n.child_by_field_name("type")),
            exits=tuple(self._exit(n) for n in self._nodes("exit")),
            scopes=tuple(self._span(n) for n in self._nodes("scope")),
        )

    def _evaluated(self, facts: list[Any]) -> list[Any]:
        """The calls and launches that can run: none inside ``sizeof``, ``decltype`` or ``noexcept``."""
        spans = [self._span(node) for node in self._nodes("unevaluated")]
        spans += [(f.start, f.end) for f in facts if isinstance(f, CallFact) and f.name in _UNEVALUATED]
        if not spans:
            return facts
        return [f for f in facts if not any(start < f.start and f.end <= end for start, end in spans)]

    def _exit(self, node) -> ExitFact:
        value = next((c for c in node.named_children if c.type != "comment"), None)
        start, end = self._span(node)
        kind, block = node.type.removesuffix("_statement"), self._block(node.start_byte)
        return ExitFact(kind, start, end, self._span(value) if value is not None else None, block)

    def _read_blocks(self) -> None:
        found: list[tuple[int, int, str, Span2 | None]] = []
        for node in self._nodes("if"):
            condition = node.child_by_field_name("condition")
            constexpr = any(c.type == "constexpr" for c in node.children)
            span = None
            if condition is not None:
                span = condition.start_byte - self._shift + 1, condition.end_byte - self._shift - 1
            taken = node.child_by_field_name("consequence")
            other = node.child_by_field_name("alternative")
            if taken is not None:
                found.append((taken.start_byte, taken.end_byte, "if constexpr" if constexpr else "if", span))
            if other is not None:
                found.append((other.start_byte, other.end_byte, "else constexpr" if constexpr else "else", span))
        for node in self._nodes("case"):
            value = node.child_by_field_name("value")
            # What the grammar ends a label's statements at, as a `static_assert`, does not end them.
            behind = node.next_sibling
            while behind is not None and behind.type not in ("case_statement", "}"):
                behind = behind.next_sibling
            end = behind.start_byte if behind is not None else node.end_byte
            found.append((node.start_byte, end, "case", self._span(value) if value is not None else None))
        for node in self._nodes("switch"):
            condition = node.child_by_field_name("condition")
            found.append(
                (
                    node.start_byte,
                    node.end_byte,
                    "switch",
                    (condition.start_byte - self._shift + 1, condition.end_byte - self._shift - 1),
                )
            )
        for node in self._nodes("loop"):
            found.append((node.start_byte, node.end_byte, "loop", None))
        for node in self._nodes("lambda"):
            found.append((node.start_byte, node.end_byte, "lambda", None))
        found.sort(key=lambda item: (item[0], -item[1]))
        stack: list[int] = []
        for start, end, kind, condition in found:
            while stack and self._blocks[stack[-1]].end < end - self._shift:
                stack.pop()
            while stack and self._blocks[stack[-1]].end <= start - self._shift:
                stack.pop()
            parent = stack[-1] if stack else -1
            self._blocks.append(Block(kind, start - self._shift, end - self._shift, condition, parent))
            self._starts.append(start)
            stack.append(len(self._blocks) - 1)

    def _block(self, at: int) -> int:
        """The innermost block around a byte offset, -1 for none."""
        number = bisect_right(self._starts, at) - 1
        while number >= 0 and self._blocks[number].end + self._shift <= at:
            number = self._blocks[number].parent
        return number

    def _arguments(self, node) -> tuple[Span2, ...]:
        return tuple(self._span(c) for c in node.named_children if c.type != "comment") if node is not None else ()

    def _launch(self, node, configuration) -> LaunchFact:
        kernel = node.child_by_field_name("function")
        return LaunchFact(
            node.start_byte - self._shift,
            node.end_byte - self._shift,
            self._span(kernel),
            self._arguments(configuration),
            self._arguments(node.child_by_field_name("arguments")),
            self._block(node.start_byte),
        )

    def _call(self, node) -> CallFact | None:
        callee = node.child_by_field_name("function")
        if callee is None:
            return None
        receiver = None
        target = callee
        if callee.type == "field_expression":
            argument = callee.child_by_field_name("argument")
            receiver = self._span(argument)
            target = callee.child_by_field_name("field") or callee
        name, template = name_of(self._source, target)
        return CallFact(
            node.start_byte - self._shift,
            node.end_byte - self._shift,
            self._span(callee),
            name,
            template,
            self._arguments(node.child_by_field_name("arguments")),
            receiver,
            self._block(node.start_byte),
        )

    def _made(self, node) -> CallFact:
        """``new T(...)`` as a call of ``T``."""
        kind = node.child_by_field_name("type")
        name, template = name_of(self._source, kind)
        arguments = self._arguments(node.child_by_field_name("arguments"))
        start, end = self._span(node)
        return CallFact(start, end, self._span(kind), name, template, arguments, None, self._block(node.start_byte))

    def _braced(self, node) -> CallFact:
        """``T{...}`` as a call of ``T``."""
        kind = node.child_by_field_name("type")
        name, template = name_of(self._source, kind)
        arguments = self._arguments(node.child_by_field_name("value"))
        start, end = self._span(node)
        return CallFact(start, end, self._span(kind), name, template, arguments, None, self._block(node.start_byte))

    def _lambdas(self) -> list[LambdaFact]:
        out = []
        for node in self._nodes("lambda"):
            body = node.child_by_field_name("body")
            if body is None:
                continue
            template = node.child_by_field_name("template_parameters")
            declarator = node.child_by_field_name("declarator")
            parameters: tuple[tuple[str, str], ...] = ()
            if declarator is not None:
                listed = declarator.child_by_field_name("parameters")
                if listed is not None:
                    text = self._source[listed.start_byte + 1 : listed.end_byte - 1]
                    parameters = tuple((t, n) for t, n, *_ in parse_parameters(text, 0, len(text)))
            out.append(
                LambdaFact(
                    node.start_byte - self._shift,
                    node.end_byte - self._shift,
                    self._span(body),
                    self._text(template)[1:-1] if template is not None else None,
                    parameters,
                )
            )
        out += [method for node in self._nodes("method") if (method := self._method(node)) is not None]
        return sorted(out, key=lambda one: (one.start, -one.end))

    def _method(self, node) -> LambdaFact | None:
        """A member function of a class that stands in the body: what it says is read with the body, as a lambda's."""
        body, declarator = node.child_by_field_name("body"), node.child_by_field_name("declarator")
        while declarator is not None and declarator.child_by_field_name("parameters") is None:
            declarator = declarator.child_by_field_name("declarator")
        if body is None or declarator is None:
            return None
        listed = declarator.child_by_field_name("parameters")
        text = self._source[listed.start_byte + 1 : listed.end_byte - 1]
        parameters = tuple((t, n) for t, n, *_ in parse_parameters(text, 0, len(text)))
        return LambdaFact(*self._span(node), self._span(body), None, parameters)

    def _locals(self) -> list[LocalFact]:
        out: list[LocalFact] = []
        loops = [n for n in self._nodes("loop") if n.type == "for_range_loop"]
        for node in self._nodes("declaration") + self._nodes("condition_declaration") + loops:
            out += declared_in(self._source, node, self._block(node.start_byte))
        for node in self._nodes("alias"):
            name, made = node.child_by_field_name("name"), node.child_by_field_name("type")
            if name is not None and made is not None:
                out.append(self._local(node, self._text(name), "using", self._span(made)))
        for node in self._nodes("type_definition"):
            made, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
            if made is not None and declarator is not None:
                out.append(self._local(node, self._text(declarator).strip("*& "), "using", self._span(made)))
        for node in self._nodes("namespace_alias"):
            children = node.named_children
            if len(children) == 2:
                out.append(self._local(node, self._text(children[0]), "namespace", self._span(children[1])))
        for node in self._nodes("using"):
            text = self._text(node)
            kind = "using namespace" if "namespace" in text else "using"
            target = text.removeprefix("using").strip().removeprefix("namespace").strip(" ;")
            start = node.start_byte + self._source[node.start_byte : node.end_byte].rfind(target) - self._shift
            name = target.rsplit("::", 1)[-1] if kind == "using" else ""
            out.append(self._local(node, name, kind, (start, start + len(target))))
        out.sort(key=lambda item: item.start)
        return out

    def _local(self, node, name: str, kind: str, value: Span2) -> LocalFact:
        start, end = self._span(node)
        return LocalFact(name, kind, value, start, end, self._block(node.start_byte))


def argument_spans(text: str, span: Span2) -> tuple[Span2, ...]:
    """The arguments inside the parentheses or braces that ``span`` covers, each without surrounding blanks."""
    start, end = span
    if end - start < 2 or text[start] not in "({" or match_bracket(text, start, end) != end:
        return (span,)
    out = []
    for a, b in split_commas(text, start + 1, end - 1):
        piece = text[a:b]
        out.append((a + len(piece) - len(piece.lstrip()), b - len(piece) + len(piece.rstrip())))
    return tuple(out)
