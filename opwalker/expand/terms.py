"""Template arguments as values: types, constants, functions, packs, spelt as a demangler spells them.

In: texts of builtin types, numbers. Out: ``Term`` values and their printed forms. No scope is looked at here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from opwalker.notation.regex import Regex


class Unknown(Exception):
    """An expression that could not be worked out; ``str()`` says which and why."""


class NoType(Unknown):
    """A substitution that fails: ``std::enable_if_t<false>``, a number for a type parameter."""


class NoMember(Unknown):
    """A class that is known, all of it, has no member of a name."""


class TypeTerm(Struct, frozen=True):
    """A type in canonical spelling (``unsigned char``, ``c10::Half``, ``ns::Traits<64, true>``). ``by_name`` says that
    it was deduced for a ``T&&`` from a variable: ``T`` itself is then a reference to it."""

    text: str
    by_name: bool = False


class ConstTerm(Struct, frozen=True):
    """A constant; ``type`` is canonical (``int``, ``bool``, ``unsigned int``, an enumeration's qualified name)."""

    value: int | float
    type: str = "int"


class FunctionTerm(Struct, frozen=True):
    """A function as a template argument, already printed (``&(float ns::f<float>(float const&))``); ``internal`` for
    one whose name only its own translation unit sees."""

    text: str
    internal: bool = False


class TemplateTerm(Struct, frozen=True):
    """A class or alias template as a template argument: its qualified name."""

    text: str


class ListTerm(Struct, frozen=True):
    """A constant array or aggregate: its elements in order; ``type`` is canonical, ``""`` where it is not known."""

    items: tuple[Term, ...]
    type: str = ""

    @property
    def text(self) -> str:
        """The elements as a list in braces, behind the type where that is known."""
        return self.type + "{" + ", ".join(print_term(item, None) for item in self.items) + "}"


class PackTerm(Struct, frozen=True):
    """What a parameter pack holds."""

    items: tuple[Term, ...]

    @property
    def text(self) -> str:
        """The elements as they stand among template arguments."""
        return ", ".join(print_term(item, None) for item in self.items)


class ClosureTerm(Struct, frozen=True):
    """A lambda inside a constexpr function: its text, and the environment that it stands in. It is no argument."""

    text: str
    scope: Any
    type: str = "closure"


Term = TypeTerm | ConstTerm | FunctionTerm | TemplateTerm | ListTerm | PackTerm | ClosureTerm


class PassedCall(Struct, frozen=True):
    """A call of a lambda in a function that it is passed to. ``terms`` are the template arguments given there,
    ``types`` those of what is passed, None where one is not known; ``start`` is where the lambda's own function passes
    it on, ``number`` tells the calls apart."""

    start: int
    number: int
    terms: tuple[Term, ...]
    types: tuple[str | None, ...]
    reason: str | None = None


_BUILTIN = {
    "int64_t": "long",
    "uint64_t": "unsigned long",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "size_t": "unsigned long",
    "ptrdiff_t": "long",
    "intptr_t": "long",
    "uintptr_t": "unsigned long",
    "uint": "unsigned int",
    "unsigned": "unsigned int",
    "unsigned int": "unsigned int",
    "signed": "int",
    "signed int": "int",
    "short int": "short",
    "long int": "long",
    "unsigned long int": "unsigned long",
    "long long int": "long long",
    "unsigned short int": "unsigned short",
    "half": "__half",
    "half2": "__half2",
    "nv_bfloat16": "__nv_bfloat16",
    "nv_bfloat162": "__nv_bfloat162",
    "nv_half": "__half",
    "nv_half2": "__half2",
    "__nv_fp8_storage_t": "unsigned char",
    "__nv_fp8x2_storage_t": "unsigned short",
    "__nv_fp8x4_storage_t": "unsigned int",
    "__nv_fp4_storage_t": "unsigned char",
    "__nv_fp4x2_storage_t": "unsigned char",
    "__nv_fp4x4_storage_t": "unsigned short",
}
_SELF = frozenset(
    "void bool char wchar_t float double int short long __half __half2 __nv_bfloat16 __nv_bfloat162 __nv_fp8_e4m3 "
    "__nv_fp8_e5m2 __nv_fp8_e8m0 "
    "__nv_fp8x2_e4m3 __nv_fp8x4_e4m3 __nv_fp8x2_e5m2 __nv_fp8x4_e5m2 __nv_fp4_e2m1 __nv_fp4x2_e2m1 "
    "__nv_fp4x4_e2m1".split()
) | {
    "unsigned char",
    "signed char",
    "unsigned short",
    "unsigned long",
    "long long",
    "unsigned long long",
    "long double",
}
_VECTORS = frozenset(
    f"{base}{count}"
    for base in (
        "char",
        "uchar",
        "short",
        "ushort",
        "int",
        "uint",
        "long",
        "ulong",
        "longlong",
        "ulonglong",
        "float",
        "double",
    )
    for count in (1, 2, 3, 4)
)
_C10 = frozenset(
    "ScalarType Half BFloat16 Float8_e4m3fn Float8_e5m2 Float8_e4m3fnuz Float8_e5m2fnuz Float8_e8m0fnu "
    "Float4_e2m1fn_x2".split()
)
#: CUTLASS's classes of numbers.
_CUTLASS = frozenset(
    "half_t bfloat16_t tfloat32_t float_e4m3_t float_e5m2_t float_e2m3_t float_e3m2_t float_e2m1_t float_ue4m3_t "
    "float_ue8m0_t".split()
)
_TORCH = ("at", "c10", "torch", "torch::headeronly")

#: Sizes in bytes of canonical types.
SIZES = {
    "bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2, "int": 4,
    "unsigned int": 4, "long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "float": 4, "double": 8,
    "__half": 2, "__half2": 4, "__nv_bfloat16": 2, "__nv_bfloat162": 4, "c10::Half": 2, "c10::BFloat16": 2,
    "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
    "__nv_fp8_e4m3": 1, "__nv_fp8_e5m2": 1, "__nv_fp8_e8m0": 1, "__nv_fp8x2_e4m3": 2, "__nv_fp8x2_e5m2": 2,
    "__nv_fp8x4_e4m3": 4, "__nv_fp8x4_e5m2": 4, "__nv_fp4_e2m1": 1, "__nv_fp4x2_e2m1": 1, "__nv_fp4x4_e2m1": 2,
    "float2": 8, "float4": 16, "int2": 8, "int4": 16, "uint2": 8, "uint4": 16,
    "c10::complex<float>": 8, "c10::complex<double>": 16, "double2": 16, "ulonglong2": 16, "longlong2": 16,
}  # fmt: skip

#: Types whose constants carry a suffix.
_SUFFIX = {
    "unsigned int": "u", "long": "l", "unsigned long": "ul", "long long": "ll", "unsigned long long": "ull", "int": "",
}  # fmt: skip
#: A reference or pointer to an array, as it is kept: ``float[4]&``.
_TO_ARRAY = Regex(r"((?:\[\d*\])+)(&{1,2}|\*+)")
INTEGERS = frozenset(_SUFFIX) | {"bool", "char", "signed char", "unsigned char", "short", "unsigned short"}


@lru_cache(maxsize=8192)
def builtin(text: str) -> str | None:
    """The canonical spelling of a builtin, CUDA, torch or CUTLASS scalar type; None for any other name."""
    words = " ".join(text.split())
    bare = words.removeprefix("::")
    for prefix in ("std::", "cuda::std::"):
        bare = bare.removeprefix(prefix)
    if bare.endswith("_t") and bare.startswith("cutlass::") and bare[len("cutlass::") :] in _BUILTIN:
        bare = bare[len("cutlass::") :]  # its headers bring in those of <cstdint>
    if bare in _BUILTIN:
        return _BUILTIN[bare]
    if bare in _SELF or bare in _VECTORS:
        return bare
    scope, _, name = bare.rpartition("::")
    if scope == "cutlass" and name in _CUTLASS:
        return bare
    if name in _C10 and scope in _TORCH:
        return f"c10::{name}"
    return None


def print_term(term: Term, parameter_type: str | None) -> str:
    """A template argument as a demangler prints it, for a parameter of a canonical type (None: of the term's own)."""
    if not isinstance(term, ConstTerm):
        if isinstance(term, TypeTerm) and ("]&" in term.text or "]*" in term.text):
            return _TO_ARRAY.sub(r" (\2)\1", term.text)
        return f"{term.text}&" if isinstance(term, TypeTerm) and term.by_name else term.text
    kind = parameter_type if parameter_type and parameter_type != "auto" else term.type
    if isinstance(term.value, float):
        return repr(term.value)
    if kind == "bool":
        return "true" if term.value else "false"
    if kind in _SUFFIX:
        return f"{term.value}{_SUFFIX[kind]}"
    return f"({kind}){term.value}"


def flattened(terms: Iterable[Term]) -> list[Term]:
    """Template arguments with the packs among them spread."""
    out: list[Term] = []
    for term in terms:
        out += term.items if isinstance(term, PackTerm) else (term,)
    return out


def join_arguments(parts: list[str]) -> str:
    """Printed arguments in one list; a closing bracket keeps a blank before the next one."""
    text = ", ".join(parts)
    return f"{text} " if text.endswith(">") else text
