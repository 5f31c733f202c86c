"""One registration call as ``Binding`` records: what ``m.def`` and ``m.impl`` say under each kind of binding.

In: a call's method and arguments (macros expanded), what its handle stands for, and its place. Out: bindings, or a gap
where the name is not a literal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from opwalker.expand.binding_text import function_ref, join_literals, key_name, literal
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.binding import Binding, FunctionRef
from opwalker.model.walk import Gap, Span

#: Methods of a torch library that register; its others that begin alike (``impl_abstract_pystub``) say where Python
#: code lies.
_TORCH_METHODS = frozenset("def op impl _impl impl_UNBOXED".split())


class Handle(Struct, frozen=True):
    """What a registration handle stands for: a torch library block, or a module that functions are bound into."""

    kind: str
    prefix: str
    key: str | None = None
    target: str | None = None
    unresolved: str | None = None


class Place(Struct, frozen=True):
    """Where a registration stands: file, line, preprocessor terms, C++ scope, and the macros that made it."""

    path: str
    line: int
    condition: tuple[str, ...]
    scope: tuple[str, ...]
    macros: tuple[str, ...]


def _common(place: Place, handle: Handle) -> dict:
    return {
        "path": place.path,
        "line": place.line,
        "condition": place.condition,
        "scope": place.scope,
        "macros": place.macros,
        "unresolved": handle.unresolved,
        "target": handle.target,
    }


def _no_literal(method: str, argument: str, place: Place) -> Gap:
    why = " ".join(f"the name in {method}({argument}) is not a literal".split())
    return Gap("registration", Span(place.path, place.line, place.line), why)


def torch_entries(
    method: str, arguments: Sequence[str], offsets: Sequence[int], plain: str, handle: Handle, place: Place
) -> list[Binding | Gap]:
    """``def``, ``impl`` and ``op`` of a torch library. ``offsets`` are the arguments' places in the file, where
    known."""
    if method not in _TORCH_METHODS:
        return []
    text = join_literals(arguments[0])
    if text is None:
        return [_no_literal(method, arguments[0], place)]
    head = "".join(text.split("(", 1)[0].split())
    full = head if "::" in head else f"{handle.prefix}::{head}"
    schema = text if "(" in text else None
    key = handle.key
    function: FunctionRef | None = None
    tags: list[str] = []
    for number, argument in enumerate(arguments[1:], start=1):
        at = offsets[number] if number < len(offsets) else None
        named = key_name(argument)
        if named and number == 1 and len(arguments) > 2:
            key = named
        elif argument.lstrip().startswith("{") or "Tag::" in argument:
            tags += re.findall(r"Tag::(\w+)", argument)
        else:
            reference, inner_key = function_ref(argument, at, plain or None)
            if reference is not None:
                function = reference
            key = inner_key or key
    common = {**_common(place, handle), "tags": tuple(tags)}
    out: list[Binding | Gap] = []
    defines = method in ("def", "op")
    if defines:
        out.append(Binding(handle.kind, "def", full, schema, None, function if schema is None else None, **common))
    if not defines or function is not None:
        # Registered without a key, a function serves every backend that has none of its own.
        out.append(Binding(handle.kind, "impl", full, None, key or "CompositeImplicitAutograd", function, **common))
    return out


def plain_entries(
    method: str,
    arguments: Sequence[str],
    offsets: Sequence[int],
    plain: str,
    handle: Handle,
    owner: tuple[str | None, str | None],
    place: Place,
) -> list[Binding | Gap]:
    """``def`` of a pybind11 module or class, or of a TVM-FFI registry. ``owner`` is the class by its name in Python and
    in C++."""
    class_name, made_of = owner
    if not method.startswith("def"):
        return []
    name = literal(arguments[0])
    if name is None:
        if "init" not in arguments[0]:
            return [_no_literal(method, arguments[0], place)]
        name = "__init__"
    function = None
    if len(arguments) > 1:
        at = offsets[1] if len(offsets) > 1 else None
        function, _ = function_ref(arguments[1], at, plain or None)
    made = re.search(r"init\s*<(.*)>", arguments[0], re.S) if name == "__init__" and function is None else None
    if made and made_of:
        taken = len(split_commas(made[1])) if made[1].strip() else 0
        function = FunctionRef(f"{made_of}::{made_of.split('<')[0].split('::')[-1]}", arity=taken)
    full = ".".join(part for part in (handle.prefix, class_name, name) if part)
    common = {**_common(place, handle), "class_name": class_name}
    return [
        Binding(handle.kind, "def", full, None, None, function, **common),
        Binding(handle.kind, "impl", full, None, None, function, **common),
    ]
