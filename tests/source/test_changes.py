"""Which lines git says have changed: in every form of a change, from any folder, whatever settings and hooks say."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opwalker.errors import InputError
from opwalker.source.changes import Asked, Changed, lines_of_python
from tests.not_run import NotRun

WHOLE = ((1, 1 << 31),)
SIX = "one\ntwo\nthree\nfour\nfive\nsix\n"


def _git(folder: Path, *words: str) -> str:
    if shutil.which("git") is None:
        raise NotRun("git is not installed")
    who = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@b.invalid"}
    command = ["git", "-C", str(folder), "-c", "protocol.file.allow=always", *words]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | who, check=True).stdout.strip()


def _put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "rowkit"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    _put(folder, {"top.cu": SIX, "csrc/a.cu": SIX, "csrc/in/b.cu": SIX})
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "one")
    return folder


def changed(folder: Path, revision: str = "HEAD") -> Changed:
    with Asked(str(folder), revision) as asked:
        return asked.answer()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (SIX, None),
        (SIX.replace("three", "3"), ((3, 3),)),
        ("zero\n" + SIX, ((1, 1),)),
        (SIX + "seven\neight", ((7, 8),)),
        (SIX.replace("two\n", "2\n2b\n").replace("six", "6"), ((2, 3), (7, 7))),
        # Where lines were taken out, those on either side count.
        (SIX.replace("three\nfour\n", ""), ((2, 3),)),
        (SIX.replace("one\n", ""), ((1, 1),)),
        (SIX.replace("six\n", ""), ((5, 6),)),
        # Lines that look like those of a diff.
        (SIX.replace("two", "++ b/x").replace("five", "5"), ((2, 2), (5, 5))),
        (SIX.replace("two", "@@ -1 +90 @@").replace("five", "5"), ((2, 2), (5, 5))),
        # What is no end of a line for git is none here.
        (SIX.replace("two", "2\f@@ -1 +90 @@\u2028+++ b/x\r@@ -1 +9 @@").replace("five", "5"), ((2, 2), (5, 5))),
        # A byte that no text has.
        (SIX.replace("two", "2\0"), ((2, 2),)),
    ],
)
def test_changed_lines(repository: Path, text: str, lines: tuple | None) -> None:
    _put(repository, {"csrc/a.cu": ""})
    (repository / "csrc/a.cu").write_text(text, newline="")
    assert changed(repository).lines == ({"csrc/a.cu": lines} if lines else {})


def test_files_come_go_and_move(repository: Path) -> None:
    (repository / "top.cu").unlink()
    _git(repository, "mv", "csrc/a.cu", "csrc/moved.cu")
    _put(repository, {"new.cu": SIX, 'csrc/new folder/ö\t"x".cu': SIX})
    _put(repository, {".gitignore": "left_out/\n", "left_out/z.cu": SIX})
    _git(repository, "add", "csrc")
    found = changed(repository).lines
    assert found == {
        "csrc/moved.cu": ((1, 6),), "csrc/new folder/ö\t\"x\".cu": ((1, 6),), "new.cu": WHOLE, ".gitignore": WHOLE,
    }  # fmt: skip


def test_a_folder_below_the_top_is_asked_about_by_itself(repository: Path) -> None:
    _put(repository, {name: SIX.replace("two", "2") for name in ("top.cu", "csrc/a.cu", "csrc/in/b.cu")})
    _put(repository, {"new.cu": SIX, "csrc/new.cu": SIX, "csrc/in/new.cu": SIX})
    assert changed(repository / "csrc").lines == {
        "a.cu": ((2, 2),), "in/b.cu": ((2, 2),), "new.cu": WHOLE, "in/new.cu": WHOLE,
    }  # fmt: skip
    assert changed(repository / "csrc/in").lines == {"b.cu": ((2, 2),), "new.cu": WHOLE}
    _git(repository, "mv", "top.cu", "csrc/in/top.cu")
    assert changed(repository / "csrc/in").lines["top.cu"] == ((1, 6),)
    (repository / "csrc/in/b.cu").unlink()
    assert "b.cu" not in changed(repository / "csrc/in").lines


def test_since_any_revision(repository: Path) -> None:
    _git(repository, "tag", "fix/#1,a=b")
    _put(repository, {"csrc/a.cu": SIX.replace("two", "2")})
    _git(repository, "commit", "-qam", "two")
    assert changed(repository).lines == {}
    for revision in ("HEAD~1", "main^", "HEAD@{1}", "fix/#1,a=b", _git(repository, "rev-parse", "HEAD~1")):
        assert changed(repository / "csrc", revision).lines == {"a.cu": ((2, 2),)}


@pytest.mark.parametrize("revision", ["--output=x", "", "a b", "HEAD:csrc", "main..HEAD", "main...HEAD", "no-such-one"])
def test_what_names_no_revision_is_refused(repository: Path, revision: str) -> None:
    with pytest.raises(InputError) as said:
        changed(repository, revision)
    assert "\n" not in str(said.value)
    assert not (repository / "x").exists()


def test_a_repository_that_git_does_not_take_is_said_to_be_one(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("no revision\n")
    with pytest.raises(InputError, match="not a git repository"):
        changed(repository)


def test_where_git_keeps_nothing_nothing_is_known(repository: Path, tmp_path: Path) -> None:
    _put(repository, {".gitignore": "left_out/\n", "left_out/z.cu": SIX})
    _put(tmp_path / "elsewhere", {"z.cu": SIX})
    with pytest.raises(InputError, match="git keeps nothing below"):
        changed(repository / "left_out")
    with pytest.raises(InputError, match="no git checkout"):
        changed(tmp_path / "elsewhere")


def test_repositories_within_are_named(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    _put(other, {"o.cu": SIX})
    _git(other, "init", "-q")
    _git(other, "add", ".")
    _git(other, "commit", "-qm", "one")
    _git(repository, "submodule", "--quiet", "add", str(other), "csrc/kept by others")
    _git(repository, "commit", "-qm", "two")
    shutil.copytree(other, repository / "csrc/in/nested")
    _put(repository, {"csrc/kept by others/o.cu": "", "csrc/in/nested/o.cu": ""})
    assert changed(repository) == Changed({}, ("csrc/in/nested", "csrc/kept by others"))
    assert changed(repository / "csrc/in") == Changed({}, ("nested",))
    assert changed(repository / "csrc/kept by others").lines == {"o.cu": ((1, 1),)}


def test_a_worktree_is_a_checkout(repository: Path, tmp_path: Path) -> None:
    _git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    _put(tmp_path / "tree", {"csrc/a.cu": SIX.replace("two", "2")})
    assert changed(tmp_path / "tree" / "csrc").lines == {"a.cu": ((2, 2),)}
    assert changed(repository).lines == {}


def test_settings_and_attributes_change_no_answer(repository: Path) -> None:
    for name, value in {
        "diff.noprefix": "true", "diff.mnemonicPrefix": "true", "diff.interHunkContext": "9", "color.ui": "always",
        "diff.renames": "copies", "diff.external": "false", "diff.x.command": "false", "diff.x.textconv": "false",
        "diff.submodule": "log", "diff.relative": "false", "core.quotePath": "true", "status.showUntrackedFiles": "no",
    }.items():  # fmt: skip
        _git(repository, "config", name, value)
    _put(repository, {".git/info/attributes": "a.cu diff=x\nb.cu -diff\n"})
    _put(repository, {name: SIX.replace("two", "2").replace("four", "4") for name in ("csrc/a.cu", "csrc/in/b.cu")})
    _put(repository, {"new.cu": SIX})
    twice = ((2, 2), (4, 4))
    assert changed(repository).lines == {"csrc/a.cu": twice, "csrc/in/b.cu": twice, "new.cu": WHOLE}


@pytest.mark.parametrize("quoted", ["true", "false"])
def test_any_name_is_read(repository: Path, quoted: str) -> None:
    names = ["sp ace.cu", "ümlaut.cu", 'both "ü".cu', "back\\slash.cu", "tab\tü.cu", "new\nline.cu", "日本/b/b.cu"]
    _put(repository, dict.fromkeys(names, SIX))
    _git(repository, "add", ".")
    _git(repository, "commit", "-qm", "names")
    _git(repository, "config", "core.quotePath", quoted)
    _put(repository, dict.fromkeys(names, SIX.replace("two", "2")))
    assert changed(repository).lines == dict.fromkeys(names, ((2, 2),))


@pytest.mark.parametrize("name", ["evil", "e.v il", "a=b", "c]d"])
@pytest.mark.parametrize("kind", ["clean", "process"])
def test_no_filter_is_run(repository: Path, tmp_path: Path, name: str, kind: str) -> None:
    mark = tmp_path / "was run"
    attribute = name if name.isalpha() else "evil"
    settings = f'[filter "{name}"]\n\t{kind} = "touch \'{mark}\'; cat"\n\trequired = true\n'
    settings += f'[filter "evil"]\n\t{kind} = "touch \'{mark}\'; cat"\n' if attribute != name else ""
    with (repository / ".git/config").open("a") as file:
        file.write(settings)
    _put(repository, {".gitattributes": f"*.cu filter={attribute}\n", "csrc/a.cu": SIX.replace("two", "2")})
    assert changed(repository).lines["csrc/a.cu"] == ((2, 2),)
    assert not mark.exists()
    assert changed(repository / "csrc").lines == {"a.cu": ((2, 2),)}
    assert not mark.exists()


def test_what_a_hook_is_run_with_says_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(repository, {"csrc/a.cu": SIX.replace("two", "2")})
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_PREFIX", "csrc/")
    monkeypatch.setenv("GIT_DIFF_OPTS", "--unified=3")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert changed(repository).lines == {"csrc/a.cu": ((2, 2),)}
    assert changed(repository / "csrc").lines == {"a.cu": ((2, 2),)}


def test_git_is_stopped_where_nobody_asks_any_more(repository: Path) -> None:
    with pytest.raises(KeyError), Asked(str(repository), "HEAD") as asked:
        raise KeyError
    assert all(one.poll() is not None for one in asked._running)


@pytest.mark.parametrize(
    ("text", "lines", "wanted"),
    [
        ("a\nb\nc\n", (2, 3), (2, 3)),
        ("a\r\nb\r\nc\r\n", (2, 3), (2, 3)),
        ("a\rb\nc\nd\n", (1, 1), (1, 2)),
        ("a\rb\nc\nd\n", (2, 3), (3, 4)),
        ("a\nb\rc\r\nd\n", (2, 2), (2, 3)),
        ("a\nb\rc\r\nd\n", (3, 3), (4, 4)),
        ("a\rb\rc", (1, 1), (1, 3)),
        ("a\rb\n", (1, 1 << 31), (1, (1 << 31) + 1)),
    ],
)
def test_lines_as_python_counts_them(text: str, lines: tuple[int, int], wanted: tuple[int, int]) -> None:
    assert lines_of_python(text, [lines]) == (wanted,)
