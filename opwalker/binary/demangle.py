"""C++ names as people read them.

In: names as a linker has them (``_ZN4vllm…``). Out: names as ``c++filt`` spells them, by the demangler of this
machine's C++ runtime library (``demangler``, a process of its own); and, for names that it does not take, what can be
told without it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from opwalker.errors import EnvironmentMissing

TIMEOUT_SECONDS = 60
#: Names longer than this are not given to the demangler: it needs a stack in proportion.
MAX_NAME = 64 * 1024
#: After so many names that broke it, the rest is left as it is.
MAX_BREAKS = 8


def demangled(names: Iterable[str]) -> dict[str, str]:
    """The names that are C++ names, as they are read. EnvironmentMissing where this machine has no demangler.

    A name at which the demangler breaks is left out, and so is one that is too long for it.
    """
    wanted = [name for name in dict.fromkeys(names) if len(name) <= MAX_NAME and name.isascii() and "\n" not in name]
    found: dict[str, str] = {}
    for _ in range(MAX_BREAKS):
        if not wanted:
            break
        answers = _ask(wanted)
        found.update((name, answer) for name, answer in zip(wanted, answers, strict=False) if answer)
        # All were answered, or the one behind the last answer broke the program.
        wanted = wanted[len(answers) + 1 :]
    return found


def _ask(names: Sequence[str]) -> list[str]:
    """One answer a name, as many as the program gave before it ended."""
    from opwalker.binary import demangler

    # Isolated: the folder that this runs in may be a source that is looked at, and nothing of it is ever imported.
    command = [sys.executable, "-I", str(Path(demangler.__file__))]
    try:
        done = subprocess.run(
            command, input="\n".join(names).encode("ascii"), capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode("utf-8", "replace").split("\n")[:-1]
    if done.returncode == demangler.NO_DEMANGLER:
        raise EnvironmentMissing(
            "no C++ runtime library with a demangler is on this machine", "install libstdc++ (package libstdc++6)"
        )
    return done.stdout.decode("utf-8", "replace").split("\n")[:-1]


_LENGTH = re.compile(r"\d{1,6}")


def outline(symbol: str) -> str:
    """The namespaces and the name of a mangled name, without template arguments: what can be told of one that no
    demangler takes. ``""`` where it does not begin with names."""
    rest = symbol.removeprefix("_Z")
    nested = rest.startswith("N")
    rest = rest[1:].lstrip("VKr") if nested else rest
    parts: list[str] = []
    while (length := _LENGTH.match(rest)) is not None:
        end = length.end() + int(length[0])
        part = rest[length.end() : end]
        rest = rest[end:]
        parts.append("(anonymous namespace)" if part.startswith("_GLOBAL__N_") else part)
        if not nested:
            break
    return "::".join(parts)
