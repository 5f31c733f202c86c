"""A whole process at a terminal, in a pipe, before a reader that leaves, and on a full disk."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from tests.serve.fake_pipeline import FakePipeline
flow = FakePipeline()
{before}
flow.install()
from opwalker.serve.cli import main
sys.exit(main(sys.argv[1:]))
"""
#: Work of two seconds, and of more where a bar is waited for that is not there yet: a slow machine draws it late.
SLOW = """
def slow(options, *, progress, say, **_):
    import os, time
    bar_seen = os.environ.get("BAR_SEEN")
    for done in range(6000):
        if done >= 40 and (bar_seen is None or os.path.exists(bar_seen)):
            break
        time.sleep(0.05)
        progress(min(done, 39), 40, "reading")
    say("nearly there")
    return FakePipeline.list_ops(flow, options)
flow.list_ops = slow
"""


def command(*words: str, before: str = "") -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(before=before), *words]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "TERM": "xterm-256color", **more}


def at_terminal(
    *words: str, columns: int = 60, before: str = "", look: Callable[[str], None] = lambda seen: None, **more: str
) -> tuple[int, str]:
    """Runs a command with stdout and stderr on a terminal of that width; exit code and all that it showed.

    ``look`` is called with what has been shown so far each time that there is more.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        command(*words, before=before), cwd=ROOT, env=environment(**more), stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
        look(seen.decode(errors="replace"))
    os.close(master)
    return process.wait(), seen.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colour_and_its_own_width() -> None:
    code, seen = at_terminal("walk", "scatter_rows", columns=60)
    assert code == 0
    assert "\x1b[" in seen
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert max(len(line) for line in plain.splitlines()) <= 60
    assert "scatter_rows_kernel<row_t, pool_t, VEC>" in plain


@pytest.mark.parametrize(
    ("words", "more"),
    [(("--no-color",), {}), ((), {"NO_COLOR": "1"}), ((), {"TERM": "dumb"})],
    ids=["flag", "NO_COLOR", "dumb"],
)
def test_no_colour_where_none_is_wanted(words: tuple[str, ...], more: dict[str, str]) -> None:
    code, seen = at_terminal("walk", "scatter_rows", *words, **more)
    assert code == 0
    assert "\x1b" not in seen
    assert max(len(line) for line in seen.splitlines()) <= 60


def test_json_on_a_terminal_is_still_plain() -> None:
    code, seen = at_terminal("ops", "--json")
    assert code == 0
    assert seen.startswith('{"format":1,')


def test_a_pipe_is_plain_and_not_wrapped() -> None:
    done = subprocess.run(
        command("walk", "scatter_rows"),
        cwd=ROOT,
        env=environment(COLUMNS="40"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) > 120
    assert done.stderr == "opwalker: note: the store is new\n"


def test_long_work_shows_a_bar_on_a_terminal_and_takes_it_away(tmp_path: Path) -> None:
    bar, marker = re.compile(r"reading.*\d+%"), tmp_path / "bar seen"

    def look(seen: str) -> None:
        if bar.search(seen):
            marker.touch()

    code, seen = at_terminal("ops", columns=100, before=SLOW, look=look, BAR_SEEN=str(marker))
    assert code == 0
    assert bar.search(seen)
    assert "opwalker: note: nearly there\n" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert seen.index("rowkit 1.4.0") > seen.rindex("%")


def test_no_bar_in_a_pipe() -> None:
    done = subprocess.run(
        command("ops", before=SLOW), cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == "opwalker: note: nearly there\n"


@pytest.mark.parametrize("words", [("walk", "scatter_rows"), ("walk", "scatter_rows", "--json"), ("dump", "source")])
def test_a_reader_that_leaves_is_no_fault(words: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        command(*words), cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert [line for line in err.splitlines() if "note:" not in line] == []


@pytest.mark.parametrize("words", [("ops",), ("ops", "--json")])
def test_an_answer_that_cannot_be_written_is_said(words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command(*words), cwd=ROOT, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 5
    assert done.stderr == "opwalker: error: cannot write the answer: no space left on device\n"


@pytest.mark.parametrize("words", [("ops",), ("ops", "--json")])
def test_a_closed_stdout_is_said(words: tuple[str, ...]) -> None:
    script = ["sh", "-c", '"$@" >&-', "sh", *command(*words)]
    done = subprocess.run(script, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (5, "opwalker: error: cannot write the answer: stdout is closed\n")


def test_a_closed_stderr_stops_nothing_and_spoils_nothing() -> None:
    for words, code in ((("walk", "scatter_rows", "--json"), 0), (("walk", "nothing"), 3)):
        script = ["sh", "-c", '"$@" 2>&-', "sh", *command(*words)]
        done = subprocess.run(script, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode == code
        assert done.stdout == "" or done.stdout.startswith('{"format":1,')


def test_an_interrupt_ends_the_program_quietly() -> None:
    waiting = "import time\nflow.list_ops = lambda *_, **__: (print('begun', flush=True), time.sleep(600))"
    process = subprocess.Popen(
        command("ops", before=waiting),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (130, "", "")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opwalker", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("opwalker ")
