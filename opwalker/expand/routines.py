"""Functions as trees of statements, every text and line worked out.

In: a function definition and the preprocessor of a build. Out: a ``Routine``. Text that a macro wrote keeps the macro's
name and place; the line is where the macro is used, as a reader of the function sees it.
"""

from __future__ import annotations

from collections.abc import Iterable

from opwalker.expand.expanded import Expanded
from opwalker.expand.files import Files
from opwalker.expand.macros import KNOWN, MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.facts.cpp_statements import read_statements
from opwalker.model.cpp import Function
from opwalker.model.statements import (
    AssignText,
    CallText,
    DeclareText,
    LambdaText,
    LaunchText,
    MacroUse,
    Node,
    Routine,
    RoutineParameter,
    Span2,
    Statement,
)
from opwalker.notation.regex import Regex

#: A word of a return type that may be a macro.
_MACRO = Regex(r"\b[A-Z_]*[A-Z][A-Z0-9_]*\b")


class RoutineReader:
    """Reads the routines of one tree, for one build. A macro that is given a lambda stays a call, so that what the
    lambda holds is read once and as it stands."""

    def __init__(self, files: Files, macros: MacroTable, device_macros: MacroTable) -> None:
        self._files = files
        self._host = Preprocessor(files, macros, folds=True)
        self._device = Preprocessor(files, device_macros, folds=True)

    def read(self, path: str, function: Function, root: str, condition: str | None = None) -> Routine:
        """The routine of a definition, as the unit that begins at ``root`` reads it."""
        flags = self._flags(path, function, root)
        reader = self._device if "global" in flags or ("device" in flags and "host" not in flags) else self._host
        expanded = reader.span(path, function.body_start, function.body_end, root)
        statements = _Teller(path, expanded, self._files).statements(read_statements(expanded.text))
        return Routine(
            name=function.qualified_name,
            file=path,
            line=function.line,
            end_line=function.end_line,
            returns=function.return_type,
            parameters=tuple(RoutineParameter(p.type, p.name, p.default) for p in function.parameters),
            flags=flags,
            scope=function.scope,
            classes=function.class_depth,
            template=function.template,
            attributes=function.attributes,
            condition=condition,
            statements=statements,
            errors=sum(one.kind == "unread" for first in statements for one in first.walk()),
        )

    def _flags(self, path: str, function: Function, root: str) -> tuple[str, ...]:
        """A function's flags, with those that a macro before its return type stands for (``DINLINE float f()``)."""
        flags = function.flags
        if "global" in flags or "device" in flags or not _MACRO.search(function.return_type):
            return flags
        start = self._files.part(path).blanked.line_starts[function.start_line - 1]
        head = self._host.span(path, start, function.offset, root).text
        made = (name for name in ("global", "device", "host") if f"__{name}__" in head and name not in flags)
        return (*flags, *made)


class _Teller:
    """Turns nodes into statements: spans of an expanded text into text, lines and macros."""

    def __init__(self, path: str, expanded: Expanded, files: Files) -> None:
        self._path = path
        self._expanded = expanded
        self._files = files
        self._line = files.part(path).blanked.line
        #: What is left out of the text of the statement that is being told: the insides of its lambdas.
        self._cuts: list[Span2] = []

    def statements(self, nodes: Iterable[Node]) -> tuple[Statement, ...]:
        return tuple(self._statement(node) for node in nodes)

    def _statement(self, node: Node) -> Statement:
        start, end = node.span
        body, orelse, head = self.statements(node.body), self.statements(node.orelse), self.statements(node.head)
        lambdas = tuple(
            LambdaText(one.parameters, self.statements(one.body), self._at(one.span[0])) for one in node.lambdas
        )
        self._cuts = [one.inside for one in node.lambdas]
        return Statement(
            kind=node.kind,
            line=self._at(start),
            end_line=self._at(max(start, end - 1)),
            text=self._text(node.text),
            written=" ".join(self._expanded.written(*node.text).split()) if node.text and not self._cuts else "",
            body=body,
            orelse=orelse,
            head=head,
            step=self._text(node.step),
            calls=tuple(
                CallText(
                    call.name,
                    self._text(call.receiver) if call.receiver else None,
                    tuple(self._text(one) for one in call.template) if call.template is not None else None,
                    tuple(self._text(one) for one in call.arguments),
                    self._at(call.span[0]),
                    self._text(call.span),
                    self._macro(call.span[0]),
                    call.made,
                )
                for call in node.calls
            ),
            launches=tuple(
                LaunchText(
                    self._text(launch.kernel),
                    tuple(self._text(one) for one in launch.configuration),
                    tuple(self._text(one) for one in launch.arguments),
                    self._at(launch.span[0]),
                    self._launched_by(launch.kernel),
                )
                for launch in node.launches
            ),
            assigns=tuple(
                AssignText(self._text(target), operator, self._text(value), self._at(target[0]), self._macro(target[0]))
                for target, operator, value in node.assigns
            ),
            declares=tuple(
                DeclareText(name, kind, self._text(value) if value else None, self._at(at), static, self._macro(at))
                for name, kind, value, at, static in node.declares
            ),
            lambdas=lambdas,
            macro=self._macro(start),
        )

    def _text(self, span: Span2 | None) -> str:
        """A span's text; what stands in the braces of a lambda is told by the lambda."""
        if not span:
            return ""
        full, (start, end) = self._expanded.full, span
        parts = []
        for opened, closed in self._cuts:
            if start <= opened and closed <= end:
                parts.append(full[start:opened])
                start = closed
        return " ".join("".join((*parts, full[start:end])).split())

    def _at(self, offset: int) -> int:
        return self._line(self._expanded.use_position(offset))

    def _launched_by(self, kernel: Span2) -> MacroUse | None:
        """The macro that wrote a launch: the one that wrote its brackets, where that was given the kernel's name."""
        named = self._macro(kernel[0])
        opened = self._macro(self._expanded.full.find("<<<", kernel[1]))
        same = named is not None and opened is not None and (named.name, named.file) == (opened.name, opened.file)
        return named if same else opened

    def _macro(self, offset: int) -> MacroUse | None:
        """The innermost macro whose own text stands at an offset."""
        path, position, expansion = self._expanded.origin(offset)
        if not expansion:
            return None
        used = self._expanded.chain(expansion)[-1]
        name, event = used.name, used.definition.event
        if path == KNOWN:
            return MacroUse(name, "", None, 0, known=True)
        line, number = self._files.part(path).blanked.line, self._files.number(path, event)
        if number is None:
            return MacroUse(name, path, None, line(position))
        # What is pasted together has the place of its first part, be that an argument of another file's.
        inside = event.body_offset <= position <= event.body_offset + len(event.body or "")
        return MacroUse(name, path, number, line(position) - event.line if inside else 0)
