"""Comes in: a text of any origin. Goes out: one harmless line, on stderr if asked. What a source says cannot act on the
terminal, and a stderr that is closed or full stops nothing.
"""

from __future__ import annotations

import contextlib
import re
import sys

_LINE_BREAK = re.compile(r"\s*[\n\r]\s*|\t+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def one_line(text: str) -> str:
    """``text`` fit for one line of a terminal: line breaks as blanks, control characters spelt out."""
    if text.isprintable():
        return text
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", _LINE_BREAK.sub(" ", text.strip("\n\r")))


def say(text: str) -> None:
    """``opwalker: `` and one line on stderr."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError):
        print(f"opwalker: {one_line(text)}", file=sys.stderr, flush=True)
