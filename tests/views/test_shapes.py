"""Shapes in comments beside parameters: on the line, on the next one, before the parameter, over several lines."""

from __future__ import annotations

import pytest

from opwalker.expand.files import FileView
from opwalker.views.shapes import ShapeReader
from tests.trees import function, scan_text


def shapes(text: str) -> list[tuple]:
    """Per parameter of ``f``: its dims and the lines of its comment."""
    found = function(scan_text(text), "f")
    reader = ShapeReader(FileView("a.cu", text))
    out = []
    for number in range(len(found.parameters)):
        dims, _, span = reader.of_parameter("a.cu", found, number)
        out.append((dims, (span.line, span.end_line) if span else None))
    return out


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("void f(T& a) {}", [(None, None)]),
        ("void f(T& a /* [n, d] */) {}", [(("n", "d"), (1, 1))]),
        ("void f(T& a,  // [n, d]\n       T& b   // [n]\n) {}", [(("n", "d"), (1, 1)), (("n",), (2, 2))]),
        ("void f(T& a,  // [n, d]\n       T& b)  // [n]\n{}", [(("n", "d"), (1, 1)), (("n",), (2, 2))]),
        ("void f(T& a) {  // [n, d]\n}", [(("n", "d"), (1, 1))]),
        ("void f(T& a) { g(a);  // [n, d]\n}", [(None, None)]),
        ("void f(T& a,\n       // [n, d]\n       T& b) {}", [(("n", "d"), (2, 2)), (None, None)]),
        ("void f(/* [n, d] */ T& a,\n       /* [m] */ T& b) {}", [(("n", "d"), (1, 1)), (("m",), (2, 2))]),
        (
            "void f(T& a,  // [n, heads,\n              //  d]\n       T& b) {}",
            [(("n", "heads", "d"), (1, 2)), (None, None)],
        ),
        ("void f(T& a,  // just words\n       T& b) {}", [(None, None), (None, None)]),
        ("void f(T& a, int n,  // [n, d]\n       T& b) {}", [(None, None), (("n", "d"), (1, 1)), (None, None)]),
    ],
)
def test_shapes(text: str, wanted: list) -> None:
    assert shapes(text) == wanted


def test_a_comment_of_the_body_is_none_of_the_parameters() -> None:
    assert shapes("void f(T& a) {\n  // [n, d]\n}") == [(None, None)]
    assert shapes("void f(T& a);\n// [n, d]\n") == [(None, None)]
