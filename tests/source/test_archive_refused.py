"""Every archive that must be refused: hostile, oversized, damaged or none. One line each, and nothing left behind."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwalker.errors import InputError, OpwalkerError
from opwalker.source import streams, tree
from opwalker.source.archive import archive_kind, unpack
from tests.source.archives import SOUND, files_below, special, tar_of, zip_of


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


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), suffix=st.sampled_from(["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"]))
def test_any_damage_gives_a_tree_or_one_line(tmp_path: Path, data: st.DataObject, suffix: str) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
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


def test_a_zip_with_an_unknown_method_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "lib.zip", *SOUND)
    data = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        data[data.index(mark) + offset] = 9
    archive.write_bytes(data)
    with zipfile.ZipFile(archive) as bundle:
        assert bundle.infolist()[0].compress_type == 9
    _refused(archive, tmp_path)


def test_the_limit_on_the_whole_holds_for_incompressible_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_TOTAL_BYTES", 100_000)
    noise = random.Random(2).randbytes(200_000)
    assert "unpacks to more" in _refused(tar_of(tmp_path / "lib.tar.gz", ("lib/a.py", noise)), tmp_path)
    assert "unpacks to more" in _refused(zip_of(tmp_path / "lib.zip", ("lib/a.py", noise)), tmp_path)


def test_a_damaged_header_in_the_middle_is_not_taken_for_the_end(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib.tar", *SOUND, mode="w")
    data = bytearray(archive.read_bytes())
    data[1024] ^= 0xFF
    archive.write_bytes(data)
    assert "damaged" in _refused(archive, tmp_path)
