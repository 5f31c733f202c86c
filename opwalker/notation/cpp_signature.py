"""C++ parameter and return types, and the schema types that PyTorch has for them.

In: type texts of a host function as written. Out: the schema that the dispatcher makes up for ``m.def("name", &f)``
(``infer_schema``), the schema type of one C++ type (``schema_type_of``), and whether a declared schema type suits a
C++ type (``types_agree``). A type that PyTorch has no schema type for, or whose name is not known here, gives None: a
``using`` of the scanned source is followed only as far as the caller hands it in. The figures are those of PyTorch
2.13, read off its dispatcher; the stable ABI boxes by the same table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct

from opwalker.model.schema import OpSchema, SchemaArgument, SchemaReturn, SchemaType
from opwalker.notation.regex import Regex
from opwalker.notation.schema_text import print_schema

NO_ALIASES: Mapping[str, str] = MappingProxyType({})

#: Where PyTorch's own types live; a name without a namespace is taken for one of them (``using namespace``).
_TORCH = frozenset(("", "at", "c10", "torch", "torch::stable", "torch::headeronly", "torch::stable::detail", "caffe2"))
_STD = frozenset(("", "std"))
_OPTIONAL = _STD | {"c10", "torch", "at", "torch::stable"}

#: Types without template arguments: the schema's base and suffixes, and the namespaces that the name is known in.
_PLAIN: dict[str, tuple[str, tuple[str, ...], frozenset[str]]] = {
    "Tensor": ("Tensor", (), _TORCH),
    "int64_t": ("int", (), _STD),
    "int8_t": ("int", (), _STD),
    "long": ("int", (), _STD),
    "long int": ("int", (), _STD),
    "double": ("float", (), _STD),
    "bool": ("bool", (), _STD),
    "string": ("str", (), _STD),
    "string_view": ("str", (), _STD | {"c10"}),
    "Scalar": ("Scalar", (), _TORCH),
    "ScalarType": ("ScalarType", (), _TORCH),
    "Dtype": ("ScalarType", (), frozenset(("torch",))),
    "Layout": ("Layout", (), _TORCH),
    "MemoryFormat": ("MemoryFormat", (), _TORCH),
    "Device": ("Device", (), _TORCH),
    "DeviceIndex": ("int", (), _TORCH),
    "Stream": ("Stream", (), _TORCH),
    "Generator": ("Generator", ("?",), _TORCH),
    "Storage": ("Storage", (), _TORCH),
    "QScheme": ("QScheme", (), _TORCH),
    "IValue": ("Any", (), _TORCH),
    "SymInt": ("SymInt", (), _TORCH),
    "SymBool": ("SymBool", (), _TORCH),
    "TensorList": ("Tensor", ("[]",), _TORCH),
    "ITensorListRef": ("Tensor", ("[]",), _TORCH),
    "IntArrayRef": ("int", ("[]",), _TORCH),
    "IntHeaderOnlyArrayRef": ("int", ("[]",), _TORCH),
    "SymIntArrayRef": ("SymInt", ("[]",), _TORCH),
    "OptionalIntArrayRef": ("int", ("[]", "?"), _TORCH),
    "OptionalSymIntArrayRef": ("SymInt", ("[]", "?"), _TORCH),
}
#: Templates of one schema type with a suffix behind it.
_WRAPPERS: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "optional": (("?",), _OPTIONAL),
    "vector": (("[]",), _STD),
    "array": (("[]",), _STD),
    "ArrayRef": (("[]",), _TORCH),
    "HeaderOnlyArrayRef": (("[]",), _TORCH),
    "List": (("[]",), _TORCH),
    "IListRef": (("[]",), _TORCH),
}
#: Types that people give a bound function and that PyTorch refuses to box: these suit no schema type.
_REFUSED = frozenset(
    (
        "float", "int", "short", "char", "unsigned", "unsigned int", "unsigned long", "long long", "unsigned char",
        "int16_t", "int32_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "size_t",
    )
)  # fmt: skip
_DECORATION = Regex(r"\b(?:const|volatile|typename|struct|class|constexpr|inline|static|__restrict__|restrict)\b")


class CppType(Struct, frozen=True):
    """A type name with its namespace and template arguments; ``pointer`` for ``T*``. ``const`` and references are
    gone: boxing does not see them."""

    namespace: str
    name: str
    arguments: tuple[str, ...] = ()
    pointer: bool = False


def read_cpp_type(text: str) -> CppType | None:
    """The parts of a C++ type text, None when it is none that could be boxed (a function, an array, ``auto``)."""
    plain = " ".join(_DECORATION.sub(" ", text).replace("&", " ").split())
    pointer = plain.endswith("*")
    plain = plain.rstrip("* ")
    head, bracket, rest = plain.partition("<")
    if bracket and not rest.rstrip().endswith(">"):
        return None
    name = re.sub(r"\s*::\s*", "::", head.strip()).removeprefix("::")
    if not re.fullmatch(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?: \w+)*", name):
        return None
    namespace, _, last = name.rpartition("::")
    arguments = split_arguments(rest.rstrip()[:-1]) if bracket else ()
    return CppType(namespace, last, arguments, pointer)


def split_arguments(text: str) -> tuple[str, ...]:
    """The template arguments between ``<`` and ``>``, split at the commas of the outermost level."""
    parts: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return tuple(parts) if text.strip() else ()


def schema_type_of(cpp_type: str, aliases: Mapping[str, str] = NO_ALIASES) -> SchemaType | None:
    """The schema type that the dispatcher infers for a C++ type, or None when it is not in the table.

    ``aliases`` gives the text behind a name of the scanned source: ``{"fptr_t": "int64_t"}``.
    """
    found = _direct(cpp_type)
    if found is not None or not aliases:
        return found
    return _direct(expand_aliases(cpp_type, aliases))


def expand_aliases(cpp_type: str, aliases: Mapping[str, str]) -> str:
    """The text with every alias replaced, also inside template arguments; an alias of itself ends after a few turns."""
    pattern = re.compile(r"(?<![\w:])(?:" + "|".join(map(re.escape, aliases)) + r")(?![\w:])")
    for _ in range(8):
        replaced = pattern.sub(lambda match: aliases[match.group()], cpp_type)
        if replaced == cpp_type:
            break
        cpp_type = replaced
    return cpp_type


@lru_cache(maxsize=1024)
def _direct(text: str) -> SchemaType | None:
    cpp = read_cpp_type(text)
    if cpp is None or cpp.pointer:
        return None
    if not cpp.arguments:
        base, suffixes, namespaces = _PLAIN.get(cpp.name, ("", (), frozenset()))
        return SchemaType(base, suffixes) if cpp.namespace in namespaces else None
    if cpp.name in _WRAPPERS:
        return _wrapped(cpp)
    if cpp.name == "OptionalArrayRef" and cpp.namespace in _TORCH:
        return SchemaType("int", ("[]", "?")) if cpp.arguments == ("int64_t",) else None
    if cpp.name == "complex" and cpp.namespace in _TORCH:
        return SchemaType("complex") if cpp.arguments == ("double",) else None
    if cpp.name == "tuple" and cpp.namespace in _STD:
        return _with_items("tuple", cpp.arguments)
    if cpp.name == "Dict" and cpp.namespace in _TORCH and len(cpp.arguments) == 2:
        return _with_items("Dict", cpp.arguments)
    return None


def _wrapped(cpp: CppType) -> SchemaType | None:
    added, namespaces = _WRAPPERS[cpp.name]
    if cpp.namespace not in namespaces or len(cpp.arguments) != (2 if cpp.name == "array" else 1):
        return None
    inner = _direct(cpp.arguments[0])
    # `std::vector<bool>` packs its bits and is refused; an optional of an optional is one optional.
    if inner is None or (cpp.name == "vector" and inner == SchemaType("bool")):
        return None
    suffixes = inner.suffixes if added == ("?",) and inner.suffixes[-1:] == ("?",) else inner.suffixes + added
    return SchemaType(inner.base, suffixes, items=inner.items)


def _with_items(base: str, arguments: tuple[str, ...]) -> SchemaType | None:
    items = [_direct(argument) for argument in arguments]
    known = tuple(item for item in items if item is not None)
    return SchemaType(base, items=known) if len(known) == len(items) else None


def infer_schema(
    name: str,
    parameters: Sequence[tuple[str, str]],
    return_type: str,
    *,
    keep_names: bool = False,
    aliases: Mapping[str, str] = NO_ALIASES,
) -> str | None:
    """The schema text that the dispatcher infers for ``m.def(name, &f)``, None when one type is not in the table.

    ``parameters`` are ``(type text, name)``. The dispatcher sees no names and counts ``_0, _1, ...``, returned values
    too; ``keep_names`` puts the C++ names in their place for a reader. Nothing is marked as mutated: a signature does
    not say it. ``name`` may hold a namespace and an overload.
    """
    arguments: list[SchemaArgument] = []
    for index, (text, cpp_name) in enumerate(parameters):
        type = schema_type_of(text, aliases)
        if type is None:
            return None
        arguments.append(SchemaArgument(type, cpp_name if keep_names and cpp_name else f"_{index}"))
    returned = _returns(return_type, aliases)
    if returned is None:
        return None
    returns = tuple(SchemaReturn(type, None if keep_names else f"_{index}") for index, type in enumerate(returned))
    namespace, colons, rest = name.rpartition("::")
    base, dot, overload = rest.partition(".")
    schema = OpSchema(base, tuple(arguments), returns, namespace if colons else None, overload if dot else None)
    return print_schema(schema)


def _returns(text: str, aliases: Mapping[str, str]) -> tuple[SchemaType, ...] | None:
    """The returned values: none for ``void``, each member of a tuple."""
    plain = expand_aliases(text, aliases) if aliases else text
    cpp = read_cpp_type(plain)
    if cpp is not None and cpp.name == "void" and not cpp.pointer:
        return ()
    if re.fullmatch(r"(?:std::)?tuple\s*<\s*>", plain.strip()):
        return ()
    type = schema_type_of(plain)
    if type is None:
        return None
    return type.items if type.base == "tuple" and not type.suffixes else (type,)


def types_agree(schema_type: SchemaType, cpp_type: str, aliases: Mapping[str, str] = NO_ALIASES) -> bool | None:
    """Whether a kernel may take (or return) this C++ type for a value of the schema type; None when that cannot be
    told: the name is not known here, or the schema type is a type variable or a class.

    ``SymInt`` may be an ``int64_t``, in lists as well; the length in ``int[3]`` is of no matter; alias sets are not
    looked at.
    """
    inferred = schema_type_of(cpp_type, aliases)
    if inferred is None:
        cpp = read_cpp_type(expand_aliases(cpp_type, aliases) if aliases else cpp_type)
        if cpp is None:
            return None
        if cpp.name == "intrusive_ptr" and len(cpp.arguments) == 1:
            return _class_agrees(schema_type, cpp.arguments[0])
        refused = cpp.namespace in _STD and not cpp.pointer and cpp.name in _REFUSED
        return False if refused and _is_known(schema_type) else None
    return _same(schema_type, inferred) if _is_known(schema_type) else None


def _class_agrees(schema_type: SchemaType, pointee: str) -> bool | None:
    """A custom class is known by the name it was registered with, which may be another than the C++ one."""
    if not schema_type.base.startswith("__torch__."):
        return False if _is_known(schema_type) else None
    inner = read_cpp_type(pointee)
    same = inner is not None and schema_type.base.rpartition(".")[2] == inner.name and not schema_type.suffixes
    return True if same else None


def _is_known(type: SchemaType) -> bool:
    """Whether the schema type stands for one C++ type: no type variable, class, future or union."""
    if type.base in ("tuple", "Dict"):
        return all(map(_is_known, type.items))
    return not type.items and type.base[0] != "_" and not re.fullmatch(r"t(?:\d|[A-Z]\w*)?", type.base)


def _same(declared: SchemaType, inferred: SchemaType) -> bool:
    declared_base = "int" if declared.base == "DeviceIndex" else declared.base
    bases = declared_base == inferred.base or (declared_base == "SymInt" and inferred.base == "int")
    plain = tuple("[]" if suffix[0] == "[" else suffix for suffix in declared.suffixes)
    items = len(declared.items) == len(inferred.items) and all(map(_same, declared.items, inferred.items))
    return bases and plain == inferred.suffixes and items
