"""The cheap facts of a Python file: its import statements, and whether it says anything about ops.

In: a file's text. Out: ``PyLight``. Nothing is parsed, so every file of a large tree can be read this way; what stands
in a docstring may pass for an import, which costs a needless look at a file and never an answer.
"""

from __future__ import annotations

from opwalker.facts.build_words import extension_names, makes_extensions
from opwalker.model.python import PyLight
from opwalker.model.source import SourceFile
from opwalker.notation.regex import Regex

#: A file without any of these neither uses nor registers an op, unless it imports a name from one that does.
MENTIONS = ("torch.ops", "torch.library", "Library(", "CDLL(")
_FROM_TORCH = Regex(r"from[ \t]+torch[ \t]+import\b[^\n]*(?:\(|\b(?:ops|library|_library)\b)")
_TORCH_RENAMED = Regex(r"import[ \t]+torch[ \t]+as[ \t]+(\w+)")
_COMMENT = Regex(r"#[^\n]*")


def light(source: SourceFile) -> PyLight:
    """The imports of ``source`` and whether it mentions ops. Never raises."""
    text = source.text
    builds = makes_extensions(text)
    named = extension_names(text) if builds else ()
    return PyLight(import_statements(text), mentions_ops(text), source.problems, builds, named)


def names(facts: PyLight) -> list[tuple[str, str]]:
    """What the table of names says of the file: whether it builds extensions."""
    return [("", "py_builds")] if facts.builds else []


def mentions_ops(text: str) -> bool:
    """Whether a text uses or registers ops by itself, as far as words can tell."""
    if any(word in text for word in MENTIONS):
        return True
    if "torch import" in text and _FROM_TORCH.search(text):
        return True
    renamed = _TORCH_RENAMED.search(text) if "torch as " in text else None
    return renamed is not None and f"{renamed.group(1)}.ops" in text


def import_statements(text: str) -> tuple[str, ...]:
    """The import statements, on one line each, as ``PyLight`` describes them."""
    return tuple(statement for _, statement in located_imports(text))


def located_imports(text: str) -> list[tuple[int, str]]:
    """``(place of the statement, statement)`` of every import, as ``PyLight`` describes them."""
    found: list[tuple[int, str]] = []
    length = len(text)
    at = text.find("import ")
    while at >= 0:
        line = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        if end < 0:
            end = length
        statement = text[line:end].strip()
        if statement.startswith(("from ", "import ")):
            head = statement.split("#", 1)[0] if "#" in statement else statement
            if "(" in head and ")" not in head:
                close = _closing(text, at)
                statement = text[line:close]
                end = max(close, end)
            elif statement.endswith("\\"):
                statement, end = _continued(text, line)
            for plain in _plain(statement):
                found.append((line, plain))
        at = text.find("import ", end)
    return found


def block_end(text: str, place: int) -> int:
    """The last line of the block that the statement at ``place``, the start of its line, stands in."""
    rows = text[place:].split("\n")
    depth = _indent(rows[0])
    last = first = text.count("\n", 0, place) + 1
    for number, row in enumerate(rows, first):
        # What closes a bracket may stand further out than the block does.
        if _indent(row) < depth and row.strip() and not row.lstrip().startswith(("#", ")", "]", "}")):
            break
        last = number if row.strip() else last
    return last


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" \t"))


def _closing(text: str, place: int) -> int:
    """Where the bracket closes that the import statement at ``place`` opens."""
    while True:
        close = text.find(")", place)
        if close < 0:
            return len(text)
        line = text.rfind("\n", 0, close) + 1
        if "#" not in text[max(line, place) : close]:
            return close
        place = text.find("\n", close)
        if place < 0:
            return len(text)


def _continued(text: str, line: int) -> tuple[str, int]:
    """The logical line that starts at ``line``, over back-slashed line ends, and where it ends."""
    place = line
    while True:
        end = text.find("\n", place)
        if end < 0:
            return text[line:], len(text)
        if not text[place:end].rstrip("\r").endswith("\\"):
            return text[line:end], end
        place = end + 1


def _plain(statement: str) -> list[str]:
    """One line, single spaces, no brackets, comments or back-slashes; statements joined by semicolons taken apart."""
    if "#" in statement:
        statement = _COMMENT.sub("", statement)
    if "(" in statement or "\\" in statement or ")" in statement:
        statement = statement.replace("(", " ").replace(")", " ").replace("\\", " ")
    if ";" not in statement:
        whole = " ".join(statement.split())
        return [whole] if " " in whole else []
    parts = (" ".join(part.split()) for part in statement.split(";"))
    return [part for part in parts if part.startswith(("from ", "import "))]
