"""Which libraries a path names: files, folders, members of wheels; copies, other Pythons, damage."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from opwalker.errors import InputError
from opwalker.source import libraries
from opwalker.source.libraries import find_libraries


def wheel(path: Path, members: Mapping[str, bytes]) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return str(path)


def called(*paths: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.called, one.also) for one in find_libraries(paths)]


def test_of_a_wheel_only_its_own_libraries_count(tmp_path: Path) -> None:
    made = wheel(
        tmp_path / "rows.whl",
        {
            "rows/_C.abi3.so": b"one",
            "rows/lib/librows.so.1.2": b"two",
            "rows/ops.py": b"",
            "rows.libs/libgomp-1a2b.so.1": b"three",
            "rows/notes.so.txt": b"",
        },
    )
    assert called(made) == [("rows/_C.abi3.so", ()), ("rows/lib/librows.so.1.2", ())]


def test_of_several_pythons_the_newest(tmp_path: Path) -> None:
    names = [f"rows/_C.cpython-{minor}-x86_64-linux-gnu.so" for minor in ("39", "310", "313")]
    made = wheel(tmp_path / "rows.whl", {name: name.encode() for name in names})
    assert called(made) == [(names[2], (names[1], names[0]))]


def test_equal_files_count_once(tmp_path: Path) -> None:
    made = wheel(tmp_path / "rows.whl", {f"lib/librows.so{end}": b"same" for end in ("", ".0", ".0.6")})
    assert called(made) == [("lib/librows.so", ("lib/librows.so.0", "lib/librows.so.0.6"))]


def test_a_member_is_there_as_a_file_until_it_is_read(tmp_path: Path) -> None:
    (found,) = find_libraries([wheel(tmp_path / "rows.whl", {"rows/_C.so": b"x" * 10_000})])
    told: list[tuple[int, int | None, str]] = []
    with found.on_disk(tmp_path / "cache", lambda *said: told.append(said)) as path:
        assert path.read_bytes() == b"x" * 10_000
    assert not path.exists()
    assert told[-1] == (10_000, 10_000, "unpacking rows/_C.so")


def test_folders_and_files(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "rows"
    folder.mkdir(parents=True)
    (folder / "_C.so").write_bytes(b"one")
    (folder / "ops.py").write_bytes(b"")
    assert called(str(folder.parent)) == [("rows/_C.so", ())]
    assert called(str(folder / "_C.so")) == [("_C.so", ())]
    (folder.parent / "top.so").write_bytes(b"two")
    assert called(str(folder / "_C.so"), str(folder.parent / "top.so")) == [("rows/_C.so", ()), ("top.so", ())]
    with (found := find_libraries([str(folder)])[0]).on_disk(tmp_path / "cache") as path:
        assert path.samefile(folder / "_C.so")
    assert found.size == 3


def test_a_changed_file_has_another_key(tmp_path: Path) -> None:
    path = tmp_path / "rows.so"
    path.write_bytes(b"one")
    before = find_libraries([str(path)])[0].key
    path.write_bytes(b"other")
    assert find_libraries([str(path)])[0].key != before


@pytest.mark.parametrize(
    ("name", "said"),
    [("../rows.so", "climbs out of the tree"), ("/rows.so", "an absolute path")],
)
def test_members_that_lead_elsewhere_are_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find_libraries([wheel(tmp_path / "rows.whl", {name: b""})])


def test_what_cannot_be_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.so: no such file"):
        find_libraries([str(tmp_path / "none.so")])
    with pytest.raises(InputError, match="no shared library lies in"):
        find_libraries([str(tmp_path)])
    (tmp_path / "text.whl").write_text("no archive")
    with pytest.raises(InputError, match=r"text\.whl is damaged or no wheel"):
        find_libraries([str(tmp_path / "text.whl")])
    monkeypatch.setattr(libraries, "MAX_LIBRARY_BYTES", 100)
    with pytest.raises(InputError, match="larger than any library"):
        find_libraries([wheel(tmp_path / "big.whl", {"rows.so": b"x" * 101})])


def test_a_damaged_member_is_said(tmp_path: Path) -> None:
    path = Path(wheel(tmp_path / "rows.whl", {"rows.so": bytes(range(256)) * 40}))
    data = bytearray(path.read_bytes())
    data[60:80] = b"\xff" * 20
    path.write_bytes(data)
    (found,) = find_libraries([str(path)])
    with pytest.raises(InputError, match=r"rows\.whl is damaged: rows\.so cannot be unpacked"), found.on_disk(tmp_path):
        pass
