"""Paths and texts of Python build scripts: what ``os.path``, ``pathlib`` and string methods make of them.

In: values. Out: values. Only paths are computed here; whether a file exists is asked of the tree (``build_py_calls``).
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

from opwalker.link.build_py_values import (
    Element,
    Map,
    PathText,
    Ref,
    Seq,
    Unknown,
    as_text,
    elements_of,
    is_plain,
)
from opwalker.link.build_values import MARK

#: Methods of text that only look at it or make it shorter or not much longer.
TEXT_METHODS = frozenset(
    (
        "split rsplit strip lstrip rstrip lower upper startswith endswith removeprefix removesuffix partition"
        " rpartition splitlines find rfind count title capitalize isdigit isalpha isalnum isidentifier"
    ).split()
)


def joined_path(parts: list[Any]) -> str:
    """``os.path.join``"""
    texts = [as_text(part) for part in parts]
    result = texts[0] if texts else ""
    for text in texts[1:]:
        if text.startswith("/"):
            result = text
        elif not result or result.endswith("/"):
            result += text
        else:
            result = f"{result}/{text}"
    return result[:4000]


def path_attribute(path: PathText, name: str) -> Any:
    """An attribute of a ``pathlib.Path`` that is no method."""
    text = path.text
    if name == "parent":
        return PathText(posixpath.dirname(text) or ".")
    if name == "parents":
        ancestors: list[Element] = []
        while text not in ("", "/", ".") and len(ancestors) < 30:
            text = posixpath.dirname(text) or "."
            ancestors.append(Element(PathText(text)))
        return Seq(tuple(ancestors), "tuple")
    if name == "name":
        return posixpath.basename(text)
    if name == "suffix":
        return posixpath.splitext(text)[1]
    if name == "stem":
        return posixpath.splitext(posixpath.basename(text))[0]
    if name == "parts":
        return Seq(tuple(Element(part) for part in text.split("/") if part), "tuple")
    return Ref(f"{MARK}path.{name}")


def percent_format(pattern: str, values: Any) -> str:
    """``pattern % values`` with ``%s`` and ``%d``."""
    elements = elements_of(values) if isinstance(values, Seq) else None
    given = [element.value for element in elements] if elements is not None else [values]
    position = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal position
        if match.group() == "%%":
            return "%"
        position += 1
        return as_text(given[position - 1]) if position <= len(given) else match.group()

    return re.sub(r"%[sd]|%%", fill, pattern)[:20_000]


def brace_format(pattern: str, arguments: list[Any], keywords: dict[str, Any]) -> str:
    """``pattern.format(...)`` with plain fields."""
    position = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal position
        name = match.group(1)
        if name == "":
            position += 1
            name = str(position - 1)
        if name.isdigit():
            return as_text(arguments[int(name)]) if int(name) < len(arguments) else match.group()
        return as_text(keywords[name]) if name in keywords else match.group()

    return re.sub(r"\{(\w*)\}", fill, pattern)[:20_000]


def text_method(text: str, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """``text.name(...)``, or an unknown."""
    if name == "format":
        return brace_format(text, arguments, keywords)
    if name == "join" and arguments:
        elements = elements_of(arguments[0])
        if elements is not None and not any(element.guard for element in elements):
            return text.join(as_text(element.value) for element in elements)[:20_000]
        return Unknown(f"{text!r}.join(...)")
    if name == "replace" and len(arguments) == 2 and all(is_plain(a) and isinstance(a, str) for a in arguments):
        old, new = arguments
        # A replaced part may stand beside an unknown one; more than a part it cannot reach.
        return text.replace(old, new)[:20_000] if old and len(new) < 200 else Unknown("a replacement")
    if name in ("startswith", "endswith") and len(arguments) == 1 and isinstance(arguments[0], Seq):
        arguments = [_plain_tuple(arguments[0])]
    given = (*arguments, *keywords.values())
    plain = MARK not in text and all(is_plain(one) or isinstance(one, tuple) for one in given)
    if name in TEXT_METHODS and plain:
        try:
            result = getattr(text, name)(*arguments, **keywords)
        except (TypeError, ValueError):
            return Unknown(f"{text!r}.{name}(...)")
        if isinstance(result, (list, tuple)):
            return Seq(tuple(Element(part) for part in result[:2000]), "list" if isinstance(result, list) else "tuple")
        return result
    if name == "encode" or name == "decode":
        return text
    return Unknown(f"{text!r}.{name}(...)" if MARK not in text else f"a text.{name}(...)")


def _plain_tuple(value: Seq) -> Any:
    """A sequence of texts as Python's own methods take it; the sequence itself where it holds anything else."""
    texts = tuple(element.value for element in value.items)
    known = all(isinstance(text, str) and MARK not in text for text in texts)
    return texts if known and not any(element.guard for element in value.items) else value


def flag_text(value: Any) -> str:
    """A compiler flag or macro value as it is written on a command line."""
    return "" if isinstance(value, Map) else as_text(value)
