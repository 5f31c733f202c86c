"""Whether a Python text has to do with building extensions: asked of every file, so it only looks for words.

In: a text. Out: a yes or no. A yes costs a closer look and is never an answer by itself.
"""

from __future__ import annotations


def makes_extensions(text: str) -> bool:
    """True if a Python text may compile C++ or CUDA sources. Cheap, so that every file can be asked.

    It does if it uses torch's build helpers, makes an extension, or hands a list of sources on.
    """
    return "cpp_extension" in text or "Extension(" in text or _hands_on_sources(text)


def _hands_on_sources(text: str) -> bool:
    # A search for the bare word is many times faster than a regular expression over all the text.
    at = text.find("sources")
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + 7 : at + 9].lstrip(" ")
        if not (before.isalnum() or before == "_") and behind[:1] in ("=", "("):
            return True
        at = text.find("sources", at + 7)
    return False
