"""What the names in an operator schema mean: the types there are, and the defaults that suit them.

In: a base name, or a type and the text of its default. Out: what is wrong with it in one line, or None. Figures taken
from PyTorch 2.13's own reader; a name that only older releases know is kept.
"""

from __future__ import annotations

import re

from opwalker.model.schema import SchemaType
from opwalker.notation.regex import Regex

#: Base types. Those that the C++ side sees as an ``int64_t`` but that keep their name are in ``INT_LIKE``.
TYPES = frozenset(
    "Tensor int SymInt float bool SymBool str complex Scalar ScalarType Layout MemoryFormat Device DeviceIndex Stream "
    "Generator Storage QScheme Dimname Quantizer ConstQuantizerPtr Any None NoneType Capsule AnyClassType "
    "AnyEnumType".split()
)
INT_LIKE = frozenset(("int", "SymInt", "ScalarType", "Layout", "MemoryFormat", "DeviceIndex"))
#: Types that the key of a Dict can have.
DICT_KEYS = INT_LIKE | {"Tensor", "float", "bool", "str", "complex", "Device", "Any"}

#: Names that people write and that are no schema types, with the name that is meant.
MISTAKEN = {
    "double": "float", "float32": "float", "float64": "float", "half": "float",
    "int64_t": "int", "int32_t": "int", "int64": "int", "int32": "int", "long": "int", "size_t": "int",
    "string": "str", "String": "str", "boolean": "bool", "tensor": "Tensor", "void": "()",
    "TensorList": "Tensor[]", "IntArrayRef": "int[]", "Tuple": "(...)", "List": "[]", "Optional": "?", "optional": "?",
    "vector": "[]",
    "dtype": "ScalarType", "device": "Device",
}  # fmt: skip

_VARIABLE = Regex(r"t(?:[0-9]|[A-Z][A-Za-z0-9_]*)?")

#: Constants that stand for a number and are known whatever the type; names of dtypes are known for a ScalarType.
_CONSTANTS = frozenset(("Mean", "strided", "contiguous_format", "long", "float", "complex"))
_DTYPES = frozenset("double half int short char byte bool chalf cfloat cdouble uint8 int8".split())
_DTYPE_WITH_WIDTH = Regex(r"(?:b?float|u?int|complex|qu?int|bits)[0-9]\w*")

_ONLY_NONE = frozenset(("Tensor", "Generator", "Quantizer"))
_SINGLE = INT_LIKE - {"DeviceIndex"} | {"float", "bool", "str", "Scalar", "complex"}
_IN_LIST = {
    "int": "int", "SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int",
    "float": "float", "bool": "bool", "complex": "complex",
}  # fmt: skip


_BY_VALUE = Regex(r"(?:int|float|bool|str|SymInt|ScalarType|Scalar|Device|Layout)\??\Z")


def is_by_value(text: str) -> bool:
    """Whether an argument of a type, as written, is passed by value: nothing is written to it, whatever is marked."""
    return _BY_VALUE.match(text) is not None


def is_type_variable(base: str) -> bool:
    """Whether a base name stands for any type: ``t``, ``t1``, ``tVal``."""
    return _VARIABLE.fullmatch(base) is not None


def wrong_type(base: str) -> str | None:
    """What is wrong with a base name, or None."""
    if base in TYPES or is_type_variable(base):
        return None
    last = base.rpartition("::")[2]
    meant = last if last in TYPES else MISTAKEN.get(last)
    return f"unknown type `{base}`; write `{meant}`" if meant else f"unknown type `{base}`"


def may_follow_default(type: SchemaType) -> bool:
    """Whether a positional argument of this type may stand without a default behind one that has one: a list may."""
    return bool(type.suffixes) and type.suffixes[-1] != "?"


def wrong_default(type: SchemaType, text: str) -> str | None:
    """What is wrong with a default of this type, or None. ``text`` is one literal or a list of literals."""
    outermost = type.suffixes[-1] if type.suffixes else ""
    if outermost == "?":
        return _wrong_single(type.base if len(type.suffixes) == 1 else "", text)
    if outermost:
        return _wrong_list(type, text)
    if type.items or type.base == "tuple":
        return "a value of this type has no default"
    if type.base in _ONLY_NONE:
        return None if text == "None" else f"the default of a {type.base} can only be None"
    if type.base == "Device":
        return None if text[0] in "\"'" else "the default of a Device is a string"
    if type.base not in _SINGLE:
        return f"a {type.base} has no default"
    return _wrong_single(type.base, text)


def _wrong_single(base: str, text: str) -> str | None:
    if text[0] == "[":
        return "a list is the default of a list type only"
    if not (text[0].isalpha() or text[0] == "_") or text in ("True", "False", "None") or text in _CONSTANTS:
        return None
    if base == "ScalarType" and (text in _DTYPES or _DTYPE_WITH_WIDTH.fullmatch(text) or text == "bfloat16"):
        return None
    meant = {"true": "True", "false": "False", "none": "None", "null": "None", "nullptr": "None", "nullopt": "None"}
    hint = f"; write `{meant[text.lower()]}`" if text.lower() in meant else ""
    return f"unknown default `{text}`{hint}"


def _wrong_list(type: SchemaType, text: str) -> str | None:
    kind = _IN_LIST.get(type.base) if len(type.suffixes) == 1 else None
    if kind is None:
        return "a list of this type has no default"
    if text[0] != "[":
        if type.suffixes[-1] == "[]":
            return "the default of a list is a list, or one value where the length is written"
        return f"`{text}` is no {kind}" if text in _CONSTANTS else _wrong_element(kind, text)
    items = [item.strip() for item in text[1:-1].split(",")] if text[1:-1].strip() else []
    return next((wrong for item in items if (wrong := _wrong_element(kind, item))), None)


def _wrong_element(kind: str, text: str) -> str | None:
    """What is wrong with one value of a list of numbers or truth values."""
    word = text[0].isalpha() or text[0] == "_"
    if kind == "bool":
        fits = text in ("True", "False")
    elif kind == "int":
        fits = text in _CONSTANTS if word else text[0] not in "\"'" and not re.search(r"[.jJ]|(?<!x)[0-9][eE]", text)
    else:
        fits = not word and text[0] not in "\"'" and (kind == "complex" or "j" not in text)
    return None if fits else f"`{text}` is no {kind}"
