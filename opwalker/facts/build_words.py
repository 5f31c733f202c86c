"""Whether a Python text has to do with building extensions, and which modules it may build: asked of every file, so it
only looks for words.

In: a text. Out: a yes or no, and names. A yes costs a closer look and is never an answer by itself.
"""

from __future__ import annotations

from opwalker.notation.regex import Regex

#: Names that are given to extensions: in their calls, as a keyword, or held in a variable that is called a name.
_NAMED = Regex(
    r"(?:[Ee]xtension|\bload|\bload_inline)\(\s*(?:name\s*=\s*)?['\"]([A-Za-z_][\w.]*)['\"]"
    r"|\b\w*(?:name|NAME)\s*=\s*['\"]([A-Za-z_][\w.]*)['\"]"
)
_FLAG = Regex(r"(?<=[\"'\s])-D([A-Za-z_]\w*)")


def makes_extensions(text: str) -> bool:
    """True if a Python text may compile C++ or CUDA sources. Cheap, so that every file can be asked.

    It does if it uses torch's build helpers, makes an extension, or hands a list of sources on.
    """
    return "cpp_extension" in text or "Extension(" in text or _hands_on_sources(text)


def extension_names(text: str) -> tuple[str, ...]:
    """The modules that a text which makes extensions may build, by name. Names of other things may be among them."""
    found = (match.group(1) or match.group(2) for match in _NAMED.finditer(text))
    return tuple(sorted(set(found)))


def flag_macros(text: str) -> frozenset[str]:
    """The macros that flags in a Python text set, whoever is given the flags: ``NAME`` of ``"-DNAME=1"``."""
    return frozenset(_FLAG.findall(text)) if "-D" in text else frozenset()


def _hands_on_sources(text: str) -> bool:
    # A search for the bare word is many times faster than a regular expression over all the text.
    at = text.find("sources")
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + 7 : at + 9].lstrip(" ")
        if not (before.isalnum() or before == "_") and behind[:1] in ("=", "("):
            return True
        at = text.find("sources", at + 7)
    return False
