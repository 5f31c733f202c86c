"""The cache folder: where it is, and what to say when it cannot be written.

In: the environment. Out: a path, or the error that names the folder and the variable to set. It does not decide what
lies in the cache: each stage owns a subfolder.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from opwalker.errors import EnvironmentMissing, OpwalkerError

VARIABLE = "OPWALKER_CACHE"

_FULL = {errno.ENOSPC, errno.EDQUOT}


def cache_root() -> Path:
    """The cache folder of this user (it may not exist yet): ``$OPWALKER_CACHE``, else the platform's user cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(os.path.abspath(os.path.expanduser(named)))
    if sys.platform.startswith("linux"):
        # What platformdirs computes on Linux, without the 2 ms of importing it on every warm start.
        base = os.environ.get("XDG_CACHE_HOME", "")
        return Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "opwalker"
    from platformdirs import user_cache_path

    return user_cache_path("opwalker", appauthor=False)


def make_folder(folder: Path) -> None:
    """Make ``folder`` and its parents; EnvironmentMissing when that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, folder) from error


def write_error(error: OSError, folder: Path | str) -> OpwalkerError:
    """The error for a failed write below ``folder``: a full disk and a folder without write access read differently."""
    if error.errno in _FULL:
        return EnvironmentMissing(
            f"no room left on the disk that holds {folder}",
            f"free some room, or set {VARIABLE} to a folder on another disk",
        )
    reason = (error.strerror or str(error)).lower()
    return EnvironmentMissing(
        f"cannot write to the cache folder {folder}: {reason}",
        f"set {VARIABLE} to a folder that can be written",
    )
