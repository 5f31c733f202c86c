"""Compiler flags to macros, and the simple generator expressions around them.

In: the items of compile options or definitions. Out: macros with the condition and the language that they hold for.
A generator expression on the language is resolved; any other one becomes a condition as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from zlib import crc32

from opwalker.link.build_guard import Guard, Literal, join
from opwalker.link.build_values import Item, Value, is_unknown, shown
from opwalker.model.build import Define
from opwalker.notation.regex import Regex

_LANGUAGE = Regex(r"\$<COMPILE_LANGUAGE:([A-Za-z,]+)>\Z")
_DEFINE_NAME = Regex(r"[A-Za-z_]\w*\Z")
#: The languages that flags can be limited to.
LANGUAGES = {"CUDA", "HIP", "CXX", "C"}


#: A macro and the conditions that it stands under.
Guarded = tuple[Define, Guard]


def defines_of_definitions(items: Value, guard: Guard, file: str, line: int) -> list[Guarded]:
    """Macros of ``target_compile_definitions`` and the like: ``NAME``, ``NAME=value``, each also with ``-D``."""
    found: list[Guarded] = []
    for text, item, wrapped, language in unwrapped(items):
        name, value = _name_and_value(text.removeprefix("-D"))
        if name:
            define = _define(name, value, item, (file, line), language)
            found.append((define, _conditions(guard, item, wrapped)))
    return found


def defines_of_options(items: Value, guard: Guard, file: str, line: int, language: str | None = None) -> list[Guarded]:
    """Macros of compile options: ``-DNAME``, ``-D NAME=value``, also several in one text."""
    found: list[Guarded] = []
    pending = False
    for text, item, wrapped, inner in unwrapped(items):
        for flag in _flags(text):
            if flag in ("-D", "/D"):
                pending = True
                continue
            body = flag if pending else flag[2:] if flag.startswith(("-D", "/D")) else ""
            pending = False
            name, value = _name_and_value(body)
            if name:
                define = _define(name, value, item, (file, line), inner or language)
                found.append((define, _conditions(guard, item, wrapped)))
    return found


def _flags(text: str) -> list[str]:
    if " " not in text:
        return [text]
    # A quoted blank belongs to its flag.
    return re.findall(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""", text)


def _name_and_value(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not _DEFINE_NAME.match(name):
        return "", None
    return name, shown(value).strip("\"'") if equals else None


def _define(name: str, value: str | None, item: Item, place: tuple[str, int], language: str | None) -> Define:
    file, line = (item.file, item.line) if item.file else place
    return Define(name, value, file, line, None, language)


def _conditions(guard: Guard, item: Item, wrapped: str | None) -> Guard:
    guard = join(guard, item.guard)
    if wrapped:
        # A generator expression is a condition of its own; its text tells it apart from every other one.
        guard = (*guard, Literal(-1 - crc32(wrapped.encode()), True, wrapped))
    return guard


def unwrapped(items: Value) -> Iterator[tuple[str, Item, str | None, str | None]]:
    """Each element without the generator expressions around it: text, item, condition, language.

    An expression may begin in one element and end in a later one, since a list in it is split up.
    """
    open_conditions: list[str] = []
    for item in items:
        text = item.text
        if is_unknown(text) and not open_conditions:
            continue
        while text.startswith("$<"):
            end = _condition_end(text)
            if end < 0:
                break
            open_conditions.append(text[2:end])
            text = text[end + 1 :]
        closing = _surplus_closers(text) if open_conditions else 0
        body = text[: len(text) - closing] if closing else text
        conditions = [c for c in open_conditions if not _is_build_interface(c)]
        languages = [m.group(1) for c in conditions if (m := _LANGUAGE.match(c))]
        others = [shown(c) for c in conditions if not _LANGUAGE.match(c)]
        language = languages[-1] if languages and languages[-1] in LANGUAGES else None
        if languages and language is None:
            others.extend(f"COMPILE_LANGUAGE:{name}" for name in languages)
        if body and not body.startswith("$<"):
            yield body, item, " AND ".join(others) or None, language
        for _ in range(min(closing, len(open_conditions))):
            open_conditions.pop()


def _is_build_interface(condition: str) -> bool:
    return condition in ("BUILD_INTERFACE", "1", "BUILD_LOCAL_INTERFACE")


def _condition_end(text: str) -> int:
    """The offset of the colon that ends the condition of a generator expression, or -1."""
    depth = 0
    position = 2
    while position < len(text):
        if text.startswith("$<", position):
            depth += 1
            position += 2
            continue
        if text[position] == ">":
            depth -= 1
            if depth < 0:
                return -1
        elif text[position] == ":" and depth == 0:
            return position
        position += 1
    return -1


def _surplus_closers(text: str) -> int:
    """How many ``>`` at the end close expressions that were opened before this text."""
    opened = text.count("$<")
    closers = len(text) - len(text.rstrip(">"))
    return max(0, closers - opened)
