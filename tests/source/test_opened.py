"""Opening what the user named: folders, archives, packages, and the names that are none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.source import opened
from opwalker.source.discover import discover
from opwalker.source.opened import open_source
from tests.source.archives import tar_of, zip_of
from tests.source.loopback import Index

SOUND = (("tiny_ops-1.2.0/PKG-INFO", b"Metadata-Version: 2.1\nName: tiny-ops\nVersion: 1.2.0\n\nText\n"),)
KERNEL = ("tiny_ops-1.2.0/a.cu", b"int a;\n")


def _put(root: Path, path: str, text: str = "") -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_a_folder_is_opened_where_it_is(tmp_path: Path) -> None:
    _put(tmp_path, "lib/a.cu")
    root = open_source(str(tmp_path / "lib"))
    assert (root.path, root.name, root.version, root.immutable) == (str(tmp_path / "lib"), "lib", None, False)


def test_a_folder_is_opened_by_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(tmp_path, "lib/a.cu")
    (tmp_path / "link").symlink_to("lib")
    monkeypatch.chdir(tmp_path)
    assert open_source("lib").path == open_source("link").path == open_source("./lib/").path == str(tmp_path / "lib")


@pytest.mark.parametrize(
    ("folder", "files", "expected"),
    [
        ("x", {"PKG-INFO": "Name: tiny-ops\nVersion: 1.2.0\n\nName: no\n"}, ("tiny-ops", "1.2.0")),
        ("x", {"PKG-INFO": "Summary: none\n"}, ("x", None)),
        ("x", {"t-1.dist-info/METADATA": "Name: t\nVersion: 1\n"}, ("t", "1")),
        ("x", {"pyproject.toml": '[project]\nname = "tiny-ops"\nversion = "1.2"\n'}, ("tiny-ops", "1.2")),
        ("x", {"pyproject.toml": '[project]\nname = "tiny-ops"\ndynamic = ["version"]\n'}, ("tiny-ops", None)),
        ("tiny_ops-3.0", {"pyproject.toml": '[project]\nname = "tiny-ops"\n'}, ("tiny-ops", "3.0")),
        ("other-3.0", {"pyproject.toml": '[project]\nname = "tiny-ops"\n'}, ("tiny-ops", None)),
        ("x", {"pyproject.toml": '[tool.poetry]\nname = "tiny-ops"\nversion = "1.2"\n'}, ("tiny-ops", "1.2")),
        ("x", {"pyproject.toml": '[project]\nname = 3\n[tool]\npoetry = "x"\n'}, ("x", None)),
        ("x-2.0", {"pyproject.toml": "[tool.ruff]\n"}, ("x", "2.0")),
        ("x-2.0", {"pyproject.toml": "[broken\n"}, ("x", "2.0")),
        ("x-2.0", {"pyproject.toml": "a = " + "[" * 5000}, ("x", "2.0")),
        ("tiny_ops-1.2.0", {}, ("tiny_ops", "1.2.0")),
    ],
)
def test_a_tree_is_called_what_it_calls_itself(
    tmp_path: Path, folder: str, files: dict[str, str], expected: tuple[str, str | None]
) -> None:
    _put(tmp_path, f"{folder}/a.cu")
    for path, text in files.items():
        _put(tmp_path, f"{folder}/{path}", text)
    root = open_source(str(tmp_path / folder))
    assert (root.name, root.version) == expected


def test_metadata_that_is_a_folder_or_binary_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lib" / "PKG-INFO").mkdir(parents=True)
    (tmp_path / "lib" / "pyproject.toml").write_bytes(b"\xff\xfe\0")
    assert open_source(str(tmp_path / "lib")).name == "lib"


def test_without_a_name_the_enclosing_checkout_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    _put(tmp_path, "repo/.git/HEAD", commit + "\n")
    _put(tmp_path, "repo/pyproject.toml", '[project]\nname = "outer"\n')
    _put(tmp_path, "repo/inner/pyproject.toml", '[project]\nname = "inner"\n')
    _put(tmp_path, "repo/inner/csrc/a.cu")
    monkeypatch.chdir(tmp_path / "repo" / "inner" / "csrc")
    root = open_source(None)
    assert (root.path, root.name, root.revision) == (str(tmp_path / "repo"), "outer", commit)


def test_without_git_the_nearest_project_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(tmp_path, "repo/pyproject.toml")
    _put(tmp_path, "repo/inner/setup.py")
    _put(tmp_path, "repo/inner/csrc/a.cu")
    monkeypatch.chdir(tmp_path / "repo" / "inner" / "csrc")
    assert open_source(None).path == str(tmp_path / "repo" / "inner")


def test_an_unpacked_package_inside_a_checkout_is_its_own_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(tmp_path, "repo/.git/HEAD", "x")
    _put(tmp_path, "repo/tiny_ops-1.2.0/PKG-INFO", "Name: tiny-ops\nVersion: 1.2.0\n")
    _put(tmp_path, "repo/tiny_ops-1.2.0/csrc/a.cu")
    monkeypatch.chdir(tmp_path / "repo" / "tiny_ops-1.2.0" / "csrc")
    assert open_source(None).name == "tiny-ops"


def test_without_any_mark_the_current_folder_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(opened, "_ROOT_MARKS", ((".no-such-mark",),))
    assert open_source(None).path == str(tmp_path)


def test_a_current_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(InputError, match="current folder is gone"):
        open_source(None)


@pytest.mark.parametrize("name", ["tiny_ops-1.2.0.tar.gz", "tiny_ops-1.2.0.zip"])
def test_an_archive_is_unpacked_once(tmp_path: Path, cache: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = zip_of if name.endswith(".zip") else tar_of
    archive = pack(tmp_path / name, *SOUND, KERNEL)
    root = open_source(str(archive))
    assert (root.name, root.version, root.immutable, root.note) == ("tiny-ops", "1.2.0", True, None)
    assert Path(root.path).parent == cache / "sources"
    assert [entry.path for entry in discover(root).entries] == ["a.cu"]
    before = os.stat(root.path).st_mtime_ns
    monkeypatch.chdir(tmp_path)
    assert open_source(name) == root
    assert os.stat(root.path).st_mtime_ns == before


def test_a_changed_archive_is_unpacked_anew(tmp_path: Path, cache: Path) -> None:
    archive = tar_of(tmp_path / "tiny_ops-1.2.0.tar.gz", *SOUND, KERNEL)
    first = open_source(str(archive))
    tar_of(archive, *SOUND, KERNEL, ("tiny_ops-1.2.0/b.cu", b"int b;\n"))
    second = open_source(str(archive))
    assert first.path != second.path
    assert len(discover(second).entries) == 2


def test_an_archive_without_metadata_is_called_like_its_file(tmp_path: Path, cache: Path) -> None:
    root = open_source(str(tar_of(tmp_path / "DeepOps-1.4.tar.gz", ("DeepOps-abc/a.cu", b"int a;\n"))))
    assert (root.name, root.version) == ("DeepOps", "1.4")
    wheel = zip_of(tmp_path / "tiny_ops-2.0-cp310-cp310-linux_x86_64.whl", ("tiny_ops/a.py", b"x\n"))
    assert open_source(str(wheel)).version == "2.0"


def test_a_file_that_is_no_archive_is_refused_with_a_hint(tmp_path: Path, cache: Path) -> None:
    _put(tmp_path, "a.cu", "int a;\n")
    with pytest.raises(InputError, match=r"no archive that can be read; give a folder"):
        open_source(str(tmp_path / "a.cu"))
    assert list((cache / "sources").glob("*")) == []


def test_a_pipe_is_refused_without_waiting(tmp_path: Path, cache: Path) -> None:
    os.mkfifo(tmp_path / "lib.tar.gz")
    with pytest.raises(InputError, match="neither a folder nor a file"):
        open_source(str(tmp_path / "lib.tar.gz"))


def test_a_link_to_nothing_is_refused(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "lib.tar.gz").symlink_to("absent")
    with pytest.raises(InputError, match="cannot read"):
        open_source(str(tmp_path / "lib.tar.gz"))


@pytest.mark.parametrize(
    ("spec", "help"),
    [
        ("tinyops=0.30.0", "for a released package write tinyops==0.30.0"),
        ("tinyops>=0.30.0", "for a released package write tinyops==0.30.0"),
        ("tinyops", "for a released package write tinyops==VERSION"),
        ("csrcc", "there is csrc"),
        ("./csrcc", "there is ./csrc"),
        ("no/such/folder", "give a folder, an archive, a git revision or NAME==VERSION"),
        ("tinyops==0.3.*", "give a folder, an archive, a git revision or NAME==VERSION"),
        ("", "give a folder, an archive, a git revision or NAME==VERSION"),
        ("a\0b", "give a folder, an archive, a git revision or NAME==VERSION"),
        ("two\nlines", "give a folder, an archive, a git revision or NAME==VERSION"),
    ],
)
def test_what_is_no_source_is_answered_with_the_right_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, help: str
) -> None:
    (tmp_path / "csrc").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        open_source(spec)
    assert caught.value.exit_code == 3
    assert help in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\0" not in str(caught.value)


def _publish(index: Index, tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "made.tar.gz", *SOUND, KERNEL)
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", archive.read_bytes())


def test_a_package_is_fetched_and_unpacked_once(index: Index, cache: Path, tmp_path: Path) -> None:
    _publish(index, tmp_path)
    labels: list[str] = []
    root = open_source("Tiny.Ops==1.2", progress=lambda done, total, label: labels.append(label))
    assert (root.name, root.version, root.immutable, root.note) == ("tiny-ops", "1.2.0", True, None)
    assert list(dict.fromkeys(labels)) == ["fetching tiny_ops-1.2.0.tar.gz", "unpacking tiny_ops-1.2.0.tar.gz"]
    asked = len(index.asked)
    assert open_source("tiny_ops==1.2.0") == root
    assert len(index.asked) == asked


def test_an_explicit_cache_is_used(index: Index, cache: Path, tmp_path: Path) -> None:
    _publish(index, tmp_path)
    root = open_source("tiny-ops==1.2.0", cache=tmp_path / "mine")
    assert Path(root.path).is_relative_to(tmp_path / "mine")
    assert not cache.exists()


def test_a_package_released_as_a_wheel_alone_says_so(index: Index, cache: Path, tmp_path: Path) -> None:
    metadata = ("tiny_ops-1.2.0.dist-info/METADATA", b"Name: tiny-ops\nVersion: 1.2.0\n")
    wheel = zip_of(tmp_path / "made.whl", ("tiny_ops/a.py", b"x = 1\n"), ("tiny_ops/_C.so", b"\0"), metadata)
    index.add("tiny-ops", "tiny_ops-1.2.0-py3-none-any.whl", wheel.read_bytes())
    for _ in range(2):
        root = open_source("tiny-ops==1.2.0")
        assert root.version == "1.2.0"
        assert root.note == "tiny-ops==1.2.0 was released without a source distribution: this is its wheel"
        assert [entry.path for entry in discover(root).entries] == ["tiny_ops/a.py"]


def test_a_hostile_package_leaves_no_tree(index: Index, cache: Path, tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "made.tar.gz", *SOUND, ("tiny_ops-1.2.0/../../x.py", b"x"))
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", archive.read_bytes())
    with pytest.raises(InputError, match="climbs out of the tree"):
        open_source("tiny-ops==1.2.0")
    assert list((cache / "sources").iterdir()) == []


def test_a_read_only_cache_is_named_with_the_variable(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _publish(index, tmp_path)
    _put(tmp_path, "file")
    monkeypatch.setenv("OPWALKER_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentMissing) as caught:
        open_source("tiny-ops==1.2.0")
    assert str(tmp_path / "file" / "cache") in str(caught.value)
    assert "OPWALKER_CACHE" in str(caught.value)
    with pytest.raises(EnvironmentMissing, match="OPWALKER_CACHE"):
        open_source(str(tmp_path / "made.tar.gz"))


def test_opening_from_the_cache_reads_little_and_imports_nothing_heavy(
    index: Index, cache: Path, tmp_path: Path
) -> None:
    """What makes it quick: no request, no look at the tree beyond its name and version. ``make bench`` takes the
    time."""
    _publish(index, tmp_path)
    open_source("tiny-ops==1.2.0")
    asked = list(index.asked)
    code = (
        "import sys; from opwalker.source.opened import open_source; seen = []; cache = sys.argv[1];"
        "others = ('socket.connect', 'subprocess.Popen');"
        "note = lambda kind, told: (kind in others or cache in str(told[:1])) and seen.append(f'{kind} {told[0]}');"
        "sys.addaudithook(note); open_source('tiny-ops==1.2.0');"
        "print(*sorted(seen), sep='\\n');"
        "heavy = {'requests', 'pypi_simple', 'tarfile', 'zipfile', 'packaging', 'tomllib', 'pathspec', 'difflib'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(cache)], capture_output=True, text=True, check=True)
    tree = cache / "sources" / "tiny-ops-1.2"
    assert run.stdout.splitlines() == [f"open {tree / 'PKG-INFO'}", f"os.listdir {tree}", "[]"]
    assert index.asked == asked
