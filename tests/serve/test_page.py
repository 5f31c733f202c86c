"""The layout: whatever the width, nothing is lost, nothing is too wide, and what belongs together stands together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.serve.render.page import (
    ASCII_GUIDES,
    JOINT,
    Group,
    Guides,
    Page,
    Row,
    Section,
    Step,
    cells,
    flow,
    lay_out,
)
from opwalker.serve.voice import one_line

words = st.text(st.sampled_from("abcxyz019_:/<>(),.*&é漢"), min_size=1, max_size=30)
spans = st.lists(st.tuples(st.lists(words, max_size=4).map(" ".join), st.sampled_from(["", "name", JOINT])), max_size=4)
texts = spans.map(tuple)
rows = st.builds(Row, st.lists(texts, min_size=1, max_size=4).map(tuple), indent=st.sampled_from([0, 2]))
groups = st.builds(
    Group, st.sampled_from(["sizes", "shared memory", "on"]), st.lists(rows, min_size=1, max_size=4).map(tuple)
)
steps = st.recursive(
    st.builds(Step, texts, st.lists(groups, max_size=2).map(tuple)),
    lambda inner: st.builds(
        Step, texts, st.lists(groups, max_size=2).map(tuple), st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=3,
)
pages = st.lists(
    st.builds(
        Section,
        texts,
        st.lists(rows, max_size=3).map(tuple),
        st.lists(texts, max_size=2).map(tuple),
        st.lists(groups, max_size=2).map(tuple),
        st.lists(steps, max_size=2).map(tuple),
    ),
    max_size=3,
).map(lambda sections: Page(tuple(sections)))


def bare(text: str) -> str:
    """Without blanks and without the strokes of the tree, which no sample text holds."""
    return "".join(char for char in text if not char.isspace() and char not in "├─└│")


def said(page: Page) -> str:
    """All text of a page in its order."""

    def of_rows(some: tuple[Row, ...]) -> str:
        return "".join(text for row in some for cell in row.cells for text, _ in cell)

    def of_groups(some: tuple[Group, ...]) -> str:
        return "".join(group.label + of_rows(group.rows) for group in some)

    def of_steps(some: tuple[Step, ...]) -> str:
        return "".join(
            "".join(text for text, _ in step.title) + of_groups(step.groups) + of_steps(step.steps) for step in some
        )

    return "".join(
        "".join(text for text, _ in section.heading)
        + of_rows(section.rows)
        + "".join(text for paragraph in section.paragraphs for text, _ in paragraph)
        + of_groups(section.groups)
        + of_steps(section.steps)
        for section in page.sections
    )


def lines(page: Page, width: int | None) -> list[str]:
    return ["".join(text for text, _ in line) for line in lay_out(page, width)]


@settings(max_examples=150, deadline=None)
@given(pages, st.one_of(st.none(), st.integers(40, 170)))
def test_nothing_is_lost_and_nothing_is_too_wide(page: Page, width: int | None) -> None:
    laid = lines(page, width)
    assert bare("".join(laid)) == bare(said(page))
    assert all(line == line.rstrip() for line in laid)
    if width is not None:
        assert max((cells(line) for line in laid), default=0) <= width


def joined(found: list[tuple[tuple[str, str], ...]]) -> list[str]:
    return ["".join(text for text, _ in line) for line in found]


def test_a_long_paragraph_hangs() -> None:
    text = (("one two three four five six", ""),)
    assert joined(list(flow((("* ", ""),), (("    ", ""),), text, 14))) == [
        "* one two",
        "    three four",
        "    five six",
    ]


def test_a_line_rather_breaks_at_a_joint() -> None:
    text = (("int a,", ""), (" ", JOINT), ("Tensor bb,", ""), (" ", JOINT), ("float c", ""))
    assert joined(list(flow((), (("  ", ""),), text, 14))) == ["int a,", "  Tensor bb,", "  float c"]


def test_a_word_that_is_too_long_is_cut_where_names_are_joined() -> None:
    text = (("csrc/attention/paged.cu:12", ""),)
    assert joined(list(flow((), (("  ", ""),), text, 16))) == ["csrc/attention/", "  paged.cu:12"]


def test_a_pipe_is_never_wrapped() -> None:
    text = (("word " * 200, ""),)
    assert len(list(flow((), (), text, None))) == 1


def test_columns_line_up_and_an_outlier_does_not_push_the_others_out() -> None:
    long = "x" * 60
    page = Page((Section((), tuple(Row((((name, ""),), (("end", ""),))) for name in ("a", "bbb", long))),))
    assert lines(page, None) == ["  a    end", "  bbb  end", f"  {long}  end"]


def test_labels_stand_beside_their_rows_where_there_is_room_and_above_them_where_not() -> None:
    rows = (Row(((("first value here", ""),),)), Row(((("second", ""),),)))
    page = Page((Section((), groups=(Group("checks", rows),)),))
    assert lines(page, 100) == ["  checks         first value here", "                 second"]
    assert lines(page, 50) == ["  checks", "    first value here", "    second"]


def test_guides_tie_steps_together_and_can_be_plain_ascii() -> None:
    inner = Step((("inner", ""),))
    page = Page((Section((("top", ""),), steps=(Step((("one", ""),), steps=(inner,)), Step((("two", ""),)))),))
    assert lines(page, None) == ["top", "├─ one", "│  └─ inner", "│", "└─ two"]
    plain = ["".join(text for text, _ in line) for line in lay_out(page, None, ASCII_GUIDES)]
    assert plain == ["top", "|- one", "|  `- inner", "|", "`- two"]


def test_all_strokes_of_a_set_of_guides_are_equally_wide() -> None:
    for guides in (Guides(), ASCII_GUIDES):
        assert len({len(guides.branch), len(guides.last), len(guides.bar), len(guides.blank)}) == 1


def test_text_of_a_source_cannot_command_the_terminal() -> None:
    assert one_line("a\x1b[31mb\n\tc") == "a\\x1b[31mb c"


def test_wide_characters_take_two_columns() -> None:
    assert (cells("漢a"), cells("é"), cells("e\u0301")) == (3, 1, 1)
