"""Tensor shapes in comments: ``// key cache: [num_blocks, block_size, d] (bf16)`` to a value and back.

In: the text of one comment, with or without its marks, wrapped over lines or not. Out: a ``ShapeComment`` (or None
where the comment gives no shape) and its text again. Precision comes first: a bracket that may be code, an interval, a
list of choices or an aside is no shape (``shape_words``). Which parameter a comment belongs to is not decided here, nor
what a name in a shape stands for.

The form is in ``grammars/shape_comment.lark``; lark and the grammar are loaded at the first bracket that looks right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from opwalker.notation import shape_words
from opwalker.notation.readings import SHAPES, Shape
from opwalker.notation.regex import Regex

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


class ShapeComment(Struct, frozen=True):
    """The shape that a comment gives.

    ``alternatives`` are its readings, each a tuple of dimensions as written (``("num_tokens", "2 * d")``; ``"..."`` for
    any number of them, ``"*"`` for any size). ``text`` is the part of the comment that says so, on one line, ``dtype``
    the element type named beside it, ``prose`` the rest of the comment. ``styles`` (one an alternative) and ``joiners``
    (between them) are for printing: ``"[,]"``, ``"[1,]"`` for a comma behind a single dimension, ``"(,)"``, ``"[x]"``,
    ``"x"``, ``"[]"`` for C subscripts, ``""`` for a name alone.
    """

    alternatives: tuple[tuple[str, ...], ...]
    text: str
    dtype: str | None = None
    prose: str = ""
    styles: tuple[str, ...] = ("[,]",)
    joiners: tuple[str, ...] = ()


def parse_shape(text: str) -> ShapeComment | None:
    """The first shape that a comment gives, or None. ``text`` may hold the comment's marks (``//``, ``/* */``, ``*``)
    and several lines."""
    line = comment_text(text)
    if not any(mark in line for mark in "[(") and " x " not in line:
        return None
    for start, end in _candidates(line):
        read = _read(line[start:end])
        if read is None:
            continue
        before, after = line[:start], line[end:]
        # `name - [..]` announces a shape as `name: [..]` does.
        lead = before.rstrip(" :=-—") + ":" if start == _label_end(line) else before
        if _all_are_shapes(read, lead, after):
            alternatives, styles, joiners = read
            dtype = shape_words.dtype_beside(before, after)
            prose = " ".join(part for part in (before.strip(" :,="), after.strip(" ,")) if part)
            return ShapeComment(alternatives, line[start:end], dtype, prose, styles, joiners)
    return None


_NAMED = Regex(
    r"[-*•]?\s*(?:[@\\]param(?:\[[\w, ]+\])?\s+)?`?([A-Za-z_]\w*)`?\s*(?::|=|-{1,2}|—)?\s+(?=.*[\[(]| *\w+ x )"
)

#: Words that lead from a name to its shape: ``x is expected to be a tensor of shape [..]``, ``x: The input tensor of
#: shape [..]``. A preposition among them would make it the shape of something else.
_TENSOR = r"(?:tensors?|matrix|vector|array)\s+(?:of\s+|with\s+)?"
_WORDS = r"(?:(?!(?:of|with|by|from|to|for|in|and)\b)[\w-]+\s+)"
_SAID = Regex(
    rf"(?:is|are|must be|should be|has|have|is (?:expected|assumed|required) to be)\s+(?:{_WORDS}{{0,3}}{_TENSOR})?"
    r"(?:an?\s+)?(?:of\s+)?shape:?\s*\Z",
    re.IGNORECASE,
)
_TITLED = Regex(rf"{_WORDS}{{0,5}}{_TENSOR}shape:?\s*\Z", re.IGNORECASE)


def named_shapes(text: str) -> tuple[tuple[str, ShapeComment], ...]:
    """The shapes that a comment of several lines gives to names, ``// q: [B, H, D]``, in order: one a line, and only
    where the line begins with the name and the shape follows it, with at most an element type between or words that
    say that it is the shape of what is named."""
    found: list[tuple[str, ShapeComment]] = []
    for line in text.splitlines():
        plain = comment_text(line)
        label = _NAMED.match(plain)
        if label is None or not shape_words.may_name_tensor(label.group(1)):
            continue
        rest = plain[label.end() :]
        shape = parse_shape(rest)
        between = rest.partition(shape.text)[0] if shape is not None else ""
        said = _TITLED if label.group()[len(label.group(1)) :].strip(" `") else _SAID
        if shape is not None and (shape_words.is_dtype_or_nothing(between) or said.match(between)):
            found.append((label.group(1), shape))
    return tuple(found)


def _all_are_shapes(read: Shape, before: str, after: str) -> bool:
    """Whether every alternative is a shape; behind the first one, the joiner announces it."""
    alternatives, styles, _ = read
    if len(alternatives) == 1:
        return styles[0] != "" and shape_words.is_shape(alternatives[0], styles[0], before, after)
    checks = zip(alternatives, styles, ("", *[":"] * (len(styles) - 1)), strict=True)
    return any(styles) and all(
        shape_words.is_extent(dims[0]) if style == "" else shape_words.is_shape(dims, style, lead or before, after)
        for dims, style, lead in checks
    )


def print_shape(shape: ShapeComment) -> str:
    """The shape's text from its parts: ``text``, but for blanks between dimensions."""
    texts = [_print_one(dims, style) for dims, style in zip(shape.alternatives, shape.styles, strict=True)]
    joiners = (*shape.joiners, "")
    return "".join(text + joiner for text, joiner in zip(texts, joiners, strict=True))


def comment_text(text: str) -> str:
    """A comment on one line, without its marks."""
    lines = (
        re.sub(r"^\s*(?://[/!]*<?|/\*[*!]*<?|\*(?![\s,*]*[,)\]]))|\*+/[\s,)]*$", "", line) for line in text.splitlines()
    )
    return " ".join(" ".join(lines).split())


def _print_one(dims: tuple[str, ...], style: str) -> str:
    if style == "[]":
        return "".join(f"[{dim}]" for dim in dims)
    if style == "[1,]":
        return f"[{dims[0]},]"
    if style == "(,)":
        return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"
    inside = (", " if style == "[,]" else " x ").join(dims)
    return f"[{inside}]" if style in ("[,]", "[x]") else inside


# --- Finding the brackets -----------------------------------------------------------------------------------------

_JOINER = Regex(r"\s*(?:\bor\b|\|\||\||/)\s*(?:[A-Za-z0-9_]+:\s*|[0-9]D\s+)?(?=[\[(])")
_OPEN = {"[": "]", "(": ")"}
_FACTOR = r"(?:[A-Za-z_][\w.:]*(?:\([^()]*\))?|[0-9]+|\([^()]*\))"
_CHAIN = Regex(rf"{_FACTOR}(?:(?: (?:x|×) | or ){_FACTOR})+(?=$|[\s,.;:])")


def _candidates(line: str) -> Iterator[tuple[int, int]]:
    """The places that may be shapes, left to right: a bracket that follows no name, with what joins it."""
    chain = _CHAIN.match(line, _label_end(line))
    if chain is not None and (" x " in chain.group() or "×" in chain.group()):
        if re.match(r",\s*[x×]\s", line[chain.end() :]):
            return  # a comma slipped in: how many dimensions are meant is anybody's guess
        yield chain.span()
    at = 0
    while at < len(line):
        if line[at] in _OPEN and not (at and (line[at - 1].isalnum() or line[at - 1] in "_])>\"'&([")):
            end = _bracket_end(line, at)
            while end and line[end : end + 1] == "[" and line[at] == "[":
                end = _bracket_end(line, end)
            if end:
                yield from _longest_first(line, at, end)
                at = end
                continue
        at += 1


def _longest_first(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The bracket together with the alternatives behind it, then with fewer of them."""
    ends = [end]
    while (joiner := _JOINER.match(line, ends[-1])) is not None:
        following = _bracket_end(line, joiner.end())
        if not following:
            break
        ends.append(following)
    yield from ((start, at) for at in reversed(ends))


def _bracket_end(line: str, start: int) -> int:
    """The offset behind the bracket that closes the one at ``start``; 0 where none does."""
    waiting: list[str] = []
    for at in range(start, min(len(line), start + 400)):
        char = line[at]
        if char in _OPEN:
            waiting.append(_OPEN[char])
        elif char in ")]":
            if waiting.pop() != char:
                return 0
            if not waiting:
                return at + 1
    return 0


_LABEL = Regex(r"(?:[@\\]param(?:\[\w+(?:,\s*\w+)*\])?\s+)?[A-Za-z_][\w .*&/-]{0,40}?\s*(?::|=|-{1,2}|—)\s+")


def _label_end(line: str) -> int:
    """Where the text behind ``name:`` begins, 0 without a label."""
    label = _LABEL.match(line)
    return label.end() if label else 0


# --- Reading the inside -------------------------------------------------------------------------------------------

_STYLES = {
    "square": "[,]",
    "square_one": "[1,]",
    "square_times": "[x]",
    "subscripts": "[]",
    "round": "(,)",
    "times": "x",
    "alone": "",
}


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    from opwalker import resources

    return Lark(
        resources.text("grammars/shape_comment.lark"),
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        cache=resources.parser_cache("shape_comment"),
    )


def _read(text: str) -> Shape | None:
    """Alternatives, their styles and what joins them; None where the text is no shape."""
    return SHAPES.reading(text, _parse)


def _parse(text: str) -> Shape | None:
    from lark.exceptions import UnexpectedInput

    try:
        tree = _parser().parse(text)
    except UnexpectedInput:
        return None
    alternatives: list[tuple[str, ...]] = []
    styles: list[str] = []
    joiners: list[str] = []
    for part in tree.children:
        if isinstance(part, str):
            joiners.append(str(part))
        else:
            styles.append(_STYLES[part.data])
            alternatives.append(tuple(_text_of(text, dim) for dim in part.children))
    return tuple(alternatives), tuple(styles), tuple(joiners)


def _text_of(text: str, dim: Tree[str] | Token) -> str:
    return str(dim) if isinstance(dim, str) else text[dim.meta.start_pos : dim.meta.end_pos]
