"""The standard library's type traits, and torch's: what they say of canonical types.

In: a trait's simple name and its arguments, printed. Out: a truth or a type, None for what is no trait. Facts of public
interfaces, as data; which class a name means is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from opwalker.expand.shapes import Shape, shape
from opwalker.expand.terms import INTEGERS, Unknown
from opwalker.notation.regex import Regex

_FLOATS = frozenset(("float", "double", "long double"))
_UNSIGNED = Regex(r"unsigned |bool\Z")
#: Types that torch computes in ``float`` (``at::opmath_type``, ``at::acc_type`` on the device).
_SMALL = frozenset(
    "c10::Half c10::BFloat16 __half __nv_bfloat16 c10::Float8_e4m3fn c10::Float8_e5m2 c10::Float8_e4m3fnuz "
    "c10::Float8_e5m2fnuz".split()
)


def _same(left: str, right: str) -> bool:
    return "".join(left.split()) == "".join(right.split())


def _plain(kind: str) -> Shape:
    """A type without qualifiers of its own and without a reference."""
    found = shape(kind)
    marks = found.marks
    while marks and marks[-1] in ("&", "&&"):
        marks = marks[:-1]
    return Shape(found.base, found.const, marks, found.parameters)


def _is(kinds: frozenset[str]) -> Callable[[str], bool]:
    return lambda kind: not shape(kind).marks and shape(kind).base in kinds


_TRUTHS: dict[str, Callable[..., bool]] = {
    "is_same": _same,
    "is_integral": _is(INTEGERS),
    "is_floating_point": _is(_FLOATS),
    "is_arithmetic": _is(INTEGERS | _FLOATS),
    "is_fundamental": _is(INTEGERS | _FLOATS | {"void"}),
    "is_void": _is(frozenset(("void",))),
    "is_pointer": lambda kind: shape(kind).marks[-1:] == ("*",),
    "is_reference": lambda kind: shape(kind).marks[-1:] in (("&",), ("&&",)),
    "is_array": lambda kind: bool(shape(kind).marks) and shape(kind).marks[-1].startswith("["),
    "is_const": lambda kind: shape(kind).const and not shape(kind).marks,
    "is_unsigned": lambda kind: _is(INTEGERS)(kind) and bool(_UNSIGNED.match(shape(kind).base)),
    "is_signed": lambda kind: (_is(INTEGERS | _FLOATS)(kind)) and not _UNSIGNED.match(shape(kind).base),
}  # fmt: skip


def truth(name: str, arguments: list[str]) -> bool | None:
    """What ``is_integral_v`` or ``is_integral`` says of printed types; None for what is no trait known here."""
    simple = name.removesuffix("_v")
    trait = _TRUTHS.get(simple)
    if trait is None or len(arguments) != (2 if simple == "is_same" else 1):
        return None
    return trait(*arguments)


def _unconst(kind: str) -> str:
    found = shape(kind)
    return Shape(found.base, False, found.marks, found.parameters).text if not found.marks else found.text


def _pointee(kind: str) -> str:
    found = shape(kind)
    return Shape(found.base, found.const, found.marks[:-1]).text if found.marks[-1:] == ("*",) else found.text


def _decayed(kind: str) -> str:
    found = _plain(kind)
    if found.marks and found.marks[-1].startswith("["):
        return Shape(found.base, found.const, (*found.marks[:-1], "*")).text
    return _unconst(found.text)


def _signed(kind: str) -> str:
    if kind in ("unsigned char", "char"):
        return "signed char"
    if kind not in INTEGERS:
        raise Unknown(f"the signed type of `{kind}` is not known")
    return kind.removeprefix("unsigned ")


def _unsigned(kind: str) -> str:
    if kind not in INTEGERS or kind == "bool":
        raise Unknown(f"the unsigned type of `{kind}` is not known")
    return kind if kind.startswith("unsigned") else f"unsigned {kind.removeprefix('signed ')}"


def _accumulated(kind: str) -> str:
    if kind in _SMALL or kind == "float":
        return "float"
    if kind == "double":
        return "double"
    if kind == "bool":
        return "bool"
    if kind in INTEGERS:
        return "long"
    raise Unknown(f"the type that `{kind}` is accumulated in is not known")


_TYPES: dict[str, Callable[[str], str]] = {
    "decay": _decayed,
    "remove_cv": _unconst,
    "remove_const": _unconst,
    "remove_volatile": lambda kind: kind,
    "remove_reference": lambda kind: _plain(kind).text,
    "remove_cvref": lambda kind: _unconst(_plain(kind).text),
    "remove_pointer": _pointee,
    "type_identity": lambda kind: kind,
    "add_pointer": lambda kind: _plain(kind).text + "*",
    "add_const": lambda kind: Shape(shape(kind).base, True).text if not shape(kind).marks else kind,
    "make_signed": _signed,
    "make_unsigned": _unsigned,
    "acc_type": _accumulated,
    "acc_type_device": _accumulated,
    "opmath_type": lambda kind: "float" if kind in _SMALL else kind,
    "OpMathType": lambda kind: "float" if kind in _SMALL else kind,
}

#: Names of the traits that make types, without ``_t``.
TYPE_NAMES = frozenset(_TYPES)


def made_type(name: str, arguments: list[str]) -> str | None:
    """The type that ``remove_const_t`` or ``remove_const`` makes of printed types; None for what makes none. Raises
    Unknown."""
    found = _TYPES.get(name.removesuffix("_t"))
    return found(arguments[0]) if found is not None and arguments else None


#: Class templates from outside that take exactly the arguments that are written, so that they print as they stand.
PLAIN_TEMPLATES = {
    "std": frozenset(
        "pair tuple array variant integral_constant integer_sequence complex plus minus multiplies divides modulus "
        "negate equal_to not_equal_to greater less greater_equal less_equal logical_and logical_or logical_not "
        "bit_and bit_or bit_xor bit_not".split()
    ),
    "cuda::std": frozenset("pair tuple array complex".split()),
    "c10": frozenset("complex ArrayRef".split()),
    "thrust": frozenset("complex pair".split()),
}
