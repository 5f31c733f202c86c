"""A reader's own text on a page that is made anew: found before, put back after.

Comes in: the page as it stands on disk. Goes out: each block between the marks, with the title of the section it stands
in. A mark that is not closed stops the command: nothing of a reader's is ever lost.
"""

from __future__ import annotations

from opwalker.errors import InputError

BEGIN = "<!-- opwalker: your own text -->"
END = "<!-- opwalker: end of your own text -->"


def kept_blocks(page: str, name: str) -> dict[str, list[str]]:
    """The blocks by section title (``""`` before the first), marks included. InputError names the page ``name``."""
    out: dict[str, list[str]] = {}
    title = ""
    block: list[str] | None = None
    fence = False
    for number, line in enumerate(page.splitlines(), start=1):
        mark = line.strip()
        if block is None:
            fence ^= mark.startswith("```")
            if mark == BEGIN and not fence:
                block = [line]
            elif mark == END and not fence:
                raise InputError(f"{name}:{number}: this ends a text of your own that did not begin", "mend the marks")
            elif line.startswith("## ") and not fence:
                title = _plain(line[3:])
        else:
            block.append(line)
            if mark == BEGIN:
                raise InputError(f"{name}:{number}: a text of your own begins inside another", "mend the marks")
            if mark == END:
                out.setdefault(title, []).append("\n".join(block))
                block = None
    if block is not None:
        raise InputError(f"{name}: a text of your own is not closed", f"put {END} behind it")
    return out


def is_empty(block: str) -> bool:
    """Whether nothing stands between the marks."""
    return not block.removeprefix(BEGIN).removesuffix(END).strip()


def _plain(title: str) -> str:
    """A heading as it was before it was escaped."""
    out = []
    escaped = False
    for char in title:
        if char == "\\" and not escaped:
            escaped = True
            continue
        out.append(char)
        escaped = False
    return "".join(out)
