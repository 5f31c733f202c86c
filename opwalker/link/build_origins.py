"""What a build fetches and generates: code of its libraries that is not in the source.

In: the commands of CMake files. Out: ``BuildOrigins``: other repositories that a file declares, scripts that it runs,
and the words of the file, by which a library that it names is found. Nothing is evaluated but plain ``set`` commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from opwalker.model.audit import Provenance
from opwalker.model.build import BuildCommand
from opwalker.model.places import Span

_FETCHING = ("fetchcontent_declare", "externalproject_add", "cpmaddpackage")
_RUNNING = ("execute_process", "add_custom_command", "add_custom_target")
_REPOSITORY = ("GIT_REPOSITORY", "GITHUB_REPOSITORY", "URL")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class BuildOrigins:
    """``fetched`` and ``generators`` in the order of the files; ``words`` are those of each file that fetches."""

    fetched: tuple[Provenance, ...] = ()
    generators: tuple[Provenance, ...] = ()
    words: tuple[tuple[str, frozenset[str]], ...] = ()

    def naming(self, word: str) -> tuple[Provenance, ...]:
        """The repositories that are declared in files which name ``word``."""
        files = {file for file, words in self.words if word in words}
        return tuple(one for one in self.fetched if one.span is not None and one.span.file in files)

    def mentioned(self, text: str) -> tuple[Provenance, ...]:
        """The repositories whose folder a path names, as in ``${flashmla_SOURCE_DIR}/csrc/a.cu``."""
        folded = text.lower()
        return tuple(one for one in self.fetched if any(f"{name.lower()}_source_dir" in folded for name in one.makes))

    def generator_before(self, file: str, line: int) -> Provenance | None:
        """The script that a file runs last before a line."""
        before = [g for g in self.generators if g.span is not None and g.span.file == file and g.span.line < line]
        return before[-1] if before else None


def read_origins(files: Mapping[str, Iterable[BuildCommand]]) -> BuildOrigins:
    """What the CMake files of a tree fetch and generate."""
    fetched: dict[str, Provenance] = {}
    generators: list[Provenance] = []
    words: list[tuple[str, frozenset[str]]] = []
    for path in sorted(files):
        commands = list(_flat(files[path]))
        variables: dict[str, str] = {}
        here: list[Provenance] = []
        for command in commands:
            texts = [argument.text for argument in command.arguments]
            if command.name == "set" and len(texts) == 2:
                variables[texts[0]] = texts[1]
            elif command.name in _FETCHING and texts:
                here.append(_declared(texts, Span(path, command.line, command.line)))
            elif command.name in _RUNNING:
                script = next((found for text in texts if (found := _script(text, variables))), None)
                if script is not None:
                    generators.append(Provenance("generated", script, Span(path, command.line, command.line)))
        for one in here:
            known = fetched.get(one.makes[0])
            if known is None or "/" not in known.name:
                fetched[one.makes[0]] = one
        if here:
            said = frozenset(word for c in commands for a in c.arguments for word in _WORD.findall(a.text))
            words.append((path, said))
    return BuildOrigins(tuple(fetched.values()), tuple(generators), tuple(words))


def _flat(commands: Iterable[BuildCommand]) -> Iterator[BuildCommand]:
    for command in commands:
        yield command
        yield from _flat(command.body)


def _declared(texts: list[str], span: Span) -> Provenance:
    """A declared project: its repository where one is written, else the name it has here."""
    for option, value in pairwise(texts):
        if option in _REPOSITORY and "$" not in value:
            # The address without its protocol: what people call a repository.
            return Provenance("fetched", re.sub(r"^\w+://|\.git$", "", value), span, (texts[0],))
    return Provenance("fetched", texts[0], span, (texts[0],))


def _script(text: str, variables: Mapping[str, str]) -> str | None:
    """The Python script that an argument names, as a path below the file's folder or the root."""
    filled = _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)
    if not filled.endswith(".py"):
        return None
    return re.sub(r"^(?:\$\{\w+\}/)+", "", filled)
