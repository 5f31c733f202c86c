"""The contract of an op, and how one is read from ``reference_kernels/<op>.py``.

In: a module of the folder. Out: ``Contract``. A contract module holds the names in ``Contract`` in capitals (or as
functions), with the words of this module; it imports numpy and nothing that runs a kernel.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct, field

from opwalker.errors import InputError, InternalError
from opwalker.notation.regex import Regex
from opwalker.views.verify.arrays import Array

#: The element types that most ops are dispatched over.
FLOATS = ("float32", "float16", "bfloat16")


class TensorArgument(Struct, frozen=True):
    """What holds of a tensor argument: its shape in the notation of shape comments, its layout and element type in
    words, and whether the op may change it."""

    shape: str
    layout: str = "contiguous"
    dtype: str = "as input"
    mutated: bool = False
    optional: bool = False

    def dims(self, count: int) -> tuple[str, ...]:
        """The dimensions as written, in the reading of the shape that has ``count`` of them; else in the first."""
        read = [_dims(text) for text in _SHAPE.findall(self.shape)]
        return next((dims for dims in read if len(dims) == count), read[0] if read else ())


_SHAPE = Regex(r"\[([^\[\]]*)\]")


def _dims(inside: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in inside.split(",")) if inside.strip() else ()


class Case(Struct, frozen=True):
    """One set of sizes. ``values`` are the keyword arguments of the contract's ``inputs``; ``dtypes`` the element types
    it is run with; ``large`` ones are for a GPU alone; an ``empty`` one has no element to work on."""

    name: str
    values: Mapping[str, Any]
    dtypes: tuple[str, ...] = FLOATS
    large: bool = False
    empty: bool = False


def case(
    name: str, *, dtypes: tuple[str, ...] = FLOATS, large: bool = False, empty: bool = False, **values: Any
) -> Case:
    """A case by its name and the keyword arguments of ``inputs``."""
    return Case(name, values, dtypes, large, empty)


class Tolerance(Struct, frozen=True):
    """How far a result may lie from the golden one: ``steps`` times the distance between neighbouring numbers of its
    type, plus ``peak`` times that distance at the largest of the results (where parts of that size are rounded before
    they are added), plus ``relative`` times its size, plus ``absolute``. ``reason`` says why; all zero means the same
    bits."""

    reason: str
    steps: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    peak: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the same bits are asked for."""
        return not (self.steps or self.relative or self.absolute or self.peak)

    def __str__(self) -> str:
        parts = [f"{self.steps:g} steps" if self.steps else "", f"{self.relative:g} relative" if self.relative else ""]
        parts.append(f"{self.peak:g} steps of the largest" if self.peak else "")
        parts.append(f"{self.absolute:g} absolute" if self.absolute else "")
        return " + ".join(part for part in parts if part) or "the same bits"


#: Only bits move: nothing is computed, so nothing may differ.
EXACT = Tolerance("only bits move")


class Contract(Struct, frozen=True):
    """What an op takes and gives.

    ``inputs(draw, dtype, **case.values)`` makes the arguments by name, ``golden(**arguments)`` the right contents of
    every mutated argument (by name) and returned tensor (``"return 0"``), in float64. ``coordinates`` are the words
    that an index along a dimension is shown with. ``allowed(expected, observed, **arguments)`` gives the golden results
    with what a library's op is free in (an order, say) taken from what it gave; the reference kernel has no such
    freedom. ``wrong`` are the variants behind ``OPWALKER_WRONG_<NAME>``, each
    with what is wrong in it.

    Of a ``collective`` op ``inputs`` gives rounds of calls, each with the arguments of every rank, and ``golden`` takes
    those of all ranks and gives the results of each. ``deadline`` is in seconds for a case of a wrong variant,
    None for the usual one.
    """

    op: str
    summary: str
    names: tuple[str, ...]
    arguments: Mapping[str, TensorArgument]
    cases: tuple[Case, ...]
    inputs: Callable[..., dict[str, Any]]
    golden: Callable[..., dict[str, Any]]
    tolerance: Tolerance | Mapping[str, Tolerance]
    wrong: Mapping[str, str]
    coordinates: Mapping[str, str] = field(default_factory=dict)
    bench: tuple[Case, ...] = ()
    bytes_moved: Callable[..., int] | None = None
    library_arguments: Callable[..., dict[str, Any]] | None = None
    collective: bool = False
    deadline: float | None = None
    allowed: Callable[..., dict[str, Any]] | None = None

    def tolerance_of(self, name: str) -> Tolerance:
        """The tolerance of one result."""
        return self.tolerance if isinstance(self.tolerance, Tolerance) else self.tolerance[name]


_OP = Regex(r"[a-z_]\w*")


def ops_in(folder: Path) -> tuple[str, ...]:
    """The ops that a folder has reference kernels for, in order."""
    return tuple(sorted(path.stem for path in folder.glob("*.cu") if path.with_suffix(".py").is_file()))


def load(folder: Path, op: str) -> Contract:
    """The contract of one op. InputError for an op without one, InternalError for a module that is none."""
    path = folder / f"{op}.py"
    if not _OP.fullmatch(op) or not path.is_file():
        raise InputError(f"there is no reference kernel for {op!r}", f"there are: {', '.join(ops_in(folder))}")
    module = _module(path)
    try:
        return Contract(
            op=op,
            summary=(inspect.getdoc(module) or "").partition("\n")[0],
            names=module.NAMES,
            arguments=module.ARGUMENTS,
            cases=module.CASES,
            inputs=module.inputs,
            golden=module.golden,
            tolerance=module.TOLERANCE,
            wrong=module.WRONG,
            coordinates=getattr(module, "COORDINATES", {}),
            bench=getattr(module, "BENCH", ()),
            bytes_moved=getattr(module, "bytes_moved", None),
            library_arguments=getattr(module, "library_arguments", None),
            collective=getattr(module, "COLLECTIVE", False),
            deadline=getattr(module, "DEADLINE", None),
            allowed=getattr(module, "allowed", None),
        )
    except AttributeError as error:
        raise InternalError(f"the contract {path.name} is not whole: {error}") from error


def _module(path: Path) -> ModuleType:
    """A contract module. Its folder is looked in first, so that contracts may share what they have in common."""
    name = f"opwalker_reference_kernels_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InternalError(f"the contract {path.name} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def tensors(arguments: Mapping[str, Any]) -> dict[str, Array]:
    """The tensor arguments."""
    return {name: value for name, value in arguments.items() if isinstance(value, Array)}
