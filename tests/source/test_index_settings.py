"""Which index is asked: the order of the settings, and pip's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker.errors import EnvironmentMissing
from opwalker.source import index_settings as stage
from opwalker.source.index_settings import IndexSettings, index_settings


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_FOR_ALL_USERS", tmp_path / "etc" / "pip.conf")
    monkeypatch.setattr(stage.sys, "prefix", str(tmp_path / "python"))


def _environment(home: Path, **variables: str) -> dict[str, str]:
    folders = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CONFIG_DIRS": str(home / "all")}
    return folders | variables


def _pip_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_nothing_set_leaves_the_index_to_the_client(tmp_path: Path) -> None:
    assert index_settings({"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}) == IndexSettings()


def test_our_own_variable_wins_and_stands_alone(tmp_path: Path) -> None:
    environment = _environment(
        tmp_path,
        OPWALKER_INDEX_URL="https://own.invalid/simple",
        PIP_INDEX_URL="https://pip.invalid/simple",
        PIP_EXTRA_INDEX_URL="https://extra.invalid/simple",
        PIP_CERT="/a/bundle.pem",
    )
    assert index_settings(environment) == IndexSettings(
        ("https://own.invalid/simple",), "OPWALKER_INDEX_URL", "/a/bundle.pem"
    )


def test_pips_variables_come_before_its_files(tmp_path: Path) -> None:
    _pip_file(tmp_path / "config/pip/pip.conf", "[global]\nindex-url = https://file.invalid/simple\n")
    environment = _environment(
        tmp_path,
        PIP_INDEX_URL="https://pip.invalid/simple",
        PIP_EXTRA_INDEX_URL="https://a.invalid/simple file:///opt/x https://b.invalid/simple https://a.invalid/simple",
    )
    settings = index_settings(environment)
    assert settings.urls == ("https://pip.invalid/simple", "https://a.invalid/simple", "https://b.invalid/simple")
    assert settings.named_by == "PIP_INDEX_URL"


def test_the_later_of_pips_files_wins_key_by_key(tmp_path: Path) -> None:
    _pip_file(
        tmp_path / "all/pip/pip.conf",
        "[global]\nindex-url = https://all.invalid/\ncert = /all.pem\nextra_index_url =\n  https://more.invalid/s\n",
    )
    _pip_file(
        tmp_path / ".pip/pip.conf", "[global]\nindex-url = https://old.invalid/simple\n[install]\nindex-url = x\n"
    )
    settings = index_settings(_environment(tmp_path))
    assert settings.urls[0] == "https://old.invalid/simple"
    _pip_file(tmp_path / "config/pip/pip.conf", "[global]\nindex-url = https://user.invalid/%(x)s/simple\n")
    settings = index_settings(_environment(tmp_path))
    assert settings.urls[:2] == ("https://user.invalid/%(x)s/simple", "https://more.invalid/s")
    assert settings.certificates == "/all.pem"
    _pip_file(tmp_path / "named.conf", "[global]\nindex-url = https://named.invalid/simple\n")
    settings = index_settings(_environment(tmp_path, PIP_CONFIG_FILE=str(tmp_path / "named.conf")))
    assert settings.urls[0] == "https://named.invalid/simple"
    assert settings.named_by == "pip's setting index-url"


@pytest.mark.parametrize("text", ["no section\n", "[global\n", "[global]\nindex-url\n", "\udcff", "[other]\na = b\n"])
def test_a_file_that_cannot_be_parsed_is_passed_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config/pip/pip.conf"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert index_settings(_environment(tmp_path)).named_by is None


@pytest.mark.parametrize("url", ["file:///opt/simple", "ftp://x.invalid/simple", "x.invalid/simple"])
def test_an_address_that_cannot_be_asked_is_said(tmp_path: Path, url: str) -> None:
    with pytest.raises(EnvironmentMissing, match="PIP_INDEX_URL"):
        index_settings(_environment(tmp_path, PIP_INDEX_URL=url))
