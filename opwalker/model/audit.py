"""The answer to ``audit``: what a build contains, beside what its source says."""

from __future__ import annotations

from msgspec import Struct, field

from opwalker.model.binary import DeviceCode
from opwalker.model.places import Gap, SourceInfo, Span

#: Where something was found.
STATUSES = ("both", "source_only", "binary_only")
#: How a kernel's predicted instances compare with those of the libraries: the same set; the prediction says itself that
#: it is not whole; or they differ.
VERDICTS = ("equal", "incomplete", "different")


class TargetRef(Struct, frozen=True):
    """A target of the build files that makes a library. ``outside`` counts the sources that are not in the tree:
    fetched or generated when it is built."""

    name: str
    file: str
    line: int
    sources: int
    outside: int = 0
    condition: str | None = None


class Provenance(Struct, frozen=True):
    """Where code comes from that is not in the source: ``kind`` is ``fetched`` (another repository, ``name`` its
    address or name), ``generated`` (``name`` is the script) or ``library`` (``name`` is a library of headers)."""

    kind: str
    name: str
    span: Span | None = None
    makes: tuple[str, ...] = ()


class LibraryAudit(Struct, frozen=True):
    """One shared library, what makes it, and what is in it.

    ``also`` are the paths of the same module for other Pythons, or of equal files. ``kernels`` counts names,
    ``instances`` what is registered under them. ``exports`` are its global symbols that no C++ mangling changed.
    ``left_out`` says why a library is not compared: it is of another kind of build.
    """

    path: str
    size: int
    machine: str
    stripped: bool
    modules: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    targets: tuple[TargetRef, ...] = ()
    origins: tuple[Provenance, ...] = ()
    namespaces: tuple[str, ...] = ()
    ops: int = 0
    kernels: int = 0
    instances: int = 0
    device_code: tuple[DeviceCode, ...] = ()
    cannot_tell: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    left_out: str | None = None


class UnreadLibrary(Struct, frozen=True):
    """A file of a folder or a wheel that has a library's name and could not be read: it takes no part."""

    path: str
    reason: str


class OpAudit(Struct, frozen=True):
    """One op. ``schema`` is the source's, ``built_schema`` the libraries' where it is another or the source has none.

    ``keys`` are the dispatch keys of the source's build, ``built_keys`` those that the libraries show; None where they
    show none. ``reason`` says why it is on one side only, or what differs; ``explained`` whether that settles it.
    """

    name: str
    kind: str
    status: str
    libraries: tuple[str, ...] = ()
    schema: str | None = None
    built_schema: str | None = None
    keys: tuple[str, ...] = ()
    built_keys: tuple[str, ...] | None = None
    span: Span | None = None
    reason: str | None = None
    explained: bool = True


class KernelAudit(Struct, frozen=True):
    """One kernel of the source.

    ``predicted`` and ``built`` count instances. ``instances`` are the built ones, ``missing`` are predicted and not
    built, ``extra`` built and not predicted. ``archs`` are the architectures that have machine code of all built
    instances, ``some_archs`` those that have only some; None where the libraries do not tell. ``named_archs`` are
    those that the build files name for its files.
    """

    name: str
    status: str
    verdict: str | None
    spans: tuple[Span, ...] = ()
    ops: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    predicted: int = 0
    built: int = 0
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    archs: tuple[str, ...] | None = None
    some_archs: tuple[str, ...] = ()
    reason: str | None = None
    explained: bool = True
    instances: tuple[str, ...] = ()
    named_archs: tuple[str, ...] = ()


class ForeignKernels(Struct, frozen=True):
    """Kernels of one library that its source does not define, and what they are."""

    library: str
    origin: Provenance | None
    kernels: tuple[str, ...]
    instances: int
    reason: str
    explained: bool = True


class ArchitectureAudit(Struct, frozen=True):
    """Architectures that the build files name and those that the libraries have code for. ``reason`` says what a
    difference means."""

    named: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    only_named: tuple[str, ...] = ()
    only_built: tuple[str, ...] = ()
    reason: str | None = None


class AuditCounts(Struct, frozen=True):
    """How many ops, kernels and instances stand where; ``unexplained`` counts what nothing explains."""

    ops_both: int = 0
    ops_source_only: int = 0
    ops_binary_only: int = 0
    kernels_both: int = 0
    kernels_source_only: int = 0
    kernels_equal: int = 0
    kernels_incomplete: int = 0
    kernels_different: int = 0
    instances_both: int = 0
    foreign_kernels: int = 0
    foreign_instances: int = 0
    unexplained: int = 0


class AuditResult(Struct, frozen=True, kw_only=True):
    """The whole comparison. ``wheels`` are the files that the libraries came from, ``op`` is the op that was asked for
    alone."""

    format: int = 1
    source: SourceInfo
    build: str
    wheels: tuple[str, ...] = ()
    op: str | None = None
    counts: AuditCounts = field(default_factory=AuditCounts)
    libraries: tuple[LibraryAudit, ...] = ()
    ops: tuple[OpAudit, ...] = ()
    kernels: tuple[KernelAudit, ...] = ()
    foreign: tuple[ForeignKernels, ...] = ()
    architectures: ArchitectureAudit = field(default_factory=ArchitectureAudit)
    gaps: tuple[Gap, ...] = ()
    unread: tuple[UnreadLibrary, ...] = ()
