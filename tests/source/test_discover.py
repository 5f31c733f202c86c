"""Which files of a tree are listed, which are left out, and what is said about odd ones."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opwalker.errors import InputError
from opwalker.model.source import SourceRoot
from opwalker.source import discover as stage
from opwalker.source.discover import Discovery, discover
from opwalker.source.read import read


def _tree(root: Path, *paths: str, text: str = "int a;\n") -> None:
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def _discover(root: Path, *, immutable: bool = False) -> Discovery:
    return discover(SourceRoot(str(root), "x", immutable=immutable))


def _paths(root: Path, *, immutable: bool = False) -> list[str]:
    return [entry.path for entry in _discover(root, immutable=immutable).entries]


def _problems(root: Path) -> list[tuple[str, str]]:
    return [(path, problem.kind) for path, problem in _discover(root).problems]


def test_files_come_sorted_with_size_time_and_language(tmp_path: Path) -> None:
    _tree(tmp_path, "csrc/b.cu", "csrc/a.cpp", "csrc-x/z.h", "pkg/ops.py", "README.md")
    entries = _discover(tmp_path).entries
    assert [(entry.path, entry.language) for entry in entries] == [
        ("csrc-x/z.h", "cpp"),
        ("csrc/a.cpp", "cpp"),
        ("csrc/b.cu", "cuda"),
        ("pkg/ops.py", "python"),
    ]
    status = (tmp_path / "csrc/b.cu").stat()
    assert (entries[2].size, entries[2].mtime_ns) == (status.st_size, status.st_mtime_ns)


@pytest.mark.parametrize(
    "path",
    [
        ".git/x.py",
        ".venv/lib/x.py",
        ".tox/x.py",
        ".eggs/x.py",
        ".github/x.py",
        "pkg/__pycache__/x.py",
        "web/node_modules/x.py",
        ".hidden.cu",
        "CVS/x.c",
    ],
)
def test_what_is_never_source_is_left_out(tmp_path: Path, path: str) -> None:
    _tree(tmp_path, path, "kept.py")
    assert _paths(tmp_path) == ["kept.py"]


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta/history"])
def test_an_environment_is_left_out_under_any_name(tmp_path: Path, mark: str) -> None:
    _tree(tmp_path, f"tools/env/{mark}", "tools/env/lib/python3/site-packages/torch/ops.py", "tools/kept.py")
    assert _paths(tmp_path) == ["tools/kept.py"]


@pytest.mark.parametrize(
    "mark", ["build/lib.linux-x86_64/x.py", "build/temp.linux/x.h", "build/CMakeCache.txt", "build_test/CMakeCache.txt"]
)
def test_build_output_is_left_out(tmp_path: Path, mark: str) -> None:
    _tree(tmp_path, mark, str(Path(mark).parts[0]) + "/_deps/x.cc", "kept.py")
    assert _paths(tmp_path) == ["kept.py"]


def test_a_folder_called_build_with_sources_in_it_is_read(tmp_path: Path) -> None:
    _tree(tmp_path, "build/rules.py", "src/CMakeCache.txt", "src/a.cu")
    assert _paths(tmp_path) == ["build/rules.py", "src/a.cu"]


def test_the_root_is_read_whatever_it_looks_like(tmp_path: Path) -> None:
    root = tmp_path / "build"
    _tree(root, "CMakeCache.txt", "pyvenv.cfg", "a.cu")
    assert _paths(root) == ["a.cu"]


def test_links_inside_the_root_are_duplicates(tmp_path: Path) -> None:
    _tree(tmp_path, "csrc/a.cu")
    (tmp_path / "copy.cu").symlink_to("csrc/a.cu")
    (tmp_path / "again").symlink_to("csrc")
    found = _discover(tmp_path)
    assert [entry.path for entry in found.entries] == ["csrc/a.cu"]
    assert found.problems == ()


def test_a_link_to_a_file_that_no_walk_meets_is_read_in_its_place(tmp_path: Path) -> None:
    _tree(tmp_path, ".deps/real.h")
    (tmp_path / "a.h").symlink_to(".deps/real.h")
    (tmp_path / "b.h").symlink_to(".deps/real.h")
    found = _discover(tmp_path)
    assert [entry.path for entry in found.entries] == ["a.h"]
    assert read(str(tmp_path), found.entries[0]).text == "int a;\n"


def test_links_out_of_the_root_are_problems(tmp_path: Path) -> None:
    root = tmp_path / "root"
    _tree(tmp_path, "secret.cu", "elsewhere/x.cu", "root/kept.cu", "notes.txt")
    (root / "out.cu").symlink_to(tmp_path / "secret.cu")
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (root / "notes.txt").symlink_to(tmp_path / "notes.txt")
    assert _paths(root) == ["kept.cu"]
    assert _problems(root) == [("folder", "outside-root"), ("out.cu", "outside-root")]


def test_link_loops_end(tmp_path: Path) -> None:
    _tree(tmp_path, "a/kept.cu")
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "self").symlink_to("self")
    (tmp_path / "ring.cu").symlink_to("ring2.cu")
    (tmp_path / "ring2.cu").symlink_to("ring.cu")
    assert _paths(tmp_path) == ["a/kept.cu"]
    assert _problems(tmp_path) == [("ring.cu", "unreadable"), ("ring2.cu", "unreadable")]


def test_a_link_to_nothing_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "gone.cu").symlink_to("nowhere.cu")
    (tmp_path / "gone.txt").symlink_to("nowhere.txt")
    assert _problems(tmp_path) == [("gone.cu", "unreadable")]


def test_a_root_that_is_a_link_is_followed(tmp_path: Path) -> None:
    _tree(tmp_path, "real/a.cu")
    (tmp_path / "real" / "b.cu").symlink_to("a.cu")
    (tmp_path / "link").symlink_to("real")
    assert _paths(tmp_path / "link") == ["a.cu"]
    assert _problems(tmp_path / "link") == []


def test_a_file_of_200_mb_is_a_problem_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "generated.cu").open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    found = _discover(tmp_path)
    assert found.entries == ()
    assert found.problems[0][0] == "generated.cu"
    assert found.problems[0][1].kind == "too-large"
    assert "200 MB" in found.problems[0][1].message


def test_a_pipe_or_socket_under_a_source_name_is_a_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cu")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.cu"))
        assert _problems(tmp_path) == [("pipe.cu", "unreadable"), ("s.cu", "unreadable")]


def test_a_folder_under_a_source_name_is_a_folder(tmp_path: Path) -> None:
    _tree(tmp_path, "kernels.cu/a.cu")
    assert _paths(tmp_path) == ["kernels.cu/a.cu"]


def test_an_unreadable_folder_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path, "shut/a.cu", "open/b.cu")
    scandir = os.scandir

    def refusing(path: str) -> object:
        if path.endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(stage.os, "scandir", refusing)
    assert _paths(tmp_path) == ["open/b.cu"]
    assert _problems(tmp_path) == [("shut", "unreadable")]


def test_a_root_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot list the source folder"):
        _discover(tmp_path / "absent")


def test_a_name_that_is_no_utf8_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.cu")).write_text("int a;\n")
    (tmp_path / "café.cu").write_text("int a;\n")
    assert _paths(tmp_path) == ["café.cu"]
    assert _problems(tmp_path) == [("caf\\xe9.cu", "bad-name")]


@pytest.fixture
def deep_file(tmp_path: Path) -> Iterator[str]:
    """A file 1,200 folders down. Taken away again step by step: ``shutil.rmtree`` itself runs out of stack on it."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        here = _moved(here, "d")
    os.close(os.open("a.cu", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    yield "d/" * 1200 + "a.cu"
    os.unlink("a.cu", dir_fd=here)
    for _ in range(1200):
        here = _moved(here, "..")
        os.rmdir("d", dir_fd=here)
    os.close(here)


def _moved(here: int, name: str) -> int:
    """The open folder ``name`` in place of the open folder ``here``."""
    there = os.open(name, os.O_RDONLY, dir_fd=here)
    os.close(here)
    return there


def test_deep_folders_do_not_exhaust_the_stack(tmp_path: Path, deep_file: str) -> None:
    assert _paths(tmp_path) == [deep_file]


class _Item:
    """One item of a folder, which notes when its size is asked for."""

    def __init__(self, item: os.DirEntry[str], asked: list[str]) -> None:
        self._item = item
        self._asked = asked

    def __getattr__(self, name: str) -> object:
        if name == "stat":
            self._asked.append(self._item.path)
        return getattr(self._item, name)


def test_a_tree_costs_one_listing_a_folder_and_one_look_at_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What makes it quick: no file is opened, none looked at twice, and none that no stage reads is looked at at all.
    ``make bench`` takes the time."""
    for folder in range(7):
        (tmp_path / f"f{folder}").mkdir()
        for name in ("a.py", "b.cu", "c.h", "notes.txt", "d.png"):
            (tmp_path / f"f{folder}" / name).touch()
    listed: list[str] = []
    asked: list[str] = []
    scandir = os.scandir

    @contextmanager
    def counted(folder: str) -> Iterator[Iterator[_Item]]:
        listed.append(folder)
        with scandir(folder) as items:
            yield (_Item(item, asked) for item in items)

    def outside(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def called(path: str, *more: object, **options: object) -> object:
            assert not str(path).startswith(f"{tmp_path}/"), f"{name} {path}"
            return real(path, *more, **options)

        return called

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", counted)
        for name in ("stat", "lstat", "open"):
            patch.setattr(os, name, outside(name, getattr(os, name)))
        patch.setattr("builtins.open", outside("open", open))
        found = discover(SourceRoot(str(tmp_path), "x", immutable=True)).entries
    assert len(found) == 21
    assert sorted(asked) == sorted(str(tmp_path / entry.path) for entry in found)
    assert sorted(listed) == sorted(str(path) for path in (tmp_path, *tmp_path.iterdir()))
