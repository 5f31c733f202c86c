"""torch's scalar types and the C++ types that its dispatch macros bind for them, and names of CUDA's own headers that
stand in template arguments (facts of public interfaces)."""

from __future__ import annotations

from opwalker.notation.regex import Regex

#: Enumerator of ScalarType -> C++ type as a demangler prints it.
CPP_TYPES: dict[str, str] = {
    "Byte": "unsigned char",
    "Char": "signed char",
    "Short": "short",
    "Int": "int",
    "Long": "long",
    "Half": "c10::Half",
    "Float": "float",
    "Double": "double",
    "ComplexHalf": "c10::complex<c10::Half>",
    "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
    "Bool": "bool",
    "BFloat16": "c10::BFloat16",
    "QInt8": "c10::qint8",
    "QUInt8": "c10::quint8",
    "QInt32": "c10::qint32",
    "Float8_e5m2": "c10::Float8_e5m2",
    "Float8_e4m3fn": "c10::Float8_e4m3fn",
    "Float8_e5m2fnuz": "c10::Float8_e5m2fnuz",
    "Float8_e4m3fnuz": "c10::Float8_e4m3fnuz",
    "Float8_e8m0fnu": "c10::Float8_e8m0fnu",
    "Float4_e2m1fn_x2": "c10::Float4_e2m1fn_x2",
    "UInt16": "unsigned short",
    "UInt32": "unsigned int",
    "UInt64": "unsigned long",
}

#: Enumerator of ScalarType -> its value.
VALUES: dict[str, int] = {
    name: number
    for number, name in enumerate(
        "Byte Char Short Int Long Half Float Double ComplexHalf ComplexFloat ComplexDouble Bool QInt8 QUInt8 QInt32 "
        "BFloat16 QUInt4x2 QUInt2x4 Bits1x8 Bits2x4 Bits4x2 Bits8 Bits16 Float8_e5m2 Float8_e4m3fn Float8_e5m2fnuz "
        "Float8_e4m3fnuz UInt16 UInt32 UInt64 UInt1 UInt2 UInt3 UInt4 UInt5 UInt6 UInt7 Int1 Int2 Int3 Int4 Int5 Int6 "
        "Int7 Float8_e8m0fnu Float4_e2m1fn_x2".split()
    )
}
_ENUMERATOR = Regex(r"(?:::)?(?:at|c10|torch|torch::headeronly)::(?:ScalarType::|k)(\w+)\Z")

_MAPPED = Regex(
    r"(?:typename\s+)?(?:::)?(?:[\w:]*::)?(?:ScalarTypeToCPPTypeT?|ScalarTypeToCPPType)\s*<\s*([\w:]+?)\s*>(?:::type|::t)?\Z"
)
_BARE = {"qint8": "QInt8", "quint8": "QUInt8", "qint32": "QInt32"}


def cpp_type(text: str) -> str | None:
    """The C++ type that ``ScalarTypeToCPPTypeT<at::ScalarType::Half>`` and its spellings mean; None for other text."""
    match = _MAPPED.match(text.strip())
    if match is None:
        return None
    name = match.group(1).split("::")[-1]
    name = name[1:] if name.startswith("k") and name[1:] in CPP_TYPES else name
    return CPP_TYPES.get(_BARE.get(name, name))


def scalar_type_value(kind: str) -> int | None:
    """The value of the enumerator that ``CppTypeToScalarType`` gives for a canonical type; None for other types."""
    return next((VALUES[name] for name, made in CPP_TYPES.items() if made == kind), None)


def enumerator_value(text: str) -> int | None:
    """The value of ``at::ScalarType::Half`` or ``torch::kHalf``; None for any other name."""
    match = _ENUMERATOR.match(text)
    return VALUES.get(match.group(1)) if match else None


#: Other names of CUDA's structures, and what the demangler prints.
_STRUCTURES = {
    "curandState": "curandStateXORWOW",
    "curandState_t": "curandStateXORWOW",
    **{f"{name}_t": name for name in ("curandStateXORWOW", "curandStatePhilox4_32_10", "curandStateMRG32k3a")},
    "cuComplex": "float2",
    "cuFloatComplex": "float2",
    "cuDoubleComplex": "double2",
    "cudaStream_t": "CUstream_st*",
    "cudaEvent_t": "CUevent_st*",
}
#: CUB's enumerations, with their members in the order of their values.
_ENUMERATIONS = {
    "BlockScanAlgorithm": ("BLOCK_SCAN", "RAKING RAKING_MEMOIZE WARP_SCANS"),
    "BlockReduceAlgorithm": ("BLOCK_REDUCE", "RAKING_COMMUTATIVE_ONLY RAKING WARP_REDUCTIONS"),
    "BlockLoadAlgorithm": ("BLOCK_LOAD", "DIRECT STRIPED VECTORIZE TRANSPOSE WARP_TRANSPOSE WARP_TRANSPOSE_TIMESLICED"),
    "BlockStoreAlgorithm": (
        "BLOCK_STORE", "DIRECT STRIPED VECTORIZE TRANSPOSE WARP_TRANSPOSE WARP_TRANSPOSE_TIMESLICED"
    ),
}  # fmt: skip
_CUB = {
    f"{prefix}_{word}": (f"cub::{name}", number)
    for name, (prefix, words) in _ENUMERATIONS.items()
    for number, word in enumerate(words.split())
}


def toolkit_type(name: str) -> str | None:
    """The structure or enumeration that a name of CUDA's own headers means; None for any other name."""
    return f"cub::{name}" if name in _ENUMERATIONS else _STRUCTURES.get(name)


def cub_enumerator(name: str) -> tuple[str, int] | None:
    """The enumeration and the value of one of CUB's enumerators; None for any other name."""
    return _CUB.get(name)
