"""Tensors as memory: a view of some element type and strides on a storage with guard bands.

In: shapes and values. Out: ``Array``, which a runner lays on a device and brings back. Everything that lies outside the
view (in front, behind, between rows) is known byte by byte, so that a write there is seen.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from opwalker.views.verify.numbers import TYPES, ElementType, decode, encode

#: Bytes in front of and behind every payload. A multiple of every alignment that a kernel may rely on.
GUARD = 512

#: What guard bands and outputs hold before a call: NaN in every float type, and no plausible integer.
POISON = 0xFF


class Array(Struct, frozen=True, eq=False):
    """A tensor. ``storage`` is all of its memory as bytes, ``view`` the elements' bits within it; ``on_host``: it stays
    in the memory of the CPU."""

    storage: np.ndarray
    view: np.ndarray
    type: ElementType
    on_host: bool = False

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: str) -> Array:
        """A contiguous tensor full of poison."""
        of = TYPES[dtype]
        payload = int(np.prod(shape, dtype=np.int64)) * of.bytes
        room = GUARD + (payload + GUARD - 1) // GUARD * GUARD + GUARD
        whole = np.full(room + GUARD, POISON, dtype=np.uint8)
        first = -whole.ctypes.data % GUARD  # as aligned as memory of a device is
        storage = whole[first : first + room]
        view = storage[GUARD : GUARD + payload].view(of.raw).reshape(shape)
        return cls(storage, view, of)

    @classmethod
    def of(cls, values: np.ndarray, dtype: str) -> Array:
        """A contiguous tensor that holds ``values``, rounded to the type."""
        made = cls.empty(np.shape(values), dtype)
        made.view[...] = encode(np.asarray(values), made.type)
        return made

    def __getitem__(self, index: object) -> Array:
        """A part of it, in the same storage: slices only."""
        return self._same(self.view[index])

    def reshape(self, *shape: int) -> Array:
        """The same elements under another shape, in the same storage."""
        return self._same(self.view.reshape(shape))

    def transpose(self, *axes: int) -> Array:
        """The same elements with dimensions in another order."""
        return self._same(self.view.transpose(axes or None))

    def _same(self, view: np.ndarray) -> Array:
        if view.size and not np.may_share_memory(view, self.storage):
            raise ValueError(f"no view of shape {view.shape} can be had of strides {self.view.strides}")
        return replace(self, view=view)

    def to_host(self) -> Array:
        """The same tensor in the memory of the CPU."""
        return replace(self, on_host=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self.view.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(stride // self.type.bytes for stride in self.view.strides)

    @property
    def offset(self) -> int:
        """Bytes from the start of the storage to the first element."""
        if self.view.size == 0:
            return GUARD
        return self.view.__array_interface__["data"][0] - self.storage.__array_interface__["data"][0]

    def values(self) -> np.ndarray:
        """The elements' values, a copy."""
        return decode(np.ascontiguousarray(self.view), self.type)

    @property
    def poisoned(self) -> bool:
        """Whether nothing was put into it: an output that the op fills."""
        return self.view.size == 0 or bool((self.view.reshape(-1)[:64].view(np.uint8) == POISON).all())

    def covered(self, within: np.ndarray) -> None:
        """Sets, in a mask of the storage's size, the bytes that belong to the view."""
        if self.view.size == 0:
            return
        whole = within[self.offset % self.type.bytes :]
        base = whole[: whole.size // self.type.bytes * self.type.bytes].reshape(-1, self.type.bytes)
        first = (self.offset - self.offset % self.type.bytes) // self.type.bytes
        strides = tuple(stride * self.type.bytes for stride in self.strides)
        cells = np.lib.stride_tricks.as_strided(
            base[first:], (*self.shape, self.type.bytes), (*strides, 1), writeable=True
        )
        cells[...] = True
