"""The answer to ``ops``, ``walk`` and ``kernels``. Field names and nesting are those of the JSON contract."""

from __future__ import annotations

from dataclasses import dataclass, field

from opwalker.model.reading import Entry, Ownership, PatternRef, SyncPoint
from opwalker.model.reading import PlaceFact as PlaceFact


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the source: ``line`` to ``end_line``, 1-based, both included."""

    file: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A link that could not be made: what kind of link, where, and why."""

    kind: str
    span: Span | None
    reason: str


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Which source an answer is about; ``revision`` is git's."""

    name: str
    version: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class HostRef:
    """Where a host function is defined."""

    file: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class OpDef:
    """One definition of an op. ``builds`` are the kinds of build whose targets compile it, None when unknown.

    ``namespace_at`` is where the library object is made that the namespace comes from, for definitions in Python.
    """

    file: str
    line: int
    condition: str | None = None
    builds: tuple[str, ...] | None = None
    target: str | None = None
    schema: str | None = None
    namespace_at: Span | None = None


@dataclass(frozen=True, slots=True)
class OpImpl:
    """One implementation entry. ``line`` is the registration's; ``host`` the function's definition, if it is here."""

    key: str | None
    function: str | None
    file: str
    line: int
    condition: str | None = None
    host: HostRef | None = None
    builds: tuple[str, ...] | None = None
    certainty: str = "proved"


@dataclass(frozen=True, slots=True)
class PythonRef:
    """A place in Python: a call of an op (``callee``, ``depth`` callers away from it) or a fake implementation.

    ``line`` is where the call stands. At depth 0, a function that is itself called from elsewhere is a wrapper and
    stands for the op: then ``line`` is its definition, and ``call_line`` the call in it.
    """

    file: str
    line: int
    function: str | None = None
    callee: str | None = None
    depth: int = 0
    call_line: int | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a schema; ``alias`` is its alias set as text (``"a!"``), ``default`` its literal as written."""

    name: str
    type: str
    mutated: bool = False
    alias: str | None = None
    optional: bool = False
    default: str | None = None
    kwarg_only: bool = False


@dataclass(frozen=True, slots=True)
class Returned:
    """A value that a schema returns."""

    type: str
    name: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Op:
    """An operator under whatever binding (``kind``). ``signature`` is set where ``schema`` is not."""

    name: str
    kind: str
    schema: str | None
    signature: str | None = None
    arguments: tuple[Argument, ...] = ()
    returns: tuple[Returned, ...] = ()
    tags: tuple[str, ...] = ()
    defs: tuple[OpDef, ...] = ()
    impls: tuple[OpImpl, ...] = ()
    fake: tuple[PythonRef, ...] = ()
    python: tuple[PythonRef, ...] = ()


@dataclass(frozen=True, slots=True)
class OpsResult:
    """``files_read`` and ``looked_for`` (``"TORCH_LIBRARY"``, ``"PYBIND11_MODULE"``, …) let an empty list say so."""

    format: int = field(default=1, kw_only=True)
    source: SourceInfo
    ops: tuple[Op, ...]
    gaps: tuple[Gap, ...] = ()
    files_read: int | None = None
    looked_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParameterFact:
    """A C++ parameter. ``argument`` is the schema argument at the same place; shapes come from comments."""

    name: str
    type: str
    argument: str | None = None
    shape: tuple[str, ...] | None = None
    shape_text: str | None = None
    shape_span: Span | None = None


@dataclass(frozen=True, slots=True)
class SizeFact:
    """A size or stride that a host function takes from a tensor; ``narrowed`` where 64 bits are kept in fewer."""

    name: str | None
    value: str
    type: str | None
    narrowed: bool
    line: int


@dataclass(frozen=True, slots=True)
class CheckFact:
    """A check at the start of the work: the macro, what it demands, and what it says when that does not hold."""

    kind: str
    condition: str
    message: str | None
    line: int


@dataclass(frozen=True, slots=True)
class GuardFact:
    """A device guard and the device it is made from."""

    type: str
    of: str | None
    line: int


@dataclass(frozen=True, slots=True)
class StreamFact:
    """The stream that the work is put on."""

    value: str
    line: int


@dataclass(frozen=True, slots=True)
class ContiguousFact:
    """A tensor that is made contiguous."""

    tensor: str
    line: int


@dataclass(frozen=True, slots=True)
class Host:
    """A host function and what its body says, in source order. ``file`` holds for every ``line`` in it."""

    name: str
    file: str
    line: int
    end_line: int
    parameters: tuple[ParameterFact, ...] = ()
    sizes: tuple[SizeFact, ...] = ()
    strides: tuple[SizeFact, ...] = ()
    checks: tuple[CheckFact, ...] = ()
    guards: tuple[GuardFact, ...] = ()
    streams: tuple[StreamFact, ...] = ()
    contiguous_calls: tuple[ContiguousFact, ...] = ()
    signature: str | None = None
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A dispatch macro in use: where, on which run-time value, what name each branch binds and to which values."""

    macro: str
    file: str
    line: int
    on: str | None
    binds: str | None
    values: tuple[str, ...] = ()
    defined_at: Span | None = None


@dataclass(frozen=True, slots=True)
class PathStep:
    """A function on the way from the host function to a launch; ``line`` is where the next step is called."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class UnderFact:
    """A run-time condition of the host function that a launch stands under (``"n > 0"``, ``"case 2"``)."""

    condition: str
    line: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel launch. ``file``/``line`` are where its text stands (in a macro body: there); ``used_at`` where the
    outermost macro that holds it is used; ``macros`` the macros between, outermost first; ``under`` the conditions that
    the launching function itself tests before it, outermost first."""

    kernel: str
    file: str
    line: int
    style: str
    grid: str | None = None
    block: str | None = None
    shared: str | None = None
    stream: str | None = None
    template_arguments: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    complete: bool = False
    path: tuple[PathStep, ...] = ()
    certainty: str = "matched"
    used_at: Span | None = None
    macros: tuple[str, ...] = ()
    condition: str | None = None
    under: tuple[UnderFact, ...] = ()
    why_incomplete: str | None = None
    kernel_at: Span | None = None


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


@dataclass(frozen=True, slots=True)
class Terminal:
    """The end of a path that is no kernel of this source: ``library``, ``memory``, ``host`` or ``torch``."""

    kind: str
    name: str
    file: str
    line: int
    path: tuple[PathStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Implementation:
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


@dataclass(frozen=True, slots=True)
class Walk:
    """The whole path of one op. Where what is walked is no op, ``op`` is None and ``entry`` stands in for it."""

    format: int = field(default=1, kw_only=True)
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


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel of the source, the ops that reach it, and the instances that the source can produce."""

    name: str
    file: str
    line: int
    ops: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    complete: bool = False
    why_incomplete: str | None = None
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class KernelsResult:
    """The answer to ``kernels``."""

    format: int = field(default=1, kw_only=True)
    source: SourceInfo
    kernels: tuple[KernelEntry, ...]
    gaps: tuple[Gap, ...] = ()
