"""What a build fetches and generates: code of its libraries that is not in the source.

In: the commands of CMake files. Out: ``BuildOrigins``: other repositories that a file declares, scripts that it runs,
and the words of the file, by which a library that it names is found. Nothing is evaluated but plain ``set`` commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from opwalker.model.audit import Provenance
from opwalker.model.build import BuildCommand
from opwalker.model.places import Span
from opwalker.notation.regex import Regex

_FETCHING = ("fetchcontent_declare", "fetchcontent_populate", "externalproject_add", "cpmaddpackage")
_RUNNING = ("execute_process", "add_custom_command", "add_custom_target")
_REPOSITORY = ("GIT_REPOSITORY", "GITHUB_REPOSITORY", "URL")
_VARIABLE = Regex(r"\$\{(\w+)\}")
MAX_DEPTH = 4


class BuildOrigins(Struct, frozen=True):
    """``fetched`` and ``generators`` in the order of the files; ``texts`` the arguments of files that fetch."""

    fetched: tuple[Provenance, ...] = ()
    generators: tuple[Provenance, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()

    def naming(self, library: str) -> tuple[Provenance, ...]:
        """The repositories of the files that name a library: by its name, better by its folder as well."""
        folder, _, file = library.rpartition("/")
        stem = re.compile(rf"(?<!\w){re.escape(file.split('.', 1)[0])}(?!\w)")
        naming = [(path, text) for path, text in self.texts if stem.search(text)]
        # Two folders or more say where a library goes; one alone is the package, which every file names.
        placed = [path for path, text in naming if "/" in folder and folder in text]
        files = placed or [path for path, _ in naming if len(stem.pattern) > _SHORT]
        return tuple(one for one in self.fetched if one.span is not None and one.span.file in files)

    def mentioned(self, text: str) -> tuple[Provenance, ...]:
        """The repositories whose folder a path names, as in ``${flashmla_SOURCE_DIR}/csrc/a.cu``."""
        folded = text.lower()
        marks = ("_source_dir", "-src/")
        return tuple(one for one in self.fetched if any(f"{one.makes[0].lower()}{mark}" in folded for mark in marks))

    def generator_before(self, file: str, line: int) -> Provenance | None:
        """The script that a file runs last before a line."""
        before = [g for g in self.generators if g.span is not None and g.span.file == file and g.span.line < line]
        return before[-1] if before else None


#: The length of the pattern for a name of three letters: one as short as ``_C`` says nothing without its folder.
_SHORT = len(r"(?<!\w)_C_(?!\w)")


def read_origins(files: Mapping[str, Iterable[BuildCommand]]) -> BuildOrigins:
    """What the CMake files of a tree fetch and generate."""
    fetched: dict[str, Provenance] = {}
    generators: list[Provenance] = []
    texts: list[tuple[str, str]] = []
    for path in sorted(files):
        commands = list(_flat(files[path]))
        variables: dict[str, str] = {}
        here: list[Provenance] = []
        for command in commands:
            words = [argument.text for argument in command.arguments]
            span = Span(path, command.line, command.line)
            if command.name == "set" and len(words) == 2:
                variables[words[0]] = words[1]
            elif command.name in _FETCHING and words:
                here.append(_declared([_filled(word, variables) for word in words], span))
            elif command.name in _RUNNING:
                script = next((found for word in words if (found := _script(_filled(word, variables)))), None)
                if script is not None:
                    generators.append(Provenance("generated", script, span))
        for one in here:
            known = fetched.get(one.makes[0])
            if known is None or "/" not in known.name:
                fetched[one.makes[0]] = one
        if here:
            texts.append((path, "\n".join(argument.text for c in commands for argument in c.arguments)))
    return BuildOrigins(tuple(fetched.values()), tuple(generators), tuple(texts))


def _flat(commands: Iterable[BuildCommand]) -> Iterator[BuildCommand]:
    for command in commands:
        yield command
        yield from _flat(command.body)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    """A text with the variables that were set in the same file, as far as they are plain texts."""
    for _ in range(MAX_DEPTH):
        filled = _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)
        if filled == text or len(filled) > 4096:
            break
        text = filled
    return text


def _declared(words: list[str], span: Span) -> Provenance:
    """A declared project: its repository where one is written, else the name it has here."""
    for option, value in pairwise(words):
        if option in _REPOSITORY and "$" not in value:
            # The address without its protocol: what people call a repository.
            return Provenance("fetched", re.sub(r"^\w+://|\.git$", "", value), span, (words[0],))
    return Provenance("fetched", words[0], span, (words[0],))


def _script(text: str) -> str | None:
    """The Python script that an argument names, as a path below the file's folder or the root."""
    return re.sub(r"^(?:\$\{\w+\}/)+", "", text) if text.endswith(".py") else None
