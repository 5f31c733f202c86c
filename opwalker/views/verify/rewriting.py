"""CUDA source rewritten so that a C++ compiler takes it: launches, shared memory, includes.

In: a file's text. Out: the text with the same lines, for the headers in ``emulation/`` beside this module. What stands
where is read with the program's own parser; a launch inside a macro's body is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.facts.cpp_body import read_body
from opwalker.facts.cpp_scan import scan
from opwalker.facts.cpp_text import blank
from opwalker.model.body import LaunchFact, LocalFact, Span2
from opwalker.model.source import SourceFile
from opwalker.notation.regex import Regex

_SYSTEM_INCLUDE = Regex(r"^[ \t]*#[ \t]*include[ \t]*<(?:cuda|torch/)[^>\n]*>", re.MULTILINE)
_SPECIFIER = Regex(r"\b(?:extern|__shared__|(?:__align__|alignas)\s*\([^()]*\))\s*")

Edit = tuple[int, int, str]


def rewritten(source: SourceFile) -> str:
    """The text for a C++ compiler."""
    text = source.text
    edits = [(found.start(), found.end(), "") for found in _SYSTEM_INCLUDE.finditer(text)]
    plain = blank(text).plain
    for function in scan(source).functions:
        if function.is_definition:
            edits += _body_edits(text, plain, (function.body_start, function.body_end))
    edits.sort()
    pieces, at = [], 0
    for start, end, new in edits:
        if start < at:
            continue  # inside one that was replaced as a whole
        pieces += [text[at:start], new, "\n" * (text.count("\n", start, end) - new.count("\n"))]
        at = end
    return "".join([*pieces, text[at:]])


def _body_edits(text: str, plain: str, span: Span2) -> Iterator[Edit]:
    first, end = span
    facts = read_body(_ascii(plain[first:end]))
    for launch in facts.launches:
        yield _launch(text, launch, first)
    for local in facts.locals:
        if "__shared__" in local.type:
            yield _shared(plain, local, first)


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode("ascii")


def _launch(text: str, launch: LaunchFact, first: int) -> Edit:
    """``k<T><<<g, b>>>(`` → ``cuda_on_cpu::launch(cuda_on_cpu::Configuration(g, b), k<T>)(``."""
    kernel = text[first + launch.kernel[0] : first + launch.kernel[1]]
    inside = text[first + launch.configuration[0][0] : first + launch.configuration[-1][1]]
    end = text.index(">>>", first + launch.configuration[-1][1]) + 3
    made = f"::cuda_on_cpu::launch(::cuda_on_cpu::Configuration({inside}), {kernel})"
    return first + launch.start, end, made


def _shared(plain: str, local: LocalFact, first: int) -> Edit:
    """A block's own memory: dynamic memory is a pointer to it, a variable is poisoned when a block meets it."""
    name = first + local.start
    end = plain.index(";", name) + 1
    if "extern" not in local.type:
        return end, end, f" ::cuda_on_cpu::block.meet(&{local.name}, sizeof({local.name}));"
    start = max(plain.rfind(mark, 0, name) for mark in ";{}") + 1
    start += len(plain[start:name]) - len(plain[start:name].lstrip())
    element = _SPECIFIER.sub("", plain[start:name]).strip()
    made = f"{element}* {local.name} = static_cast<{element}*>(::cuda_on_cpu::block.dynamic_shared());"
    return start, end, made
