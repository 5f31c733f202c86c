"""What a library hands to torch: schemas, names of implementations, and under which namespace and dispatch key.

In: symbols, strings and references of a library. Out: ``BuiltOp`` values. The macros of torch and of its stable ABI
make one function for each block, whose symbol names the namespace and the key; the strings that its code names are what
the block defines. A stripped library has no such symbols: then its schemas are all that is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from opwalker.binary.elf import Symbol
from opwalker.binary.references import References
from opwalker.binary.strings import Strings
from opwalker.model.binary import BuiltOp

_FUNCTION, _OBJECT = 2, 1
#: The name of a block's function or object inside a symbol, with its length before it.
_BLOCK = re.compile(r"(?<!\d)(\d+)((?:STABLE_)?TORCH_LIBRARY_\w+)")
_PARTS = re.compile(r"(?:STABLE_)?TORCH_LIBRARY_(?P<kind>IMPL_|FRAGMENT_)?(?P<role>static_init|init)_(?P<rest>\w+)")
_KEYED = re.compile(r"(?P<namespace>.+)_(?P<key>[A-Z][A-Za-z0-9]*?)(?:_\d+)?")
_COUNTED = re.compile(r"(.+?)_\d+")
#: The beginning of a schema: a name, perhaps with an overload, and a list of arguments that leads to what is returned.
SCHEMA = re.compile(r"\s*(?:[A-Za-z_]\w*::)?[A-Za-z_]\w*(?:\.\w+)?\s*\(.*\)\s*->\s*\S.*", re.DOTALL)
_NAME = re.compile(r"(?:[A-Za-z_]\w*::)?[A-Za-z_]\w*(?:\.\w+)?")
_INITIALISER = re.compile(r"_GLOBAL__sub_I_|_ZL?\d+__static_initialization_and_destruction_0")


class _Block(Struct, frozen=True):
    """The code of one registration block."""

    start: int
    end: int
    implements: bool
    namespace: str
    key: str | None


def read_registrations(symbols: Iterable[Symbol], strings: Strings, references: References) -> list[BuiltOp]:
    """Every schema and every name of an implementation that a library registers, in the order of its code."""
    found: dict[BuiltOp, None] = {}
    covered: set[str] = set()
    for block in _blocks(list(symbols), references):
        for text in _texts(block, strings, references):
            if SCHEMA.fullmatch(text):
                found[BuiltOp("schema", text, block.namespace)] = None
                covered.add(text)
            elif _NAME.fullmatch(text):
                role = "impl" if block.implements else "name"
                found[BuiltOp(role, text, block.namespace, block.key)] = None
    for _, text in strings.all():
        if SCHEMA.fullmatch(text) and text not in covered:
            found[BuiltOp("schema", text)] = None
    return list(found)


def _texts(block: _Block, strings: Strings, references: References) -> Iterator[str]:
    for _, target in references.within(block.start, block.end):
        text = strings.at(target)
        if text is not None:
            yield text


def _blocks(symbols: list[Symbol], references: References) -> Iterator[_Block]:
    objects: dict[int, tuple[bool, str, str | None]] = {}
    for symbol in symbols:
        found = _parts(symbol.name) if symbol.section else None
        if found is None:
            continue
        implements, namespace, key = _named(found["kind"], found["rest"])
        if found["role"] == "init" and symbol.kind == _FUNCTION:
            yield _Block(symbol.address, symbol.address + symbol.size, implements, namespace, key)
        elif found["role"] == "static_init":
            objects[symbol.address] = (implements, namespace, key)
    # A short block is compiled into the initialiser of its file, which names the object that the macro makes.
    for symbol in symbols:
        if symbol.kind == _FUNCTION and _INITIALISER.match(symbol.name):
            end = symbol.address + symbol.size
            made = {objects[t] for _, t in references.within(symbol.address, end) if t in objects}
            if len({namespace for _, namespace, _ in made}) == 1:
                keys = {key for _, _, key in made}
                implements = all(one for one, _, _ in made)
                namespace = next(iter(made))[1]
                yield _Block(symbol.address, end, implements, namespace, keys.pop() if len(keys) == 1 else None)


def _parts(symbol: str) -> re.Match[str] | None:
    found = _BLOCK.search(symbol) if "TORCH_LIBRARY_" in symbol else None
    return _PARTS.fullmatch(found[2][: int(found[1])]) if found else None


def _named(kind: str | None, rest: str) -> tuple[bool, str, str | None]:
    if kind == "IMPL_":
        keyed = _KEYED.fullmatch(rest)
        return True, keyed["namespace"] if keyed else rest, keyed["key"] if keyed else None
    counted = _COUNTED.fullmatch(rest) if kind == "FRAGMENT_" else None
    return False, counted[1] if counted else rest, None
