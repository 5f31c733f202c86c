"""Shapes written in comments beside parameters: trailing, on the next line, or wrapped over lines.

In: a file's text and a function's parameters. Out: the dims of each parameter's comment, or nothing.
"""

from __future__ import annotations

import re

from opwalker.expand.files import FileView
from opwalker.model.cpp import Function
from opwalker.model.walk import Span

_COMMENT = re.compile(r"//([^\n]*)|/\*([\s\S]*?)\*/")

ShapeFields = tuple[tuple[str, ...] | None, str | None, Span | None]
_NONE: ShapeFields = (None, None, None)


class ShapeReader:
    """Reads shape comments of one file."""

    def __init__(self, view: FileView) -> None:
        self._view = view

    def of_parameter(self, path: str, function: Function, number: int) -> ShapeFields:
        """``(dims, text, span)`` of the comment beside a parameter: fields of ``ParameterFact``."""
        from opwalker.notation.shape_comment import parse_shape

        text, first, last = self._comment(function, number)
        if not text:
            return _NONE
        shape = parse_shape(text)
        if shape is None or not shape.alternatives:
            return _NONE
        return shape.alternatives[0], shape.text, Span(path, first, last)

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
        body = function.body_start or len(source)
        line_end = newline if newline >= 0 else len(source)
        return max(close, min(line_end, body if body > close else line_end))
