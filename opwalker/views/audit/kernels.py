"""Kernels of the source beside those that the libraries register.

In: kernels with their predicted instances, libraries, the source side. Out: ``KernelAudit`` values for what the source
defines, ``ForeignKernels`` for the rest. Instances are compared without blanks; what the demangler could not take never
counts as equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from opwalker.binary.cubin import arch_order
from opwalker.model.audit import ForeignKernels, KernelAudit, Provenance
from opwalker.model.binary import BuiltKernel, LibraryFacts
from opwalker.model.places import Span
from opwalker.model.reach import HASHED, VERSIONED
from opwalker.model.walk import KernelEntry
from opwalker.notation.regex import Regex
from opwalker.views.audit.lookup import SourceText
from opwalker.views.audit.side import SourceSide

#: The namespace that nvcc makes for what only one unit sees (a hash, the file's name with its length, a hash), and
#: those of CUB and Thrust with their version and architectures.
_OF_BUILD = Regex(r"\b_INTERNAL_[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}(?:::)?|\b(?:CUB|THRUST)_\d\w*::")
_NOT_TOLD = (HASHED, VERSIONED)


class _Built(Struct):
    """All that the libraries have of one name."""

    by_library: dict[str, list[BuiltKernel]] = field(default_factory=dict)

    def of(self, libraries: Iterable[str]) -> list[BuiltKernel]:
        """The kernels of some libraries."""
        return [kernel for library in libraries for kernel in self.by_library.get(library, ())]


def audit_kernels(
    side: SourceSide, entries: Sequence[KernelEntry], libraries: Sequence[LibraryFacts]
) -> tuple[list[KernelAudit], dict[str, set[str]]]:
    """The kernels of the source, by name; and for each library the names that they account for."""
    built: dict[str, _Built] = {}
    for library in libraries:
        for kernel in library.kernels:
            built.setdefault(kernel.name, _Built()).by_library.setdefault(library.path, []).append(kernel)
    by_name: dict[str, list[KernelEntry]] = {}
    for entry in entries:
        by_name.setdefault(entry.name, []).append(entry)
    accounted: dict[str, set[str]] = {library.path: set() for library in libraries}
    audits = []
    for name in sorted(by_name):
        same = by_name[name]
        there = built.get(name, _Built())
        chosen = side.may_hold([entry.file for entry in same], list(there.by_library))
        for library in chosen:
            accounted[library].add(name)
        audits.append(_audit(side, name, same, chosen, there.of(chosen)))
    return audits, accounted


def _audit(
    side: SourceSide, name: str, entries: list[KernelEntry], libraries: list[str], kernels: list[BuiltKernel]
) -> KernelAudit:
    spans = tuple(Span(entry.file, entry.line, entry.line) for entry in entries)
    ops = tuple(dict.fromkeys(op for entry in entries for op in entry.ops))
    predicted = {_bare(text): text for entry in entries for text in entry.instances}
    # A definition that this build does not read predicts nothing, and its silence says nothing of the others.
    read = [entry for entry in entries if not _other_build(side, entry)]
    open_ = [entry for entry in read if not entry.complete and not (entry.why_incomplete or "").endswith(_NOT_TOLD)]
    why = next((entry.why_incomplete for entry in open_ if entry.why_incomplete), None)
    whole = bool(read) and not open_
    if not kernels:
        reason = _why_absent(side, entries, bool(predicted))
        return KernelAudit(
            name, "source_only", None, spans, ops, predicted=len(predicted),
            reason=reason or "no library registers it, and nothing in the source or the build files says why",
            explained=reason is not None,
        )  # fmt: skip
    found = {_bare(k.arguments): k.arguments for k in kernels if k.arguments is not None}
    unnamed = sum(1 for k in kernels if k.arguments is None)
    if set(found) == {""} and not unnamed and set(predicted) <= {""}:
        # A kernel that is no template has one instance, whoever launches it.
        predicted, whole = {"": ""}, True
    missing = tuple(sorted(text for bare, text in predicted.items() if bare not in found))
    extra = tuple(sorted(text for bare, text in found.items() if bare not in predicted))
    if predicted and not missing and not extra and not unnamed:
        # Another definition of the name that nothing launches adds nothing to what is built.
        whole = whole or not [entry for entry in open_ if entry.instances or entry.ops]
    verdict, reason, explained = _verdict(whole, why, missing, extra, unnamed)
    if verdict == "incomplete" and extra:
        made = [one for library in libraries for one in side.generated(library) if _may_make(one, entries)]
        if made:
            reason = f"{reason}; its instances stand in files that {made[0].name} writes when it is built"
    archs, some = _architectures(kernels)
    return KernelAudit(
        name, "both", verdict, spans, ops, tuple(libraries), len(predicted), len(found) + unnamed, missing, extra,
        archs, some, reason, explained, tuple(sorted(found.values())), _named_archs(entries),
    )  # fmt: skip


def _verdict(
    whole: bool, why: str | None, missing: tuple[str, ...], extra: tuple[str, ...], unnamed: int
) -> tuple[str, str | None, bool]:
    if not missing and not extra and not unnamed and whole:
        return "equal", None, True
    if missing:
        # What is predicted must be there, whole set or not.
        return (
            "different",
            f"{len(missing)} predicted and not built" + (f", {len(extra)} built and not predicted" if extra else ""),
            False,
        )
    if whole and extra:
        return "different", f"{len(extra)} built and not predicted, though the prediction is said to be whole", False
    if unnamed and whole:
        return "incomplete", f"{unnamed} of its built names are too long for the demangler", True
    said = why or "the prediction is not whole"
    equal = "; what it predicts is just what is built" if not extra and not unnamed else ""
    return "incomplete", said + equal, True


def _bare(arguments: str) -> str:
    """Arguments without blanks, and without what a build writes before the names of static functions and of CUB."""
    return _OF_BUILD.sub("", arguments.replace(" ", ""))


def _other_build(side: SourceSide, entry: KernelEntry) -> bool:
    builds = side.builds_of(entry.file)
    if builds and side.build not in builds:
        return True
    return not entry.instances and not entry.complete and "does not set" in (entry.why_incomplete or "")


def _may_make(origin: Provenance, entries: Iterable[KernelEntry]) -> bool:
    """Whether a generator lies beside the kernel."""
    folder = origin.name.rpartition("/")[0]
    return bool(folder) and any(entry.file.startswith(f"{folder}/") for entry in entries)


def _why_absent(side: SourceSide, entries: Sequence[KernelEntry], predicted: bool) -> str | None:
    """Why the libraries need not have a kernel, each definition for itself."""
    reasons = []
    for entry in entries:
        reason = side.absent(entry.file)
        if reason is None and entry.condition:
            reason = f"it stands under `#if {entry.condition}`"
        if reason is None and not predicted and not entry.ops:
            reason = f"nothing instantiates it: {entry.why_incomplete or 'no op reaches it'}"
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def _named_archs(entries: Iterable[KernelEntry]) -> tuple[str, ...]:
    return tuple(sorted({arch for entry in entries for arch in entry.archs}, key=arch_order))


def _architectures(kernels: Sequence[BuiltKernel]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The architectures that have all of the kernels, and those that have some."""
    if any(kernel.archs is None for kernel in kernels):
        return None, ()
    sets = [frozenset(kernel.archs or ()) for kernel in kernels]
    every = frozenset.intersection(*sets)
    some = frozenset.union(*sets) - every
    return tuple(sorted(every, key=arch_order)), tuple(sorted(some, key=arch_order))


def foreign_kernels(
    side: SourceSide,
    libraries: Sequence[LibraryFacts],
    accounted: dict[str, set[str]],
    origin_of: Callable[[str], Provenance | None],
    text: SourceText,
) -> list[ForeignKernels]:
    """The kernels of each library that its source does not define, by what they are. ``origin_of`` knows namespaces of
    libraries of headers."""
    out: list[ForeignKernels] = []
    for library in libraries:
        groups: dict[tuple[Provenance | None, str, bool], dict[str, int]] = {}
        numbers = Counter(k.name for k in library.kernels if k.name not in accounted[library.path])
        for name, number in numbers.items():
            groups.setdefault(_origin(side, library.path, name, origin_of, text), {})[name] = number
        for (origin, reason, explained), names in groups.items():
            total = sum(names.values())
            out.append(ForeignKernels(library.path, origin, tuple(sorted(names)), total, reason, explained))
    return sorted(out, key=lambda one: (one.library, one.explained, one.reason))


def _origin(
    side: SourceSide,
    library: str,
    name: str,
    origin_of: Callable[[str], Provenance | None],
    text: SourceText,
) -> tuple[Provenance | None, str, bool]:
    headers = origin_of(name)
    if headers is not None:
        return headers, f"instantiated from the headers of {headers.name}", True
    fetched = side.provenances(library)
    if fetched:
        named = " or ".join(one.name for one in fetched)
        whole = "" if side.is_foreign(library) else "some of "
        return fetched[0], f"{whole}its sources are fetched when it is built: {named}", True
    simple = name.rpartition("::")[2]
    place = text.kernel(simple)
    if place is not None:
        return None, f"the source has a kernel of that name under another scope, at {place.file}:{place.line}", False
    written = next((one for one in side.generated(library) if text.script_names(one.name, simple)), None)
    if written is not None:
        return written, f"it stands in files that {written.name} writes when it is built", True
    missing = text.missing_include(side.sources(library), simple)
    if missing is not None:
        where, target = missing
        return None, f"{where.file}:{where.line} includes {target}, which is not in the source", True
    if not side.targets[library]:
        return None, "no build file that could be read makes this library", False
    return None, "no file of the source defines it", False
