"""Calls of a kernel that a template argument decides: each is named, and nothing else is."""

from __future__ import annotations

import pytest

from opwalker.views.entries import EntryView
from opwalker.views.notes.note import note_of
from tests.trees import tree
from tests.views.miniatures import SOURCE
from tests.views.notes_text import section


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("Work::run(p);", [("Work::run", "Work", 2)]),
        ("typename Work::Params own = p; Work::template go<2>(own);", [("Work::go", "Work", 2)]),
        ("using Main = typename Work::Main;\nMain::run(p, N);", [("Main::run", "Work", 3)]),
        ("using M = typename Work::Main;\nusing Loop = typename M::Loop;\nLoop::go();", [("Loop::go", "Work", 4)]),
        ("Work work; work(p);", [("work", "Work", 2)]),
        ("typename Work::Main main(p, 3); main.run(N);", [("main.run", "Work", 2)]),
        ("Work::run(p);\nWork::run(p);", [("Work::run", "Work", 2)]),
        # What does not hang on an argument of the template, or is no call of a function.
        ("std::max(N, 3); other::run(p); plain(p);", []),
        ("float x(N); x = Box<Work>::size();", []),
        ("auto size = Work::kSize; Work value(3);", []),
        ("Fixed::run(p);", []),
    ],
)
def test_calls_that_a_template_argument_decides(body: str, named: list[tuple[str, str, int]]) -> None:
    text = f"template <typename Work, int N> __global__ void k(typename Work::Params p) {{\n{body}\n}}\n"
    found = EntryView(tree({"a.cu": text}), SOURCE).walk("k")
    (kernel,) = found.implementations[0].kernels
    assert [(one.name, one.on, one.line) for one in kernel.open_calls] == named


def test_a_note_says_that_they_are_not_followed() -> None:
    text = "template <typename Work> __global__ void k(int n) { Work::run(n); }\nvoid f() { k<Some><<<1, 1>>>(2); }\n"
    walk = EntryView(tree({"a.cu": text}), SOURCE).walk("k")
    said = "Calls `Work::run`; what that is, the template argument for `Work` decides: it is not followed."
    assert said in section(note_of(walk, "cuda"), "kernel-1")
