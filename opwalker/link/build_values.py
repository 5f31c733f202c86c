"""CMake values: lists whose elements know where they were written and under which conditions they are there.

In: argument text with variable references. Out: the items that it stands for. What is not known is kept inside the
text between two marks and printed as the reference that it came from, so a path such as ``${dep_SOURCE_DIR}/a.cu``
stays readable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from opwalker.link.build_guard import Guard, excludes, join, pairwise_exclusive
from opwalker.notation.regex import Regex

#: Around the name of something that is not known, inside a text.
MARK = "\0"
_NUMBER = "\1"

#: A text that grows longer than this is not followed.
MAX_TEXT = 100_000

#: A text that depends on undecided conditions is followed through this many variants.
MAX_VARIANTS = 32


class Item(NamedTuple):
    """One list element. ``origin`` is the text that it was derived from, where a command has changed it."""

    text: str
    guard: Guard = ()
    file: str = ""
    line: int = 0
    origin: str | None = None

    def under(self, guard: Guard) -> Item:
        """The item with a further guard outside its own."""
        return Item(self.text, join(guard, self.guard), self.file, self.line, self.origin) if guard else self

    def becoming(self, text: str) -> Item:
        """The item with a text that was computed from its own."""
        return self if text == self.text else self._replace(text=text, origin=self.origin or self.text)


#: A list as CMake has them, or what one argument comes to.
Value = tuple[Item, ...]


class Argument(NamedTuple):
    """One argument of a call: its items, and whether it was quoted. ``raw`` is the text as written."""

    items: Value
    quoted: bool
    raw: str

    @property
    def word(self) -> str:
        """The argument as one text, unknown parts inside."""
        return self.items[0].text if len(self.items) == 1 else ";".join(item.text for item in self.items)

    @property
    def plain(self) -> str | None:
        """The argument as one text if it is known in all cases, else None."""
        found = variants(self.items)
        return found[0][1] if found is not None and len(found) == 1 else None


def flat(arguments: Sequence[Argument]) -> Value:
    """All items of several arguments."""
    return tuple(item for argument in arguments for item in argument.items)


def unknown(name: str, number: int = 0) -> Item:
    """An item of which only the name is known; it may stand for any number of items.

    ``number`` tells apart what a variable holds at different times; 0 is what it holds if no file sets it.
    """
    return Item(f"{MARK}{name}{_NUMBER}{number}{MARK}" if number else f"{MARK}{name}{MARK}")


def is_unknown(text: str) -> bool:
    """True if nothing but an unknown reference is in the text."""
    return text.startswith(MARK) and text.find(MARK, 1) == len(text) - 1


def shown(text: str) -> str:
    """The text as a reader knows it, unknown parts as references."""
    if MARK not in text:
        return text
    parts = text.split(MARK)
    return "".join(part if index % 2 == 0 else _reference(part) for index, part in enumerate(parts))


def _reference(name: str) -> str:
    name = name.partition(_NUMBER)[0]
    return f"${name}" if name.startswith(("ENV{", "CACHE{")) else f"${{{name}}}"


def variants(items: Value) -> list[tuple[Guard, str]] | None:
    """The strings that the items may be, each with its condition; None if that cannot be told.

    No item at all is the empty string.
    """
    if not any(item.guard for item in items):
        text = ";".join(item.text for item in items)
        return None if MARK in text else [((), text)]
    if any(MARK in item.text for item in items) or not pairwise_exclusive([item.guard for item in items]):
        return None
    found = [(item.guard, item.text) for item in items]
    if not _cover(items):
        found.append(((), ""))
    return found


def _cover(items: Value) -> bool:
    """True if one of the items is there in any case: as far as a single condition shows it."""
    singles = {item.guard[0] for item in items if len(item.guard) == 1}
    return any(literal.negated() in singles for literal in singles)


#: ``("text", str)``, or ``("var"|"env"|"cache", the parts of the name)``.
Part = tuple[str, Any]


@lru_cache(maxsize=20000)
def template(text: str) -> tuple[Part, ...]:
    """Argument text as parts."""
    if "$" not in text and "\\" not in text:
        return (("text", text),) if text else ()
    parts, _ = _parse_template(text, 0, nested=0)
    return parts


_OPENERS = (("${", "var"), ("$ENV{", "env"), ("$CACHE{", "cache"))
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": ""}
_PLAIN = Regex(r"[^$\\}]+")


def _parse_template(text: str, position: int, nested: int) -> tuple[tuple[Part, ...], int]:
    parts: list[Part] = []
    plain: list[str] = []

    def flush() -> None:
        if plain:
            parts.append(("text", "".join(plain)))
            plain.clear()

    while position < len(text):
        match = _PLAIN.match(text, position)
        if match:
            plain.append(match.group())
            position = match.end()
            continue
        if text[position] == "\\" and position + 1 < len(text):
            escaped = text[position + 1]
            # An escaped semicolon stays escaped until a list is split.
            plain.append("\\;" if escaped == ";" else _ESCAPES.get(escaped, escaped))
            position += 2
            continue
        if text[position] == "}" and nested:
            flush()
            return tuple(parts), position + 1
        opener = next(((mark, kind) for mark, kind in _OPENERS if text.startswith(mark, position)), None)
        if opener and nested < 8:
            flush()
            inner, position = _parse_template(text, position + len(opener[0]), nested + 1)
            parts.append((opener[1], inner))
            continue
        plain.append(text[position])
        position += 1
    flush()
    return tuple(parts), position


def split_list(text: str) -> list[str]:
    """Split at semicolons that are neither escaped nor inside square brackets, as CMake does."""
    if ";" not in text:
        return [text] if text else []
    return [element for element in _split(text) if element]


def _split(text: str) -> list[str]:
    elements: list[str] = []
    current: list[str] = []
    depth = 0
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\" and text.startswith(";", position + 1):
            current.append(";")
            position += 2
            continue
        depth += (char == "[") - (char == "]" and depth > 0)
        if char == ";" and depth == 0:
            elements.append("".join(current))
            current = []
        else:
            current.append(char)
        position += 1
    elements.append("".join(current))
    return elements


Lookup = Callable[[str, str], Value]


def expand(text: str, style: str, file: str, line: int, lookup: Lookup) -> list[Argument]:
    """What one written argument comes to: one argument if it is quoted, else one for every list element.

    ``lookup(kind, name)`` gives the value of a variable; ``kind`` is ``var``, ``env`` or ``cache``.
    """
    if style == "bracket" or "$" not in text:
        return _literal(text, style, file, line)
    parts = template(text)
    quoted = style == "quoted"
    if len(parts) == 1:
        items = _part_items(parts[0], file, line, lookup)
    else:
        glued = concatenate([_part_items(part, file, line, lookup) for part in parts])
        items = tuple(item for item in glued if item.text)
    if quoted:
        return [Argument(items, True, text)]
    if len(items) > 1 and items[0].guard and pairwise_exclusive([item.guard for item in items]):
        return [Argument(items, False, text)]
    return [Argument((item,), False, text) for item in items if item.text]


@lru_cache(maxsize=50_000)
def _literal(text: str, style: str, file: str, line: int) -> list[Argument]:
    """An argument without references; shared between evaluations, so nobody may change it."""
    if style == "bracket":
        return [Argument((Item(text, (), file, line),) if text else (), True, text)]
    parts = template(text)
    items = _elements(parts[0][1], file, line) if parts else ()
    if style == "quoted" or len(items) < 2:
        return [Argument(items, style == "quoted", text)]
    return [Argument((item,), False, text) for item in items]


def _elements(text: str, file: str, line: int) -> Value:
    if ";" not in text:
        return (Item(text, (), file, line),) if text else ()
    return tuple(Item(element, (), file, line) for element in split_list(text))


def _part_items(part: Part, file: str, line: int, lookup: Lookup) -> Value:
    if part[0] == "text":
        if ";" not in part[1]:
            return (Item(part[1], (), file, line),)
        # Empty ends are kept here: they say that the neighbours are elements of their own.
        return tuple(Item(element, (), file, line) for element in _split(part[1]))
    return _referenced(part, file, line, lookup)


def _referenced(part: Part, file: str, line: int, lookup: Lookup) -> Value:
    kind, name_parts = part
    names = concatenate([_part_items(p, file, line, lookup) for p in name_parts])
    if len(names) == 1 and not names[0].guard:
        name = names[0].text
        return (unknown(shown(name)),) if MARK in name else lookup(kind, name)
    if names and pairwise_exclusive([name.guard for name in names]):
        found = [item.under(name.guard) for name in names for item in lookup(kind, name.text)]
        return tuple(found[:MAX_VARIANTS])
    return ()


def concatenate(parts: Sequence[Value]) -> Value:
    """The items of a text put together from several: the last of one part and the first of the next grow together."""
    parts = [part for part in parts if part]
    if not parts:
        return ()
    result = parts[0]
    for part in parts[1:]:
        result = _glue(result, part)
    return result


def concatenated(values: Sequence[Value]) -> Value:
    """The texts of several values, one behind the other, without empty elements."""
    return tuple(item for item in concatenate(values) if item.text)


def _glue(left: Value, right: Value) -> Value:
    if len(left) == 1 and len(right) == 1 and not left[0].guard and not right[0].guard:
        return (_glued(left[0], right[0], ()),)
    lefts, rights = _as_variants(left), _as_variants(right)
    if lefts is None and rights is None:
        return (*left[:-1], _glued(left[-1], right[0], join(left[-1].guard, right[0].guard)), *right[1:])
    if lefts is None:
        last = [_glued(left[-1], item, join(left[-1].guard, item.guard)) for item in rights or ()]
        return (*left[:-1], *last)
    if rights is None:
        first = [_glued(item, right[0], join(item.guard, right[0].guard)) for item in lefts]
        return (*first, *right[1:])
    glued = [_glued(a, b, join(a.guard, b.guard)) for a in lefts for b in rights if not excludes(a.guard, b.guard)]
    return tuple(glued[:MAX_VARIANTS])


def _as_variants(items: Value) -> Value | None:
    """The items as alternatives of one another, or None if they are elements of a list."""
    if len(items) == 1:
        item = items[0]
        if len(item.guard) == 1:
            absent = Item("", (item.guard[0].negated(),), item.file, item.line)
            return (item, absent)
        return items
    return items if pairwise_exclusive([item.guard for item in items]) else None


def _glued(left: Item, right: Item, guard: Guard) -> Item:
    """One item of two; it is derived from whichever of them was derived or holds the file name."""
    origin = right.origin or left.origin
    if origin is None and MARK not in right.text and "/" not in right.text[:1]:
        origin = right.text
    if len(left.text) + len(right.text) > MAX_TEXT:
        return Item(f"{MARK}a long text{MARK}", guard, right.file, right.line)
    # The last part is what the item is about, unless it is no more than a bracket.
    place = right if right.file and not (left.file and right.text.strip('">;/ ') == "") else left
    return Item(left.text + right.text, guard, place.file, place.line, origin)
