"""Lines of styled spans as text: plain, or in colour through rich. No other module knows what a style looks like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from opwalker.serve.render.page import Spans

if TYPE_CHECKING:
    from rich.console import Console

#: Style names of a page in rich's notation. Every difference that matters is in the text as well.
STYLES = {
    "title": "bold",
    "heading": "bold cyan",
    "step": "bold blue",
    "name": "bold",
    "mutated": "bold underline red",
    "type": "green",
    "shape": "magenta",
    "place": "cyan",
    "label": "dim",
    "quiet": "dim",
    "guide": "dim",
    "key": "yellow",
    "build": "",
    "other-build": "dim",
    "condition": "yellow",
    "proved": "green",
    "matched": "yellow",
    "possible": "red",
    "warn": "red",
    "gap": "red",
}


def plain(lines: Iterable[Spans]) -> str:
    """The lines as text without any escape sequence."""
    return "".join("".join(text for text, _ in line) + "\n" for line in lines)


def in_colour(lines: Iterable[Spans], terminal: TextIO) -> str:
    """The lines in the colours of a terminal. Which it has, rich knows; imported here for its cost."""
    from rich.console import Console

    console = Console(file=terminal, highlight=False, markup=False, emoji=False)
    brushes = {name: _brush(console, style) for name, style in STYLES.items()}
    painted: list[str] = []
    for line in lines:
        for text, style in line:
            before, after = brushes.get(style, ("", ""))
            painted += (before, text, after)
        painted.append("\n")
    return "".join(painted)


def _brush(console: Console, style: str) -> tuple[str, str]:
    """What this terminal wants before and after a text in a style: asked once a style, not once a word."""
    with console.capture() as painted:
        console.print("x", style=style, end="")
    before, _, after = painted.get().partition("x")
    return before, after
