"""Directives that include files and define macros.

In: a file's blanked text and its conditionals. Out: ``Include`` and ``MacroEvent`` entries. What holds where is decided
when files are joined.
"""

from __future__ import annotations

from opwalker.facts.cpp_text import Blanked, Conditionals
from opwalker.model.cpp import Include, MacroEvent
from opwalker.notation.regex import Regex

_INCLUDE = Regex(r'\s*(?:"([^"]+)"|<([^>]+)>)')
_DEFINE = Regex(r"\s*([A-Za-z_]\w*)(\(([^)]*)\))?")


def directives_of(blanked: Blanked, conditionals: Conditionals) -> tuple[tuple[Include, ...], tuple[MacroEvent, ...]]:
    """The includes and the macro definitions of a file, in its order."""
    includes: list[Include] = []
    macros: list[MacroEvent] = []
    for directive in blanked.directives:
        if directive.name in ("include", "include_next", "import"):
            match = _INCLUDE.match(directive.body)
            if match:
                includes.append(
                    Include(
                        match.group(1) or match.group(2),
                        match.group(1) is None,
                        directive.offset,
                        blanked.line(directive.offset),
                        conditionals.at(directive.offset),
                    )
                )
        elif directive.name in ("define", "undef"):
            match = _DEFINE.match(directive.body)
            if match is None:
                continue
            line = blanked.line(directive.offset)
            condition = conditionals.at(directive.offset)
            if directive.name == "undef":
                macros.append(MacroEvent(match.group(1), None, None, None, 0, directive.offset, line, line, condition))
                continue
            parameters, variadic = _macro_parameters(match.group(3)) if match.group(2) else (None, None)
            end_line = blanked.line(max(directive.offset, directive.end - 1))
            macros.append(
                MacroEvent(
                    match.group(1),
                    parameters,
                    variadic,
                    directive.body[match.end() :],
                    directive.body_offset + match.end(),
                    directive.offset,
                    line,
                    end_line,
                    condition,
                )
            )
    return tuple(includes), tuple(macros)


def _macro_parameters(text: str) -> tuple[tuple[str, ...], str | None]:
    parameters: list[str] = []
    variadic: str | None = None
    for piece in text.split(","):
        word = piece.strip()
        if word == "...":
            variadic = "__VA_ARGS__"
        elif word.endswith("..."):
            variadic = word[:-3].strip()
        elif word:
            parameters.append(word)
    return tuple(parameters), variadic
