"""Where the cache is, and what is said when it cannot be used."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from opwalker.errors import EnvironmentMissing
from opwalker.source.cache import cache_root, make_folder, write_error


def test_the_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPWALKER_CACHE", str(tmp_path / "here"))
    assert cache_root() == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPWALKER_CACHE", "~/there")
    assert cache_root() == tmp_path / "there"
    monkeypatch.setenv("OPWALKER_CACHE", "relative")
    monkeypatch.chdir(tmp_path)
    assert cache_root() == tmp_path / "relative"


@pytest.mark.parametrize("xdg", ["", "relative/is/not/allowed", "/somewhere/else"])
def test_the_default_is_the_one_of_platformdirs(monkeypatch: pytest.MonkeyPatch, xdg: str) -> None:
    from platformdirs import user_cache_path

    monkeypatch.delenv("OPWALKER_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    expected = user_cache_path("opwalker", appauthor=False)
    # platformdirs takes a relative XDG folder as it is; the standard says to pass it over.
    assert cache_root() == expected if not xdg or xdg.startswith("/") else cache_root().is_absolute()


def test_platformdirs_is_not_imported_on_linux() -> None:
    code = (
        "import sys; from opwalker.source.cache import cache_root; cache_root(); print('platformdirs' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(not sys.platform.startswith("linux"))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentMissing) as caught:
        make_folder(tmp_path / "file" / "cache")
    assert str(tmp_path / "file" / "cache") in str(caught.value)
    assert "OPWALKER_CACHE" in str(caught.value)
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no room left on the disk"),
        (errno.EDQUOT, "no room left on the disk"),
        (errno.EROFS, "read-only file system"),
        (errno.EACCES, "permission denied"),
    ],
)
def test_each_refusal_is_said_in_its_words(number: int, words: str) -> None:
    import os

    error = write_error(OSError(number, os.strerror(number)), "/a/cache")
    assert isinstance(error, EnvironmentMissing)
    assert words in str(error)
    assert "/a/cache" in str(error)
    assert "\n" not in str(error)
