"""Fetching from an index on the loopback address: what is chosen, what is kept, and every way in which it fails."""

from __future__ import annotations

import errno
import io
import os
import socket
from pathlib import Path

import pytest
import requests

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.source import fetch
from opwalker.source.fetch import fetch_sdist, fetch_wheels
from opwalker.source.opened import open_source
from tests.source.archives import tar_of, zip_of
from tests.source.loopback import Index, serving


@pytest.fixture
def sdist(tmp_path: Path) -> bytes:
    members = (("tiny_ops-1.2.0/PKG-INFO", b"Name: tiny-ops\nVersion: 1.2.0\n"), ("tiny_ops-1.2.0/a.cu", b"int a;\n"))
    return tar_of(tmp_path / "made.tar.gz", *members).read_bytes()


@pytest.fixture
def wheel(tmp_path: Path) -> bytes:
    return zip_of(tmp_path / "made.whl", ("tiny_ops/a.py", b"x = 1\n")).read_bytes()


def _left(cache: Path) -> list[str]:
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


def test_the_source_distribution_is_fetched_once(index: Index, cache: Path, sdist: bytes, wheel: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0-py3-none-any.whl", wheel)
    index.add("tiny-ops", "tiny_ops-1.1.0.tar.gz", b"other")
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    told: list[tuple[int, int | None, str]] = []
    path = fetch_sdist("Tiny_Ops", "1.2", cache, lambda done, total, label: told.append((done, total, label)))
    assert path.name == "tiny_ops-1.2.0.tar.gz"
    assert path.read_bytes() == sdist
    assert told[-1] == (len(sdist), len(sdist), "fetching tiny_ops-1.2.0.tar.gz")
    asked = list(index.asked)
    assert fetch_sdist("tiny.ops", "1.2.0", cache) == path
    assert index.asked == asked


def test_a_zip_serves_where_there_is_no_tar(index: Index, cache: Path, sdist: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.zip", sdist)
    assert fetch_sdist("tiny-ops", "1.2.0", cache).name == "tiny_ops-1.2.0.zip"
    index.add("tiny-ops", "tiny_ops-1.3.0.zip", sdist)
    index.add("tiny-ops", "tiny_ops-1.3.0.tar.gz", sdist)
    assert fetch_sdist("tiny-ops", "1.3.0", cache).name == "tiny_ops-1.3.0.tar.gz"


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["cp39-cp39-manylinux_2_28_x86_64", "cp310-cp310-manylinux_2_28_x86_64"], "cp310-cp310-manylinux_2_28_x86_64"),
        (["cp313-cp313-macosx_11_0_arm64", "cp39-cp39-manylinux1_x86_64"], "cp39-cp39-manylinux1_x86_64"),
        (["cp313-cp313-manylinux1_x86_64", "py3-none-any"], "py3-none-any"),
        (["cp39-cp39-win_amd64", "cp310-cp310-win_amd64"], "cp310-cp310-win_amd64"),
        (["cp313-cp313-manylinux1_x86_64", "cp38-abi3-manylinux1_x86_64"], "cp38-abi3-manylinux1_x86_64"),
    ],
)
def test_a_wheel_stands_in_for_missing_sources(
    index: Index, cache: Path, wheel: bytes, names: list[str], chosen: str
) -> None:
    for name in names:
        index.add("tiny-ops", f"tiny_ops-1.2.0-{name}.whl", wheel)
    assert fetch_sdist("tiny-ops", "1.2.0", cache).name == f"tiny_ops-1.2.0-{chosen}.whl"


def test_wheels_for_linux_are_those_of_the_newest_python(index: Index, cache: Path, wheel: bytes) -> None:
    for tag in (
        "cp39-cp39-manylinux_2_28_x86_64",
        "cp310-cp310-manylinux_2_28_x86_64",
        "cp310-cp310-manylinux2014_x86_64",
        "cp310-cp310-musllinux_1_2_x86_64",
        "cp310-cp310t-manylinux_2_28_x86_64",
        "cp313-cp313-macosx_11_0_arm64",
        "cp313-cp313-manylinux_2_28_aarch64",
        "py3-none-any",
    ):
        index.add("tiny-ops", f"tiny_ops-1.2.0-{tag}.whl", wheel)
    expected = [
        "tiny_ops-1.2.0-cp310-cp310-manylinux2014_x86_64.whl",
        "tiny_ops-1.2.0-cp310-cp310-manylinux_2_28_x86_64.whl",
        "tiny_ops-1.2.0-py3-none-any.whl",
    ]
    paths = fetch_wheels("tiny-ops", "1.2.0", cache)
    assert [path.name for path in paths] == expected
    asked = list(index.asked)
    assert fetch_wheels("tiny-ops", "1.2.0", cache) == paths
    assert index.asked == asked


def test_wheels_for_other_systems_alone_are_said(index: Index, cache: Path, wheel: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0-cp313-cp313-win_amd64.whl", wheel)
    with pytest.raises(InputError, match="no wheel for 64-bit Linux on x86_64; its wheels are for win_amd64"):
        fetch_wheels("tiny-ops", "1.2.0", cache)


def test_half_the_wheels_never_count(index: Index, cache: Path, wheel: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0-py3-none-any.whl", wheel)
    index.add("tiny-ops", "tiny_ops-1.2.0-cp310-cp310-manylinux1_x86_64.whl", wheel)
    index.faults["/files/tiny-ops/tiny_ops-1.2.0-cp310-cp310-manylinux1_x86_64.whl"] = [404]
    with pytest.raises(EnvironmentMissing, match="status 404"):
        fetch_wheels("tiny-ops", "1.2.0", cache)
    assert _left(cache) == []
    assert len(fetch_wheels("tiny-ops", "1.2.0", cache)) == 2


def test_an_unknown_package_names_the_near_ones(index: Index, cache: Path, sdist: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    fetch_sdist("tiny-ops", "1.2.0", cache)
    with pytest.raises(InputError, match=r"no package tiny-opps; nearest known here: .*tiny-ops") as caught:
        fetch_sdist("tiny-opps", "1.2.0", cache)
    assert caught.value.exit_code == 3
    with pytest.raises(InputError, match="no package zzqqxx; check the spelling"):
        fetch_sdist("zzqqxx", "1.2.0", cache)


def test_an_unknown_version_names_those_that_there_are(index: Index, cache: Path, sdist: bytes) -> None:
    for version in ("0.9.1", "0.10.0", "0.9.2", "1.0.0rc1", "0.2.0", "0.1.0", "0.12.0", "not_a_version"):
        index.add("tiny-ops", f"tiny_ops-{version}.tar.gz", sdist)
    with pytest.raises(InputError) as caught:
        fetch_sdist("tiny-ops", "0.9.3", cache)
    assert str(caught.value) == ("tiny-ops has no version 0.9.3; the newest are 1.0.0rc1, 0.12.0, 0.10.0, 0.9.2, 0.9.1")
    with pytest.raises(InputError, match=r"the nearest 0\.1\.0"):
        fetch_sdist("tiny-ops", "0.1.1", cache)


def test_a_release_without_files_to_read_is_said(index: Index, cache: Path) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.win32.exe", b"")
    index.add("tiny-ops", "tiny_ops-1.2.0-py3.11.egg", b"")
    with pytest.raises(InputError, match="neither sources nor wheels"):
        fetch_sdist("tiny-ops", "1.2.0", cache)


def test_the_network_may_fail_twice(index: Index, cache: Path, sdist: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    index.faults["/simple/tiny-ops/"] = [503, 429]
    index.faults["/files/tiny-ops/tiny_ops-1.2.0.tar.gz"] = [500, b"damaged on the way"]
    assert fetch_sdist("tiny-ops", "1.2.0", cache).read_bytes() == sdist
    assert len(index.asked) == 6


def test_the_third_failure_is_final(index: Index, cache: Path, sdist: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    index.faults["/simple/tiny-ops/"] = [503] * 9
    with pytest.raises(EnvironmentMissing, match="status 503") as caught:
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert caught.value.exit_code == 5
    assert len(index.asked) == 3


def test_a_refusal_is_not_tried_again(index: Index, cache: Path) -> None:
    index.faults["/simple/tiny-ops/"] = [403] * 9
    with pytest.raises(EnvironmentMissing, match="status 403"):
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert len(index.asked) == 1


def test_a_wrong_digest_never_counts(index: Index, cache: Path, sdist: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    index.faults["/files/tiny-ops/tiny_ops-1.2.0.tar.gz"] = [sdist[:-1]] * 3
    with pytest.raises(EnvironmentMissing, match="came damaged 3 times"):
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert _left(cache) == []
    assert fetch_sdist("tiny-ops", "1.2.0", cache).read_bytes() == sdist


def test_an_index_without_digests_is_accepted(index: Index, cache: Path, sdist: bytes) -> None:
    index.with_digests = False
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    assert fetch_sdist("tiny-ops", "1.2.0", cache).read_bytes() == sdist


def test_a_partial_download_never_counts(index: Index, cache: Path, sdist: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    folder = cache / "downloads" / "tiny-ops" / "1.2"
    folder.mkdir(parents=True)
    (folder / "tiny_ops-1.2.0.tar.gz.123.part").write_bytes(sdist[:10])
    assert fetch_sdist("tiny-ops", "1.2.0", cache).read_bytes() == sdist


@pytest.mark.parametrize("body", [b"{}", b'{"meta": 1}', b"not json"])
def test_an_answer_that_is_no_package_list_is_said(index: Index, cache: Path, body: bytes) -> None:
    index.page_type = "application/vnd.pypi.simple.v1+json"
    index.faults["/simple/tiny-ops/"] = [body]
    with pytest.raises(EnvironmentMissing, match="no package list"):
        fetch_sdist("tiny-ops", "1.2.0", cache)


def test_an_address_that_is_none_is_said(cache: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWALKER_INDEX_URL", "http://")
    with pytest.raises(EnvironmentMissing, match="address of the package index is not valid"):
        fetch_sdist("tiny-ops", "1.2.0", cache)


@pytest.mark.parametrize("page_type", ["image/png", ""])
def test_an_answer_of_another_kind_is_said(index: Index, cache: Path, sdist: bytes, page_type: str) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    index.page_type = page_type
    with pytest.raises(EnvironmentMissing, match="no package list"):
        fetch_sdist("tiny-ops", "1.2.0", cache)


@pytest.mark.parametrize("filename", ["../../tiny_ops-1.2.0.tar.gz", "x/tiny_ops-1.2.0.tar.gz"])
def test_a_file_name_that_is_a_path_is_refused(index: Index, cache: Path, filename: str) -> None:
    page = f'<a href="/files/tiny-ops/x.tar.gz">{filename}</a>'.encode()
    index.faults["/simple/tiny-ops/"] = [page]
    with pytest.raises(InputError):
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert _left(cache) == []
    assert not any(path.startswith("/files") for path in index.asked)


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_no_network_is_said_with_the_setting(index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWALKER_INDEX_URL", f"http://127.0.0.1:{_closed_port()}/simple/")
    with pytest.raises(EnvironmentMissing) as caught:
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert caught.value.exit_code == 5
    assert str(caught.value) == (
        "the package index cannot be reached: no connection; check the network (the index is set by"
        " OPWALKER_INDEX_URL), or give a folder or an archive as the source"
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (requests.exceptions.SSLError("self-signed"), "its certificate is not trusted"),
        (requests.exceptions.ReadTimeout("slow"), "it does not answer in time"),
        (requests.exceptions.ConnectTimeout("slow"), "it does not answer in time"),
        (requests.exceptions.ConnectionError("name resolution"), "no connection"),
        (requests.exceptions.ChunkedEncodingError("cut"), "no connection"),
    ],
)
def test_each_network_fault_is_said_in_its_words(
    index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    calls: list[str] = []

    def fail(session: requests.Session, url: str, **options: object) -> requests.Response:
        calls.append(url)
        raise error

    monkeypatch.setattr(requests.Session, "get", fail)
    with pytest.raises(EnvironmentMissing, match=words):
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert len(calls) == 3


def test_the_pauses_grow(index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(fetch, "FIRST_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(fetch.time, "sleep", pauses.append)
    index.faults["/simple/tiny-ops/"] = [500] * 3
    with pytest.raises(EnvironmentMissing):
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert pauses == [0.5, 1.0]


def test_a_full_disk_is_said_and_leaves_nothing(
    index: Index, cache: Path, sdist: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)

    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(fetch.os, "replace", full)
    with pytest.raises(EnvironmentMissing, match=r"no room left on the disk .*OPWALKER_CACHE"):
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert _left(cache) == []


class _Full(io.RawIOBase):
    """A file on a disk that has no room left."""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_while_writing_is_said(
    index: Index, cache: Path, sdist: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    real = Path.open

    def to_full(path: Path, mode: str = "r", *rest: object) -> object:
        return _Full() if path.name.endswith(".part") else real(path, mode, *rest)

    monkeypatch.setattr(Path, "open", to_full)
    with pytest.raises(EnvironmentMissing, match="no room left on the disk"):
        fetch_sdist("tiny-ops", "1.2.0", cache)


def test_a_cache_that_cannot_be_written_is_said(index: Index, tmp_path: Path, sdist: bytes) -> None:
    index.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentMissing, match=r"cannot write to the cache folder .*OPWALKER_CACHE"):
        fetch_sdist("tiny-ops", "1.2.0", tmp_path / "file")


def test_further_indexes_are_asked_in_turn(
    index: Index, cache: Path, sdist: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPWALKER_INDEX_URL")
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    index.add("tiny-ops", "tiny_ops-1.1.0.tar.gz", b"older")
    with serving() as second:
        second.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", second.url)
        assert fetch_sdist("tiny-ops", "1.2.0", cache).read_bytes() == sdist
        with pytest.raises(InputError, match=r"no version 9; the newest are 1\.2\.0, 1\.1\.0"):
            fetch_sdist("tiny-ops", "9", cache)


def test_credentials_go_to_the_index_and_nowhere_else(
    index: Index, cache: Path, sdist: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as files:
        files.add("tiny-ops", "tiny_ops-1.2.0.tar.gz", sdist)
        other = files.url.replace("/simple/", "/files/tiny-ops/tiny_ops-1.2.0.tar.gz")
        index.faults["/simple/tiny-ops/"] = [f'<a href="{other}">tiny_ops-1.2.0.tar.gz</a>'.encode()]
        monkeypatch.setenv("OPWALKER_INDEX_URL", index.url.replace("//", "//me:s%40cret@"))
        assert fetch_sdist("tiny-ops", "1.2.0", cache).read_bytes() == sdist
        assert index.authorised == [("/simple/tiny-ops/", requests.auth._basic_auth_str("me", "s@cret"))]
        assert [header for _, header in files.authorised] == [None]


def test_credentials_are_never_printed(index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWALKER_INDEX_URL", f"http://me:secret@127.0.0.1:{_closed_port()}/simple/")
    with pytest.raises(EnvironmentMissing) as caught:
        fetch_sdist("tiny-ops", "1.2.0", cache)
    assert "secret" not in str(caught.value)


def test_no_setup_code_is_run(index: Index, cache: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    members = (("evil-1.0/setup.py", f"open({str(mark)!r}, 'w')\n".encode()), ("evil-1.0/PKG-INFO", b"Name: evil\n"))
    index.add("evil", "evil-1.0.tar.gz", tar_of(tmp_path / "evil.tar.gz", *members).read_bytes())
    fetch_sdist("evil", "1.0", cache)
    open_source("evil==1.0", cache=cache)
    assert not mark.exists()
