"""The data folders are found from a checkout and from an installed package, and every grammar in them is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import resources
from opwalker.errors import InternalError


def test_a_grammar_is_found_and_read() -> None:
    assert resources.path("grammars/op_schema.lark").name == "op_schema.lark"
    assert "start:" in resources.text("grammars/op_schema.lark")


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(InternalError, match=r"grammars/none\.lark"):
        resources.path("grammars/none.lark")
    with pytest.raises(InternalError, match="no data folder"):
        resources.path("elsewhere/x")


def test_an_installed_package_looks_inside_itself_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "opwalker"
    for parent, text in ((package, "ours"), (tmp_path / "site", "another package's")):
        (parent / "grammars").mkdir(parents=True)
        (parent / "grammars" / "g.lark").write_text(text)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    resources.folder.cache_clear()
    try:
        assert resources.text("grammars/g.lark") == "ours"
        with pytest.raises(InternalError, match="reference_kernels/ is missing"):
            resources.folder("reference_kernels")
    finally:
        resources.folder.cache_clear()
