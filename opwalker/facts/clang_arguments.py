"""The template arguments of an instance, spelt as ``Launch.instances`` has them.

In: the cursor of an instance and the types of its template's parameters. Out: one line, or None. Types and numbers come
from clang's own questions, in their canonical form; what those do not tell (functions, packs) from its printer. A
function is spelt by its name alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwalker.facts.clang_kinds import Kinds
from opwalker.facts.clang_library import printed

_DEPTHS = {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}


def spelt(instance: Any, parameters: Sequence[Any], kinds: Kinds) -> str | None:
    """The arguments of an instance; None where clang does not tell one of them."""
    count = instance.get_num_template_arguments()
    if count < 0 or count != len(parameters):
        return None
    parts: list[str] = []
    pieces: list[str] | None = None
    for number, parameter in enumerate(parameters):
        try:
            kind = instance.get_template_argument_kind(number)
        except ValueError:  # a kind that the bindings have no word for, such as a pack
            kind = None
        if kind == kinds.type_argument:
            parts.append(instance.get_template_argument_type(number).get_canonical().spelling)
        elif kind == kinds.integral_argument:
            parts.append(_number(instance, number, parameter, kinds))
        else:
            if pieces is None:
                pieces = _pieces(instance)
            if len(pieces) != count:
                return None
            parts.append(pieces[number])
    return ", ".join(part for part in parts if part)


def _number(instance: Any, number: int, parameter: Any, kinds: Kinds) -> str:
    value = instance.get_template_argument_value(number)
    if parameter._kind_id in kinds.unsigned:
        value = instance.get_template_argument_unsigned_value(number)
    if parameter._kind_id == kinds.boolean:
        return "true" if value else "false"
    return f"({parameter.spelling}){value}" if parameter._kind_id == kinds.enumeration else str(value)


def _pieces(instance: Any) -> list[str]:
    """The arguments as clang prints them behind the name; a pack without its brackets. Empty where they are not
    found."""
    text = printed(instance)
    start = text.find(f"{instance.spelling}<")
    if start < 0:
        return []
    pieces, depth = [""], 1
    for char in text[start + len(instance.spelling) + 1 :]:
        depth += _DEPTHS.get(char, 0)
        if depth == 0:
            break
        if char == "," and depth == 1:
            pieces.append("")
        else:
            pieces[-1] += char
    stripped = [piece.strip() for piece in pieces]
    return [piece[1:-1] if piece.startswith("<") and piece.endswith(">") else piece for piece in stripped]
