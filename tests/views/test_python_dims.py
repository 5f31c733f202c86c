"""Group sizes of documented shapes, as Python makes them: only where one assignment and one tensor say the same."""

from __future__ import annotations

import pytest

from opwalker.model.walk import ParameterFact, PythonRef
from opwalker.views.python_dims import group_names, python_dims

PAGES = ParameterFact("pages", "Tensor&", shape=("blocks", "heads", "width/x", "block", "x"))
SPLIT = """def split(pages, heads, width):
    x = 16 // pages.element_size()
    return pages[0].view(pages.shape[1], heads, width // x, -1, x)
"""


def found(source: str, file: str = "lib/pages.py", parameter: ParameterFact = PAGES) -> list[tuple[str, str, int, int]]:
    refs = (PythonRef(file, 9, "write"),)
    facts = python_dims((parameter,), refs, lambda path: source)
    return [(one.name, one.value, one.line, one.made_line) for one in facts]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SPLIT, [("x", "16 // pages.element_size()", 2, 3)]),
        (SPLIT.replace("pages[0].view(pages.shape[1], heads, width // x, -1, x)",
                       "torch.zeros((8, heads, width // x, 4, x), dtype=d)"),
         [("x", "16 // pages.element_size()", 2, 3)]),
        (SPLIT.replace("-1, x)", "x)"), []),
        (SPLIT.replace("-1, x)", "x, -1)"), []),
        (SPLIT.replace("    return", "    x = 4\n    return"), []),
        (SPLIT.replace("    x =", "    y ="), []),
        (SPLIT.replace("def split", "def (split"), []),
    ],
    ids=["a view", "a new tensor", "other dimensions", "not the last", "two assignments", "another name", "no Python"],
)  # fmt: skip
def test_where_python_makes_a_group(source: str, expected: list[tuple[str, str, int, int]]) -> None:
    assert found(source) == expected


def test_a_shape_without_groups_asks_nothing() -> None:
    assert found(SPLIT, parameter=ParameterFact("rows", "Tensor&", shape=("n", "x"))) == []
    assert list(group_names(("n", "d/x", "x"))) == ["x"]
    assert list(group_names(("n", "d/2", "2"))) == []


def test_files_for_trying_out_come_last() -> None:
    texts = {"tests/test_pages.py": SPLIT.replace("16", "8"), "lib/pages.py": SPLIT}
    refs = tuple(PythonRef(file, 1, "f") for file in texts)
    facts = python_dims((PAGES,), refs, texts.__getitem__)
    assert [one.value for one in facts] == ["16 // pages.element_size()", "8 // pages.element_size()"]
