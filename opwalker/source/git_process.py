"""How git is asked: of the repository that a folder lies in, and of no other; nothing that settings name is run.

In: a folder and the words of a command. Out: the words and the environment of a process. What is asked, and what the
answer means, is for others.
"""

from __future__ import annotations

import os

#: Nothing that the repository's own settings name is run, and nothing is fetched; a path that is quoted is plain ASCII.
_QUIET = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never",
    "-c", "core.alternateRefsCommand=", "-c", "core.quotePath=true",
)  # fmt: skip
_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
#: What a hook is run with, and what else says which repository is meant, or changes what git answers.
_OTHERS = frozenset(
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG GIT_DIFF_OPTS GIT_DIR GIT_EXTERNAL_DIFF"
    " GIT_GLOB_PATHSPECS GIT_GRAFT_FILE GIT_ICASE_PATHSPECS GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE"
    " GIT_INTERNAL_SUPER_PREFIX GIT_LITERAL_PATHSPECS GIT_NAMESPACE GIT_NOGLOB_PATHSPECS GIT_NO_REPLACE_OBJECTS"
    " GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_REPLACE_REF_BASE GIT_SHALLOW_FILE GIT_WORK_TREE".split()
)


def command(folder: str, *words: str) -> list[str]:
    """The words of a process that asks git about the repository around a folder."""
    return ["git", "-C", folder, *_QUIET, *words]


def environment() -> dict[str, str]:
    """The environment of such a process."""
    return {name: value for name, value in os.environ.items() if name not in _OTHERS} | _ENVIRONMENT
