"""Whether threads that leave a kernel beyond a count are none: every launch makes a block of that many.

In: a tree, a kernel and the condition of the exit. Out: yes where each part of it that differs between threads compares
a thread's or a warp's number with a parameter, and every launch in the source has a block of the argument times the
threads that one number stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from opwalker.model.check import CheckedTree
from opwalker.model.statements import Routine
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression
from opwalker.rules._launches import Site, locals_of, sites
from opwalker.rules._threads import Threads

_THREAD = re.compile(r"threadIdx\.x\Z")


def is_filled(tree: CheckedTree, kernel: Routine, condition: str, line: int, threads: Threads) -> bool:
    """Whether no thread of any launch in the source meets the condition of an exit."""
    values = {d.name: d.value or "" for one in kernel.walk() for d in one.declares}
    parts = [one for one in _parts(parse_expression(condition)) if threads.differ(print_expression(one), line)]
    asked = [_asked(one, kernel, values) for one in parts]
    made = list(_launches(tree, kernel)) if parts and None not in asked else []
    return bool(made) and all(_has(site, *one) for site in made for one in asked if one is not None)


def _parts(expr: Expr) -> Iterator[Expr]:
    if expr.kind == "binary" and expr.text == "||":
        for one in expr.parts:
            yield from _parts(one)
    else:
        yield expr


def _asked(expr: Expr, kernel: Routine, values: Mapping[str, str]) -> tuple[int, frozenset[str]] | None:
    """The place of the parameter that a number is compared with, and what the number counts in threads."""
    if expr.kind != "binary" or expr.text != ">=":
        return None
    number, bound = (_opened(one, values) for one in expr.parts)
    width: frozenset[str] = frozenset()
    if number.kind == "binary" and number.text == "/":
        number, width = number.parts[0], frozenset((_text(number.parts[1]),))
    place = next((at for at, one in enumerate(kernel.parameters) if one.name == _text(bound)), None)
    return (place, width) if place is not None and _THREAD.match(_text(number)) else None


def _opened(expr: Expr, values: Mapping[str, str]) -> Expr:
    """An expression without casts, a local in it followed to its initialiser."""
    for _ in range(4):
        while expr.kind == "cast" and expr.parts:
            expr = expr.parts[-1]
        if expr.kind != "name" or not values.get(expr.text):
            break
        expr = parse_expression(values[expr.text].strip().removeprefix("=").strip())
    return expr


def _launches(tree: CheckedTree, kernel: Routine) -> Iterator[Site]:
    name = re.compile(rf"\b{re.escape(kernel.name.rsplit('::', 1)[-1])}\b")
    for routine in tree.every_routine:
        if routine.on_device:
            continue
        for site in sites(routine):
            if name.search(site.kernel) or name.search(locals_of(site).get(site.name, "")):
                yield site


def _has(site: Site, place: int, width: frozenset[str]) -> bool:
    """Whether a launch has as many threads as an exit lets through."""
    if site.block is None or place >= len(site.arguments):
        return False
    known = locals_of(site)
    block = _opened(parse_expression(known.get(site.block.strip(), site.block)), {})
    if block.kind == "call" and block.parts[0].text == "dim3" and len(block.parts) == 2:
        block = block.parts[1]
    return _factors(block) == {_text(parse_expression(site.arguments[place])), *width}


def _factors(expr: Expr) -> set[str]:
    if expr.kind == "cast" and expr.parts:
        return _factors(expr.parts[-1])
    if expr.kind == "binary" and expr.text == "*":
        return {one for part in expr.parts for one in _factors(part)}
    return {_text(expr)}


def _text(expr: Expr) -> str:
    return re.sub(r"\s", "", print_expression(expr))
