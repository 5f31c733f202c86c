"""Pages of commands and their answers, as they lie beside the sources they are about.

In an ``expected.txt`` a line that begins with ``>`` is a command without its ``--source``; what follows, up to an empty
line, is its answer in the short form (``spine.py``), or its exit code and what it says on stderr.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.e2e.conftest import Ask
from tests.e2e.spine import spine

PAGE = "expected.txt"


def questions(folder: Path) -> list[tuple[str, str, str]]:
    """``(source, command, answer)`` of every page below a folder; ``source`` is the page's own folder."""
    found = []
    for page in sorted(folder.glob(f"*/{PAGE}")):
        for block in page.read_text(encoding="utf-8").split("\n\n"):
            command, _, answer = block.strip("\n").partition("\n")
            assert command.startswith("> "), f"{page}: a block must begin with its command: {command}"
            found.append((page.parent.name, command.removeprefix("> "), answer))
    return found


def told(ask: Ask, source: Path, command: str) -> str:
    """What opwalker says to a command, in the form of a page."""
    found = ask(*shlex.split(command), "--source", source, "--json")
    text = spine(found.document) if found.code == 0 else f"exit {found.code}\n{found.err}"
    return text.rstrip("\n")
