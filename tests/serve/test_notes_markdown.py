"""Notes as Markdown, read back by a parser: what a source says comes out as text, never as markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from opwalker.errors import InputError
from opwalker.model.notes import (
    Cell,
    Code,
    Diagram,
    Edge,
    Figure,
    Node,
    Note,
    NoteSection,
    Run,
    Statement,
    Statements,
    Table,
)
from opwalker.model.walk import SourceInfo, Span
from opwalker.serve.keep import BEGIN, END, kept_blocks
from opwalker.serve.notes_folder import NotesFolder
from opwalker.serve.render.layout_svg import layout_svg
from opwalker.serve.render.notes import note_markdown
from opwalker.views.notes.layout import strides

PARSER = MarkdownIt("commonmark").enable("table")
SOURCE = SourceInfo("kit", "1.0")
TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=40)


def _note(*sections: NoteSection, name: str = "kit::scale") -> Note:
    return Note(name, "torch_library", SOURCE, (Run("Scales."),), sections)


def _page(note: Note, permalink: str | None = None, keep: dict[str, list[str]] | None = None) -> str:
    figures = {b: f"{b.name}.svg" for s in note.sections for b in s.blocks if isinstance(b, Figure)}
    return note_markdown(note, permalink=permalink, figures=figures, keep=keep or {})


def _inline(page: str) -> list[tuple[str, str]]:
    """``(kind, text)`` of every piece of text that a reader sees."""
    return [
        (child.type, child.content)
        for token in PARSER.parse(page)
        for child in token.children or ()
        if child.type not in ("softbreak",)
    ]


@given(TEXT)
def test_code_of_the_source_comes_out_as_it_is(text: str) -> None:
    note = _note(
        NoteSection(
            "a",
            "A",
            (
                Statements(
                    (
                        Statement(
                            (Run(text, "code"), Run(" end")),
                        ),
                    )
                ),
            ),
        )
    )
    shown = [content for kind, content in _inline(_page(note)) if kind == "code_inline"]
    assert [" ".join(one.split()) for one in shown] == [" ".join(text.split())]


@given(TEXT)
def test_no_text_becomes_markup(text: str) -> None:
    page = _page(_note(NoteSection("a", "A", (Statements((Statement((Run(f"x{text}x"),)),)),)), name=f"n{text}n"))
    kinds = {kind for kind, _ in _inline(page)}
    assert kinds <= {"text", "text_special"}, page


@given(TEXT, TEXT)
def test_a_cell_stays_one_cell(first: str, second: str) -> None:
    table = Table(("a", "b"), ((Cell((Run(first, "code"),)), Cell((Run("plain"),))), (Cell((Run(second),)),) * 2))
    tokens = PARSER.parse(_page(_note(NoteSection("a", "A", (table,)))))
    assert sum(token.type == "td_open" for token in tokens) == 4
    assert sum(token.type == "tr_open" for token in tokens) == 3


def test_a_place_is_a_link_where_a_prefix_is_given() -> None:
    at = Span("csrc/a b.cu", 3, 9)
    note = _note(NoteSection("a", "A", (Statements((Statement((Run("said"),), (at,)),)),)))
    assert "[a b.cu:3-9](https://x.invalid/blob/1/csrc/a%20b.cu#L3-L9)" in _page(note, "https://x.invalid/blob/1/")
    assert "(`csrc/a b.cu:3-9`)" in _page(note)


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    page = _page(_note(NoteSection("a", "A", (Code("x\n````\ny", "cpp"),))))
    (block,) = [token for token in PARSER.parse(page) if token.type == "fence"]
    assert (block.info, block.content) == ("cpp", "x\n````\ny\n")


def test_a_diagram_is_one_fence_and_its_labels_hold_no_quotes() -> None:
    nodes = (Node("n0", "op", 'a::"b"'), Node("n1", "kernel", "k<int>"))
    diagram = Diagram(nodes, (Edge("n0", "n1", "x|y"),), "a to k")
    page = _page(_note(NoteSection("a", "A", (diagram,))))
    (block,) = [token for token in PARSER.parse(page) if token.type == "fence"]
    assert block.info == "mermaid"
    assert block.content.splitlines() == [
        "flowchart TD",
        "  accDescr: a to k",
        '  n0{{"a::#34;b#34;"}}',
        '  n1[["k#60;int#62;"]]',
        '  n0 -->|"x#124;y"| n1',
    ]


def test_a_layout_is_a_picture_that_says_its_strides() -> None:
    dims = ("num_blocks", "num_heads", "head_size/x", "block_size", "x")
    assert strides(dims) == (
        "num_heads · (head_size/x) · block_size · x",
        "(head_size/x) · block_size · x",
        "block_size · x",
        "x",
        "1",
    )
    drawn = ET.fromstring(layout_svg(Figure("key<cache>", dims, strides(dims))))
    said = ["".join(node.itertext()) for node in drawn]
    assert "key<cache> [num_blocks, num_heads, head_size/x, block_size, x]" in said
    assert "stride block_size · x" in said


@pytest.mark.parametrize(
    ("size", "cells"),
    [("1", ["0"]), ("2", ["0", "1"]), ("4", ["0", "1", "2", "3"]), ("6", ["0", "1", "2", "…", "5"])],
)
def test_a_dimension_of_few_is_drawn_cell_by_cell(size: str, cells: list[str]) -> None:
    dims = ("rows", size)
    drawn = ET.fromstring(layout_svg(Figure("pairs", dims, strides(dims))))
    centred = [node.text for node in drawn if node.get("text-anchor") == "middle"]
    assert centred == ["0", "1", "2", "…", "rows-1", *cells]
    (lines,) = [node.get("d") for node in drawn if node.get("class") == "zoom"]
    assert lines.endswith(f"L{12 + 74 * len(cells)} 104")
    assert f"{size}: neighbours are 1 element apart" in "".join(drawn.itertext())


@pytest.mark.parametrize(
    ("dims", "expected"), [(("...", "d"), ("d", "1")), (("a", "...", "d"), ("?", "d", "1")), (("1", "n"), ("n", "1"))]
)
def test_strides_claim_nothing_behind_an_ellipsis(dims: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert strides(dims) == expected


PAGE = _note(NoteSection("a", "Shapes `x`"), NoteSection("b", "Launch"))


def test_a_readers_text_stays_in_its_section(tmp_path: Path) -> None:
    folder = NotesFolder(tmp_path, None)
    folder.add(PAGE)
    path = tmp_path / "kit.scale.md"
    own = f"{BEGIN}\nmine: | `a` <b>\n\n## not a section\n{END}"
    text = path.read_text()
    assert text.count(BEGIN) == 1
    path.write_text(text.replace("## Launch", f"{own}\n\n## Launch"))
    again = NotesFolder(tmp_path, None)
    again.add(PAGE)
    done = again.finish(SOURCE)
    first, second = path.read_text().split("## Launch")
    assert own in first and own not in second
    assert BEGIN in second
    assert done.kept == ("kit.scale.md",)


def test_a_text_whose_section_is_gone_stays_at_the_end(tmp_path: Path) -> None:
    NotesFolder(tmp_path, None).add(PAGE)
    path = tmp_path / "kit.scale.md"
    own = f"{BEGIN}\nmine\n{END}"
    path.write_text(path.read_text().replace("## Launch", f"{own}\n\n## Launch"))
    NotesFolder(tmp_path, None).add(_note(NoteSection("b", "Launch")))
    assert own in path.read_text().split("## Launch")[1]


def test_the_same_notes_are_the_same_bytes(tmp_path: Path) -> None:
    one = NotesFolder(tmp_path, None)
    one.add(PAGE)
    one.finish(SOURCE)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    two = NotesFolder(tmp_path, None)
    two.add(PAGE)
    done = two.finish(SOURCE)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert done.written == ()


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (f"# a\n{BEGIN}\nmine\n", "is not closed"),
        (f"# a\n{END}\n", "did not begin"),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", "begins inside another"),
    ],
)
def test_a_broken_mark_stops_before_anything_is_lost(tmp_path: Path, page: str, said: str) -> None:
    path = tmp_path / "kit.scale.md"
    path.write_text(page)
    with pytest.raises(InputError, match=said):
        NotesFolder(tmp_path, None).add(PAGE)
    assert path.read_text() == page


def test_a_page_of_somebody_elses_is_not_written_over(tmp_path: Path) -> None:
    index, page = tmp_path / "index.md", tmp_path / "kit.scale.md"
    index.write_text("# My own list\n")
    with pytest.raises(InputError, match=r"index\.md is no page of opwalker's"):
        NotesFolder(tmp_path, None)
    index.unlink()
    page.write_text("# My own page\n")
    with pytest.raises(InputError, match=r"kit\.scale\.md is no page of opwalker's"):
        NotesFolder(tmp_path, None).add(PAGE)
    assert page.read_text() == "# My own page\n"


def test_where_there_is_no_op_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no op is registered in"):
        NotesFolder(tmp_path, None).finish(SOURCE)
    assert list(tmp_path.iterdir()) == []


def test_marks_in_a_fence_are_text() -> None:
    assert kept_blocks(f"## A\n```\n{BEGIN}\n```\n", "a.md") == {}


def test_names_that_no_file_can_have_get_files_of_their_own(tmp_path: Path) -> None:
    folder = NotesFolder(tmp_path, None)
    for name in ("a::b", "a.b", "A::b", "index", "../x", "a/b"):
        folder.add(_note(name=name))
    pages = folder.finish(SOURCE).written
    assert len({page.lower() for page in pages}) == 7
    assert all((tmp_path / page).parent == tmp_path for page in pages)
