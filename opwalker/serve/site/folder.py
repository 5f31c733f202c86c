"""The site on disk: a page an op, a page a source file that is spoken of, and an index to search in.

Comes in: notes with the reader of their source, the kernels of the tree, and a folder. Goes out: the files, and how
many. Pages know each other by relative links alone, so the folder can be opened from disk or served from anywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct

from opwalker import resources
from opwalker.errors import EnvironmentMissing
from opwalker.model.notes import Diagram, Note, Run, Statement, Statements, Table, Text
from opwalker.model.site import SiteWritten
from opwalker.model.walk import KernelEntry, SourceInfo, Span
from opwalker.serve.render.layout_svg import layout_svg
from opwalker.serve.render.words import count
from opwalker.serve.site.graph import graph_svg
from opwalker.serve.site.highlight import highlighted

if TYPE_CHECKING:
    from jinja2 import Environment


class _Entry(Struct, frozen=True):
    """A line of the index: what it is called, where it leads, what is said of it."""

    name: str
    href: str | None
    said: Text
    group: str


class SiteFolder:
    """The folder that a site is written to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._bytes = 0
        self._ops: list[_Entry] = []
        self._sections: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def add(self, note: Note, text: Callable[[str], str]) -> None:
        """Write the page of one note, and of each source file that it is the first to speak of."""
        href = f"op/{self._file(note.name)}"
        spans = tuple(_spans(note))
        for path in dict.fromkeys(span.file for span in spans):
            if path not in self._sources:
                self._sources[path] = f"src/{self._file(path)}"
                lines = highlighted(text(path), path)
                self._write(self._sources[path], self._render("source.html.j2", path=path, lines=lines, up="../"))
        page = self._render("page.html.j2", note=note, first=self._first(note, spans), up="../")
        self._write(href, page)
        self._ops.append(_Entry(note.name, href, note.summary, _namespace(note.name)))
        for section in note.sections:
            if section.id.startswith("kernel-"):
                self._sections.setdefault(section.title.removeprefix("Kernel "), f"{href}#{section.id}")

    def finish(self, source: SourceInfo, kernels: Sequence[KernelEntry]) -> SiteWritten:
        """Write the index."""
        groups: dict[str, list[_Entry]] = {}
        for entry in sorted(self._ops, key=lambda one: one.name):
            groups.setdefault(entry.group, []).append(entry)
        named = [_kernel(kernel, self._sections.get(kernel.name)) for kernel in kernels]
        name = f"{source.name} {source.version or (source.revision or '')[:12]}".strip()
        self._write("index.html", self._render("index.html.j2", name=name, groups=groups, kernels=named, up=""))
        for asset in ("style.css", "site.js"):
            self._write(asset, resources.text(f"grammars/site/{asset}"))
        return SiteWritten(source=source, folder=str(self._folder), files=self._files, bytes=self._bytes)

    def _first(self, note: Note, spans: tuple[Span, ...]) -> str | None:
        """What the code beside the page shows at first: the function that does the work, else the first place."""
        for section in note.sections:
            for block in section.blocks:
                if isinstance(block, Diagram):
                    for node in block.nodes:
                        if node.kind == "host" and node.at:
                            return self._link(node.at)
        return self._link(spans[0]) if spans else None

    def _link(self, span: Span) -> str:
        return f"../{self._sources[span.file]}#L{span.line}"

    @cached_property
    def _environment(self) -> Environment:
        import jinja2
        from markupsafe import Markup, escape

        def breaks(name: str) -> Markup:
            # A long name may break behind these: a phone is narrow.
            return Markup(re.sub(r"(::|_(?=\w)|/|,)", r"\1<wbr>", str(escape(name))))

        def runs(text: Text) -> Markup:
            return Markup("").join(_run(run) for run in text)

        def _run(run: Run) -> Markup:
            tag = {"code": "code", "strong": "strong"}.get(run.style)
            shown = breaks(run.text) if tag else escape(run.text)
            return Markup(f"<{tag}>{shown}</{tag}>") if tag else shown

        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(resources.folder("grammars") / "site"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        environment.filters.update(
            runs=runs,
            breaks=breaks,
            kind=lambda block: type(block).__name__,
            link=self._link,
            place=lambda span: f"{span.file.rsplit('/', 1)[-1]}:{span.line}",
            graph=lambda one: Markup(graph_svg(one, self._link)),
            layout=lambda one: Markup(layout_svg(one)),
            raw=Markup,
            anchor=lambda name: re.sub(r"[^\w-]+", "-", name),
        )
        return environment

    def _render(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(**values)

    def _file(self, name: str) -> str:
        """A file name of its own for anything that has a page."""
        stem = re.sub(r"[^\w.-]+", ".", name).strip(".") or "page"
        if self._names.setdefault(stem.lower(), name) != name:
            stem += "-" + hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=3).hexdigest()
        return quote(f"{stem}.html")

    def _write(self, href: str, text: str) -> None:
        path = self._folder / href
        data = text.encode("utf-8", "replace")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}.{os.getpid()}")
            beside.write_bytes(data)
            os.replace(beside, path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise EnvironmentMissing(f"cannot write {path}: {reason}", "choose another -o DIR") from error
        self._files += 1
        self._bytes += len(data)


def _namespace(name: str) -> str:
    head, colons, _ = name.partition("::")
    return head if colons else name.rpartition(".")[0] or "others"


def _kernel(kernel: KernelEntry, href: str | None) -> _Entry:
    if kernel.ops:
        known = count(len(kernel.instances), "instance") + ("" if kernel.complete else " known")
        more = " and more" if len(kernel.ops) > 4 else ""
        said: Text = (Run(f"{known}, reached from "), Run(", ".join(kernel.ops[:4]), "code"), Run(more))
    else:
        said = (Run("reached from no op"),)
    return _Entry(kernel.name, href, (*said, Run(f" · {kernel.file}:{kernel.line}")), "kernels")


def _spans(note: Note) -> Iterator[Span]:
    for section in note.sections:
        for block in section.blocks:
            if isinstance(block, Statements):
                yield from _of(block.items)
            elif isinstance(block, Table):
                yield from (cell.at for row in block.rows for cell in row if cell.at)
            elif isinstance(block, Diagram):
                yield from (node.at for node in block.nodes if node.at)


def _of(items: tuple[Statement, ...]) -> Iterator[Span]:
    for item in items:
        yield from item.at
        yield from _of(item.below)
