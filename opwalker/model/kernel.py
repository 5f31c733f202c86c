"""What a ``__global__`` function says."""

from __future__ import annotations

from dataclasses import dataclass

from opwalker.model.host import ParameterFact
from opwalker.model.layout import LayoutFact


@dataclass(frozen=True, slots=True)
class BarrierFact:
    """A barrier or warp synchronisation that a kernel body calls (``"__syncthreads()"``)."""

    call: str
    line: int


@dataclass(frozen=True, slots=True)
class ConstexprFact:
    """An ``if constexpr`` of a kernel body."""

    condition: str
    line: int


@dataclass(frozen=True, slots=True)
class TextFact:
    """An atomic, a piece of inline assembly or a vector access of a kernel body, as written."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A ``__global__`` function and what its body says. ``file`` holds for every ``line`` in it."""

    name: str
    file: str
    line: int
    end_line: int
    template_parameters: tuple[str, ...] = ()
    parameters: tuple[ParameterFact, ...] = ()
    launch_bounds: str | None = None
    shared_memory: tuple[str, ...] = ()
    if_constexpr: tuple[ConstexprFact, ...] = ()
    barriers: tuple[BarrierFact, ...] = ()
    atomics: tuple[TextFact, ...] = ()
    inline_asm: tuple[TextFact, ...] = ()
    vector_accesses: tuple[TextFact, ...] = ()
    device_functions: tuple[str, ...] = ()
    condition: str | None = None
    layouts: tuple[LayoutFact, ...] = ()
