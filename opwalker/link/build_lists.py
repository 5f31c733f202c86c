"""CMake's ``list``.

In: the interpreter and the expanded arguments. Out: variables set. A list keeps what each element knows of itself
(``build_values``); what cannot be computed leaves the result unknown under the name of its variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from opwalker.link.build_guard import implied
from opwalker.link.build_regex import compile_regex, substitute
from opwalker.link.build_run import Run
from opwalker.link.build_values import MARK, Argument, Item, Value, flat, is_unknown
from opwalker.model.build import BuildCommand


def run_list(run: Run, command: BuildCommand) -> None:
    """``list(<operation> ...)``"""
    arguments = run.arguments(command)
    if len(arguments) < 2:
        return
    operation, name, rest = arguments[0].word, arguments[1].word, arguments[2:]
    handler = _LIST.get(operation)
    if handler is not None and MARK not in name:
        handler(run, name, run.lookup(name) or (), rest)


def _append(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    run.put(name, value + flat(rest))


def _prepend(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    run.put(name, flat(rest) + value)


def _insert(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    index = integer(rest[0]) if rest else None
    position = len(value) if index is None else index
    run.put(name, value[:position] + flat(rest[1:]) + value[position:])


def _remove_item(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    gone = {}
    for item in flat(rest):
        gone.setdefault(item.text, item.guard)
    kept: list[Item] = []
    for item in value:
        if item.text not in gone:
            kept.append(item)
        elif len(gone[item.text]) == 1:
            # Taken out under one condition: it is there under the opposite one.
            kept.append(item.under((gone[item.text][0].negated(),)))
        elif gone[item.text]:
            kept.append(item)
    run.put(name, tuple(kept))


def _remove_duplicates(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    seen: dict[str, list[Item]] = {}
    kept: list[Item] = []
    for item in value:
        earlier = seen.setdefault(item.text, [])
        if any(implied(other.guard, item.guard) for other in earlier) and not is_unknown(item.text):
            continue
        earlier.append(item)
        kept.append(item)
    run.put(name, tuple(kept))


def _filter(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    if len(rest) < 3:
        return
    regex = compile_regex(rest[2].word)
    keep = rest[0].word == "INCLUDE"
    if regex is None:
        run.put(name, (run.unknown(name),) if value else ())
        return
    run.put(name, tuple(i for i in value if is_unknown(i.text) or bool(regex.search(i.text)) == keep))


def _length(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    certain = not any(item.guard or is_unknown(item.text) for item in value)
    run.answer(rest, str(len(value)) if certain else None)


def _get(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    if not rest:
        return
    indices = [integer(argument) for argument in rest[:-1]]
    certain = not any(item.guard or is_unknown(item.text) for item in value)
    if certain and all(i is not None and -len(value) <= i < len(value) for i in indices):
        run.put(rest[-1].word, tuple(value[i] for i in indices if i is not None))
    else:
        run.answer(rest[-1:], None)


def _find(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    wanted = rest[0].plain if rest else None
    certain = wanted is not None and not any(item.guard or MARK in item.text for item in value)
    index = next((i for i, item in enumerate(value) if item.text == wanted), -1)
    run.answer(rest[1:2], str(index) if certain else None)


def _join(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    if len(rest) < 2:
        return
    if any(item.guard for item in value):
        run.answer(rest[1:2], None)
    else:
        run.answer(rest[1:2], rest[0].word.join(item.text for item in value))


def _sort(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    words = [argument.word for argument in rest]
    natural = "NATURAL" in words

    def key(item: Item) -> list[tuple[int, int, str]]:
        if not natural:
            return [(0, 0, item.text)]
        parts = re.findall(r"\d+|\D+", item.text)
        return [(0, int(p[:18]), "") if p.isdigit() else (1, 0, p) for p in parts]

    run.put(name, tuple(sorted(value, key=key, reverse="DESCENDING" in words)))


def _reverse(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    run.put(name, value[::-1])


def _sublist(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    if len(rest) < 3:
        return
    begin, length = integer(rest[0]), integer(rest[1])
    if begin is None or length is None or any(item.guard or is_unknown(item.text) for item in value):
        run.answer(rest[2:3], None)
    else:
        run.put(rest[2].word, value[begin:] if length < 0 else value[begin : begin + length])


def _pop(front: bool) -> Callable[[Run, str, Value, list[Argument]], None]:
    def pop(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
        for argument in rest[:1]:
            run.put(argument.word, value[:1] if front else value[-1:])
        run.put(name, value[1:] if front else value[:-1])

    return pop


def _transform(run: Run, name: str, value: Value, rest: list[Argument]) -> None:
    words = [argument.word for argument in rest]
    output = words[words.index("OUTPUT_VARIABLE") + 1] if "OUTPUT_VARIABLE" in words[:-1] else name
    change = _transformation(words)
    if change is None:
        run.put(output, (run.unknown(output),))
    else:
        run.put(output, tuple(item.becoming(change(item.text)) for item in value))


def _transformation(words: list[str]) -> Callable[[str], str] | None:
    action = words[0] if words else ""
    if action in ("APPEND", "PREPEND") and len(words) > 1:
        return (lambda text: text + words[1]) if action == "APPEND" else (lambda text: words[1] + text)
    if action == "REPLACE" and len(words) > 2:
        regex = compile_regex(words[1])
        return None if regex is None else lambda text: substitute(regex, words[2], text)
    return {"TOLOWER": str.lower, "TOUPPER": str.upper, "STRIP": str.strip}.get(action)


_LIST: dict[str, Callable[[Run, str, Value, list[Argument]], None]] = {
    "APPEND": _append,
    "PREPEND": _prepend,
    "INSERT": _insert,
    "REMOVE_ITEM": _remove_item,
    "REMOVE_DUPLICATES": _remove_duplicates,
    "FILTER": _filter,
    "LENGTH": _length,
    "GET": _get,
    "FIND": _find,
    "JOIN": _join,
    "SORT": _sort,
    "REVERSE": _reverse,
    "SUBLIST": _sublist,
    "POP_FRONT": _pop(True),
    "POP_BACK": _pop(False),
    "TRANSFORM": _transform,
}


def integer(argument: Argument) -> int | None:
    """The argument as a whole number, None if it is not known to be one."""
    text = argument.plain
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,9}", text) else None
