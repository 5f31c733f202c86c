"""The protocol of a collective op between CPU threads, watched by ThreadSanitizer.

In: a kernel file with a driver beside it (``<op>_threads.cpp``), as it is or in a wrong variant. Out: ``Outcome``: a
race that was reported, a wrong result, ranks that wait for each other for ever, or nothing.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from opwalker.views.verify.trial import Outcome

#: What the case is called.
CASE = "ranks as threads under ThreadSanitizer"
SUFFIX = "_threads.cpp"
_RACE = "WARNING: ThreadSanitizer: "


def driver(folder: Path, op: str) -> Path | None:
    """The file with the threads, where the op has one."""
    path = folder / f"{op}{SUFFIX}"
    return path if path.is_file() else None


def watched(program: Path, deadline: float) -> Outcome:
    """Runs a program that was built with ThreadSanitizer. ``deadline`` is in seconds."""
    started = time.monotonic()
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1 exitcode=66"}
    try:
        done = subprocess.run(
            [str(program)], capture_output=True, encoding="utf-8", errors="replace", timeout=deadline, env=environment,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        reason = f"the threads do not come to an end within {deadline:g} s: they wait for each other"
        return Outcome(reasons=(reason,), seconds=deadline)
    seconds = time.monotonic() - started
    if done.returncode == 0:
        return Outcome(seconds=seconds)
    said = [line.strip() for line in done.stderr.splitlines() if line.strip(" =")]
    if "FATAL: ThreadSanitizer" in done.stderr:
        return Outcome(not_run=f"ThreadSanitizer does not run here: {said[0]}", seconds=seconds)
    reason = _race(said) or f"exit code {done.returncode}: {said[0] if said else 'no word'}"
    return Outcome(reasons=(reason,), seconds=seconds)


def _race(said: list[str]) -> str | None:
    """What two accesses the checker reports, and in which functions."""
    first = next((number for number, line in enumerate(said) if line.startswith(_RACE)), None)
    if first is None:
        return None
    what = said[first].removeprefix(_RACE).partition(" (pid")[0]
    sides = []
    for number, line in enumerate(said[first + 1 :], start=first + 1):
        if " of size " in line and number + 1 < len(said):
            kind = line.removeprefix("Previous ").partition(" of size ")[0].lower()
            function = said[number + 1].removeprefix("#0 ").partition("(")[0].removeprefix("void ").partition("<")[0]
            sides.append(f"a {kind} in {function.strip()}")
    return f"ThreadSanitizer reports a {what}: {' and '.join(sides[:2])}"
