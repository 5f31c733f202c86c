"""Types that C++, its library and CUDA's headers give: of literals, operators, members and functions known by name.

In: canonical types. Out: canonical types, None where nothing is known.
"""

from __future__ import annotations

from opwalker.expand.arithmetic import common, limit
from opwalker.expand.shapes import Shape, shape
from opwalker.expand.terms import INTEGERS, builtin
from opwalker.notation.regex import Regex

#: The types that an integer literal of a suffix may have, the first that holds it: of a decimal one, and of others.
_WIDER = {
    "int": (("int", "long"), ("int", "unsigned int", "long", "unsigned long")),
    "unsigned int": (("unsigned int", "unsigned long"),) * 2,
    "long": (("long",), ("long", "unsigned long")),
    "long long": (("long long",), ("long long", "unsigned long long")),
}
_NUMBERS = INTEGERS | {"float", "double"}
_VECTOR = Regex(r"(u?(?:char|short|int|long|longlong)|float|double)[1-4]\Z")
_MADE = Regex(r"make_(u?(?:char|short|int|long|longlong)[1-4]|(?:float|double)[1-4])\Z")
_ELEMENTS = {
    "char": "signed char", "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int",
    "ulong": "unsigned long", "longlong": "long long", "ulonglong": "unsigned long long",
}  # fmt: skip
_CONSTANTS = Regex(r"\s*(?:const\s+auto|auto\s+const)\s*\*")
_FUNCTIONS = {
    "__float2half": "__half", "__float2half_rn": "__half", "__half2float": "float", "__float2bfloat16": "__nv_bfloat16",
    "__bfloat162float": "float", "sqrtf": "float", "expf": "float", "logf": "float", "log2f": "float", "powf": "float",
    "rsqrtf": "float", "fabsf": "float", "ceilf": "float", "floorf": "float", "fmaxf": "float", "fminf": "float",
}  # fmt: skip
_CONTAINERS = frozenset("vector array span ArrayRef string basic_string initializer_list map unordered_map".split())


def literal_type(value: int, kind: str, decimal: bool) -> str:
    """The type of an integer literal whose suffix asks for at least ``kind``."""
    chain = _WIDER.get(kind, ((kind,), (kind,)))[not decimal]
    return next((one for one in chain if (most := limit(one, "max")) and value <= most.value), chain[-1])


def either(one: str | None, two: str | None) -> str | None:
    """The type of ``c ? one : two``; of a null pointer, or what is not known, nothing is taken."""
    if one is None or two is None:
        known = one or two
        # What is not known may make another number of it.
        return None if known is None or decayed(shape(known)).text in _NUMBERS else known
    left, right = decayed(shape(one)), decayed(shape(two))
    if not left.marks and not right.marks and {left.base, right.base} <= _NUMBERS and left.base != right.base:
        return number_of(left.base, right.base)
    return one if left.text == right.text else _pointers(left, right)


def _pointers(one: Shape, two: Shape) -> str | None:
    """The type that two different pointers have in common, as far as it is plain: one is of ``void``, or they differ
    in that one is of constants."""
    if one.marks != ("*",) or two.marks != ("*",) or one.parameters is not None or two.parameters is not None:
        return None
    if one.base != two.base and "void" not in (one.base, two.base):
        return None
    base = one.base if one.base == two.base else "void"
    return Shape(base, one.const or two.const, ("*",)).text


def number_of(one: str, two: str) -> str:
    """The type that two different arithmetic types are computed in."""
    if {one, two} <= INTEGERS:
        return common(one, two)
    return "double" if "double" in (one, two) else "float"


def unreferenced(held: Shape) -> Shape:
    """A type without its references."""
    marks = held.marks
    while marks and marks[-1] in ("&", "&&"):
        marks = marks[:-1]
    return Shape(held.base, held.const, marks, held.parameters)


def decayed(held: Shape) -> Shape:
    """A type without its references, an array as a pointer to its elements."""
    value = unreferenced(held)
    if not value.marks or not value.marks[-1].startswith("["):
        return value
    return Shape(value.base, value.const, (*value.marks[:-1], "*"), value.parameters)


def like_auto(kind: str, found: str) -> str:
    """The type that ``auto`` or ``auto&`` stands for."""
    held = unreferenced(shape(found))
    if held.marks and held.marks[-1].startswith("["):
        held = Shape(held.base, held.const, (*held.marks[:-1], "*"))
    const = held.const and (bool(held.marks) or "&" in kind)
    if "*" in kind and len(held.marks) == 1 and _CONSTANTS.match(kind):
        const = True  # `const auto* p`: what it points to
    return Shape(held.base, const, held.marks, held.parameters).text


def member_type(kind: str, name: str) -> str | None:
    """A data member of a vector type, of ``dim3``, or of a pair."""
    held = decayed(shape(kind))
    if held.marks:
        return None
    if name in ("x", "y", "z", "w"):
        vector = _VECTOR.match(held.base)
        if vector:
            return _ELEMENTS.get(vector.group(1), vector.group(1))
        return "unsigned int" if held.base in ("dim3", "uint3") else None
    if name in ("first", "second") and held.arguments and held.name == "std::pair":
        return held.arguments[name == "second"]
    return None


def method_type(kind: str, name: str) -> str | None:
    """What a method of a container or of an optional value gives."""
    held = decayed(shape(kind))
    if held.marks or not held.arguments:
        return None
    simple = held.name.rsplit("::", 1)[-1]
    if simple in _CONTAINERS and name in ("size", "length"):
        return "unsigned long"
    if simple == "optional" and name in ("value", "value_or"):
        return held.arguments[0]
    if simple == "vector" and name in ("at", "back", "front"):
        return held.arguments[0]
    return None


def function_type(name: str, template: str | None, kinds: list[str | None]) -> str | None:
    """What a function of the standard library or of CUDA gives for the types of its arguments."""
    scope, _, simple = name.removeprefix("::").rpartition("::")
    made = _MADE.match(simple)
    if made:
        return made.group(1)
    if simple in _FUNCTIONS:
        return _FUNCTIONS[simple]
    if scope != "std":
        return None
    if simple in ("max", "min") and len(kinds) == 2:
        if template is not None:
            return builtin(template)
        return kinds[0] if kinds[0] == kinds[1] else None
    if simple == "get" and template is not None and template.strip().isdigit() and kinds and kinds[0]:
        held = decayed(shape(kinds[0]))
        listed = held.arguments or ()
        if held.name in ("std::tuple", "std::pair") and int(template) < len(listed):
            return listed[int(template)]
    return None
