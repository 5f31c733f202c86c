"""An op called on a GPU through torch: ours from the built library, or a library's own.

In: arguments by name. Out: tensors that came back and the kernels that the profiler saw; the arguments' storages hold,
afterwards, what the device holds. Storages go to the device whole, guard bands and all, and views are made there.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.model.verify import Device
from opwalker.views.verify.arrays import Array
from opwalker.views.verify.calling import Called, CallFailed, DeviceFault, Parameter
from opwalker.views.verify.contract import tensors

_DTYPES = {
    name: getattr(torch, name)
    for name in (
        "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "uint8", "int8", "int32", "int64",
        "bool",
    )
}  # fmt: skip
#: Device work that is no kernel of an op: copies, and torch's filling of new tensors.
_NOT_OURS = ("Memcpy", "Memset", "void at::native::")
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def device() -> Device:
    """The GPU that is used. EnvironmentMissing without one."""
    if not torch.cuda.is_available():
        raise EnvironmentMissing("torch sees no CUDA device", "run with --device cpu, or install a CUDA build of torch")
    found = torch.cuda.get_device_properties(0)
    return Device(found.name, "gpu", f"{found.major}.{found.minor}", f"torch {torch.__version__}")


class GpuOp:
    """One op of loaded libraries: the first of ``names`` that they register. ``profiled``: kernels are noted."""

    def __init__(self, libraries: Sequence[str], names: Sequence[str], *, profiled: bool = True) -> None:
        self._profiled = profiled
        for library in libraries:
            try:
                torch.ops.load_library(library)
            except OSError as error:
                # torch says that it could not; why stands in the error that it was raised from.
                why = str(error.__cause__ or error).splitlines()[0]
                raise InputError(f"{library} cannot be loaded: {why}") from error
        for name in names:
            namespace, _, op = name.partition("::")
            packet = getattr(getattr(torch.ops, namespace), op, None)
            if packet is not None:
                self.op = getattr(packet, packet.overloads()[0])
                break
        else:
            raise InputError(f"no library registers {' or '.join(names) or 'an op under this contract'}")
        torch.use_deterministic_algorithms(True, warn_only=True)  # new tensors are then filled with NaN
        warnings.filterwarnings("ignore", message=".*Profiler clears events")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters as the dispatcher knows them."""
        return tuple(
            Parameter(
                one.name,
                str(one.type),
                bool(one.alias_info and one.alias_info.is_write),
                one.default_value if one.has_default_value() else None,
            )
            for one in self.op._schema.arguments
        )

    def __call__(self, arguments: Mapping[str, Any], seed: int) -> Called:
        """Calls the op and waits for it. Raises ``CallFailed`` with what it said, or ``DeviceFault``."""
        storages, values = laid_out(arguments)
        ordered = [values.get(one.name, one.default) for one in self.parameters]
        profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) if self._profiled else None
        try:
            with profile or contextlib.nullcontext():
                returned = self.op(*ordered)
                settle()
        except RuntimeError as error:
            raise failure(error) from error
        for one in {id(a.storage): a for a in tensors(arguments).values()}.values():
            one.storage[...] = storages[id(one.storage)].cpu().numpy()
        results = () if returned is None else returned if isinstance(returned, (tuple, list)) else (returned,)
        return Called(tuple(_array(one) for one in results), kernels_of(profile) if profile else ())


def settle() -> None:
    """Waits for the device. A launch of torch's own finds an error that an earlier launch left behind unseen."""
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()


def failure(error: RuntimeError) -> CallFailed | DeviceFault:
    """What an op's error is: its own check, or a fault of the device."""
    text = str(error).splitlines()[0]
    return DeviceFault(text.removeprefix("CUDA error: ")) if text.startswith("CUDA error") else CallFailed(text)


def laid_out(arguments: Mapping[str, Any], device: int = 0) -> tuple[dict[int, torch.Tensor], dict[str, Any]]:
    """Storages on the device, by ``id`` of the host's; and the arguments with tensors on them. What belongs to the host
    stays there: the op works on the storage itself."""
    storages: dict[int, torch.Tensor] = {}
    for value in tensors(arguments).values():
        if id(value.storage) not in storages:
            storage = torch.from_numpy(value.storage)
            storages[id(value.storage)] = storage if value.on_host else storage.to(f"cuda:{device}")
    return storages, seen_on(storages, arguments)


def seen_on(storages: Mapping[int, torch.Tensor], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with tensors that are views of given storages."""
    return {
        name: _view(storages[id(value.storage)], value) if isinstance(value, Array) else value
        for name, value in arguments.items()
    }


def _view(storage: torch.Tensor, of: Array) -> torch.Tensor:
    shift = of.offset % of.type.bytes
    whole = storage[shift : shift + (storage.numel() - shift) // of.type.bytes * of.type.bytes] if shift else storage
    typed = whole.view(_DTYPES[of.type.name])
    return torch.as_strided(typed, of.shape, of.strides, of.offset // of.type.bytes)


def kernels_of(profile: Any) -> tuple[str, ...]:
    """Names of the kernels that a profile saw, in order of their first launch."""
    seen = [
        event.name
        for event in profile.events()
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith(_NOT_OURS)
    ]
    return tuple(dict.fromkeys(seen))


def _array(tensor: torch.Tensor) -> Array:
    made = Array.empty(tuple(tensor.shape), _NAMES[tensor.dtype])
    bits = tensor.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
    if bits.size:
        made.view[...] = np.ascontiguousarray(bits).view(made.type.raw).reshape(made.shape)
    return made


def opcheck(op: GpuOp, arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What torch's own checks of a custom op find wrong, and the checks that torch cannot make of these element types:
    it compares tensors by arithmetic, which fp8 has none of."""
    _, values = laid_out(arguments)
    ordered = tuple(values.get(one.name, one.default) for one in op.parameters)
    found = torch.library.opcheck(op.op, ordered, raise_exception=False)
    failed = {test: str(result).splitlines()[0] for test, result in found.items() if result != "SUCCESS"}
    beyond = [f"opcheck {test}: {said}" for test, said in failed.items() if "not implemented for 'Float8" in said]
    wrong = [f"opcheck {test}: {said}" for test, said in failed.items()]
    return [said for said in wrong if said not in beyond], beyond
