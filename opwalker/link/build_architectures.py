"""The CUDA architectures that build files name.

In: commands of CMake files, texts of Python files. Out: architectures as they are spelt, in order of appearance.
Nothing is evaluated: an architecture counts wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from opwalker.model.build import BuildCommand
from opwalker.notation.regex import Regex

#: A spelling of CUDA architectures: "9.0a", "8.0+PTX", "90a", "90-real".
_DOTTED = Regex(r"(?:[5-9]|1\d)\.\d[af]?(?:\+PTX)?\Z")
_WHOLE = Regex(r"(?:[5-9]\d|1\d\d)[af]?(?:-real|-virtual)?\Z")
_GENCODE = Regex(r"arch=compute_(\d{2,3}[af]?)")
_ABOUT_ARCHITECTURES = Regex(r"(?<!HIP_)(?<!ROCM_)ARCH", re.IGNORECASE)


def architectures_of(commands: Iterable[BuildCommand]) -> list[str]:
    """The CUDA architectures that commands name, in order: in lists whose command or variable is about them."""
    found: list[str] = []
    for command in commands:
        if command.name not in ("if", "elseif", "while"):
            found.extend(_architectures_in(command))
        if command.body:
            found.extend(architectures_of(command.body))
    return list(dict.fromkeys(found))


def _architectures_in(command: BuildCommand) -> list[str]:
    texts = [argument.text for argument in command.arguments]
    found = [name for text in texts for name in _GENCODE.findall(text)]
    if any(_ABOUT_ARCHITECTURES.search(text) for text in (command.name, *texts)):
        for text in texts:
            elements = [element for element in text.split(";") if element]
            if elements and all(_DOTTED.match(element) or _WHOLE.match(element) for element in elements):
                found.extend(elements)
    return found


_QUOTED = Regex(r"""(?<![\w(=<>!])\s*["']([0-9][0-9afPTX.+;, -]*)["']""")


def architectures_in_text(text: str) -> list[str]:
    """The architectures that a Python build file names: in nvcc's flags, and in lists on a line about them."""
    found = _GENCODE.findall(text)
    for line in text.splitlines():
        if _ABOUT_ARCHITECTURES.search(line):
            for listed in _QUOTED.findall(line):
                elements = [element for element in re.split(r"[;,\s]+", listed) if element]
                if all(_DOTTED.match(element) or _WHOLE.match(element) for element in elements):
                    found.extend(elements)
    return list(dict.fromkeys(found))
