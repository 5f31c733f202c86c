"""The cheap facts: import statements on one line, and what counts as mentioning ops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.facts.python_light import block_end, light, located_imports
from tests.python_trees import source


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("import a.b as c, d\n", ("import a.b as c, d",)),
        ("from .a import b\r\n", ("from .a import b",)),
        ("from a import (  # why (so)\n    b as c,  # no )\n    d,\n)\nx = 1\n", ("from a import b as c, d,",)),
        ("from a import b, \\\n    c\n", ("from a import b, c",)),
        ("if x:\n    from a import b  # noqa (E402\n    y()\n", ("from a import b",)),
        ("import a; import b; x = 1\n", ("import a", "import b")),
        ("import a; y(); from b import c\n", ("import a", "from b import c")),
        ("important = 1\nreimport = 2\n# import a\nx.import_module('b')\n", ()),
        ("import \\\n\n", ()),
        ("from a import (b", ("from a import b",)),
        ("from a import *", ("from a import *",)),
    ],
)
def test_import_statements(text: str, imports: tuple[str, ...]) -> None:
    assert light(source(text)).imports == imports


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("def f():\n    import a\n\n    a()\n\n\ndef g(): pass\n", 4),
        ("if x:\n    import a\n    b(\n        1,\n)\n    a()\nelse:\n    c()\n", 6),
        ("if x:\n\timport a\n# a remark\n\ta()\ny = 1\n", 4),
        ("if x:\n    import a", 2),
    ],
)
def test_the_block_of_an_import(text: str, last: int) -> None:
    assert block_end(text, located_imports(text)[0][0]) == last


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("import torch\ntorch.ops.a.b()\n", True),
        ("from torch import ops\n", True),
        ("from torch import (\n    nn,\n    ops,\n)\n", True),
        ("import torch as t\nt.ops.a.b()\n", True),
        ("import torch as t\nt.nn.Linear(1, 1)\n", False),
        ("from torch.library import custom_op\n", True),
        ("lib = Library('a', 'DEF')\n", True),
        ("lib = ctypes.CDLL('a.so')\n", True),
        ("from torch import nn\nops.f()\n", False),
    ],
)
def test_mentions(text: str, mentions: bool) -> None:
    assert light(source(text)).mentions_ops is mentions


@given(st.text(alphabet="fromimport a.b,()#\\;\n*'\" ", max_size=200))
def test_any_text_is_read_and_every_statement_stands_on_one_line(text: str) -> None:
    for place, statement in located_imports(text):
        assert text[place:].lstrip(" ").startswith(("from", "import"))
        assert "\n" not in statement and "  " not in statement
        assert statement.split(" ")[0] in ("from", "import") and " " in statement
