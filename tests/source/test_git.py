"""What is read from a checkout: the revision, the index, the ignore files. Real git makes the checkouts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opwalker.model.source import SourceRoot
from opwalker.source.discover import discover
from opwalker.source.git import index_paths, revision


def _git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def _put(root: Path, path: str, text: str = "x = 1\n") -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    root = tmp_path / "repo"
    root.mkdir()
    _git(root, "init", "-q", "-b", "main")
    for path in ("pkg/ops.py", "csrc/a.cu", "csrc/very/deep/folder/b.cu"):
        _put(root, path)
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "-m", "one")
    return root


def _paths(root: Path, *, immutable: bool = False) -> set[str]:
    return {entry.path for entry in discover(SourceRoot(str(root), "x", immutable=immutable)).entries}


def _as_git_says(root: Path) -> set[str]:
    listed = _git(root, "ls-files", "-co", "--exclude-standard", "-z")
    names = {name for name in listed.split("\0") if name.endswith((".py", ".cu", ".h"))}
    return {name for name in names if not any(part.startswith(".") for part in name.split("/"))}


def test_revision_of_a_branch_a_packed_branch_and_a_detached_head(checkout: Path) -> None:
    commit = _git(checkout, "rev-parse", "HEAD")
    assert revision(str(checkout)) == commit
    _git(checkout, "pack-refs", "--all")
    assert revision(str(checkout)) == commit
    _git(checkout, "checkout", "-q", "--detach")
    assert revision(str(checkout)) == commit


def test_revision_of_a_worktree_and_a_submodule(checkout: Path, tmp_path: Path) -> None:
    _git(checkout, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert revision(str(tmp_path / "side")) == _git(checkout, "rev-parse", "side")
    outer = tmp_path / "outer"
    outer.mkdir()
    _git(outer, "init", "-q")
    _git(outer, "submodule", "--quiet", "add", str(checkout), "third/repo")
    assert revision(str(outer / "third" / "repo")) == _git(checkout, "rev-parse", "HEAD")


def test_no_revision_without_git_or_before_the_first_commit(tmp_path: Path) -> None:
    assert revision(str(tmp_path)) is None
    _git(tmp_path, "init", "-q")
    assert revision(str(tmp_path)) is None


@pytest.mark.parametrize(
    "head", ["", "garbage", "ref: ../../secret", "ref: refs/../../secret", "ref: /etc/passwd", "ref: "]
)
def test_a_forged_head_reads_nothing_else(tmp_path: Path, head: str) -> None:
    _put(tmp_path, "secret", "a" * 40)
    _put(tmp_path, ".git/HEAD", head)
    assert revision(str(tmp_path)) is None


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_index_is_read_in_each_version(checkout: Path, version: str) -> None:
    _put(checkout, "x" * 200 + "/" + "y" * 200 + ".py")
    for number in range(20):
        _put(checkout, f"many/n{'a' * number}.py")
    _git(checkout, "add", "-A")
    # An intent to add needs extended flags, which exist from version 3 on.
    _put(checkout, "later.py")
    if version != "2":
        _git(checkout, "add", "-N", "later.py")
    _git(checkout, "update-index", "--index-version", version)
    data = (checkout / ".git" / "index").read_bytes()
    assert data[7] == int(version)
    assert set(index_paths(data)) == set(_git(checkout, "ls-files", "-z").strip("\0").split("\0"))


def test_a_name_longer_than_the_length_field_is_read(checkout: Path) -> None:
    # Longer than a path on disk may be, so it goes straight into the index.
    name = "/".join(["d" * 200] * 25) + "/f.py"
    blob = _git(checkout, "hash-object", "-w", "pkg/ops.py")
    _git(checkout, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    assert name in index_paths((checkout / ".git" / "index").read_bytes())


def test_an_index_of_sha256_ids_is_read(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q", "--object-format=sha256")
    for path in ("a.py", "b/c.py"):
        _put(tmp_path, path)
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-q", "-m", "one")
    assert index_paths((tmp_path / ".git" / "index").read_bytes()) == ("a.py", "b/c.py")
    assert revision(str(tmp_path)) == _git(tmp_path, "rev-parse", "HEAD")


def test_a_damaged_index_gives_no_paths_and_no_error(checkout: Path) -> None:
    data = (checkout / ".git" / "index").read_bytes()
    for cut in range(0, len(data) - 20, 7):
        index_paths(data[:cut])
    assert index_paths(b"") == ()
    assert index_paths(b"DIRC\0\0\0\x09\0\0\0\1" + data[12:]) == ()
    assert index_paths(data[:8] + b"\xff\xff\xff\xff" + data[12:]) == ()


def test_ignored_files_are_left_out_and_tracked_ones_never(checkout: Path) -> None:
    _put(checkout, ".gitignore", "*_generated.py\n/out/\n!keep_generated.py\nforced/\n# note\n\n")
    for path in ("pkg/x_generated.py", "pkg/keep_generated.py", "out/a.py", "sub/out/a.py", "forced/tracked.py"):
        _put(checkout, path)
    _put(checkout, "forced/untracked.py")
    _git(checkout, "add", "-f", "forced/tracked.py")
    found = _paths(checkout)
    assert {"pkg/keep_generated.py", "sub/out/a.py", "forced/tracked.py", "csrc/a.cu"} <= found
    assert found == _as_git_says(checkout)


def test_nested_ignore_files_add_and_take_back(checkout: Path) -> None:
    _put(checkout, ".gitignore", "*.h\n")
    _put(checkout, "csrc/.gitignore", "!kept.h\n/local/\n")
    _put(checkout, "csrc/very/.gitignore", "kept.h\n")
    for path in ("csrc/kept.h", "csrc/other.h", "csrc/local/a.py", "csrc/very/kept.h", "csrc/very/local/a.py", "a.h"):
        _put(checkout, path)
    found = _paths(checkout)
    assert "csrc/kept.h" in found
    assert found == _as_git_says(checkout)


def test_a_nested_ignore_file_works_without_one_at_the_root(checkout: Path) -> None:
    _put(checkout, "csrc/.gitignore", "gen_*.cu\n")
    _put(checkout, "csrc/gen_a.cu")
    _put(checkout, "gen_b.cu")
    found = _paths(checkout)
    assert "gen_b.cu" in found
    assert found == _as_git_says(checkout)


def test_without_a_readable_index_the_patterns_decide_alone(checkout: Path) -> None:
    _put(checkout, ".gitignore", "csrc/\n")
    (checkout / ".git" / "index").write_bytes(b"broken")
    assert _paths(checkout) == {"pkg/ops.py"}


def test_a_pattern_that_is_none_is_passed_over(checkout: Path) -> None:
    _put(checkout, ".gitignore", "!\n/\n\\\ngen.py\n")
    _put(checkout, "gen.py")
    _put(checkout, "other.py")
    found = _paths(checkout)
    assert "gen.py" not in found
    assert "other.py" in found


def test_a_checkout_inside_a_checkout_has_rules_of_its_own(checkout: Path) -> None:
    _put(checkout, ".gitignore", "*.h\n")
    inner = checkout / "third" / "lib"
    inner.mkdir(parents=True)
    _git(inner, "init", "-q")
    _put(inner, ".gitignore", "gen.py\n")
    for path in ("api.h", "gen.py", "lib.py"):
        _put(inner, path)
    found = {path for path in _paths(checkout) if path.startswith("third/")}
    assert found == {"third/lib/api.h", "third/lib/lib.py"}


def test_an_unpacked_archive_is_not_filtered(checkout: Path) -> None:
    _put(checkout, ".gitignore", "gen.py\n")
    _put(checkout, "gen.py")
    assert "gen.py" in _paths(checkout, immutable=True)
    assert "gen.py" not in _paths(checkout)


def test_patterns_are_imported_only_when_something_is_untracked(checkout: Path) -> None:
    _put(checkout, ".gitignore", "*.o\n")
    _git(checkout, "add", "-A")
    code = (
        "import sys; from opwalker.source.discover import discover; from opwalker.model.source import SourceRoot;"
        f"assert discover(SourceRoot({str(checkout)!r}, 'x')).entries; print('pathspec' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
