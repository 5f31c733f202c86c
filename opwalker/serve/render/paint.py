"""Lines of styled spans as text: plain, or in colour through rich. No other module knows what a style looks like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from opwalker.serve.render.page import Spans

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


def in_colour(lines: Iterable[Spans], out: TextIO, width: int) -> None:
    """The lines on a terminal, through rich: it knows which colours this terminal has. Imported here for its cost."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((text, STYLES.get(style, "")) for text, style in line)), end="\n")
