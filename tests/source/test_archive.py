"""Unpacking: what is written, what becomes the root, and what a full disk or a killed run leaves."""

from __future__ import annotations

import errno
import io
import os
import random
import stat
import tarfile
import threading
import time
from pathlib import Path

import pytest

from opwalker.errors import EnvironmentMissing
from opwalker.model.source import SourceRoot
from opwalker.source import archive as stage
from opwalker.source import tree
from opwalker.source.archive import archive_kind, unpack
from opwalker.source.discover import discover
from tests.source.archives import SOUND, files_below, special, tar_of, zip_of


@pytest.mark.parametrize(
    ("suffix", "mode"), [("tar", "w"), ("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar.bz2", "w:bz2"), ("tar.xz", "w:xz")]
)
def test_every_kind_of_tar_is_unpacked_without_its_top_folder(tmp_path: Path, suffix: str, mode: str) -> None:
    archive = tar_of(tmp_path / f"lib.{suffix}", *SOUND, mode=mode)
    unpack(archive, tmp_path / "out")
    assert files_below(tmp_path / "out") == {name.removeprefix("lib-1.0/"): data for name, data in SOUND}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_header_form_is_read(tmp_path: Path, form: int) -> None:
    long_name = "lib-1.0/" + "/".join(["folder-with-a-name"] * 7) + "/größer.cu"
    with tarfile.open(tmp_path / "lib.tar.gz", "w:gz", format=form, pax_headers={"comment": "x"}) as archive:
        info = tarfile.TarInfo(long_name)
        info.size = 7
        archive.addfile(info, io.BytesIO(b"int a;\n"))
    unpack(tmp_path / "lib.tar.gz", tmp_path / "out")
    assert files_below(tmp_path / "out") == {long_name.removeprefix("lib-1.0/"): b"int a;\n"}


@pytest.mark.parametrize("name", ["lib.zip", "lib.whl"])
def test_a_zip_is_unpacked(tmp_path: Path, name: str) -> None:
    unpack(zip_of(tmp_path / name, *SOUND), tmp_path / "out")
    assert files_below(tmp_path / "out") == {name.removeprefix("lib-1.0/"): data for name, data in SOUND}


def test_the_first_bytes_decide_and_not_the_suffix(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.zip", *SOUND, mode="w:xz")
    assert archive_kind(archive) == "xz"
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "csrc" / "a.cu").exists()


def test_several_top_folders_stay(tmp_path: Path) -> None:
    members = (("lib/ops.py", b"x\n"), ("lib-1.0.dist-info/METADATA", b"Name: lib\n"))
    unpack(zip_of(tmp_path / "lib.whl", *members), tmp_path / "out")
    assert sorted(files_below(tmp_path / "out")) == ["lib-1.0.dist-info/METADATA", "lib/ops.py"]


def test_a_file_beside_the_folder_keeps_it(tmp_path: Path) -> None:
    unpack(
        tar_of(tmp_path / "l.tar.gz", ("lib/ops.py", b"x\n"), ("lib/_C.so", b"\0"), ("_C.so", b"\0")), tmp_path / "o"
    )
    assert sorted(files_below(tmp_path / "o")) == ["lib/ops.py"]


def test_hidden_and_system_folders_at_the_top_do_not_count(tmp_path: Path) -> None:
    members = (*SOUND, ("__MACOSX/lib-1.0/._a.cu", b"\0\1"), ("._lib-1.0", b"\0"), (".git/config", b"x\n"))
    unpack(zip_of(tmp_path / "lib.zip", *members), tmp_path / "out")
    assert sorted(files_below(tmp_path / "out")) == ["PKG-INFO", "csrc/a.cu", "lib/ops.py"]


@pytest.mark.parametrize(
    ("name", "data", "written"),
    [
        ("a.cu", b"\x7fELF\0\0", True),
        ("a.py", b"x = 1\n" * 400_000, True),
        ("CMakeLists.txt", b"project(x)\n", True),
        ("LICENSE", b"as is\n", True),
        ("PKG-INFO", b"Name: lib\n", True),
        ("setup.cfg", b"[x]\n", True),
        ("config.jinja", b"{{ a }}\n", True),
        ("list.yaml", b"- a\n", True),
        ("exports.map", b"{ global: *; };\n", True),
        ("data.json", b"[1]\n", True),
        ("data.json", b"[1]\n" * 400_000, False),
        ("_C.abi3.so", b"text\n", False),
        ("logo.png", b"text\n", False),
        ("weights", b"\0\1\2\3", False),
        (".github/x.py", b"x\n", False),
        ("node_modules/x.py", b"x\n", False),
        ("pkg/__pycache__/x.py", b"x\n", False),
    ],
)
def test_what_no_stage_reads_is_not_written(tmp_path: Path, name: str, data: bytes, written: bool) -> None:
    for archive in (
        tar_of(tmp_path / "lib.tar.gz", *SOUND, (f"lib-1.0/x/{name}", data), ("lib-1.0/after.py", b"end\n")),
        zip_of(tmp_path / "lib.zip", *SOUND, (f"lib-1.0/x/{name}", data), ("lib-1.0/after.py", b"end\n")),
    ):
        target = tmp_path / f"out-{archive.name}"
        unpack(archive, target)
        found = files_below(target)
        assert found["after.py"] == b"end\n"
        assert found.get(f"x/{name}") == (data if written else None)


def test_the_later_of_two_members_with_one_name_stands(tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / "l.tar.gz", ("l/a.cu", b"a long first text\n"), ("l/b.py", b""), ("l/a.cu", b"second\n")
    )
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "a.cu").read_bytes() == b"second\n"


def test_names_that_differ_in_case_are_two_files(tmp_path: Path) -> None:
    unpack(tar_of(tmp_path / "l.tar.gz", ("l/a.c", b"1\n"), ("l/a.C", b"2\n"), ("l/b.py", b"")), tmp_path / "out")
    assert files_below(tmp_path / "out") == {"a.C": b"2\n", "a.c": b"1\n", "b.py": b""}


def test_a_hard_link_is_the_same_file_again(tmp_path: Path) -> None:
    members = (*SOUND, special("lib-1.0/b.cu", tarfile.LNKTYPE, "lib-1.0/csrc/a.cu"))
    unpack(tar_of(tmp_path / "lib.tar.gz", *members), tmp_path / "out")
    assert (tmp_path / "out" / "b.cu").read_bytes() == b"__global__ void k();\n"


def test_a_hard_link_to_what_was_not_written_is_not_written(tmp_path: Path) -> None:
    members = (*SOUND, ("lib-1.0/x.so", b"\0"), special("lib-1.0/y.txt", tarfile.LNKTYPE, "lib-1.0/x.so"))
    unpack(tar_of(tmp_path / "lib.tar.gz", *members), tmp_path / "out")
    assert not (tmp_path / "out" / "y.txt").exists()


def test_a_symbolic_link_inside_the_tree_is_accepted_and_not_written(tmp_path: Path) -> None:
    members = (
        *SOUND,
        special("lib-1.0/csrc/b.cu", tarfile.SYMTYPE, "../csrc/a.cu"),
        special("lib-1.0/include", tarfile.SYMTYPE, "csrc"),
    )
    unpack(tar_of(tmp_path / "lib.tar.gz", *members), tmp_path / "out")
    assert sorted(files_below(tmp_path / "out")) == ["PKG-INFO", "csrc/a.cu", "lib/ops.py"]
    unpack(zip_of(tmp_path / "lib.zip", *SOUND, ("lib-1.0/b.cu", b"csrc/a.cu", stat.S_IFLNK)), tmp_path / "zipped")
    assert sorted(files_below(tmp_path / "zipped")) == ["PKG-INFO", "csrc/a.cu", "lib/ops.py"]


def test_progress_counts_up_to_the_size_of_the_archive(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND, ("lib-1.0/r.py", random.Random(1).randbytes(2_000_000)))
    told: list[tuple[int, int | None, str]] = []
    unpack(archive, tmp_path / "out", lambda done, total, label: told.append((done, total, label)))
    done = [step[0] for step in told]
    assert done == sorted(done)
    assert len(set(done)) > 3
    assert told[-1] == (archive.stat().st_size, archive.stat().st_size, "unpacking lib.tar.gz")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND)
    writes: list[int] = []
    real = os.write

    def fill_up(handle: int, data: bytes) -> int:
        writes.append(len(data))
        if len(writes) == 3:
            raise OSError(number, os.strerror(number))
        return real(handle, data)

    monkeypatch.setattr(tree.os, "write", fill_up)
    with pytest.raises(EnvironmentMissing, match=r"no room left on the disk .*OPWALKER_CACHE") as caught:
        unpack(archive, tmp_path / "cache" / "x")
    assert caught.value.exit_code == 5
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND)
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentMissing, match="OPWALKER_CACHE"):
        unpack(archive, tmp_path / "file" / "cache" / "x")

    def refuse(path: object, mode: int = 0o777) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(tree.os, "mkdir", refuse)
    with pytest.raises(EnvironmentMissing, match=r"cannot write to the cache folder .*read-only file system"):
        unpack(archive, tmp_path / "cache" / "x")


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND)
    real = os.write
    monkeypatch.setattr(tree.os, "write", lambda handle, data: real(handle, data[:5]))
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "csrc" / "a.cu").read_bytes() == b"__global__ void k();\n"


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND)

    def interrupt(done: int, total: int | None, label: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(archive, tmp_path / "cache" / "x", interrupt)
    assert list((tmp_path / "cache").iterdir()) == []


def test_two_at_once_give_one_whole_tree(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *[(f"lib/m{number}.py", b"x = 1\n") for number in range(300)])
    errors: list[BaseException] = []

    def work() -> None:
        try:
            unpack(archive, tmp_path / "cache" / "x")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["x"]
    assert len(files_below(tmp_path / "cache" / "x")) == 300


def test_what_a_killed_run_left_is_swept_after_a_day(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    old, fresh, other = cache / ".a-1-ff.partial", cache / ".b-2-ff.partial", cache / "kept"
    for folder in (old, fresh, other):
        (folder / "inside").mkdir(parents=True)
    for folder in (old, other):
        os.utime(folder, (time.time() - 2 * 86400,) * 2)
    unpack(tar_of(tmp_path / "lib.tar.gz", *SOUND), cache / "x")
    assert sorted(path.name for path in cache.iterdir()) == [".b-2-ff.partial", "kept", "x"]


def test_a_source_above_the_limit_stays_for_discovery_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opwalker.source import discover as listing

    monkeypatch.setattr(listing, "MAX_FILE_BYTES", 1000)
    unpack(tar_of(tmp_path / "lib.tar.gz", *SOUND, ("lib-1.0/huge.cu", b"x" * 2000)), tmp_path / "out")
    found = discover(SourceRoot(str(tmp_path / "out"), "x", immutable=True))
    assert [(path, problem.kind) for path, problem in found.problems] == [("huge.cu", "too-large")]


def test_the_archive_stage_knows_the_checksum_of_a_header() -> None:
    signed = tarfile.TarInfo("größer.py").tobuf(tarfile.GNU_FORMAT)
    assert stage._is_tar_header(signed[:512])
    assert not stage._is_tar_header(bytes(512))
    assert not stage._is_tar_header(b"x" * 512)
