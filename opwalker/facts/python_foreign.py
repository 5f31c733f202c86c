"""C functions that Python reaches through ``ctypes``.

In: a file's text with its layout. Out: the exported names that it looks up in a loaded library: ``lib.name(…)``,
``lib["name"]``, ``getattr(lib, "name")``, and tables of names in a file that looks names up by ``getattr``. A name here
is a candidate: only together with an ``extern "C"`` function of that name does it say something.
"""

from __future__ import annotations

from opwalker.facts.python_layout import Layout
from opwalker.facts.python_words import occurrences
from opwalker.model.python import PyForeign
from opwalker.notation.regex import Regex

_LOADER = Regex(r"\b(?:CDLL|WinDLL|OleDLL|PyDLL|LoadLibrary)[ \t]*\(")
_BOUND = Regex(r"[ \t]*((?:self\.|cls\.)?\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=(?!=)")
_USE = Regex(r"\.([A-Za-z_]\w*)|\[[ \t]*[\"'](\w+)[\"'][ \t]*\]")
_GETATTR = Regex(r"\bgetattr\(\s*(?:self\.|cls\.)?\Z")
_NAMED = Regex(r"[ \t]*,[ \t]*[\"'](\w+)[\"']")
#: A row of a table of functions: a record made with the name first.
_ROW = Regex(r"\b[A-Z]\w*\([ \t\r\n]*[\"']([A-Za-z_]\w*)[\"']")
_LOOKED_UP = Regex(r"\bgetattr\(\s*((?:self\.|cls\.)?\w+)\s*,\s*(?![\"'])")
_OWN = frozenset({"argtypes", "restype", "errcheck", "_handle", "_name"})


def may_be_foreign(text: str) -> bool:
    """Whether a text loads a C library at all."""
    return "CDLL(" in text or "LoadLibrary(" in text or "PyDLL(" in text


def foreign_names(layout: Layout) -> tuple[PyForeign, ...]:
    """The C names that a file looks up, in source order."""
    text = layout.text
    if not may_be_foreign(text):
        return ()
    found: dict[tuple[int, str], PyForeign] = {}
    libraries: set[str] = set()  # by the last word: ``lib`` for ``lib`` and for ``self.lib``
    for loader in _LOADER.finditer(text):
        bound = _BOUND.match(text, text.rfind("\n", 0, loader.start()) + 1, loader.start())
        if bound:
            libraries.add(bound.group(1).rpartition(".")[2])
    for library in libraries:
        for at in occurrences(text, library, attribute=True):
            used = _USE.match(text, at + len(library))
            if used:
                _add(layout, found, at, used.group(1) or used.group(2))
            elif _GETATTR.search(text, max(0, at - 60), at):
                named = _NAMED.match(text, at + len(library))
                if named:
                    _add(layout, found, at, named.group(1))
    looked_up = _LOOKED_UP.finditer(text) if libraries and "getattr(" in text else ()
    if any(match.group(1).rpartition(".")[2] in libraries for match in looked_up):
        for match in _ROW.finditer(text):
            around = layout.around(match.start())
            if not around or around[0].is_class:
                _add(layout, found, match.start(), match.group(1))
    return tuple(found[key] for key in sorted(found))


def _add(layout: Layout, found: dict[tuple[int, str], PyForeign], place: int, name: str) -> None:
    if name in _OWN or layout.token_at(place) is not None:
        return
    around = layout.around(place)
    inner = next((at for at, head in enumerate(around) if not head.is_class), None)
    function = ".".join(head.name for head in reversed(around[inner:])) if inner is not None else None
    line = layout.line_of(place)
    found.setdefault((line, name), PyForeign(name, line, function))
