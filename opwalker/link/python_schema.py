"""The schema of an op that is defined by a Python function's annotations.

In: the function's signature, the arguments it mutates, and a look-up of names. Out: the schema's text, as
``torch.library.infer_schema`` gives it, or the reason why there is none. A signature as written is given for any
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from opwalker.link.python_values import Const, Outer, Value
from opwalker.model.python import PyFunction
from opwalker.notation.python_types import NotAType, PyType, parse_type

#: Schema types of plain Python types, and whether ``X[]``, ``X?[]`` and ``X[]?`` exist for them.
_BASES = {
    "Tensor": (True, True, False),
    "SymInt": (True, False, True),
    "float": (True, False, True),
    "bool": (True, False, True),
    "str": (False, False, False),
    "Scalar": (True, False, False),
    "ScalarType": (False, False, False),
    "Device": (False, False, False),
}
_NAMES = {
    "torch.Tensor": "Tensor",
    "builtins.int": "SymInt",
    "builtins.float": "float",
    "builtins.bool": "bool",
    "builtins.str": "str",
    "torch.types.Number": "Scalar",
    "torch.types._dtype": "ScalarType",
    "torch.dtype": "ScalarType",
    "torch.device": "Device",
    "torch.types.Device": "",
}
#: Spellings that torch also understands without an import.
_BARE = {"Tensor": "torch.Tensor", "device": "torch.device", "dtype": "torch.dtype"}
_SEQUENCES = frozenset(
    {"typing.List", "typing.Sequence", "collections.abc.Sequence", "builtins.list", "typing_extensions.Sequence"}
)
_TUPLES = frozenset({"typing.Tuple", "builtins.tuple"})
_BUILTIN = frozenset({"int", "float", "bool", "str", "list", "tuple"})
_RETURNED = frozenset({"Tensor", "SymInt", "float", "bool", "Scalar", "Tensor[]"})
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
}
_PLAIN_DTYPES = frozenset(
    "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex32 complex64"
    " complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2".split()
)


class NoSchema(ValueError):
    """There is no schema; the text is the reason."""


class Names(Struct, frozen=True):
    """How the file of a function understands names: ``value`` gives what a bare name or default's text stands for."""

    value: Callable[[str], Value]
    default: Callable[[str], Value]


def infer_schema(function: PyFunction, mutates: Iterable[str] | None, names: Names, name: str = "") -> str:
    """``name(…) -> …`` from annotations; ``mutates`` None means that every tensor may be written.

    Raises ``NoSchema`` where torch would refuse, or where an annotation or a default cannot be known.
    """
    mutated = None if mutates is None else set(mutates)
    unseen = set(mutated or ())
    parts: list[str] = []
    keyword_only = False
    for at, (parameter, annotation, default, kind) in enumerate(function.parameters):
        if kind not in ("pos", "kwonly"):
            raise NoSchema(f"parameter {parameter} is positional-only or variadic, which a schema cannot say")
        if kind == "kwonly" and not keyword_only:
            keyword_only = True
            parts.append("*")
        if annotation is None:
            raise NoSchema(f"parameter {parameter} has no annotation")
        written = _argument_type(annotation, parameter, names)
        unseen.discard(parameter)
        if (mutated is None and written.startswith("Tensor")) or (mutated is not None and parameter in mutated):
            if not written.startswith("Tensor"):
                raise NoSchema(f"parameter {parameter} is said to be mutated and is no tensor")
            written = f"Tensor(a{at}!){written[len('Tensor') :]}"
        value = f"={_default(default, parameter, names)}" if default is not None else ""
        parts.append(f"{written} {parameter}{value}")
    if unseen:
        raise NoSchema(f"mutated arguments that the function does not have: {', '.join(sorted(unseen))}")
    return f"{name}({', '.join(parts)}) -> {_returned(function.returns, names)}"


def signature_of(function: PyFunction) -> str:
    """The function's own signature, as written, on one line."""
    parts: list[str] = []
    kinds = [kind for *_, kind in function.parameters]
    for at, (name, annotation, default, kind) in enumerate(function.parameters):
        if kind == "kwonly" and "kwonly" not in kinds[:at] and "vararg" not in kinds[:at]:
            parts.append("*")
        star = {"vararg": "*", "kwarg": "**"}.get(kind, "")
        note = f": {' '.join(annotation.split())}" if annotation is not None else ""
        value = f"{' = ' if note else '='}{' '.join(default.split())}" if default is not None else ""
        parts.append(f"{star}{name}{note}{value}")
        if kind == "posonly" and kinds[at + 1 : at + 2] != ["posonly"]:
            parts.append("/")
    returns = f" -> {' '.join(function.returns.split())}" if function.returns is not None else ""
    return f"{function.qualname.rpartition('.')[2]}({', '.join(parts)}){returns}"


def _known(found: PyType, names: Names) -> str:
    """The full name of a type's name, ``""`` where it is not known."""
    head, *rest = found.name.split(".")
    if found.name in ("None", "...", "union"):
        return found.name
    value = names.value(head)
    if isinstance(value, Outer):
        return ".".join([value.dotted, *rest])
    if head in _BUILTIN and not rest:
        return f"builtins.{head}"
    return _BARE.get(found.name, "")


def _base(found: PyType, names: Names) -> str | None:
    """The schema type of a type that is no list: ``Tensor``, ``SymInt?``; None for all else."""
    if found.name == "union":
        members = [one for one in found.arguments if one.name != "None"]
        optional = "?" if len(members) < len(found.arguments) else ""
        plain = {_base(one, names) for one in members}
        if plain == {"SymInt", "float", "bool"}:
            return f"Scalar{optional}"
        if len(members) != 1:
            return None
        inner = _base(members[0], names)
        return f"{inner}{optional}" if inner is not None and not inner.endswith("?") else None
    full = _known(found, names)
    return (_NAMES.get(full) or None) if not found.subscripted else None


def _element(found: PyType, names: Names) -> PyType | None:
    """The element type of a list type, None for anything else."""
    if found.subscripted and len(found.arguments) == 1 and _known(found, names) in _SEQUENCES:
        return found.arguments[0]
    return None


def _argument_type(annotation: str, parameter: str, names: Names) -> str:
    """The schema type of an annotation."""
    written = " ".join(annotation.split())
    refused = NoSchema(f"parameter {parameter} has the annotation {written}, which no schema type fits")
    try:
        found = parse_type(annotation)
    except NotAType:
        raise refused from None
    base = _base(found, names)
    if base is not None:
        return base
    element = _element(found, names)
    if element is not None:
        inner = _base(element, names)
        if inner is not None and _BASES.get(inner.rstrip("?"), (False,) * 3)[1 if inner.endswith("?") else 0]:
            return f"{inner}[]"
    if found.name == "union":
        members = [one for one in found.arguments if one.name != "None"]
        element = _element(members[0], names) if len(members) == 1 else None
        inner = _base(element, names) if element is not None else None
        if inner is not None and _BASES.get(inner, (False,) * 3)[2]:
            return f"{inner}[]?"
    raise refused


def _returned(annotation: str | None, names: Names) -> str:
    if annotation is None:
        raise NoSchema("the return annotation is missing")
    refused = NoSchema(f"the return annotation {' '.join(annotation.split())} fits no schema type")
    try:
        found = parse_type(annotation)
    except NotAType:
        raise refused from None
    if found.name == "None":
        return "()"
    if found.subscripted and _known(found, names) in _TUPLES:
        inner = [_returned_type(one, names) for one in found.arguments]
        if None in inner:
            raise refused
        listed = ", ".join(one for one in inner if one is not None)
        return f"(({listed}))" if len(inner) == 1 else f"({listed})"
    single = _returned_type(found, names)
    if single is None:
        raise refused
    return single


def _returned_type(found: PyType, names: Names) -> str | None:
    element = _element(found, names)
    if element is not None:
        is_list = _known(found, names) in ("typing.List", "builtins.list")
        return "Tensor[]" if is_list and _base(element, names) == "Tensor" else None
    base = _base(found, names)
    return base if base in _RETURNED else None


def _default(text: str, parameter: str, names: Names) -> str:
    """A default as a schema writes it."""
    match names.default(text):
        case Const(str() as value):
            return f'"{value}"'
        case Const(value):
            return str(value)
        case Outer(dotted):
            owner, _, name = dotted.rpartition(".")
            name = _DTYPES.get(name, name)
            if owner == "torch" and name in _PLAIN_DTYPES:
                return name
    raise NoSchema(f"parameter {parameter} has the default {' '.join(text.split())}, which is not known")
