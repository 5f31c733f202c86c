"""A revision of a repository as a source: no checkout is made, and nothing the repository configures is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opwalker.errors import InputError
from opwalker.source.opened import open_source
from tests.not_run import NotRun


def _git(folder: Path, *words: str) -> str:
    if shutil.which("git") is None:
        raise NotRun("git is not installed")
    who = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@b.invalid"}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, env=os.environ | who, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "rowkit"
    (folder / "csrc").mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    (folder / "csrc" / "a.cu").write_text("__global__ void first() {}\n")
    (folder / "csrc" / "empty.h").write_text("")
    (folder / "notes").write_bytes(b"\0\1binary")
    os.symlink("/etc", folder / "out")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "one")
    _git(folder, "tag", "v1")
    (folder / "csrc" / "a.cu").write_text("__global__ void second() {}\n")
    (folder / "csrc" / "b.cu").write_text("// b\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "two")
    (folder / "csrc" / "a.cu").write_text("__global__ void not_committed() {}\n")
    monkeypatch.chdir(folder / "csrc")
    return folder


@pytest.mark.parametrize(
    ("revision", "files", "kernel"),
    [("v1", {"csrc/a.cu", "csrc/empty.h"}, "first"), ("HEAD", {"csrc/a.cu", "csrc/b.cu", "csrc/empty.h"}, "second")],
)
def test_a_revision_is_read_as_it_was(
    repository: Path, tmp_path: Path, revision: str, files: set[str], kernel: str
) -> None:
    root = open_source(revision, cache=tmp_path / "cache")
    found = {str(p.relative_to(root.path)) for p in Path(root.path).rglob("*") if p.is_file()}
    assert found == files
    assert kernel in (Path(root.path) / "csrc/a.cu").read_text()
    assert (root.name, root.revision) == ("rowkit", _git(repository, "rev-parse", f"{revision}^{{commit}}"))
    assert root.immutable


def test_a_commit_is_written_once(repository: Path, tmp_path: Path) -> None:
    first = open_source("v1", cache=tmp_path / "cache")
    (Path(first.path) / "csrc" / "a.cu").write_text("changed in the cache")
    again = open_source("HEAD~1", cache=tmp_path / "cache")
    assert again.path == first.path
    assert (Path(again.path) / "csrc" / "a.cu").read_text() == "changed in the cache"


def test_what_names_no_revision_is_no_source(repository: Path, tmp_path: Path) -> None:
    for spec in ("v2", "--upload-pack=x", "HEAD..v1", "nothing/here"):
        with pytest.raises(InputError, match="no folder, archive or git revision"):
            open_source(spec, cache=tmp_path / "cache")


def test_filters_and_hooks_of_the_repository_are_not_run(repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    script.chmod(0o755)
    _git(repository, "config", "filter.f.smudge", str(script))
    _git(repository, "config", "filter.f.required", "true")
    _git(repository, "config", "diff.f.textconv", str(script))
    _git(repository, "config", "core.fsmonitor", str(script))
    (repository / ".gitattributes").write_text("*.cu filter=f diff=f\n")
    root = open_source("HEAD", cache=tmp_path / "cache")
    assert "second" in (Path(root.path) / "csrc/a.cu").read_text()
    assert not mark.exists()


def test_a_folder_of_that_name_comes_first(repository: Path, tmp_path: Path) -> None:
    (repository / "csrc" / "v1").mkdir()
    assert open_source("v1", cache=tmp_path / "cache").path == str(repository / "csrc" / "v1")


def test_outside_a_repository_there_is_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no folder, archive or git revision"):
        open_source("HEAD", cache=tmp_path / "cache")
