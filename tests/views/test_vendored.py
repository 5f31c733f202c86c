"""Which folders of a source hold other projects' code."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.check import Settings
from opwalker.views.check.check import tree_of
from opwalker.views.check.vendored import left_out, vendored

OWN = "csrc/kernels.cu"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("third_party/lib/a.cu", "third_party"),
        ("csrc/3rdparty/lib/a.cu", "csrc/3rdparty"),
        ("Third-Party/a.h", "Third-Party"),
        ("csrc/vendor/lib/external/a.h", "csrc/vendor"),
        ("csrc/cutlass/include/cutlass/gemm.h", "csrc/cutlass"),
        # a library's name without a copy of the library, and names that only contain such a word
        ("csrc/cutlass/gemm.cu", None),
        ("csrc/cutlass_extensions/include/gemm.h", None),
        ("csrc/external_kernels/a.cu", None),
        ("include/cub/a.h", None),
        ("third_party.cu", None),
    ],
)
def test_folders_of_other_projects(path: str, folder: str | None) -> None:
    assert vendored([path, OWN], (), ()) == ({folder: (path,)} if folder else {})


def test_a_whole_library_is_other_code_with_its_examples() -> None:
    paths = ["csrc/cutlass/include/cutlass/gemm.h", "csrc/cutlass/examples/basic.cu", OWN]
    assert vendored(paths, (), ()) == {"csrc/cutlass": tuple(sorted(paths[:2]))}


@pytest.mark.parametrize(
    ("own", "asked", "left"),
    [
        (("vendor/ours",), (), {"vendor": ("vendor/lib/b.cu",)}),
        ((), ("vendor/lib/b.cu",), {}),
        ((), ("vendor",), {}),
        ((), ("csrc",), {"vendor": ("vendor/lib/b.cu", "vendor/ours/a.cu")}),
    ],
)
def test_what_a_project_calls_its_own_and_what_is_asked_for(own, asked, left) -> None:
    assert vendored(["vendor/ours/a.cu", "vendor/lib/b.cu", OWN], own, asked) == left


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"vendor": ("a.h",)}, "(1 file in vendor)"),
        ({"a": ("1",), "b": ("1", "2", "3"), "c": ("1", "2")}, "(6 files in b, c, a)"),
        ({"a": ("1",), "b": ("1",), "c": ("1",), "d": ("1",), "e": ("1", "2")}, "(6 files in e, a, b and 2 more)"),
    ],
)
def test_what_is_left_out_is_said_in_one_line(others: dict[str, tuple[str, ...]], said: str) -> None:
    assert left_out({}) == ()
    assert left_out(others) == (f"other projects' code is not checked {said}; name a folder as a path to check it",)


def test_rules_see_the_texts_of_a_sources_own_code(tmp_path: Path) -> None:
    for name in ("csrc/a.cu", "third_party/b.cu", "third_party/b.cpp", "third_party/b.py", "kit/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n")
    options = pipeline.Options(source=str(tmp_path), cache=tmp_path / "cache", jobs=1)
    foreign = {"third_party/b.cu", "third_party/b.cpp", "third_party/b.py"}
    seen = asked(options, None, None, lambda s: tree_of(s, Settings(), foreign).files("cuda", "cpp", "python"))
    assert seen == ["csrc/a.cu", "kit/a.py", "third_party/b.py"]
