"""One file's text, and every way in which a file can be bad."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.model.source import FileEntry, SourceFile
from opwalker.source import read as stage
from opwalker.source.read import decode, read


def _entry(root: Path, name: str = "a.cu") -> FileEntry:
    status = (root / name).stat()
    return FileEntry(name, status.st_size, status.st_mtime_ns, "cuda")


def _read(root: Path, data: bytes) -> SourceFile:
    (root / "a.cu").write_bytes(data)
    return read(str(root), _entry(root))


def _kinds(file: SourceFile) -> list[str]:
    return [problem.kind for problem in file.problems]


@pytest.mark.parametrize(
    "text",
    ["", "int a;\n", "// größer 中文 \N{GRINNING FACE}\n", "a\r\nb\r\n", "a\rb\n", "no newline", "\x0c\n\x1b[0m\n"],
)
def test_text_comes_back_as_it_stands(tmp_path: Path, text: str) -> None:
    data = text.encode()
    file = _read(tmp_path, data)
    assert file == SourceFile("a.cu", text, "cuda", blake2b(data, digest_size=16).hexdigest())


def test_a_byte_order_mark_is_taken_off(tmp_path: Path) -> None:
    file = _read(tmp_path, b"\xef\xbb\xbfint a; // \xc3\xa9\n")
    assert file.text == "int a; // é\n"
    assert file.problems == ()


@pytest.mark.parametrize("codec", ["utf-16", "utf-32"])
@pytest.mark.parametrize("order", ["le", "be"])
def test_wide_encodings_are_read_by_their_mark(tmp_path: Path, codec: str, order: str) -> None:
    text = "__global__ void k();  // größer\r\n"
    file = _read(tmp_path, "\ufeff".encode(f"{codec}-{order}") + text.encode(f"{codec}-{order}"))
    assert file.text == text
    assert file.problems == ()


def test_wide_text_that_is_damaged_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    text = "int a;\n" * 50
    file = _read(tmp_path, b"\xff\xfe" + text.encode("utf-16-le") + b"x")
    assert file.text.startswith(text)
    assert _kinds(file) == ["encoding"]
    assert file.problems[0].line == 51


def test_latin_1_is_read_and_named_with_its_place(tmp_path: Path) -> None:
    file = _read(tmp_path, b"int a;\n// gr\xf6\xdfer\n")
    assert file.text == "int a;\n// größer\n"
    assert _kinds(file) == ["encoding"]
    assert (file.problems[0].line, file.problems[0].column) == (2, 6)


def test_a_stray_nul_becomes_a_blank(tmp_path: Path) -> None:
    file = _read(tmp_path, b"int a;\nint\0b;\n")
    assert file.text == "int a;\nint b;\n"
    assert _kinds(file) == ["nul-bytes"]
    assert (file.problems[0].line, file.problems[0].column) == (2, 4)
    assert file.digest == blake2b(b"int a;\nint\0b;\n", digest_size=16).hexdigest()


def test_a_stray_nul_in_latin_1_is_both_problems(tmp_path: Path) -> None:
    file = _read(tmp_path, b"int\0a; // gr\xf6\xdfer\n")
    assert file.text == "int a; // größer\n"
    assert _kinds(file) == ["nul-bytes", "encoding"]


def test_a_stray_nul_in_wide_text_becomes_a_blank(tmp_path: Path) -> None:
    file = _read(tmp_path, "\ufeffint a;\nint\0b;\n".encode("utf-16-le"))
    assert file.text == "int a;\nint b;\n"
    assert _kinds(file) == ["nul-bytes"]
    assert file.problems[0].line == 2


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" * 40,
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        bytes(1000),
        bytes(range(1, 256)) * 20,
        "wide without a mark".encode("utf-16-le"),
        b"\xff\xfe" + bytes(range(256)) * 8,
        b"\xff\xfe" + b"\0\xd8" * 300,
    ],
    ids=["elf", "png", "nuls", "noise", "unmarked", "marked-noise", "surrogates"],
)
def test_a_binary_gives_no_text(tmp_path: Path, data: bytes) -> None:
    file = _read(tmp_path, data)
    assert file.text == ""
    assert _kinds(file) == ["binary"]
    assert file.digest == blake2b(data, digest_size=16).hexdigest()


@given(st.binary(max_size=600))
def test_any_bytes_give_text_or_a_problem(data: bytes) -> None:
    text, problems = decode(data)
    assert "\0" not in text
    text.encode()
    if not problems:
        assert (
            text.encode() in (data, data[3:]) or data[:2] in (b"\xff\xfe", b"\xfe\xff") or data[:4] == b"\0\0\xfe\xff"
        )


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300))
def test_any_utf8_text_comes_back(text: str) -> None:
    expected = text.removeprefix("\ufeff")
    assert decode(text.encode()) == (expected, ())


def test_a_vanished_file_is_a_problem(tmp_path: Path) -> None:
    file = read(str(tmp_path), FileEntry("gone.cu", 1, 1, "cuda"))
    assert (file.text, file.digest) == ("", "")
    assert _kinds(file) == ["unreadable"]
    assert "vanished" in file.problems[0].message


def test_a_folder_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.cu").mkdir()
    assert _kinds(read(str(tmp_path), _entry(tmp_path))) == ["unreadable"]


def test_a_pipe_in_place_of_the_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.cu")
    assert _kinds(read(str(tmp_path), _entry(tmp_path))) == ["unreadable"]


def test_a_file_in_place_of_its_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "csrc").write_text("")
    assert _kinds(read(str(tmp_path), FileEntry("csrc/a.cu", 1, 1, "cuda"))) == ["unreadable"]


def test_a_file_that_may_not_be_read_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cu").write_text("int a;\n")
    entry = _entry(tmp_path)

    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(stage.os, "open", refuse)
    file = read(str(tmp_path), entry)
    assert _kinds(file) == ["unreadable"]
    assert file.problems[0].message == "permission denied"


def test_a_disk_error_while_reading_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cu").write_text("int a;\n")
    entry = _entry(tmp_path)

    def fail(handle: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(stage.os, "read", fail)
    assert _kinds(read(str(tmp_path), entry)) == ["unreadable"]


def test_a_name_that_no_file_can_have_is_a_problem(tmp_path: Path) -> None:
    assert _kinds(read(str(tmp_path), FileEntry("a\0b.cu", 1, 1, "cuda"))) == ["unreadable"]


def test_a_link_that_was_put_in_place_of_the_file_is_not_followed_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.cu").symlink_to("../secret")
    file = read(str(root), FileEntry("a.cu", 7, 1, "cuda"))
    assert file.text == ""
    assert _kinds(file) == ["outside-root"]


def test_a_file_that_grew_to_200_mb_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.cu").open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    assert _kinds(read(str(tmp_path), FileEntry("a.cu", 10, 1, "cuda"))) == ["too-large"]


def _changing(root: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the first ``times`` reads find that the file grows behind them; returns the list of reads."""
    reads: list[int] = []
    inner = stage._read_up_to

    def grow(handle: int, size: int) -> bytes:
        data = inner(handle, size)
        reads.append(len(data))
        if len(reads) <= times:
            with (root / "a.cu").open("ab") as file:
                file.write(b"int more;\n")
        return data

    monkeypatch.setattr(stage, "_read_up_to", grow)
    return reads


def test_a_file_that_changes_once_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cu").write_bytes(b"int a;\n")
    entry = _entry(tmp_path)
    reads = _changing(tmp_path, 1, monkeypatch)
    file = read(str(tmp_path), entry)
    assert file.text == "int a;\nint more;\n"
    assert file.problems == ()
    assert len(reads) == 2


def test_a_file_that_keeps_changing_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cu").write_bytes(b"int a;\n")
    entry = _entry(tmp_path)
    reads = _changing(tmp_path, 99, monkeypatch)
    file = read(str(tmp_path), entry)
    assert _kinds(file) == ["changed-while-read"]
    assert file.text == "int a;\nint more;\n"
    assert len(reads) == 2


def test_a_file_that_shrinks_while_read_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cu").write_bytes(b"int a;\n" * 10)
    entry = _entry(tmp_path)
    inner = stage._read_up_to

    def shrink(handle: int, size: int) -> bytes:
        os.truncate(tmp_path / "a.cu", size - 1 - 7)
        return inner(handle, size)

    monkeypatch.setattr(stage, "_read_up_to", shrink)
    file = read(str(tmp_path), entry)
    assert _kinds(file) == ["changed-while-read"]
    assert file.text == "int a;\n" * 8


def test_a_read_that_comes_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cu").write_bytes(b"0123456789" * 10)
    entry = _entry(tmp_path)
    real = os.read
    monkeypatch.setattr(stage.os, "read", lambda handle, size: real(handle, min(size, 7)))
    file = read(str(tmp_path), entry)
    assert file.text == "0123456789" * 10
    assert file.problems == ()
