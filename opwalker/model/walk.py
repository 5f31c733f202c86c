"""The answer to ``ops``, ``walk`` and ``kernels``. Field names and nesting are those of the JSON contract.

The nouns stand in files of their own, by what they are about; all of them can be had from here.
"""

from __future__ import annotations

from msgspec import Struct, field

from opwalker.model.axis import Axis, AxisGiven, AxisOrigin
from opwalker.model.clang import ClangReport
from opwalker.model.flags import FlagMember, FlagStruct
from opwalker.model.held import HeldFact
from opwalker.model.host import (
    CheckFact,
    ContiguousFact,
    Contradiction,
    DerivedFact,
    GuardFact,
    Host,
    ParameterFact,
    ReturnFact,
    ShapeSource,
    SizeFact,
    StreamFact,
)
from opwalker.model.kernel import (
    BarrierFact,
    ConstexprFact,
    Kernel,
    TextFact,
)
from opwalker.model.launch import (
    Branching,
    CaseFact,
    Dispatch,
    DispatchAxis,
    DispatchFailure,
    DispatchRow,
    Launch,
    LaunchAttribute,
    NamedValue,
    PathStep,
    UnderFact,
    Unreachable,
)
from opwalker.model.ops import (
    Argument,
    HostRef,
    Op,
    OpDef,
    OpImpl,
    OpsResult,
    PythonRef,
    Returned,
)
from opwalker.model.outline import ClassRef, ClassView, MethodFact, OutlineItem
from opwalker.model.owning import (
    BoundaryFact,
    GlobalFact,
    Lifetime,
    Ownership,
    PathFact,
    PlaceFact,
    Resource,
    UseFact,
)
from opwalker.model.places import (
    Gap,
    SourceInfo,
    Span,
)
from opwalker.model.reading import Entry, PatternRef, SyncPoint

__all__ = [
    "Argument",
    "Axis",
    "AxisGiven",
    "AxisOrigin",
    "BarrierFact",
    "BoundaryFact",
    "Branching",
    "CaseFact",
    "CheckFact",
    "ClangReport",
    "ClassRef",
    "ClassView",
    "ConstexprFact",
    "ContiguousFact",
    "Contradiction",
    "DerivedFact",
    "Dispatch",
    "DispatchAxis",
    "DispatchFailure",
    "DispatchRow",
    "Entry",
    "FlagMember",
    "FlagStruct",
    "Gap",
    "GlobalFact",
    "GuardFact",
    "Host",
    "HostRef",
    "Implementation",
    "Kernel",
    "KernelEntry",
    "KernelsResult",
    "Launch",
    "LaunchAttribute",
    "Lifetime",
    "MethodFact",
    "NamedValue",
    "Op",
    "OpDef",
    "OpImpl",
    "OpsResult",
    "OutlineItem",
    "Ownership",
    "ParameterFact",
    "PathFact",
    "PathStep",
    "PatternRef",
    "PlaceFact",
    "PythonRef",
    "Resource",
    "ReturnFact",
    "Returned",
    "ShapeSource",
    "SizeFact",
    "SourceInfo",
    "Span",
    "StreamFact",
    "SyncPoint",
    "Terminal",
    "TextFact",
    "UnderFact",
    "Unreachable",
    "UseFact",
    "Walk",
]


class Terminal(Struct, frozen=True):
    """The end of a path that is no kernel of this source: ``library``, ``memory``, ``host`` or ``torch``. ``under`` are
    the conditions that it stands under, in words, ``loops`` the heads of the loops around it in its function; ``text``
    is the call where it moves memory, ``held`` what the locals hold that it names; ``compiled`` is as for a launch."""

    kind: str
    name: str
    file: str
    line: int
    path: tuple[PathStep, ...] = ()
    under: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    text: str | None = None
    held: tuple[HeldFact, ...] = ()
    compiled: str | None = None


class Implementation(Struct, frozen=True):
    """The way of one registration: host function, dispatch, launches, kernels, and ends that are no kernel."""

    key: str | None
    certainty: str
    host: Host | None
    dispatch: tuple[Dispatch, ...] = ()
    launches: tuple[Launch, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    terminals: tuple[Terminal, ...] = ()
    builds: tuple[str, ...] | None = None
    condition: str | None = None
    registered_at: Span | None = None
    python: bool = False
    branches: tuple[Branching, ...] = ()
    helpers: tuple[Host, ...] = ()


class Walk(Struct, frozen=True, kw_only=True):
    """The whole path of one op. Where what is walked is no op, ``op`` is None and ``entry`` stands in for it.
    ``clang`` is set where a second opinion was asked for; ``flags`` are structures whose members synchronise."""

    format: int = 1
    source: SourceInfo
    op: Op | None
    python: tuple[PythonRef, ...] = ()
    implementations: tuple[Implementation, ...] = ()
    ownership: Ownership = field(default_factory=Ownership)
    synchronisation: tuple[SyncPoint, ...] = ()
    patterns: tuple[PatternRef, ...] = ()
    reference_kernel: str | None = None
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    entry: Entry | None = None
    clang: ClangReport | None = None
    flags: tuple[FlagStruct, ...] = ()
    outline: tuple[OutlineItem, ...] = ()
    class_view: ClassView | None = None


class KernelEntry(Struct, frozen=True):
    """A kernel of the source, the ops that reach it, and the instances that the source can produce.

    ``archs`` are the CUDA architectures that the files with its launches are compiled for, where the build files say:
    of those asked for, or of all that they name.
    """

    name: str
    file: str
    line: int
    ops: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    complete: bool = False
    why_incomplete: str | None = None
    condition: str | None = None
    axes: tuple[Axis, ...] = ()
    archs: tuple[str, ...] = ()


class KernelsResult(Struct, frozen=True, kw_only=True):
    """The answer to ``kernels``."""

    format: int = 1
    source: SourceInfo
    kernels: tuple[KernelEntry, ...]
    gaps: tuple[Gap, ...] = ()
