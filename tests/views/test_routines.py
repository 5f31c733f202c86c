"""Functions read as statements are kept file by file."""

from __future__ import annotations

from pathlib import Path

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.check import Settings
from opwalker.views.check.check import tree_of


def test_files_that_include_each_other_are_kept_apart(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.h").write_text('#pragma once\n#include "b.h"\ninline int first() { return 1; }\n', encoding="utf-8")
    (source / "b.h").write_text('#pragma once\n#include "a.h"\ninline int second() { return 2; }\n', encoding="utf-8")
    (source / "c.cpp").write_text('#include "a.h"\nint both() { return first() + second(); }\n', encoding="utf-8")
    options = pipeline.Options(source=str(source), cache=tmp_path / "cache", jobs=1)

    def read(session) -> list[tuple[str, str, int]]:
        return [(one.file, one.name, one.line) for one in tree_of(session, Settings()).routines]

    fresh = asked(options, None, None, read)
    assert fresh == [("a.h", "first", 3), ("b.h", "second", 3), ("c.cpp", "both", 2)]
    assert asked(options, None, None, read) == fresh
