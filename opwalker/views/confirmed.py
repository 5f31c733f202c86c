"""What reference kernels were confirmed on: noted by ``verify``, read for notes.

In: a report, or a kernel's name, and the cache. Out: ``Confirmation``s, each for the text that was confirmed: a kernel
that has changed since is confirmed no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from opwalker import resources
from opwalker.model.verify import TOO_LATE, Confirmation, VerifyReport
from opwalker.model.walk import Walk
from opwalker.source.cache import cache_root, make_folder

_NOTED = "confirmed.json"


def digest_of(folder: Path, kernel: str) -> str:
    """What a confirmation holds for: the text of a kernel, its contract and all that they may include."""
    state = hashlib.blake2b(digest_size=12)
    shared = (path for path in folder.glob("*.py") if not path.with_suffix(".cu").is_file())
    for path in sorted([folder / f"{kernel}.cu", folder / f"{kernel}.py", *shared, *folder.glob("common/*")]):
        if path.is_file():
            state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()


def confirmations(folder: Path, cache: Path, kernel: str) -> tuple[Confirmation, ...]:
    """Where a kernel, as it is now, was confirmed: GPUs first, then by name."""
    noted = [one for one in _noted(cache) if one.op == kernel]
    if not noted:
        return ()
    digest = digest_of(folder, kernel)
    held = [one for one in noted if one.digest == digest]
    return tuple(sorted(held, key=lambda one: (one.device.kind != "gpu", one.device.name)))


def held(cache: Path | None, walk: Walk) -> tuple[Confirmation, ...]:
    """Where the reference kernel of a walk was confirmed. ``cache``: None is the user's."""
    if walk.reference_kernel is None:
        return ()
    return confirmations(resources.folder("reference_kernels"), cache or cache_root(), walk.reference_kernel)


def note_confirmed(folder: Path, cache: Path, report: VerifyReport) -> None:
    """Notes, in the cache, the kernels that a verification confirmed in every case; forgets what it did not."""
    if report.device is None:
        return
    results = [one for one in report.results if one.implementation == "reference" and one.time_us is None]
    checked = {one.op for one in results}
    today = datetime.now(tz=UTC).date().isoformat()
    made = []
    for op in sorted(checked):
        mine = [one for one in results if one.op == op]
        wrong = [one for one in report.wrong_variants if one.op == op]
        cases = sum(1 for one in mine if one.verdict == "confirmed")
        if any(TOO_LATE in one.reasons for one in mine) or any(one.reason == TOO_LATE for one in wrong):
            continue  # a run that was cut short shows nothing of what it left out
        if cases and all(one.verdict != "refuted" for one in mine) and all(one.refuted is not False for one in wrong):
            refuted = sum(1 for one in wrong if one.refuted)
            made.append(Confirmation(op, report.device, today, cases, refuted, digest_of(folder, op)))
    kept = [one for one in _noted(cache) if one.op not in checked or one.device != report.device]
    make_folder(cache)
    draft = cache / f".{_NOTED}"
    draft.write_bytes(msgspec.json.encode(sorted([*kept, *made], key=lambda one: (one.op, one.device.name))))
    draft.replace(cache / _NOTED)


def _noted(cache: Path) -> Iterable[Confirmation]:
    try:
        return msgspec.json.decode((cache / _NOTED).read_bytes(), type=tuple[Confirmation, ...])
    except (OSError, msgspec.MsgspecError):
        return ()
