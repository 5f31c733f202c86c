"""Flags of any compiler call, translated into what clang takes to read the same unit for its host code.

In: the arguments of nvcc, hipcc, g++ or clang. Out: macros, include folders, forced includes and the language standard
as clang spells them. All else (architectures, optimisation, warnings, output, linking) says nothing about what the
source means and is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from opwalker.notation.regex import Regex

#: Other spellings of the flags that are kept.
_LONG = {
    "--define-macro": "-D",
    "--undefine-macro": "-U",
    "--include-path": "-I",
    "--system-include": "-isystem",
    "--pre-include": "-include",
    "--std": "-std",
}
#: Flags whose value is a folder or a file.
_PATHS = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
_KEPT = (*_PATHS, "-D", "-U", "-std")

#: Flags that take the next word as their value and are dropped with it, so that it is not read as something else.
_DROPPED_WITH_VALUE = frozenset(
    "-o -x -gencode --generate-code -arch --gpu-architecture -code --gpu-code -ccbin --compiler-bindir -MF -MT -MQ "
    "-Xptxas --ptxas-options -Xlinker --linker-options -Xcudafe -Xfatbin -Xarchive -Xnvlink -odir --output-directory "
    "-maxrregcount --maxrregcount -t --threads -L --library-path -l --library -diag-suppress --diag-suppress "
    "-Xarch_host -Xarch_device -Xclang -mllvm -rdc -target -arch-version -options-file --options-file".split()
)
#: Flags that hand words to the host compiler, separated by commas.
_HANDS_ON = ("-Xcompiler", "--compiler-options")

_STANDARD = Regex(r"(?:c|gnu)\+\+\w+")


def translated(arguments: Sequence[str], directory: str) -> tuple[str, ...]:
    """The arguments that say what a unit means, each flag joined to its value by ``=`` or none as clang wants it;
    relative paths are made absolute from ``directory``. Folders that are not there are left out."""
    found: list[str] = []
    for flag, value in _flags(arguments):
        if flag in _PATHS:
            path = os.path.normpath(os.path.join(directory, value))
            if os.path.exists(path):
                found += [flag, path]
        elif flag == "-std":
            if _STANDARD.fullmatch(value):
                found.append(f"-std={value}")
        else:
            found.append(flag + value)
    return tuple(found)


def _flags(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``(flag, value)`` of those that are kept."""
    words = list(arguments)
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, value = word.partition("=")
        following = words[at] if at < len(words) else None
        if name in _HANDS_ON:
            if not equals and following is not None:
                value = following
                at += 1
            yield from _flags([piece.strip("'\"") for piece in value.split(",")])
            continue
        if name in _LONG or name in _PATHS or word in ("-D", "-U", "-std"):
            flag = _LONG.get(name, name)
            if not equals:
                if following is None:
                    return
                value = following
                at += 1
            yield flag, value
            continue
        if word in _DROPPED_WITH_VALUE:
            at += 1
            continue
        for flag in _KEPT:
            if word.startswith(flag) and len(word) > len(flag):
                yield flag, word[len(flag) :].lstrip("=") if flag in (*_PATHS, "-std") else word[len(flag) :]
                break
