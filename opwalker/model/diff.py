"""The answer to ``diff``: what changed between two versions of a source, for one kind of build."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.places import Gap, SourceInfo


class OpPlace(Struct, frozen=True):
    """An op and where it is defined; ``schema`` is None where the binding has none."""

    name: str
    schema: str | None
    file: str | None
    line: int | None


class OpMoved(Struct, frozen=True):
    """An op under another namespace (``to`` differs from ``name``: breaking), or defined in another file."""

    name: str
    to: str
    old_file: str | None
    new_file: str | None
    breaking: bool


class OpChanged(Struct, frozen=True):
    """A schema (or, where there is none, a C++ signature) that differs. ``changes`` says each difference in words;
    ``breaking`` is torch's judgement of the whole: whether calls of the old one may fail."""

    name: str
    old: str | None
    new: str | None
    changes: tuple[str, ...]
    breaking: bool


class KeysChanged(Struct, frozen=True):
    """Dispatch keys that an op gained or lost in the build that is compared."""

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


class OpsDiff(Struct, frozen=True):
    """What happened to the ops."""

    added: tuple[OpPlace, ...] = ()
    removed: tuple[OpPlace, ...] = ()
    moved: tuple[OpMoved, ...] = ()
    changed: tuple[OpChanged, ...] = ()
    keys: tuple[KeysChanged, ...] = ()


class KernelPlace(Struct, frozen=True):
    """A kernel, the files that define it, and the ops that reach it."""

    name: str
    files: tuple[str, ...]
    ops: tuple[str, ...]
    instances: int


class KernelMoved(Struct, frozen=True):
    """A kernel that is defined in other files than before."""

    name: str
    old_files: tuple[str, ...]
    new_files: tuple[str, ...]


class InstancesChanged(Struct, frozen=True):
    """Template instances that a kernel gained or lost. ``note`` says what cannot be told: where the instances of one
    side are not all known, none is called gone or new on that account."""

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    note: str | None = None


class KernelsDiff(Struct, frozen=True):
    """What happened to the kernels."""

    added: tuple[KernelPlace, ...] = ()
    removed: tuple[KernelPlace, ...] = ()
    moved: tuple[KernelMoved, ...] = ()
    instances: tuple[InstancesChanged, ...] = ()


class LaunchChanged(Struct, frozen=True):
    """A launch parameter (``grid``, ``block``, ``shared``) of a kernel on the way of an op, as written: every form that
    only the old version has, and every one that only the new version has."""

    op: str
    kernel: str
    field: str
    old: tuple[str, ...]
    new: tuple[str, ...]


class ShapeChanged(Struct, frozen=True):
    """The documented shape of an argument; None where a version documents none."""

    op: str
    argument: str
    old: str | None
    new: str | None


class DiffResult(Struct, frozen=True, kw_only=True):
    """Everything that changed. ``breaking`` names each change that may break a caller, in words. ``gaps`` are what
    could not be followed in the new version alone, ``old_gaps`` in the old one alone; ``gaps_in_both`` counts the rest,
    which say nothing about a difference."""

    format: int = 1
    old: SourceInfo
    new: SourceInfo
    build: str
    ops: OpsDiff
    kernels: KernelsDiff
    launches: tuple[LaunchChanged, ...] = ()
    shapes: tuple[ShapeChanged, ...] = ()
    breaking: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    old_gaps: tuple[Gap, ...] = ()
    gaps_in_both: int = 0


class LaunchForm(Struct, frozen=True):
    """How one launch is written: the kernel and its configuration, white space made even."""

    kernel: str
    grid: str | None
    block: str | None
    shared: str | None


class OpSurvey(Struct, frozen=True):
    """What a comparison wants of one op's walk: launches, and documented shapes by argument."""

    launches: tuple[LaunchForm, ...]
    shapes: tuple[tuple[str, str], ...]


class Survey(Struct, frozen=True):
    """One version of a source as a comparison sees it, op by op."""

    ops: tuple[tuple[str, OpSurvey], ...]
