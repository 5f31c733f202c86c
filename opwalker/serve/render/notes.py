"""Comes in: a ``Note``. Goes out: its page in GitHub-flavoured Markdown, and the table of contents of many.

Every text of the source is escaped, so that no name of a kernel and no message of a check becomes markup. The form is
in ``grammars/notes/``; a reader's own text, kept from the page that stands there, comes back at its place.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from opwalker import resources
from opwalker.model.notes import Cell, Code, Diagram, Figure, Note, Run, Statement, Statements, Text
from opwalker.model.walk import Span
from opwalker.serve.keep import BEGIN, END

if TYPE_CHECKING:
    from jinja2 import Environment

_MARKUP = re.compile(r"([\\`*_<>\[\]|~&]|^[#+-]|(?<=^\d)[.)])")
_SHAPES = {
    "python": ("([", "])"),
    "op": ("{{", "}}"),
    "host": ("[", "]"),
    "dispatch": ("{", "}"),
    "kernel": ("[[", "]]"),
    "end": ("(", ")"),
}


def note_markdown(
    note: Note, *, permalink: str | None, figures: Mapping[Figure, str], keep: Mapping[str, Sequence[str]]
) -> str:
    """The page. ``figures`` names the file of each figure; ``keep`` holds a reader's own blocks by section title."""
    template = _environment(permalink).get_template("note.md.j2")
    text = template.render(note=note, keep={title: list(blocks) for title, blocks in keep.items()}, figures=figures)
    return _even(text)


def index_markdown(source: str, entries: Sequence[object]) -> str:
    """The table of contents: one line a page."""
    template = _environment(None).get_template("index.md.j2")
    return _even(template.render(source=source, entries=entries, begin=BEGIN, end=END))


@lru_cache(maxsize=2)
def _environment(permalink: str | None) -> Environment:
    import jinja2

    def places(spans: Sequence[Span]) -> str:
        return ", ".join(place(span) for span in spans)

    def place(span: Span) -> str:
        lines = f"{span.line}-{span.end_line}" if span.end_line > span.line else str(span.line)
        if permalink is None:
            return _code(f"{span.file}:{lines}")
        ends = f"-L{span.end_line}" if span.end_line > span.line else ""
        name = span.file.rsplit("/", 1)[-1]
        return f"[{text_of(name)}:{lines}]({permalink.rstrip('/')}/{quote(span.file)}#L{span.line}{ends})"

    def statements(block: Statements) -> str:
        return "\n".join(_items(block.items, 0, places))

    def cell(one: Cell) -> str:
        shown = runs_of(one.text)
        if one.at is not None and permalink is not None:
            ends = f"-L{one.at.end_line}" if one.at.end_line > one.at.line else ""
            link = f"{permalink.rstrip('/')}/{quote(one.at.file)}#L{one.at.line}{ends}"
            shown = f"[{shown}]({link})" if shown else ""
        return tablesafe(shown)

    @jinja2.pass_context
    def figure(context: jinja2.runtime.Context, one: Figure) -> str:
        return quote(context["figures"][one])

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.folder("grammars") / "notes"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    environment.filters.update(
        text=text_of, runs=runs_of, statements=statements, cell=cell, fenced=fenced, mermaid=mermaid, figure=figure,
        kind=lambda block: type(block).__name__, tablesafe=tablesafe, url=quote, html=_html,
    )  # fmt: skip
    return environment


def _html(text: str) -> str:
    """Plain text within an HTML element, of which no character is markup."""
    return "".join(f"&#{ord(char)};" if char in "\\`*_[]|~" else char for char in html.escape(" ".join(text.split())))


def text_of(text: str) -> str:
    """Plain text: no character of it is markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def runs_of(runs: Text) -> str:
    """Text with code and strong parts."""
    return "".join(_run(run) for run in runs)


def _run(run: Run) -> str:
    if run.style == "code":
        return _code(run.text)
    # Our own sentences hold no markup but what a style says; only what could be read as such is escaped.
    plain = re.sub(r"([\\`*_<>\[\]])", r"\\\1", run.text)
    return f"**{plain}**" if run.style == "strong" else plain


def _code(text: str) -> str:
    """A code span whatever backquotes it holds."""
    text = " ".join(text.split())
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text or ' '}{pad}{fence}"


def tablesafe(text: str) -> str:
    """A cell's content: a bar would end the cell, also inside code."""
    return text.replace("|", "\\|").replace("\n", " ")


def fenced(block: Code) -> str:
    """A code block whose fence is longer than any in it."""
    longest = max((len(found) for found in re.findall(r"`{3,}", block.text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{block.language}\n{block.text}\n{fence}"


def mermaid(diagram: Diagram) -> str:
    """The diagram as a Mermaid flowchart, in a fence that GitHub draws."""
    lines = ["```mermaid", "flowchart TD", f"  accDescr: {_label(diagram.alt)}"]
    for node in diagram.nodes:
        opened, closed = _SHAPES.get(node.kind, ("[", "]"))
        lines.append(f'  {node.id}{opened}"{_label(node.label)}"{closed}')
    for edge in diagram.edges:
        arrow = f'-->|"{_label(edge.label)}"|' if edge.label else "-->"
        lines.append(f"  {edge.start} {arrow} {edge.end}")
    return "\n".join([*lines, "```"])


def _label(text: str) -> str:
    """A Mermaid label: its own entities stand for what would end it or be read as markup."""
    text = " ".join(text.split())
    return "".join(f"#{ord(char)};" if char in '"#;<>`{}|\\%&~' else char for char in text)


def _items(items: Sequence[Statement], depth: int, places) -> list[str]:
    out = []
    for item in items:
        where = f" ({places(item.at)})" if item.at else ""
        out.append(f"{'  ' * depth}- {runs_of(item.text)}{where}")
        out += _items(item.below, depth + 1, places)
    return out


def _even(text: str) -> str:
    """A blank line around each block, none twice, none at the start, one line break at the end."""
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
