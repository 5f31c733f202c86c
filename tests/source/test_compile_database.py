"""Compile databases: found, read, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opwalker.source.compile_database import CompileCommand, find_database


def write(root: Path, place: str, content: object) -> None:
    target = root / place
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content if isinstance(content, str) else json.dumps(content))


def read(root: Path) -> tuple[object, list[str]]:
    said: list[str] = []
    return find_database(str(root), said.append), said


def test_the_first_call_of_each_file_of_the_tree_counts(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    entries = [
        {"directory": f"{root}/build", "file": "../csrc/a.cu", "command": "nvcc -DA='1 2' -c ../csrc/a.cu"},
        {"directory": f"{root}/build", "file": f"{root}/csrc/b.cpp", "arguments": ["g++", "-DB", "b.cpp"]},
        {"directory": f"{root}/build", "file": "../csrc/a.cu", "command": "nvcc -DLATER"},
        {"directory": "/", "file": "/outside/c.cpp", "command": "g++ c.cpp"},
        {"directory": f"{root}/build", "command": "ld"},
        "no entry at all",
    ]
    write(root, "build/compile_commands.json", entries)
    database, said = read(root)
    assert said == []
    assert database.path == "build/compile_commands.json"
    assert database.commands == {
        "csrc/a.cu": CompileCommand(f"{root}/build", ("-DA=1 2", "-c", "../csrc/a.cu")),
        "csrc/b.cpp": CompileCommand(f"{root}/build", ("-DB", "b.cpp")),
    }


def test_the_one_at_the_root_goes_first_and_none_is_no_fault(tmp_path: Path) -> None:
    assert read(tmp_path) == (None, [])
    write(tmp_path, "build/compile_commands.json", [])
    write(tmp_path, "compile_commands.json", [])
    assert read(tmp_path)[0].path == "compile_commands.json"


@pytest.mark.parametrize(
    "content",
    ["", "{", "{}", '[{"file": "a.cu", "command": "nvcc \'"}]', "[" * 100_000],
    ids=["empty", "cut off", "no list", "an open quote", "too deep"],
)
def test_one_that_cannot_be_read_is_said_in_one_line_and_not_used(content: str, tmp_path: Path) -> None:
    write(tmp_path, "compile_commands.json", content)
    database, said = read(tmp_path)
    assert database is None
    assert len(said) == 1 and said[0].startswith("compile_commands.json is not used, as it cannot be read: ")
    assert "\n" not in said[0]
