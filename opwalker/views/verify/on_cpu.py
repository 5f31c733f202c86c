"""An op called by CPU emulation: its library loaded, its arguments laid out as C structures.

In: arguments by name, in the schema's order and types. Out: tensors that came back and the kernels launched; the
arguments' own memory is what the op worked on. The structures repeat those of ``emulation/`` beside this module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opwalker.views.verify.arrays import Array
from opwalker.views.verify.calling import Called, CallFailed, Parameter
from opwalker.views.verify.numbers import type_of_scalar

_ROOM = 1 << 16
_NONE, _TENSOR, _INTEGER, _REAL, _TEXT, _INTEGERS = range(6)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dims", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("scalar_type", ctypes.c_int32),
        ("on_host", ctypes.c_int32),
    )


class _Value(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("pointer", ctypes.c_void_p),
    )


class EmulatedOp:
    """One op of a library built for emulation."""

    def __init__(self, library: str, op: str, parameters: Sequence[Parameter]) -> None:
        self._library = ctypes.CDLL(library)
        self._op = op
        self.parameters = tuple(parameters)

    def __call__(self, arguments: Mapping[str, Any], seed: int) -> Called:
        """Calls the op. Raises ``CallFailed`` with what it said."""
        kept: list[object] = []
        values = (_Value * len(self.parameters))()
        for number, parameter in enumerate(self.parameters):
            values[number] = _value(parameter, arguments.get(parameter.name, parameter.default), kept)
        returned = (_Tensor * 8)()
        count = ctypes.c_int64()
        said = ctypes.create_string_buffer(_ROOM)
        kernels = ctypes.create_string_buffer(_ROOM)
        code = self._library.cuda_on_cpu_call(
            self._op.encode(), values, ctypes.c_int64(len(values)), ctypes.c_uint64(seed), returned,
            ctypes.byref(count), said, kernels, ctypes.c_int64(_ROOM),
        )  # fmt: skip
        if code:
            raise CallFailed(said.value.decode())
        names = tuple(dict.fromkeys(kernels.value.decode().split("\n")[:-1]))
        return Called(tuple(_array(one) for one in returned[: count.value]), names)


def _value(parameter: Parameter, value: Any, kept: list[object]) -> _Value:
    if value is None:
        return _Value(_NONE)
    if isinstance(value, Array):
        tensor = _described(value, kept)
        return _Value(_TENSOR, 0, 0.0, ctypes.cast(ctypes.pointer(tensor), ctypes.c_void_p))
    if isinstance(value, str):
        text = ctypes.create_string_buffer(value.encode())
        kept.append(text)
        return _Value(_TEXT, 0, 0.0, ctypes.cast(text, ctypes.c_void_p))
    if isinstance(value, (list, tuple)):
        numbers = (ctypes.c_int64 * len(value))(*value)
        kept.append(numbers)
        return _Value(_INTEGERS, len(value), 0.0, ctypes.cast(numbers, ctypes.c_void_p))
    if parameter.type.startswith("float"):
        return _Value(_REAL, 0, float(value))
    return _Value(_INTEGER, int(value))


def _described(value: Array, kept: list[object]) -> _Tensor:
    sizes = (ctypes.c_int64 * max(1, len(value.shape)))(*value.shape)
    strides = (ctypes.c_int64 * max(1, len(value.shape)))(*value.strides)
    data = value.storage.ctypes.data + value.offset
    tensor = _Tensor(data, len(value.shape), sizes, strides, value.type.scalar_type, value.on_host)
    kept += [sizes, strides, tensor]
    return tensor


def _array(tensor: _Tensor) -> Array:
    """A copy of a tensor that came back: its memory belongs to the library. Returned tensors are contiguous."""
    of = type_of_scalar(tensor.scalar_type)
    shape = tuple(tensor.sizes[d] for d in range(tensor.dims))
    made = Array.empty(shape, of.name)
    size = int(np.prod(shape, dtype=np.int64)) * of.bytes
    if size:
        made.view[...] = np.frombuffer(ctypes.string_at(tensor.data, size), dtype=of.raw).reshape(shape)
    return made
