"""The answer to ``verify``: what was run, and whether the contract held. Field names are those of the JSON contract."""

from __future__ import annotations

from msgspec import Struct, field

#: A result is one of these: the contract held; it did not; or it could not be run, with the reason.
VERDICTS = ("confirmed", "refuted", "not_run")

#: Why a case was not run that a limit for the whole run left no time for.
TOO_LATE = "the time for the whole run was over"


class Device(Struct, frozen=True):
    """What ran the kernels: ``kind`` is ``gpu`` or ``cpu-emulation``."""

    name: str
    kind: str
    compute_capability: str | None = None
    software: str | None = None


class DocumentedShape(Struct, frozen=True):
    """The shape of an argument in the contract and in the source that was compared. ``agrees`` is None where the source
    documents none; ``source_at`` is its place."""

    argument: str
    contract: str
    source: str | None
    agrees: bool | None
    source_at: str | None = None


class VerifyResult(Struct, frozen=True):
    """One case. ``seed`` makes the same inputs again; times in microseconds, rates in 1e9 bytes a second. ``seconds``:
    what the case took, with its inputs and what was compared. ``remark``: what a reader of a verdict should know."""

    op: str
    case: str
    verdict: str
    reasons: tuple[str, ...] = ()
    implementation: str = "reference"
    dtypes: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    documented_shapes: tuple[DocumentedShape, ...] = ()
    max_error: float | None = None
    tolerance: str | None = None
    kernels_launched: tuple[str, ...] = ()
    time_us: float | None = None
    bytes: int | None = None
    gb_per_s: float | None = None
    share_of_copy: float | None = None
    seed: int | None = None
    seconds: float | None = None
    remark: str | None = None


class WrongVariant(Struct, frozen=True):
    """A variant that is wrong on purpose. ``refuted`` is False where no case noticed (the check has lost its teeth),
    None where it could not be run; ``by`` is the case that noticed, ``reason`` what it saw."""

    op: str
    variant: str
    what: str
    refuted: bool | None
    by: str | None = None
    reason: str | None = None


class Confirmation(Struct, frozen=True):
    """That a reference kernel held in every case: where, when (a date, UTC), how many cases, and how many of its wrong
    variants were refuted. ``digest`` is of the text that was confirmed."""

    op: str
    device: Device
    date: str
    cases: int
    wrong_refuted: int
    digest: str


class VerifyReport(Struct, frozen=True, kw_only=True):
    """Everything that was run. ``built`` are the libraries made, by name, for a run that only builds; ``notes`` what a
    reader must know (a library's own code was run, say)."""

    format: int = 1
    device: Device | None
    results: tuple[VerifyResult, ...] = ()
    wrong_variants: tuple[WrongVariant, ...] = ()
    built: tuple[str, ...] = ()
    copy_gb_per_s: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether a contract was refuted, or a wrong variant was not."""
        return any(one.verdict == "refuted" for one in self.results) or any(
            one.refuted is False for one in self.wrong_variants
        )
