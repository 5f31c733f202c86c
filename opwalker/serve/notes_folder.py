"""Notes on disk: a page an op, its figures, and a table of contents.

Comes in: notes, one by one, and a folder. Goes out: which files were written. A page that reads the same is left as it
is; one that a reader wrote into keeps that text.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.model.notes import Figure, IndexEntry, Note, NotesWritten
from opwalker.model.walk import SourceInfo
from opwalker.serve.keep import BEGIN, END, is_empty, kept_blocks
from opwalker.serve.render.layout_svg import layout_svg
from opwalker.serve.render.notes import index_markdown, note_markdown

#: The section that a page's own block for the reader stands in.
_LAST = "Your notes"


class NotesFolder:
    """The folder that notes are written to; made when it is not there."""

    def __init__(self, folder: Path, permalink: str | None) -> None:
        self._folder = folder
        self._permalink = permalink
        self._written: list[str] = []
        self._unchanged: list[str] = []
        self._kept: list[str] = []
        self._names: dict[str, str] = {}
        self._entries: list[IndexEntry] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot(folder, error) from error
        self._own("index.md")

    def add(self, note: Note) -> None:
        """Write the page and figures of one note."""
        stem = self._stem(note.name)
        page = f"{stem}.md"
        keep = kept_blocks(self._own(page), page)
        if any(not is_empty(block) for blocks in keep.values() for block in blocks):
            self._kept.append(page)
        if not any(keep.values()):
            keep = {_LAST: [f"{BEGIN}\n\n{END}"]}
        figures = {}
        for figure in _figures(note):
            if figure not in figures:
                figures[figure] = self._figure_name(stem, figure, set(figures.values()))
                self._write(figures[figure], layout_svg(figure))
        self._write(page, note_markdown(note, permalink=self._permalink, figures=figures, keep=keep))
        self._entries.append(IndexEntry(note.name, page, note.summary, note.kernels, note.gaps))

    def finish(self, source: SourceInfo) -> NotesWritten:
        """Write the table of contents of every page that was added."""
        name = f"{source.name} {source.version or (source.revision or '')[:12]}".strip()
        if not self._entries:
            raise InputError(f"no op is registered in {name}: there is nothing to write", "see 'opwalker ops'")
        entries = sorted(self._entries, key=lambda entry: entry.name)
        self._write("index.md", index_markdown(name, entries))
        return NotesWritten(
            source=source,
            folder=str(self._folder),
            written=tuple(self._written),
            unchanged=tuple(self._unchanged),
            kept=tuple(self._kept),
        )

    def _stem(self, name: str) -> str:
        """A file name for an op; two ops whose names differ only in what a file name cannot hold get two."""
        stem = _safe(name.replace("::", "."))
        taken = self._names.setdefault(stem.lower(), name)
        if taken != name or stem.lower() == "index":
            stem += "-" + hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=3).hexdigest()
        return stem

    @staticmethod
    def _figure_name(stem: str, figure: Figure, taken: set[str]) -> str:
        name = f"{stem}.{_safe(figure.name)}.svg"
        return name if name not in taken else f"{stem}.{_safe(figure.name)}-{len(taken)}.svg"

    def _own(self, name: str) -> str:
        """A page that an earlier run made, empty where there is none. InputError for one without our marks: somebody
        else wrote it."""
        text = self._read(name)
        if text.strip() and BEGIN not in text and END not in text:
            raise InputError(
                f"{self._folder / name} is no page of opwalker's, and is not written over",
                "move it away, or choose another -o DIR",
            )
        return text

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {self._folder / name}, which is to be made anew", "move it away") from error

    def _write(self, name: str, text: str) -> None:
        path = self._folder / name
        try:
            data = text.encode("utf-8", "replace")
            if path.is_file() and path.read_bytes() == data:
                self._unchanged.append(name)
                return
            # Beside and then over it: a run that is stopped leaves the old page whole.
            beside = path.with_name(f".{name}.{os.getpid()}")
            beside.write_bytes(data)
            os.replace(beside, path)
        except OSError as error:
            raise _cannot(path, error) from error
        self._written.append(name)


def _figures(note: Note) -> Iterable[Figure]:
    return (block for section in note.sections for block in section.blocks if isinstance(block, Figure))


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "note"


def _cannot(path: Path, error: OSError) -> EnvironmentMissing:
    return EnvironmentMissing(f"cannot write {path}: {(error.strerror or str(error)).lower()}", "choose another -o DIR")
