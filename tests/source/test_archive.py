"""Unpacking: what is written, and every archive that must be refused with nothing left behind."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import random
import stat
import tarfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwalker.errors import EnvironmentMissing, InputError, OpwalkerError
from opwalker.model.source import SourceRoot
from opwalker.source import archive as stage
from opwalker.source import streams, tree
from opwalker.source.archive import archive_kind, unpack
from opwalker.source.discover import discover
from tests.source.archives import files_below, special, tar_of, zip_of

SOUND = (
    ("lib-1.0/PKG-INFO", b"Name: lib\nVersion: 1.0\n"),
    ("lib-1.0/csrc/a.cu", b"__global__ void k();\n"),
    ("lib-1.0/lib/ops.py", b"import torch\n"),
)


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


HOSTILE_TARS: dict[str, tuple[tuple[str, bytes] | tarfile.TarInfo, ...]] = {
    "up": (("lib-1.0/../../evil.py", b"x"),),
    "up-at-once": (("../evil.py", b"x"),),
    "up-and-back": (("lib-1.0/csrc/../evil.py", b"x"),),
    "up-with-backslash": (("lib-1.0\\..\\..\\evil.py", b"x"),),
    "absolute": (("/tmp/opwalker-evil.py", b"x"),),
    "drive": (("C:\\evil.py", b"x"),),
    "share": (("\\\\host\\evil.py", b"x"),),
    "folder-up": (special("lib-1.0/../..", tarfile.DIRTYPE),),
    "link-up": (special("lib-1.0/x", tarfile.SYMTYPE, "../../x"), ("lib-1.0/x/evil.py", b"x")),
    "link-down-and-up": (special("lib-1.0/x", tarfile.SYMTYPE, "csrc/../../../x"),),
    "link-absolute": (special("lib-1.0/x", tarfile.SYMTYPE, "/etc"),),
    "hard-link-up": (special("lib-1.0/x.py", tarfile.LNKTYPE, "../outside.py"),),
    "hard-link-absolute": (special("lib-1.0/x.py", tarfile.LNKTYPE, "/etc/passwd"),),
    "hard-link-to-nothing": (special("lib-1.0/x.py", tarfile.LNKTYPE, "lib-1.0/absent.py"),),
    "device": (special("lib-1.0/x", tarfile.CHRTYPE),),
    "block-device": (special("lib-1.0/x", tarfile.BLKTYPE),),
    "pipe": (special("lib-1.0/x.cu", tarfile.FIFOTYPE),),
    "unknown-kind": (special("lib-1.0/x.cu", b"V"),),
    "file-and-folder": (("lib-1.0/a.py", b"x"), ("lib-1.0/a.py/b.py", b"x")),
    "folder-and-file": (("lib-1.0/a.py/b.py", b"x"), ("lib-1.0/a.py", b"x")),
    "long-name": (("lib-1.0/" + "n" * 300 + ".py", b"x"),),
    "deep-name": (("lib-1.0/" + "d/" * 200 + "a.py", b"x"),),
}


@pytest.mark.parametrize("case", HOSTILE_TARS)
def test_a_hostile_tar_is_refused(tmp_path: Path, case: str) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND, *HOSTILE_TARS[case])
    _refused(archive, tmp_path)
    assert not Path("/tmp/opwalker-evil.py").exists()


@pytest.mark.parametrize(
    "member",
    [
        ("../evil.py", b"x"),
        ("/tmp/opwalker-evil.py", b"x"),
        ("lib-1.0/a\\..\\..\\..\\evil.py", b"x"),
        ("lib-1.0/x.py", b"../../../etc/passwd", stat.S_IFLNK),
        ("lib-1.0/x.py", b"/etc/passwd", stat.S_IFLNK),
        ("lib-1.0/x.py", b"x" * 5000, stat.S_IFLNK),
        ("lib-1.0/x.py", b"", stat.S_IFCHR),
        ("lib-1.0/x.py", b"", stat.S_IFIFO),
    ],
    ids=["up", "absolute", "backslash", "link-up", "link-absolute", "link-long", "device", "pipe"],
)
def test_a_hostile_zip_is_refused(tmp_path: Path, member: tuple[str, bytes]) -> None:
    _refused(zip_of(tmp_path / "lib.zip", *SOUND, member), tmp_path)


def test_a_zip_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "lib.zip", *SOUND, ("lib-1.0/a!py", b"x"))
    archive.write_bytes(archive.read_bytes().replace(b"a!py", b"a\0py"))
    _refused(archive, tmp_path)


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "lib.zip", *SOUND)
    data = bytearray(archive.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    archive.write_bytes(data)
    assert "encrypted" in _refused(archive, tmp_path)


def test_a_sparse_text_is_refused(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.tar", *SOUND, special("lib-1.0/x.py", tarfile.GNUTYPE_SPARSE), mode="w")
    assert "sparse" in _refused(archive, tmp_path)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
def test_a_bomb_in_a_tar_is_refused_early(tmp_path: Path, mode: str) -> None:
    archive = tar_of(
        tmp_path / "lib.tar.z", ("lib-1.0/a.py", b"x\n"), ("lib-1.0/b.bin", bytes(80 * 1024**2)), mode=mode
    )
    assert "bomb" in _refused(archive, tmp_path)


def test_a_bomb_in_a_zip_is_refused(tmp_path: Path) -> None:
    assert "bomb" in _refused(zip_of(tmp_path / "lib.zip", ("lib/a.py", bytes(80 * 1024**2))), tmp_path)


def test_a_bomb_of_nested_streams_is_refused(tmp_path: Path) -> None:
    # Behind the end marker, where no member is: read for the checksum, so it must be bounded as well.
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND)
    archive.write_bytes(archive.read_bytes() + gzip.compress(bytes(80 * 1024**2)))
    assert "bomb" in _refused(archive, tmp_path)


def test_the_limit_on_the_whole_holds_for_incompressible_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_TOTAL_BYTES", 100_000)
    noise = random.Random(2).randbytes(200_000)
    assert "unpacks to more" in _refused(tar_of(tmp_path / "lib.tar.gz", ("lib/a.py", noise)), tmp_path)
    assert "unpacks to more" in _refused(zip_of(tmp_path / "lib.zip", ("lib/a.py", noise)), tmp_path)


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_MEMBERS", 3)
    members = [(f"lib/m{number}.py", b"") for number in range(4)]
    assert "more than 3 members" in _refused(tar_of(tmp_path / "lib.tar.gz", *members), tmp_path)
    assert "more than 3 members" in _refused(zip_of(tmp_path / "lib.zip", *members), tmp_path)
    unpack(tar_of(tmp_path / "fits.tar.gz", *members[:3]), tmp_path / "out")
    assert len(files_below(tmp_path / "out")) == 3


def test_a_forged_header_size_is_refused(tmp_path: Path) -> None:
    header = special("lib-1.0/x", tarfile.XHDTYPE)
    header.size = 3 * 1024**3
    archive = tmp_path / "lib.tar"
    archive.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    assert "header" in _refused(archive, tmp_path)


@pytest.mark.parametrize("size", [-256, -1024, -(2**40)])
@pytest.mark.parametrize("name", ["x.bin", "x.py"])
def test_a_size_below_zero_is_refused(tmp_path: Path, name: str, size: int) -> None:
    header = tarfile.TarInfo(f"lib-1.0/{name}")
    data = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    # The base-256 form of a number field, which can be negative.
    data[124:136] = size.to_bytes(12, "big", signed=True)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data)
    archive = tmp_path / "lib.tar"
    archive.write_bytes(bytes(data) + bytes(1024))
    _refused(archive, tmp_path)


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.xz", "tar.bz2", "tar", "zip"])
def test_a_truncated_archive_is_refused(tmp_path: Path, suffix: str) -> None:
    members = (*SOUND, ("lib-1.0/noise.py", random.Random(3).randbytes(30_000)))
    mode = {"tar": "w", "tar.gz": "w:gz", "tar.xz": "w:xz", "tar.bz2": "w:bz2"}.get(suffix)
    archive = tmp_path / f"lib.{suffix}"
    if mode is None:
        zip_of(archive, *members)
    else:
        tar_of(archive, *members, mode=mode)
    whole = archive.read_bytes()
    for share in (0.1, 0.5, 0.6):
        archive.write_bytes(whole[: int(len(whole) * share)])
        _refused(archive, tmp_path)


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.tar.gz", *SOUND)
    data = bytearray(archive.read_bytes())
    data[-6] ^= 1
    archive.write_bytes(data)
    assert "damaged" in _refused(archive, tmp_path)


def test_a_damaged_header_in_the_middle_is_not_taken_for_the_end(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.tar", *SOUND, mode="w")
    data = bytearray(archive.read_bytes())
    data[1024] ^= 0xFF
    archive.write_bytes(data)
    assert "damaged" in _refused(archive, tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"hello\n", b"\x7fELF" + bytes(600), bytes(1024), b"\x28\xb5\x2f\xfd" + bytes(60)]
)
def test_a_file_that_is_no_archive_is_refused_with_a_hint(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "lib.tar.gz"
    path.write_bytes(data)
    assert archive_kind(path) is None
    assert "give a folder" in _refused(path, tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_that_is_no_tar_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "notes.txt.gz"
    path.write_bytes(pack(b"just a text\n" * 300))
    _refused(path, tmp_path)


_DICTIONARY_OF_1_GB = 36


def test_an_xz_that_wants_gigabytes_of_memory_is_refused(tmp_path: Path) -> None:
    # The dictionary size is one byte of the block header; packing with a large one would itself take gigabytes.
    forged = bytearray(lzma.compress(b"x" * 2000))
    forged[16] = _DICTIONARY_OF_1_GB
    forged[20:24] = zlib.crc32(bytes(forged[12:20])).to_bytes(4, "little")
    path = tmp_path / "lib.tar.xz"
    path.write_bytes(forged)
    assert "emory" in _refused(path, tmp_path)


def test_an_unreadable_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        unpack(tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="cannot read"):
        unpack(tmp_path / "absent.tar.gz", tmp_path / "out")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), suffix=st.sampled_from(["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"]))
def test_any_damage_gives_a_tree_or_one_line(tmp_path: Path, data: st.DataObject, suffix: str) -> None:
    folder = tmp_path / str(time.monotonic_ns())
    folder.mkdir()
    archive = folder / f"lib.{suffix}"
    members = (*SOUND, ("lib-1.0/" + "long/" * 30 + "a.cu", b"int a;\n"))
    if suffix == "zip":
        zip_of(archive, *members)
    else:
        tar_of(archive, *members, mode={"tar": "w"}.get(suffix, "w:" + suffix[4:]))
    whole = bytearray(archive.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    archive.write_bytes(whole[: data.draw(st.integers(1, len(whole)))] if data.draw(st.booleans()) else whole)
    try:
        unpack(archive, folder / "out")
    except OpwalkerError as error:
        assert "\n" not in str(error)
        assert [path.name for path in folder.iterdir()] == [archive.name]
    else:
        assert sorted(path.name for path in folder.iterdir()) == [archive.name, "out"]


def _refused(archive: Path, folder: Path) -> str:
    """Unpack, expect one line and nothing left behind; returns the line."""
    before = sorted(path.name for path in folder.rglob("*"))
    target = folder / "cache" / "sources" / "x"
    with pytest.raises(InputError) as caught:
        unpack(archive, target)
    line = str(caught.value)
    assert caught.value.exit_code == 3
    assert "\n" not in line
    assert archive.name in line
    left = sorted(path.name for path in folder.rglob("*") if path.name not in ("cache", "sources"))
    assert left == [name for name in before if name not in ("cache", "sources")]
    return line


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


def test_a_zip_with_an_unknown_method_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "lib.zip", *SOUND)
    data = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        data[data.index(mark) + offset] = 9
    archive.write_bytes(data)
    with zipfile.ZipFile(archive) as bundle:
        assert bundle.infolist()[0].compress_type == 9
    _refused(archive, tmp_path)
