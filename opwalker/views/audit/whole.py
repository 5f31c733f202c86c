"""The whole audit: ops, kernels, what is left over, architectures, and how many of each.

In: the source side, the ops and kernels that the source says, the libraries. Out: ``AuditResult``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker import resources
from opwalker.binary.cubin import arch_order
from opwalker.model.audit import (
    ArchitectureAudit,
    AuditCounts,
    AuditResult,
    ForeignKernels,
    KernelAudit,
    LibraryAudit,
    OpAudit,
    Provenance,
)
from opwalker.model.binary import LibraryFacts
from opwalker.model.ops import Op
from opwalker.model.places import Gap, SourceInfo
from opwalker.model.walk import KernelEntry
from opwalker.notation.regex import Regex
from opwalker.views.audit.kernels import audit_kernels, foreign_kernels
from opwalker.views.audit.lookup import SourceText
from opwalker.views.audit.ops import audit_ops
from opwalker.views.audit.side import SourceSide


class SourceAnswers(Struct, frozen=True):
    """What the source says: its ops, its kernels, and the architectures that its build files name."""

    ops: tuple[Op, ...]
    kernels: tuple[KernelEntry, ...]
    architectures: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()


def audit(
    source: SourceInfo,
    side: SourceSide,
    answers: SourceAnswers,
    libraries: Sequence[LibraryFacts],
    also: dict[str, tuple[str, ...]],
    text: SourceText,
) -> AuditResult:
    """Everything that both sides say of each other. ``also`` are the copies of a library."""
    compared = [library for library in libraries if not library.builds or side.build in library.builds]
    ops = audit_ops(side, answers.ops, compared)
    kernels, accounted = audit_kernels(side, answers.kernels, compared)
    own = {kernel.name.partition("::")[0] for kernel in kernels if kernel.status == "both"}
    headers = _headers(side)
    foreign = foreign_kernels(side, compared, accounted, lambda name: _header_library(name, own, headers), text)
    reports = tuple(_library(side, library, ops, also.get(library.path, ())) for library in libraries)
    result = AuditResult(
        source=source,
        build=side.build,
        libraries=reports,
        ops=tuple(ops),
        kernels=tuple(kernels),
        foreign=tuple(foreign),
        architectures=_architectures(answers.architectures if side.build == "cuda" else (), compared),
        gaps=answers.gaps,
    )
    return replace(result, counts=count(result))


def narrowed(result: AuditResult, op: str) -> AuditResult:
    """The part of an audit that is about one op, by its full name."""
    ops = tuple(one for one in result.ops if one.name == op)
    kernels = tuple(one for one in result.kernels if op in one.ops)
    held = {library for one in (*ops, *kernels) for library in one.libraries}
    libraries = tuple(one for one in result.libraries if one.path in held)
    part = replace(result, op=op, ops=ops, kernels=kernels, libraries=libraries, foreign=(), gaps=())
    return replace(part, counts=count(part))


def count(result: AuditResult) -> AuditCounts:
    """The numbers of an audit."""

    def number(items: Sequence[OpAudit | KernelAudit], status: str) -> int:
        return sum(1 for one in items if one.status == status)

    def verdicts(verdict: str) -> int:
        return sum(1 for one in result.kernels if one.verdict == verdict)

    everything: tuple[OpAudit | KernelAudit | ForeignKernels, ...] = (*result.ops, *result.kernels, *result.foreign)
    return AuditCounts(
        ops_both=number(result.ops, "both"),
        ops_source_only=number(result.ops, "source_only"),
        ops_binary_only=number(result.ops, "binary_only"),
        kernels_both=number(result.kernels, "both"),
        kernels_source_only=number(result.kernels, "source_only"),
        kernels_equal=verdicts("equal"),
        kernels_incomplete=verdicts("incomplete"),
        kernels_different=verdicts("different"),
        instances_both=sum(one.built - len(one.extra) for one in result.kernels if one.status == "both"),
        foreign_kernels=sum(len(one.kernels) for one in result.foreign),
        foreign_instances=sum(one.instances for one in result.foreign),
        unexplained=sum(1 for one in everything if not one.explained),
    )


def _library(side: SourceSide, library: LibraryFacts, ops: Sequence[OpAudit], also: tuple[str, ...]) -> LibraryAudit:
    return LibraryAudit(
        path=library.path,
        size=library.size,
        machine=library.machine,
        stripped=library.stripped,
        modules=library.modules,
        also=also,
        needed=library.needed,
        targets=side.target_refs(library.path),
        origins=(*side.provenances(library.path), *side.generated(library.path)),
        namespaces=tuple(dict.fromkeys(op.namespace for op in library.ops if op.namespace)),
        ops=sum(1 for op in ops if library.path in op.libraries),
        kernels=len({kernel.name for kernel in library.kernels}),
        instances=len(library.kernels),
        device_code=library.device_code,
        cannot_tell=library.cannot_tell,
        exports=library.exports,
        left_out=None
        if not library.builds or side.build in library.builds
        else (f"it is built for {' and '.join(library.builds)}: --build {library.builds[0]} compares it"),
    )


def _headers(side: SourceSide) -> dict[str, Provenance]:
    """The libraries of headers by their namespace, with the place where the build files fetch them, if they do."""
    found: dict[str, Provenance] = {}
    for line in resources.text("grammars/kernel_origins.txt").splitlines():
        namespace, _, name = line.partition(" ")
        if namespace and not namespace.startswith("#"):
            fetched = next((one.span for one in side.origins.fetched if namespace in one.makes), None)
            found[namespace] = Provenance("library", name.strip(), fetched)
    return found


def _header_library(name: str, own: set[str], headers: dict[str, Provenance]) -> Provenance | None:
    root = name.partition("::")[0]
    return None if root in own else headers.get(root)


_ARCH = Regex(r"(\d+)\.?(\d)([af]?)")


def _architectures(named: Sequence[str], libraries: Sequence[LibraryFacts]) -> ArchitectureAudit:
    """Both lists in one spelling, and what is on one side only."""
    wanted = list(dict.fromkeys(filter(None, (_plain(text) for text in named))))
    built = {code.arch for library in libraries for code in library.device_code}
    only_named = [arch for arch in wanted if arch not in built]
    only_built = [arch for arch in built if arch not in wanted] if wanted else []
    reasons = []
    if not wanted:
        reasons.append("the build files name no architectures: they are chosen when it is built")
    elif only_named:
        reasons.append("the build files name what can be built for; which of them are is chosen when it is built")
    return ArchitectureAudit(
        tuple(sorted(wanted, key=arch_order)),
        tuple(sorted(built, key=arch_order)),
        tuple(sorted(only_named, key=arch_order)),
        tuple(sorted(only_built, key=arch_order)),
        "; ".join(reasons) or None,
    )


def _plain(text: str) -> str | None:
    """``9.0a`` for ``90a-real``, ``8.0`` for ``8.0+PTX``."""
    bare = re.sub(r"(?:\+PTX|-real|-virtual)\Z", "", text)
    found = _ARCH.fullmatch(bare)
    return f"{found[1]}.{found[2]}{found[3]}" if found else None
