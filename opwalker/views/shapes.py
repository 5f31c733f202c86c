"""Shapes that are written down: in comments beside parameters, above the function, in declarations, in the wrapper.

In: a function of the tree and, for an op, its Python wrapper. Out: ``ShapeSource`` lists for its parameters, the
nearest first: beside the parameter, above the function, beside or above a declaration, in the wrapper. What code says
of shapes is ``views/derived.py``'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from opwalker.expand.files import FileView
from opwalker.expand.resolve import Candidate, visible
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import Function
from opwalker.model.walk import ShapeSource, Span
from opwalker.notation.regex import Regex
from opwalker.views.shape_sources import named_sources

_COMMENT = Regex(r"//([^\n]*)|/\*([\s\S]*?)\*/")
_COMMENT_LINE = Regex(r"\s*(?://|\*|/\*)")
#: Lines of a comment above a function that are looked at.
MAX_ABOVE = 60
#: Lines that a template's head may take.
_HEAD_LINES = 6

ShapeFields = tuple[tuple[str, ...] | None, str | None, Span | None]
NO_SHAPE: ShapeFields = (None, None, None)
NO_WRAPPER: Mapping[str, ShapeSource] = {}


def documented(
    workbench: Workbench,
    candidate: Candidate,
    arguments: tuple[str | None, ...] = (),
    wrapper: Mapping[str, ShapeSource] = NO_WRAPPER,
) -> list[tuple[ShapeSource, ...]]:
    """What each parameter of a function is documented to be. ``arguments`` are the schema's by place, ``wrapper`` what
    the Python wrapper says of them by name."""
    function = candidate.function
    out: list[list[ShapeSource]] = [[] for _ in function.parameters]
    places = [(candidate.path, function, "comment")]
    places += [(path, declared, "declaration") for path, declared in _declarations(workbench, candidate)]
    for path, stated, kind in places:
        reader = ShapeReader(workbench.files.part(path))
        above = reader.above(path, stated)
        for number, parameter in enumerate(stated.parameters):
            beside = reader.source(path, stated, number, kind)
            if beside is not None:
                out[number].append(beside)
            for name in (parameter.name, function.parameters[number].name):
                if name and name in above:
                    out[number].append(above[name])
                    break
    for number, name in enumerate(arguments[: len(out)]):
        if name is not None and name in wrapper:
            out[number].append(wrapper[name])
    return [tuple(dict.fromkeys(found)) for found in out]


def fields_of(sources: tuple[ShapeSource, ...]) -> ShapeFields:
    """``(dims, text, span)`` of the nearest source: fields of ``ParameterFact``."""
    if not sources:
        return NO_SHAPE
    return sources[0].alternatives[0], sources[0].text, sources[0].span


def _declarations(workbench: Workbench, candidate: Candidate) -> list[tuple[str, Function]]:
    """Declarations of a function: same name, scope and number of parameters, in files that its own file includes first.

    Overloads are told apart by their parameters' types, as far as these are written alike.
    """
    function, index = candidate.function, workbench.index
    closure = index.closure(candidate.path)
    found = [
        (path, other)
        for path, other in index.functions(function.name)
        if not other.is_definition
        and not {"explicit_instantiation", "extern_template", "friend"} & set(other.flags)
        and len(other.parameters) == len(function.parameters)
        and visible(other.scope) == visible(function.scope)
    ]
    alike = [(p, f) for p, f in found if _types(f) == _types(function)]
    included = [(path, declared) for path, declared in alike if path in closure]
    return sorted(included or alike, key=lambda pair: (pair[0], pair[1].offset))


def _types(function: Function) -> list[str]:
    return ["".join(p.type.rsplit("::", 1)[-1].split()) for p in function.parameters]


def _head(lines: list[str]) -> int:
    """The number of lines above a template's own ``template <...>``, where that stands on lines of its own."""
    for number in range(len(lines) - 1, max(-1, len(lines) - _HEAD_LINES - 1), -1):
        if lines[number].lstrip().startswith("template"):
            return number
    return len(lines)


class ShapeReader:
    """Reads shape comments of one file."""

    def __init__(self, view: FileView) -> None:
        self._view = view

    def of_parameter(self, path: str, function: Function, number: int) -> ShapeFields:
        """``(dims, text, span)`` of the comment beside a parameter: fields of ``ParameterFact``."""
        found = self.source(path, function, number)
        return fields_of((found,) if found else ())

    def source(self, path: str, function: Function, number: int, kind: str = "comment") -> ShapeSource | None:
        """The shape in the comment beside a parameter."""
        from opwalker.notation.shape_comment import parse_shape

        text, first, last = self._comment(function, number)
        shape = parse_shape(text) if text else None
        if shape is None or not shape.alternatives:
            return None
        return ShapeSource(kind, shape.alternatives, shape.text, Span(path, first, last))

    def above(self, path: str, function: Function) -> dict[str, ShapeSource]:
        """The shapes that the comment above a function gives to names, one a line: ``// q: [B, H, D]``."""
        lines = self._view.blanked.text.split("\n", function.start_line)[: function.start_line - 1]
        last = first = _head(lines) if function.template else len(lines)
        while first > max(0, last - MAX_ABOVE) and _COMMENT_LINE.match(lines[first - 1]):
            first -= 1
        text = "\n".join(lines[first:last])
        if not any(mark in text for mark in "[("):
            return {}
        return named_sources(text, path, first + 1, "above")

    def _comment(self, function: Function, number: int) -> tuple[str, int, int]:
        """The comment text that belongs to a parameter, and its lines.

        A comment belongs to the parameter that stands before it on its line, or, alone on a line, continues the one
        above; a comment that opens the line of a parameter and stands before it belongs to that one.
        """
        source = self._view.blanked.text
        line_of = self._view.blanked.line
        parameter = function.parameters[number]
        following = function.parameters[number + 1].offset if number + 1 < len(function.parameters) else None
        stop = following if following is not None else self._end(function, parameter.end)
        pieces: list[str] = []
        first = last = 0
        end_line = line_of(max(parameter.offset, parameter.end - 1))
        for match in _COMMENT.finditer(source, parameter.end, stop):
            line = line_of(match.start())
            if following is not None and line == line_of(following) and line > end_line and "\n" not in match.group():
                break  # `/* shape */ next` on the next parameter's own line
            if not first:
                first = line
            last = line_of(match.end() - 1)
            pieces.append((match.group(1) or match.group(2) or "").strip().lstrip("/*<! ").rstrip())
        if not pieces:
            start = function.parameters[number - 1].end if number else None
            before = source[start if start is not None else max(0, parameter.offset - 200) : parameter.offset]
            inline = re.search(r"/\*([^*]*)\*/\s*\Z", before)
            if inline and "\n" not in before[inline.start() :]:
                line = line_of(parameter.offset)
                return inline.group(1).strip(), line, line
        return " ".join(p for p in pieces if p), first, last

    def _end(self, function: Function, at: int) -> int:
        """Behind the comment that trails the last parameter's line."""
        source = self._view.blanked.text
        close = self._view.blanked.plain.find(")", at)
        if close < 0:
            return at
        newline = source.find("\n", close)
        line_end = newline if newline >= 0 else len(source)
        body = function.body_start
        if not close < body < line_end:
            return max(close, line_end)
        # `Tensor& last) {  // [n]`: a comment may stand behind the brace, where no code stands between.
        behind = source[body:line_end].lstrip(" \t{")
        return line_end if behind.startswith(("//", "/*")) else body
