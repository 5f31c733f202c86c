"""Comes in: the options that every command shares. Goes out: a ``Session`` that asks the pipeline and shows the answer.

The signature of ``open_session`` is the definition of the shared options; no command repeats them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TextIO

import typer
from msgspec import Struct

from opwalker.errors import EnvironmentMissing, UsageError
from opwalker.model.build import BUILDS
from opwalker.serve.progress import Progress

_DEFINE = re.compile(r"[A-Za-z_]\w*")
_ARCH = re.compile(r"\d+\.\d+[af]?|gfx[0-9a-f]+")
_SM = re.compile(r"(?:(?:sm|compute)_?)?(\d+)(\d)([af]?)")


class Session(Struct, frozen=True):
    """One call of the program: what was asked of which source, and how the answer is to look."""

    source: str | None
    build: str
    defines: tuple[tuple[str, str | None], ...]
    archs: tuple[str, ...]
    jobs: int | None
    cache: Path | None
    as_json: bool
    no_color: bool
    progress: Progress

    def ask(self, verb: Callable[[ModuleType], Callable[..., Any]], *arguments: object, **settings: object) -> Any:
        """Calls the pipeline's function that ``verb`` picks, with the options, a progress bar and a voice."""
        from opwalker import pipeline

        options = pipeline.Options(
            source=self.source,
            build=self.build,
            defines=self.defines,
            archs=self.archs,
            jobs=self.jobs,
            cache=self.cache,
        )
        try:
            return verb(pipeline)(options, *arguments, progress=self.progress, say=self.progress.say, **settings)
        finally:
            self.progress.close()

    def show(self, result: object, asked: str = "", *, instances: bool = False) -> None:
        """Writes a result to stdout. ``asked`` says in words what an empty answer was looking for; ``instances`` lists
        each template instance in the text form, which otherwise says how many there are."""
        if self.as_json:
            self.show_json(result)
            return
        from opwalker.serve.render.text import write_text
        from opwalker.serve.render.words import Reading

        terminal = is_terminal(sys.stdout)
        width = shutil.get_terminal_size((100, 24)).columns if terminal else None
        colour = terminal and not self.no_color
        reading = Reading(build=self.build, asked=asked, instances=instances)
        _written(lambda: write_text(result, reading, sys.stdout, width=width, colour=colour))

    def write(self, text: str) -> None:
        """Writes a text to stdout as it is, in UTF-8."""
        _written(lambda: _write_bytes(text.encode("utf-8", "replace")))

    def show_json(self, result: object, *, indent: int | None = None) -> None:
        """Writes a result to stdout as one JSON document."""
        from opwalker.serve.render.json import to_json

        document = to_json(result, indent=indent)
        _written(lambda: _write_bytes(document))


def open_session(
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            "-s",
            metavar="SRC",
            help="A folder, a .tar.gz, .whl or .zip file, a git revision, or NAME==VERSION. "
            "Default: the repository around here.",
        ),
    ] = None,
    build: Annotated[
        str, typer.Option("--build", metavar="|".join(BUILDS), help="The kind of build to read for.")
    ] = BUILDS[0],
    define: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="A macro that the build sets. Repeatable."),
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option(
            "--arch", metavar="ARCH", help="An architecture to read for, as 9.0a. Repeatable, or with commas."
        ),
    ] = None,
    jobs: Annotated[
        str | None,
        typer.Option("--jobs", "-j", metavar="N", help="Worker processes. Default: one a core."),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option("--cache", metavar="DIR", help="The cache folder. Default: $OPWALKER_CACHE, or the user's."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours, also on a terminal.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
) -> Session:
    """The session that these options describe; UsageError where one is malformed. ``debug`` acts in ``main``."""
    plain = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Session(
        source=source,
        build=one_of(build, BUILDS, "--build"),
        defines=tuple(_define(text) for text in define or ()),
        archs=tuple(dict.fromkeys(_arch(text) for joined in arch or () for text in joined.split(","))),
        jobs=_count(jobs),
        cache=Path(cache).expanduser() if cache else None,
        as_json=as_json,
        no_color=plain,
        progress=Progress(shown=is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb", no_color=plain),
    )


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is there and is a terminal."""
    return stream is not None and stream.isatty()


def one_of(word: str, words: Sequence[str], what: str) -> str:
    """``word`` if it is one of ``words``; otherwise a UsageError that names them."""
    if word in words:
        return word
    raise UsageError(f"{what} {word!r} is not known", f"choose from {', '.join(words)}")


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(f"--jobs {text!r} is no number of processes", "give a whole number from 1 on")
    return int(text)


def _define(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not _DEFINE.fullmatch(name):
        raise UsageError(f"--define {text}: {name!r} is no macro name", "write --define NAME or --define NAME=VALUE")
    return name, value if equals else None


def _arch(text: str) -> str:
    """An architecture as build files spell it: ``sm_90a``, ``90a`` and ``9.0a`` are the same."""
    bare = text.strip().lower()
    known = _SM.fullmatch(bare)
    if known:
        return f"{known[1]}.{known[2]}{known[3]}"
    if not _ARCH.fullmatch(bare):
        raise UsageError(f"--arch {text!r} is no architecture", "write it as 9.0a, sm_90a or gfx942")
    return bare


def _write_bytes(document: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(document)


def _written(write: Callable[[], None]) -> None:
    """Writes and flushes. A reader that has left (``| head``) has what it wanted; any other failure is said."""
    if sys.stdout is None:
        raise EnvironmentMissing("cannot write the answer: stdout is closed")
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_stdout()
    except OSError as error:
        _leave_stdout()
        raise EnvironmentMissing(f"cannot write the answer: {(error.strerror or str(error)).lower()}") from error


def _leave_stdout() -> None:
    """Points stdout at nothing, so that the interpreter's own flush at the end does not fail once more."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
