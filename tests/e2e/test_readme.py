"""The README shows what the program says: every command in it is asked, every line of output in it is looked for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opwalker.serve.cli import main
from tests.e2e.conftest import Ask

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = "[…]"


def blocks(*, asked: bool = True) -> Iterator[list[str]]:
    """The lines of every fenced block; ``asked`` without those that name a language: they are not asked here."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for language, found in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if not asked or not language:
            yield found.splitlines()


def shown() -> list[tuple[str, list[str]]]:
    """Commands with the output that stands under them, without what is marked as left out."""
    return [
        (block[0].removeprefix("$ "), [line for line in block[1:] if LEFT_OUT not in line])
        for block in blocks()
        if block[0].startswith("$ opwalker ")
    ]


def plain(text: str) -> str:
    """A line by its words: columns are as wide as what else stands in them."""
    return " ".join(text.split())


@pytest.mark.parametrize(("command", "lines"), [pair for pair in shown() if "fixtures/" in pair[0]])
def test_output_of_the_bundled_libraries(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, command: str, lines: list[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert_stands_in_order(ask(*shlex.split(command)[1:]).out, lines)


@pytest.mark.parametrize(("command", "lines"), [pair for pair in shown() if "vllm==" in pair[0]])
def test_output_of_a_released_library(
    ask: Ask, released: Callable[[str, str], Path], command: str, lines: list[str]
) -> None:
    words = shlex.split(command)[1:]
    at = next(number for number, word in enumerate(words) if "==" in word)
    words[at] = str(released(*words[at].split("==")))
    assert_stands_in_order(ask(*words).out, lines)


def assert_stands_in_order(output: str, lines: list[str]) -> None:
    assert len(lines) > 2
    rest = iter(map(plain, output.splitlines()))
    missing = [line for line in lines if not any(plain(line) == found for found in rest)]
    assert missing == []


def test_both_kinds_of_output_are_shown() -> None:
    commands = [command for command, _ in shown()]
    assert any("fixtures/" in command for command in commands)
    assert any("vllm==" in command for command in commands)


def test_every_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    commands = re.findall(r"^  (\w+) ", capsys.readouterr().out.split("Commands:")[1], re.M)
    lines = [line for block in blocks(asked=False) for line in block if "opwalker " in line]
    examples = {line.removeprefix("$ ").split()[1] for line in lines}
    assert commands
    assert sorted(set(commands) - examples) == []


def test_every_folder_of_the_package_is_in_the_reading_order() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in (ROOT / "opwalker").glob("*/__init__.py")}
    assert sorted(folder for folder in folders if f"`opwalker/{folder}/`" not in text) == []
