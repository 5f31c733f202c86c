"""CMake's ``string``.

In: the interpreter and the command. Out: variables set. An operation on a list's text works on each element, so that
elements keep what they know of themselves; what cannot be computed leaves the result unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from opwalker.link.build_lists import integer
from opwalker.link.build_regex import compile_regex, substitute
from opwalker.link.build_run import Run
from opwalker.link.build_values import (
    MARK,
    Argument,
    Item,
    Value,
    concatenated,
    flat,
    is_unknown,
    shown,
    split_list,
    unknown,
)
from opwalker.model.build import BuildCommand


def run_string(run: Run, command: BuildCommand) -> None:
    """``string(<operation> ...)``"""
    arguments = run.arguments(command)
    if not arguments:
        return
    operation = arguments[0].word
    handler = _STRING.get(operation)
    if handler is not None:
        handler(run, arguments[1:])
    else:
        # Hashes, random texts, time stamps: the result variable is the one behind the operation, or the last.
        run.answer(arguments[-1:] if operation in ("RANDOM", "UUID", "JSON") else arguments[1:2], None)


def _regex(run: Run, arguments: list[Argument]) -> None:
    kind = arguments[0].word if arguments else ""
    offset = 1 if kind == "REPLACE" else 0
    if len(arguments) < 3 + offset:
        return
    output = arguments[2 + offset].word
    regex = compile_regex(arguments[1].word)
    items = flat(arguments[3 + offset :])
    if regex is None or any(is_unknown(item.text) for item in items):
        run.put(output, (run.unknown(output),) if items or regex is None else ())
    elif kind == "REPLACE":
        replacement = arguments[2].word
        run.put(output, _each(items, lambda text: substitute(regex, replacement, text)))
    elif kind == "MATCH":
        _match(run, regex, output, items)
    elif kind == "MATCHALL":
        run.put(output, tuple(i._replace(text=m.group()) for i in items for m in regex.finditer(i.text) if m.group()))


def _match(run: Run, regex: re.Pattern[str], output: str, items: Value) -> None:
    found: list[Item] = []
    for item in items[:1]:
        match = regex.search(item.text)
        if match:
            run.matched((match.group(), *(group or "" for group in match.groups())))
            found.append(item._replace(text=match.group()))
    run.put(output, tuple(item for item in found if item.text))


def _each(items: Value, change: Callable[[str], str]) -> Value:
    # A change can bring in separators, which make several elements of one.
    return tuple(item.becoming(text) for item in items for text in split_list(change(item.text)))


def _replace(run: Run, arguments: list[Argument]) -> None:
    if len(arguments) < 3:
        return
    old, new = arguments[0].word, arguments[1].word
    items = flat(arguments[3:])
    if not old or len(new) > 1000 or any(is_unknown(item.text) for item in items):
        run.answer(arguments[2:3], None)
    else:
        run.put(arguments[2].word, _each(items, lambda text: text.replace(old, new)))


def _grow(after: bool) -> Callable[[Run, list[Argument]], None]:
    def grow(run: Run, arguments: list[Argument]) -> None:
        if not arguments:
            return
        name = arguments[0].word
        old = run.lookup(name)
        # Not set by any file: what may be there already is kept as a reference.
        old = (unknown(name),) if old is None and name.startswith("CMAKE_") else old or ()
        added = flat(arguments[1:])
        run.put(name, concatenated([old, added] if after else [added, old]))

    return grow


def _concat(run: Run, arguments: list[Argument]) -> None:
    if arguments:
        run.put(arguments[0].word, concatenated([argument.items for argument in arguments[1:]]))


def _join_string(run: Run, arguments: list[Argument]) -> None:
    if len(arguments) > 1:
        run.answer(arguments[1:2], arguments[0].word.join(argument.word for argument in arguments[2:]))


def _change(change: Callable[[str], str]) -> Callable[[Run, list[Argument]], None]:
    def apply(run: Run, arguments: list[Argument]) -> None:
        if len(arguments) < 2:
            return
        items = arguments[0].items
        if any(MARK in item.text for item in items):
            run.answer(arguments[1:2], None)
        else:
            run.put(arguments[1].word, _each(items, change))

    return apply


def _string_length(run: Run, arguments: list[Argument]) -> None:
    text = arguments[0].plain if len(arguments) > 1 else None
    run.answer(arguments[1:2], None if text is None else str(len(text)))


def _substring(run: Run, arguments: list[Argument]) -> None:
    if len(arguments) < 4:
        return
    text, begin, length = arguments[0].plain, integer(arguments[1]), integer(arguments[2])
    if text is None or begin is None or length is None:
        run.answer(arguments[3:4], None)
    else:
        run.answer(arguments[3:4], text[begin:] if length < 0 else text[begin : begin + length])


def _string_find(run: Run, arguments: list[Argument]) -> None:
    if len(arguments) < 3:
        return
    text, part = arguments[0].plain, arguments[1].plain
    known = text is not None and part is not None
    run.answer(arguments[2:3], str((text or "").find(part or "")) if known else None)


def _compare(run: Run, arguments: list[Argument]) -> None:
    if len(arguments) < 4:
        return
    left, right = arguments[1].plain, arguments[2].plain
    operation = arguments[0].word
    results = {} if left is None or right is None else {"EQUAL": left == right, "NOTEQUAL": left != right}
    truth = results.get(operation)
    run.answer(arguments[3:4], None if truth is None else str(int(truth)))


def _genex_strip(run: Run, arguments: list[Argument]) -> None:
    if len(arguments) > 1:
        kept = tuple(item for item in arguments[0].items if not shown(item.text).startswith("$<"))
        run.put(arguments[1].word, kept)


_STRING: dict[str, Callable[[Run, list[Argument]], None]] = {
    "REGEX": _regex,
    "REPLACE": _replace,
    "APPEND": _grow(True),
    "PREPEND": _grow(False),
    "CONCAT": _concat,
    "JOIN": _join_string,
    "TOLOWER": _change(str.lower),
    "TOUPPER": _change(str.upper),
    "STRIP": _change(str.strip),
    "LENGTH": _string_length,
    "SUBSTRING": _substring,
    "FIND": _string_find,
    "COMPARE": _compare,
    "GENEX_STRIP": _genex_strip,
}
