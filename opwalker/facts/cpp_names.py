"""Heads that name types: aliases of every form, and the heads of classes.

In: a declaration's text, templates stripped. Out: plain tuples; ``cpp_declarations`` gives them places.
"""

from __future__ import annotations

import re

from opwalker.facts.cpp_brackets import flat, match_angle, split_commas

_USING = re.compile(r"using\s+([A-Za-z_]\w*)\s*(?:\[\[[^\]]*\]\]\s*)?=\s*(.*)\Z", re.DOTALL)
_USING_NAMESPACE = re.compile(r"using\s+namespace\s+([\w:\s]+)\Z")
_USING_NAME = re.compile(r"using\s+(?:typename\s+)?([\w:\s<>,]+)\Z")
_NAMESPACE_ALIAS = re.compile(r"namespace\s+(\w+)\s*=\s*([\w:\s]+)\Z")
_TYPEDEF = re.compile(r"typedef\s+(.*?)([A-Za-z_]\w*)\s*((?:\[[^\]]*\])*)\Z", re.DOTALL)
_POINTER_TYPEDEF = re.compile(r"typedef\s+(.*?\(\s*[\w:]*\*\s*)([A-Za-z_]\w*)(\s*\).*)\Z", re.DOTALL)


def alias_of(core: str) -> tuple[str, str, str] | None:
    """``(kind, name, target)`` of a using, typedef or namespace alias; None for anything else."""
    if core.startswith("using"):
        if match := _USING.match(core):
            return "type", match.group(1), match.group(2)
        if match := _USING_NAMESPACE.match(core):
            return "directive", "", match.group(1)
        if match := _USING_NAME.match(core):
            target = match.group(1)
            return "using", target.split("<")[0].split("::")[-1].strip(), target
    elif core.startswith("namespace"):
        if match := _NAMESPACE_ALIAS.match(core):
            return "namespace", match.group(1), match.group(2)
    elif core.startswith("typedef"):
        if match := _POINTER_TYPEDEF.match(core):
            return "type", match.group(2), match.group(1) + match.group(3)
        if match := _TYPEDEF.match(core):
            return "type", match.group(2), match.group(1) + match.group(3)
    return None


def class_head(core: str, kind: str) -> tuple[str, str | None, tuple[str, ...]] | None:
    text = core[core.index(kind) + len(kind) :]
    text = re.sub(
        r"\b(?:alignas|__align__|__attribute__|__declspec)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", " ", text
    )
    text = re.sub(r"\[\[[^\]]*\]\]", " ", text).strip()
    bases: tuple[str, ...] = ()
    colon = re.search(r"(?<!:):(?!:)", flat(text))
    if colon:
        bases = tuple(
            " ".join(re.sub(r"\b(?:public|private|protected|virtual)\b", "", text[a:b]).split())
            for a, b in split_commas(text, colon.end())
        )
        text = text[: colon.start()].rstrip()
    text = re.sub(r"\bfinal\s*\Z", "", text).rstrip()
    specialisation = None
    if text.endswith(">"):
        opened = text.find("<")
        if opened < 0 or match_angle(text, opened) != len(text):
            return None
        specialisation = " ".join(text[opened + 1 : -1].split())
        text = text[:opened].rstrip()
    if "(" in text or "=" in text:
        return None
    words = text.split()
    name = words[-1].split("::")[-1] if words else ""
    if words and not re.fullmatch(r"[\w:]+", words[-1]):
        return None
    if len(words) > 2 or (len(words) == 2 and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", words[0])):
        return None  # `struct X f() {` is no class head; one attribute macro before the name is
    return name, specialisation, bases
