"""Registrations counted without opwalker: comments cut out, blocks found by regular expressions and brackets.

It sees less than a parser does (no macros, no helpers) and nothing of what opwalker thinks: so it is a second opinion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)
_BLOCK = re.compile(
    r"^[ \t]*(?:STABLE_)?TORCH_LIBRARY(?:_EXPAND|_FRAGMENT|_FRAGMENT_EXPAND)?\s*"
    r"\(\s*((?:[^(),]|\([^()]*\))+?)\s*,\s*(\w+)\s*\)\s*\{",
    re.M,
)
_PYBIND = re.compile(r"^[ \t]*PYBIND11_MODULE\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*\{", re.M)
_OLD_STYLE = re.compile(r'\.\s*op\s*\(\s*"([\w:]+)')


def uncommented(text: str) -> str:
    """The text without comments; strings stay."""
    return _COMMENT.sub(lambda found: found[1] or " ", text)


def _block(text: str, start: int) -> str:
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[start:at]
    return text[start:]


def _defined(block: str, handle: str) -> Iterator[str]:
    call = rf'\b{handle}\s*\.\s*def\s*\(\s*(?:\w+\s*\(\s*)?(?:R"\(|")\s*([\w.:]+)'
    yield from re.findall(call, block)


def library_ops(root: Path) -> set[str]:
    """``namespace::name`` of every op that a ``TORCH_LIBRARY`` block or ``RegisterOperators`` defines literally."""
    found = set()
    for text in _sources(root):
        for head in _BLOCK.finditer(text):
            for name in _defined(_block(text, head.end()), head[2]):
                found.add(name if "::" in name else f"{head[1]}::{name}")
        if "RegisterOperators" in text:
            found |= set(_OLD_STYLE.findall(text))
    return found


def pybind_functions(root: Path) -> set[str]:
    """The names that ``m.def`` gives in ``PYBIND11_MODULE`` blocks."""
    found = set()
    for text in _sources(root):
        for head in _PYBIND.finditer(text):
            found |= set(_defined(_block(text, head.end()), head[2]))
    return found


def _sources(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        if path.suffix in (".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp", ".inl", ".inc"):
            yield uncommented(path.read_text(encoding="utf-8", errors="replace"))


def kernels(root: Path) -> set[str]:
    """The names of all ``__global__`` functions whose head stands in the text as it is."""
    head = re.compile(r"\b__global__\b[^;{]*?\b(\w+)\s*\((?=[^;{]*\)\s*\{)")
    bounds = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)")
    return {name for text in _sources(root) for name in head.findall(bounds.sub("", text))}


def helper_ops(root: Path, helper: str) -> set[str]:
    """The literal ``op_name`` of every call of a registration helper in Python."""
    call = re.compile(rf'\b{helper}\s*\(\s*(?:op_name\s*=\s*)?"(\w+)"')
    found = set()
    for path in sorted(root.rglob("*.py")):
        found |= set(call.findall(path.read_text(encoding="utf-8", errors="replace")))
    return found
