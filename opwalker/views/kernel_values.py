"""The values of a kernel's names, set up for what its launch passes: shared by all that reads its arithmetic.

In: a kernel, its documented parameters, and what the launch passes (``views/index_host``). Out: ``KernelValues``.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from opwalker.expand.device_calls import DeviceCalls
from opwalker.expand.device_types import DeviceTypes
from opwalker.expand.resolve import Candidate
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Number, Pointer, Value, World
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.places import Span
from opwalker.notation.polynomial import Atom, Poly, poly, symbol
from opwalker.views.index_compare import Dim
from opwalker.views.passed_how import PassedHow


class Documented(Struct, frozen=True):
    """A documented tensor: its name for the reader, its shape's alternatives, text and place."""

    tensor: str
    alternatives: tuple[tuple[str, ...], ...]
    text: str
    at: Span | None


class Passed(Struct, frozen=True):
    """What a launch passes: values of parameters, extents of the grid and of blocks, the documented tensor behind each
    pointer, strides of tensors by their symbol (``(tensor, dimension)``), what the host checks (``stride == stride``,
    in words), the tensor's name behind each pointer, and the host's documented shapes in the host's terms."""

    bound: dict[str, Value] = field(default_factory=dict)
    extents: dict[str, Poly] = field(default_factory=dict)
    tensors: dict[str, Documented] = field(default_factory=dict)
    strides: dict[Atom, tuple[str, int]] = field(default_factory=dict)
    equal: tuple[tuple[Atom, Atom, str], ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, list[list[Dim]]] = field(default_factory=dict)
    #: Pointers that are passed as null.
    absent: frozenset[str] = frozenset()
    #: Strides that are passed only under a condition, in words.
    conditions: dict[Atom, str] = field(default_factory=dict)
    #: Parameters that every launch gives the same number, or the elements of the same tensor (``&`` before its name).
    always: dict[str, str] = field(default_factory=dict)
    #: Strides that the host function compares, and tensors of which it asks for contiguity or compares any stride.
    compared: frozenset[str] = frozenset()
    #: The extents as they are told: sizes under the names that comments have for them, or as they are read.
    counts: dict[str, Poly] = field(default_factory=dict)


class KernelValues:
    """One kernel's reader of values. ``documented`` are the tensors behind its pointers, a kernel's own comment before
    that of the host; ``own`` names those with a comment of the kernel; ``words`` are the names in all shapes."""

    def __init__(
        self,
        workbench: Workbench,
        unit: Unit,
        kernel: Candidate,
        root: str,
        documented: dict[str, Documented],
        passed: Passed,
    ) -> None:
        self.passed = passed
        own = {
            name: Documented(passed.names.get(name, one.tensor), one.alternatives, one.text, one.at)
            for name, one in documented.items()
        }
        self.documented = {name: one for name, one in {**passed.tensors, **own}.items() if name not in passed.absent}
        pointers = (p.name for p in kernel.function.parameters if "*" in p.type)
        #: Pointers without a documented shape.
        self.undocumented = tuple(n for n in pointers if n not in self.documented and n not in passed.absent)
        self.own = frozenset(own)
        self.world = World()
        self.world.extents = {name: value for name, value in passed.extents.items() if name.startswith("gridDim")}
        self.types = DeviceTypes(workbench.index)
        self.calls = DeviceCalls(unit, workbench.index, self.world, self.types)
        self.passed_how = PassedHow(self.calls, unit, workbench.index)
        names = _words(own)
        bound = {p.name: _parameter(p.name, p.type, passed) for p in kernel.function.parameters}
        keep = frozenset(names - set(passed.bound))
        body = unit.bodies.of(kernel, root, device=True)
        self.reader = ValueReader(body, self.world, bound, keep, self.calls.value)
        self.words = names | _words(passed.tensors)


def _words(shapes: dict[str, Documented]) -> set[str]:
    """The names in documented shapes."""
    return {
        word
        for one in shapes.values()
        for dims in one.alternatives
        for dim in dims
        for word in re.findall(r"[A-Za-z_]\w*", dim)
    }


def _parameter(name: str, kind: str, passed: Passed) -> Value:
    if "*" in kind or "[" in kind:
        element = re.sub(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__)\b|[*&]|\[.*", " ", kind)
        return Pointer(name, poly(0), poly(1), " ".join(element.split()))
    found = passed.bound.get(name)
    return found if isinstance(found, Number) else Number(symbol(name))
