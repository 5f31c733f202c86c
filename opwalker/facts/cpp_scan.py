"""The structure of a C++/CUDA file: namespaces, classes, functions, macros, bindings, in every preprocessor branch.

In: a ``SourceFile``. Out: ``CppFacts``. Bodies of functions are only measured here, not read; macros are not expanded.

Why no parser: a kernel library's files do not parse as they stand (macros with unbalanced braces, branches that each
open the same block, attributes between any two words). Here a declaration is what stands between two of ``; { }``, and
a conditional whose branches cannot be read one after the other is read once per branch.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable

from opwalker.facts.cpp_bindings import read_bindings
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.facts.cpp_declarations import Declarations
from opwalker.facts.cpp_directives import directives_of
from opwalker.facts.cpp_heads import parse_function
from opwalker.facts.cpp_text import MAX_TERMS, Blanked, Conditionals, Group, blank
from opwalker.model.cpp import CppFacts
from opwalker.model.source import Problem, SourceFile
from opwalker.notation.regex import Regex

#: Nesting of scopes beyond which a file is given up: no real file comes near it.
MAX_SCOPES = 200
#: Branches of an exclusive conditional that are read; generated files have been seen with dozens.
MAX_PASSES = 6
#: Conditionals beyond which their brackets are counted from one list of places.
MANY_GROUPS = 256

_BRACE = Regex(r"[{}]")
_STOP = Regex(r"[(){};\[\]]")
_HANDLER = Regex(r"\s*catch\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*\{")
_LABEL = Regex(r"\s*(?:public|private|protected|signals|slots|Q_SIGNALS)\s*:(?!:)")


def scan(source: SourceFile) -> CppFacts:
    """Read one C++/CUDA file."""
    blanked = blank(source.text)
    conditionals = Conditionals(blanked)
    problems = list(source.problems)
    problems += [Problem("directive", text, blanked.line(at)) for text, at in conditionals.problems]
    if conditionals.deep:
        problems.append(Problem("too-deep", f"conditions of more than {MAX_TERMS} terms are not told apart", 1))
    declarations = Declarations(blanked, conditionals)
    reader = _Reader(blanked, conditionals, declarations, problems)
    reader.read()
    includes, macros = directives_of(blanked, conditionals)
    functions, invocations = tuple(declarations.functions), tuple(declarations.uses.entries)
    return CppFacts(
        conditions=tuple(conditionals.conditions),
        includes=includes,
        macros=macros,
        branches=conditionals.branches(),
        functions=functions,
        classes=tuple(declarations.classes),
        enums=tuple(declarations.enums),
        aliases=tuple(declarations.aliases),
        variables=tuple(declarations.variables),
        invocations=invocations,
        bindings=read_bindings(blanked, conditionals, functions, invocations),
        line_count=len(blanked.line_starts),
        unread=reader.unread,
        problems=tuple(problems),
        instantiations=tuple(declarations.instantiations),
        code_digest=_code_digest(blanked),
        declared_classes=tuple(declarations.declared_classes),
        once=conditionals.once,
    )


def _code_digest(blanked: Blanked) -> str:
    return _digest(blanked.text[: len(blanked.code.rstrip())])


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def names(facts: CppFacts) -> list[tuple[str, str]]:
    """What a file defines or holds, for the table of names: ``(simple name, kind)``."""
    out: dict[tuple[str, str], None] = {}
    for function in facts.functions:
        if "explicit_instantiation" in function.flags:
            out[(function.name, "instantiation")] = None
        elif function.is_definition:
            out[(function.name, "kernel" if "global" in function.flags else "function")] = None
        else:
            out[(function.name, "declaration")] = None
    for macro in facts.macros:
        out[(macro.name, "macro" if macro.body is not None else "undef")] = None
    out.update(dict.fromkeys((made.name, "class") for made in facts.classes))
    out.update(dict.fromkeys((made.name, "declared class") for made in facts.declared_classes))
    for enum in facts.enums:
        out[(enum.name, "enum")] = None
        for member, _ in enum.members:
            out[(member, "enumerator")] = None
    for alias in facts.aliases:
        if alias.name:
            out[(alias.name, "namespace_alias" if alias.kind == "namespace" else "alias")] = None
    for variable in facts.variables:
        out[(variable.name, "variable")] = None
        if "PyMethodDef" in variable.type:
            out[("", "method table")] = None
    for use in facts.invocations:
        out[(use.name, "invocation")] = None
    if facts.bindings:
        out[("", "bindings")] = None
    # All that a lookup by name can see of the file.
    seen = "\n".join(sorted(f"{kind}\0{name}" for name, kind in out))
    out[(_digest(seen), "named")] = None
    out[(facts.code_digest, "code")] = None
    return list(out)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with spans blanked, that are given in order and do not overlap; lines stay."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += (text[at:start], re.sub(r"[^\n]", " ", text[start:end]))
        at = end
    return "".join((*pieces, text[at:]))


def _is_unbalanced(group: Group, count: Callable[[str, int, int], int]) -> bool:
    return any(
        count(opening, branch.start, branch.end) != count(closing, branch.start, branch.end)
        for branch in group.branches
        for opening, closing in ("{}", "()")
    )


class _Reader:
    """Walks the scopes of a file, once per branch where branches exclude each other."""

    def __init__(
        self, blanked: Blanked, conditionals: Conditionals, declarations: Declarations, problems: list[Problem]
    ) -> None:
        self._blanked = blanked
        self._conditionals = conditionals
        self._declarations = declarations
        self._problems = problems
        self._text = blanked.plain
        self._split: set[int] = set()  # starts of groups that split a declaration, found while reading
        self._unclosed = -1  # the bracket that kept the last declaration of a scope open
        self.unread = 0

    def read(self) -> None:
        exclusive = self._exclusive(self._conditionals.groups)
        self._conditionals.apart = frozenset(g.start for g in exclusive)
        self._text = self._select(exclusive, 0)
        self._scope(0, len(self._text), (), None, 0)
        split = [g for g in self._conditionals.groups if g.start in self._split and g not in exclusive]
        if split:
            exclusive = sorted(exclusive + split, key=lambda g: g.start)
            self._conditionals.apart = frozenset(g.start for g in exclusive)
            self._declarations.forget()
            self._text = self._select(exclusive, 0)
            self._scope(0, len(self._text), (), None, 0)
        passes = min(MAX_PASSES, max((max(2, len(g.branches)) for g in exclusive), default=1))
        for number in range(1, passes):
            self._text = self._select(exclusive, number)
            self._scope(0, len(self._text), (), None, 0)

    def _exclusive(self, groups: list[Group]) -> list[Group]:
        """The groups with branches that open or close blocks: they cannot be read one after the other."""
        text = self._blanked.plain
        if len(groups) > MANY_GROUPS:
            # Counting within each branch would read deeply nested ones over and over.
            places = {bracket: [m.start() for m in re.finditer(re.escape(bracket), text)] for bracket in "{}()"}

            def count(bracket: str, start: int, end: int) -> int:
                return bisect_left(places[bracket], end) - bisect_left(places[bracket], start)
        else:
            count = text.count
        found = [g for g in groups if _is_unbalanced(g, count) or self._conditionals.leaves_open(g, text)]
        return self._without_outer(found) if len(found) <= MANY_GROUPS else found

    def _without_outer(self, found: list[Group]) -> list[Group]:
        """The groups that open or close blocks themselves, and not only by the branches of others within them."""
        exclusive: list[Group] = []
        for group in reversed(found):
            inner = [one for one in exclusive if group.start < one.start and one.end <= group.end]
            if not inner or _is_unbalanced(group, self._select(inner, 0).count):
                exclusive.insert(0, group)
        return exclusive

    def _select(self, groups: list[Group], number: int) -> str:
        """The text in which each exclusive group shows one branch only.

        Conditionals on the same term agree within a pass: what one opens, the other closes. A term met first decides
        for its branch ``number``.
        """
        text = self._blanked.plain
        if not groups:
            return text
        # What is switched off by a literal may be prose: its brackets say nothing.
        terms: dict[str, bool] = {"0": False, "1": True}
        hidden: list[tuple[int, int]] = []
        #: Of what is left out already, what may end behind the next group: that one is an inner one of a branch.
        open_spans: list[tuple[int, int]] = []
        for group in groups:
            open_spans = [span for span in open_spans if span[1] > group.start]
            if any(start <= group.start for start, _ in open_spans):
                continue  # inside a branch that this pass leaves out
            keep = self._branch(group, number, terms)
            left_out = [(branch.start, branch.end) for n, branch in enumerate(group.branches) if n != keep]
            open_spans += left_out
            hidden += left_out
        return _without(text, sorted(hidden))

    def _branch(self, group: Group, number: int, terms: dict[str, bool]) -> int:
        """Which branch of a group a pass shows: -1 for none."""
        conditions = self._conditionals.conditions
        outer = len(conditions[group.branches[0].condition]) - 1
        last = len(group.branches) - 1
        asked: set[str] = set()
        for position, branch in enumerate(group.branches):
            own = conditions[branch.condition][outer:]
            term = own[position] if position < len(own) else None
            if term is None:
                if number > position < last:
                    continue  # an #else behind an #else: a later pass shows it
                return position
            key, wanted = (term[1:], False) if term.startswith("!") else (term, True)
            if key not in terms:
                take = number == position or (position == last > 0)
                terms[key] = wanted if take else not wanted
            # A condition that the group asks twice holds its second branch nowhere: the pass of its number shows it.
            if terms[key] == wanted or (number == position and key in asked):
                return position
            asked.add(key)
        return -1

    def _close(self, open_at: int, end: int) -> int:
        """Behind the ``}`` that closes the ``{`` at ``open_at``; ``end`` when it stays open."""
        depth = 0
        for match in _BRACE.finditer(self._text, open_at, end):
            if match.group() == "{":
                depth += 1
            else:
                depth -= 1
                if depth == 0:
                    return match.end()
        self._lost("{", open_at, end)
        return end

    def _lost(self, bracket: str, open_at: int, end: int) -> None:
        problem = Problem("unbalanced", f"a {bracket} that is not closed", self._blanked.line(open_at))
        if problem not in self._problems:  # each pass over the branches may meet it
            self._problems.append(problem)
        self.unread += end - open_at

    def _scope(self, at: int, end: int, scope: tuple[str, ...], class_name: str | None, depth: int) -> None:
        if depth > MAX_SCOPES:
            self._problems.append(Problem("too-deep", "scopes nest too deeply", self._blanked.line(at)))
            self.unread += end - at
            return
        text = self._text
        declarations = self._declarations
        while at < end:
            label = _LABEL.match(text, at, end) if class_name is not None else None
            if label:
                at = label.end()
            start = at
            stop, char = self._terminator(at, end)
            if char == "":
                rest = text[start:end]
                if rest.strip():
                    if self._unclosed >= 0:
                        self._lost("(", self._unclosed, end)
                    declarations.uses.loose(text, start, end, scope)
                return
            if char == "}":
                # A brace that closes nothing: the file is a fragment, or a macro opened it.
                declarations.uses.loose(text, start, stop, scope)
                at = stop + 1
                continue
            self._note_split(start, stop)
            if char == ";":
                declarations.statement(text, start, stop, scope, class_name)
                at = stop + 1
                continue
            head = declarations.open_block(text, start, stop, scope, class_name)
            close = self._close(stop, end)
            body_end = close - 1 if text[close - 1 : close] == "}" else close
            if head.kind == "scope":
                self._scope(stop + 1, body_end, head.scope, None, depth + 1)
                at = close
            elif head.kind == "linkage":
                outer, declarations.c_linkage = declarations.c_linkage, head.name == "C"
                self._scope(stop + 1, body_end, head.scope, None, depth + 1)
                declarations.c_linkage = outer
                at = close
            elif head.kind == "class":
                declarations.close_class(head, stop, close)
                self._scope(stop + 1, body_end, head.scope, head.name, depth + 1)
                at = self._behind_class(close, end, head)
            elif head.kind == "enum":
                declarations.close_enum(head, text, stop, close)
                at = self._behind_class(close, end, head)
            elif head.kind == "variable":
                semicolon, _ = self._terminator(close, end)
                declarations.variable(text, start, semicolon if semicolon > 0 else close, scope)
                at = (semicolon + 1) if semicolon > 0 else close
            else:
                declarations.close_body(head, stop, close)
                at = close
                while handler := _HANDLER.match(text, at, end):
                    # A function-try-block's handlers are no declarations of their own.
                    at = self._close(handler.end() - 1, end)

    def _behind_class(self, close: int, end: int, head) -> int:
        """Behind the declarators and ``;`` that may follow a class or enum body."""
        stop, char = self._terminator(close, end)
        if char == ";":
            self._declarations.behind_class(self._text, close, stop, head)
            return stop + 1
        return close

    def _terminator(self, at: int, end: int) -> tuple[int, str]:
        """The next ``;``, ``{`` or ``}`` at bracket depth 0 that ends a declaration; ``(-1, "")`` at the end."""
        depth = 0
        opened = -1
        text = self._text
        start = at
        while True:
            match = _STOP.search(text, at, end)
            if match is None:
                self._unclosed = opened if depth else -1
                return -1, ""
            char = match.group()
            at = match.end()
            if char in "([":
                if not depth:
                    opened = match.start()
                depth += 1
            elif char in ")]":
                depth = max(0, depth - 1)
            elif char == "{":
                if depth or self._declarations.is_initialiser(text, start, match.start()):
                    close = match_bracket(text, match.start(), end)
                    if close < 0:
                        self._unclosed = match.start()
                        return -1, ""
                    at = close
                    continue
                return match.start(), "{"
            elif char == "}":
                return match.start(), "}"
            elif depth == 0:
                return match.start(), ";"
            elif re.match(
                r"\s*\n\s*(?:template\b|namespace\b|class\b|struct\b|__global__|static\b|void\b|#)", text[at : at + 200]
            ):
                # A parenthesis that was never closed must not swallow the rest of the file.
                return match.start(), ";"

    def _note_split(self, start: int, stop: int) -> None:
        """Remember conditionals with several branches that lie inside one declaration's head."""
        line_start = self._text.rfind("\n", 0, start) + 1
        for group in self._groups_between(start, stop):
            if len(group.branches) == 1 and group.end <= stop and self._holds_parameters(group, start):
                self._split.add(group.start)
            elif len(group.branches) > 1 and group.start >= line_start:
                within = group.end <= stop and (self._holds_heads(group) or self._holds_some_kernel(group))
                if within or self._text[start : group.start].strip():
                    self._split.add(group.start)

    def _holds_parameters(self, group: Group, start: int) -> bool:
        """Whether the one branch of a group holds some of the parameters of a declaration that begins at ``start``."""
        branch = group.branches[0]
        before, inside = self._text[start : group.start], self._text[branch.start : branch.end]
        if "," not in inside or inside.count("(") != inside.count(")"):
            return False
        template = before.lstrip().startswith("template") and before.count("<") > before.count(">")
        return template or before.count("(") > before.count(")")

    def _holds_heads(self, group: Group) -> bool:
        """Whether several branches of a group that a declaration begins with each hold a head of their own."""
        heads = [parse_function(self._text[branch.start : branch.end], None) for branch in group.branches]
        return len(heads) - heads.count(None) > 1

    def _holds_some_kernel(self, group: Group) -> bool:
        """Whether a function is a kernel by some of the branches that its declaration begins with."""
        return len({"__global__" in self._text[branch.start : branch.end] for branch in group.branches}) > 1

    def _groups_between(self, start: int, stop: int) -> list[Group]:
        groups = self._conditionals.groups
        first = bisect_left(groups, start, key=lambda g: g.start)
        out = []
        while first < len(groups) and groups[first].start < stop:
            if groups[first].end <= stop or groups[first].start >= start:
                out.append(groups[first])
            first += 1
        return out
