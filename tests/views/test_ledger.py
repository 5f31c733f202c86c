"""Functions are read anew where a macro that they asked about has changed, and stay as they were where none has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.check import Settings
from opwalker.model.statements import Routine
from opwalker.views.check import routines as reading
from opwalker.views.check.check import tree_of
from opwalker.views.check.ledger import holds_any, packed

#: Headers that include each other, a macro under a condition, one in another's text, one that no include reaches.
FILES = {
    "deep.h": "#pragma once\n#define LOW(x) (x)\n#define UNUSED 1\n",
    "base.h": '#pragma once\n#include "deep.h"\n#ifdef FAST\n#define TWICE(x) LOW(x)\n#else\n'
    "#define TWICE(x) (LOW(x) + LOW(x))\n#endif\n#define SPREAD(x) \\\n  first(x); \\\n  second(x)\n",
    "apart.h": "#define ALONE(x) alone(x)\n",
    "mode.h": "#pragma once\n",
    "user.cu": '#include "mode.h"\n#include "base.h"\nint use(int a) { return TWICE(a); }\n'
    "void go(int a) { SPREAD(a); }\n",
    "other.cu": '#include "base.h"\nint other(int a) { int low = a; return low; }\n',
    "alone.cu": "void lonely(int a) { ALONE(a); }\nint plain(int fresh) { return fresh; }\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _read(source: Path, cache: Path) -> tuple[Routine, ...]:
    options = pipeline.Options(source=str(source), cache=cache, jobs=1)
    return asked(options, None, None, lambda session: tuple(tree_of(session, Settings()).every_routine))


@pytest.fixture
def again(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """Reads the source once more, from what is kept and from nothing, and gives the files that were read anew."""
    count = 0
    _read(source, tmp_path / "kept")

    def ask() -> set[str]:
        nonlocal count
        count += 1
        seen: set[str] = set()
        plain = reading._Reader.file

        def noted(reader: reading._Reader, path: str) -> bytes:
            seen.add(path)
            return plain(reader, path)

        with monkeypatch.context() as patch:
            patch.setattr(reading._Reader, "file", noted)
            kept = _read(source, tmp_path / "kept")
        assert kept == _read(source, tmp_path / f"fresh{count}")
        return seen

    return ask


CHANGES = {
    "nothing": ("base.h", "", "", set()),
    "a macro of a text that a macro uses": ("deep.h", "LOW(x) (x)", "LOW(x) x", {"deep.h", "user.cu"}),
    "a macro that nobody uses": ("deep.h", "UNUSED 1", "UNUSED 2", {"deep.h"}),
    "the macro of a condition": ("mode.h", "once\n", "once\n#define FAST\n", {"mode.h", "user.cu"}),
    "a word becomes a macro": ("deep.h", "UNUSED 1\n", "UNUSED 1\n#define low high\n", {"deep.h", "other.cu"}),
    "a macro that no include reaches": ("apart.h", "alone(x)", "lost(x)", {"apart.h", "alone.cu"}),
    "a second one of that name": ("deep.h", "UNUSED 1\n", "ALONE(x) two(x)\n", {"deep.h", "alone.cu"}),
    "lines that move": ("base.h", "#pragma once\n", "// moved\n\n#pragma once\n", {"base.h"}),
    "a line within a macro": ("base.h", "first(x); \\\n", "first(x); \\\n \\\n", {"base.h", "user.cu"}),
    "code of a header": ("base.h", "#pragma once\n", "#pragma once\ninline int more() { return 1; }\n", {"base.h"}),
    "an include goes": ("base.h", '#include "deep.h"\n', "", {"base.h", "user.cu"}),
    "an include of its own": ("alone.cu", "void", '#include "apart.h"\nvoid', {"alone.cu"}),
    "an undefined one": ("mode.h", "once\n", "once\n#undef TWICE\n", {"mode.h", "user.cu"}),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_read_where_it_counts(change: str, source: Path, again: Callable[[], set[str]]) -> None:
    name, before, after, read = CHANGES[change]
    text = (source / name).read_text(encoding="utf-8")
    assert before in text
    (source / name).write_text(text.replace(before, after, 1), encoding="utf-8")
    assert again() == read
    (source / name).write_text(text, encoding="utf-8")
    assert again() == read
    assert again() == set()


def test_files_that_come_and_go(source: Path, again: Callable[[], set[str]]) -> None:
    (source / "new.h").write_text("#define LOW(x) none(x)\n", encoding="utf-8")
    assert {"new.h", "user.cu"} <= again()
    (source / "sub").mkdir()
    # The nearest file of a name is meant by an include: this one stands beside nothing that includes it.
    (source / "sub" / "deep.h").write_text("#define LOW(x) other(x)\n", encoding="utf-8")
    assert "sub/deep.h" in again()
    (source / "deep.h").unlink()
    assert {"base.h", "user.cu"} <= again()


def test_macros_are_found_where_their_lines_are_now(source: Path, tmp_path: Path) -> None:
    def places() -> list[tuple[str, int]]:
        options = pipeline.Options(source=str(source), cache=tmp_path / "cache", jobs=1)

        def read(session) -> list[tuple[str, int]]:
            tree = tree_of(session, Settings())
            routine = next(one for one in tree.every_routine if one.name == "go")
            return [tree.place(one.macro) for one in routine.walk() if one.macro is not None]

        return asked(options, None, None, read)

    assert places() == [("base.h", 9), ("base.h", 10)]
    text = (source / "base.h").read_text(encoding="utf-8")
    (source / "base.h").write_text("// one\n// two\n" + text, encoding="utf-8")
    assert places() == [("base.h", 11), ("base.h", 12)]


def test_what_a_file_is_built_with_has_its_say(source: Path, again: Callable[[], set[str]]) -> None:
    (source / "setup.py").write_text(
        "from torch.utils.cpp_extension import CUDAExtension\nfrom setuptools import setup\n"
        "setup(ext_modules=[CUDAExtension('kit', ['user.cu', 'other.cu', 'alone.cu'], "
        "extra_compile_args={'nvcc': ['-DFAST']})])\n",
        encoding="utf-8",
    )
    assert "user.cu" in again()


@pytest.mark.parametrize("count", [3, 100])
def test_packed_names(count: int) -> None:
    names = packed({"alpha", "beta", "gamma_1", "é"})
    others = [packed({f"other{number}"}) for number in range(count)]
    assert not holds_any(names, others)
    assert holds_any(names, [*others, packed({"gamma_1"})])
    assert not holds_any(names, [*others, packed({"gamma"})])
    assert holds_any(names, [*others, packed({"é"})])
