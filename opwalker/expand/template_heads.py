"""Template parameter lists as parameters: names, kinds, defaults, packs."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from opwalker.facts.cpp_brackets import flat, split_commas
from opwalker.notation.regex import Regex

_NAMED = Regex(r"([A-Za-z_]\w*)\s*\Z")
_FUNCTION = Regex(r"\(\s*[*&]\s*(\.\.\.)?\s*(\w+)\s*\)")


class TemplateParameter(Struct, frozen=True):
    """One parameter. ``type`` is None for a type parameter, otherwise the declared type of the constant, or the head
    of a template template parameter (``is_template``)."""

    name: str
    type: str | None
    default: str | None
    pack: bool = False

    @property
    def is_template(self) -> bool:
        """Whether a template is asked for."""
        return (self.type or "").startswith("template")


@lru_cache(maxsize=4096)
def template_parameters(template: str | None) -> tuple[TemplateParameter, ...]:
    """The parameters of a template head's text."""
    if not template:
        return ()
    out = []
    for a, b in split_commas(template):
        piece = template[a:b].strip()
        shape = flat(piece)
        equals = re.search(r"(?<![=!<>])=(?!=)", shape)
        default = piece[equals.end() :].strip() if equals else None
        declared = (piece[: equals.start()] if equals else piece).strip()
        # Dots in brackets are those of a template's own parameters, or a function's.
        dots = flat(declared).find("...")
        pack = dots >= 0
        declared = f"{declared[:dots]} {declared[dots + 3 :]}".strip() if pack else declared
        pointer = _FUNCTION.search(declared)
        if pointer:
            kind = declared[: pointer.start(1 if pointer.group(1) else 2)] + declared[pointer.end(2) :]
            out.append(TemplateParameter(pointer.group(2), kind, default, pack or bool(pointer.group(1))))
            continue
        words = declared.split()
        if not words:
            continue
        if words[0].startswith("template"):
            last = _NAMED.search(declared)
            name = last.group(1) if last and last.group(1) not in ("typename", "class") else ""
            out.append(TemplateParameter(name, declared, default, pack))
            continue
        if words[0] in ("typename", "class") and "::" not in declared:
            out.append(TemplateParameter(words[1] if len(words) > 1 else "", None, default, pack))
            continue
        named = _NAMED.search(declared)
        name = named.group(1) if named and named.start() > 0 and not declared[: named.start()].endswith("::") else ""
        kind = declared[: named.start()].strip() if name else declared
        if not kind:
            name, kind = "", declared
        out.append(TemplateParameter(name, kind, default, pack))
    return tuple(out)
