"""What a ``__global__`` function says."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.assembly import AsmFact
from opwalker.model.held import HeldFact
from opwalker.model.host import ParameterFact
from opwalker.model.layout import LayoutFact, UntoldFact
from opwalker.model.places import Span


class BarrierFact(Struct, frozen=True):
    """A barrier or warp synchronisation that a kernel body calls (``"__syncthreads()"``)."""

    call: str
    line: int


class ConstexprFact(Struct, frozen=True):
    """An ``if constexpr`` of a kernel body."""

    condition: str
    line: int


class TextFact(Struct, frozen=True):
    """An atomic, a piece of inline assembly or a vector access of a kernel body, as written."""

    text: str
    line: int


class WorkFact(Struct, frozen=True):
    """What a block or a thread handles, in words. ``of`` is ``block``, ``thread`` or ``warp``; ``index`` the index that
    tells them apart as the kernel calls it (``token_idx``), ``value`` what it is (``blockIdx.x``), ``extent`` how many
    there are or how far they go (``num_tokens``), None where nothing shows it. ``through`` names the device function
    that a loop stands in, if not the kernel itself; ``compiled`` is the preprocessor condition that an early return
    stands under and the kernel does not: ``says`` names it too."""

    of: str
    says: str
    line: int
    index: str | None = None
    value: str | None = None
    extent: str | None = None
    through: str | None = None
    compiled: str | None = None


class SharedFact(Struct, frozen=True):
    """A variable in shared memory. ``size`` is its size in bytes as a product, ``bytes`` the number where it is one;
    ``dynamic`` where the launch gives the size."""

    name: str
    type: str
    line: int
    dynamic: bool = False
    size: str | None = None
    bytes: int | None = None


class VectorFact(Struct, frozen=True):
    """A pointer that is made to a wider type: how many bytes one access moves (``bytes`` where it is a number)."""

    type: str
    line: int
    size: str | None = None
    bytes: int | None = None


class ReductionFact(Struct, frozen=True):
    """A reduction over threads: ``over`` a ``warp``, a ``block`` or a ``group of ... lanes``, empty where registers are
    exchanged and not joined; ``how`` is what does it (a library's name, or a
    function of the tree and what it is made of), ``at`` where that function is defined."""

    over: str
    text: str
    how: str
    line: int
    at: Span | None = None


class DeviceCall(Struct, frozen=True):
    """A function of the tree that a kernel calls: where it is called and where it is defined. ``overloaded`` where the
    call is not shown to mean one of several overloads: then each of them stands, or the first one with the number of
    all of them (``of``)."""

    name: str
    line: int
    at: Span
    overloaded: bool = False
    of: int = 0


class OpenCall(Struct, frozen=True):
    """A call of a kernel that is followed nowhere: a template argument, the one for ``on``, decides what it means."""

    name: str
    on: str
    line: int


class PassedFact(Struct, frozen=True):
    """What every launch gives a kernel's parameter: a number in the host function's terms, or the elements of a tensor
    of it (``&x``), perhaps of a contiguous copy of it."""

    parameter: str
    value: str


class Kernel(Struct, frozen=True):
    """A ``__global__`` function and what its body says. ``file`` holds for every ``line`` in it.

    ``work`` says what a block and a thread handle, ``layouts`` how documented tensors are addressed, ``assembly`` holds
    the inline assembly of the kernel and of the device functions that it calls, decoded. ``kind`` is ``device`` where a
    device function is walked by itself. ``asked`` is what its head demands of its template arguments, ``passed`` what
    each of its launches here gives a parameter, ``held`` what the locals hold that its indexes and conditions name;
    ``untold`` are pointers whose accesses ``layouts`` do not all describe, ``open_calls`` calls that its template
    arguments decide.
    """

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
    work: tuple[WorkFact, ...] = ()
    shared: tuple[SharedFact, ...] = ()
    vectors: tuple[VectorFact, ...] = ()
    reductions: tuple[ReductionFact, ...] = ()
    calls: tuple[DeviceCall, ...] = ()
    assembly: tuple[AsmFact, ...] = ()
    kind: str = "kernel"
    asked: tuple[str, ...] = ()
    passed: tuple[PassedFact, ...] = ()
    held: tuple[HeldFact, ...] = ()
    untold: tuple[UntoldFact, ...] = ()
    open_calls: tuple[OpenCall, ...] = ()
