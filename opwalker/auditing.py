"""A build and its source brought together: the libraries found, read, and set beside what the source says.

In: a session that has the source open, and what names the libraries. Out: ``AuditResult``. What was read of a library
is kept with the answers about the source, under the library's contents and
what there is to unpack it with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from opwalker.asking import Session
from opwalker.errors import InputError
from opwalker.model.audit import AuditResult, UnreadLibrary
from opwalker.model.binary import LibraryFacts
from opwalker.model.places import Gap, Span
from opwalker.model.walk import KernelsResult
from opwalker.source.cache import cache_root
from opwalker.source.libraries import LibraryFile, find_libraries
from opwalker.source.versions import parse_spec


def released(names: Sequence[str]) -> tuple[str, str] | None:
    """Name and version, where one released package is all that the libraries are named by."""
    return parse_spec(names[0]) if len(names) == 1 and not Path(names[0]).exists() else None


def audit_session(
    session: Session, names: Sequence[str], machine: str, all_kernels: Callable[[], KernelsResult]
) -> AuditResult:
    """The audit of the libraries that ``names`` are: a released package, or files, wheels and folders.

    ``all_kernels`` gives the kernels of the source; it is asked only where a library has device code to compare with.
    """
    from msgspec.structs import replace

    from opwalker.views.audit.lookup import SourceText
    from opwalker.views.audit.side import SourceSide
    from opwalker.views.audit.whole import SourceAnswers, audit

    wheels = _wheels(session, names, machine)
    files = find_libraries([str(wheel) for wheel in wheels] or list(names))
    if not files:
        held = ", ".join(wheel.name for wheel in wheels) or ", ".join(names)
        raise InputError(
            f"no shared library is in {held}", "a package may compile its kernels when they are first used"
        )
    libraries, unread = _read_all(session, files)
    index = session.workbench.index
    side = SourceSide(session.builds, _origins(session), session.options.build, libraries, index.paths, index.closure)
    table = session.ops()
    kernels = all_kernels().kernels if any(library.device_code for library in libraries) else ()
    answers = SourceAnswers(table.ops, kernels, session.builds.architectures, _build_gaps(session))
    result = audit(
        session.source,
        side,
        answers,
        libraries,
        {file.called: file.also for file in files},
        SourceText(index, session.known, session.text),
    )
    archives = [file.place.name for file in files if file.member is not None]
    return replace(result, wheels=tuple(dict.fromkeys(archives)), unread=unread)


def _wheels(session: Session, names: Sequence[str], machine: str) -> list[Path]:
    package = released(names)
    if package is None:
        return []
    from opwalker.source.fetch import fetch_wheels

    if session.options.source == names[0] and session.root.note:
        raise InputError(
            f"{names[0]} was released without its sources", "name them: opwalker audit NAME==VERSION --source DIR"
        )
    return fetch_wheels(*package, session.options.cache or cache_root(), session.progress, machine)


def _read_all(session: Session, files: Sequence[LibraryFile]) -> tuple[list[LibraryFacts], tuple[UnreadLibrary, ...]]:
    """The libraries, and those of a folder or a wheel that cannot be read. InputError for one that the user named, or
    where none is left."""
    libraries: list[LibraryFacts] = []
    unread: list[UnreadLibrary] = []
    for number, file in enumerate(files):
        try:
            libraries.append(_read(session, file, number, len(files)))
        except InputError as error:
            if file.named or len(files) == 1:
                raise
            unread.append(UnreadLibrary(file.called, error.message))
    if not libraries:
        raise InputError(f"no library can be read: {unread[0].reason}")
    return libraries, tuple(unread)


def _read(session: Session, file: LibraryFile, number: int, total: int) -> LibraryFacts:
    from msgspec.structs import replace

    from opwalker.binary.fatbin import unpackers
    from opwalker.binary.read import read_file

    key = f"library|{file.key}|{unpackers()}"
    known = session.recall(key, LibraryFacts)
    if known is not None:
        return replace(known, path=file.called)
    if session.progress is not None:
        session.progress(number, total, f"reading {file.called}")
    with file.on_disk(session.options.cache or cache_root(), session.progress) as path:
        facts = read_file(path, file.called)
    session.keep(key, facts)
    return facts


def _origins(session: Session):
    """What the CMake files of the tree fetch and generate."""
    from opwalker.facts.build_files import build_language, read_build_file
    from opwalker.link.build_origins import read_origins

    found = {}
    for path in sorted(session.known):
        if build_language(path) == "cmake":
            made = read_build_file(path, session.text(path))
            if made is not None:
                found[path] = made.commands
    return read_origins(found)


def _build_gaps(session: Session) -> tuple[Gap, ...]:
    return tuple(
        Gap("build", Span(one.file, one.problem.line, one.problem.line), one.problem.message)
        for one in session.builds.problems
    )
