"""Findings that were there before: a baseline file.

In: findings. Out: those that the baseline does not hold; and the text of a new baseline. Findings are known by their
fingerprint, which stays when lines move.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.model.check import Finding


def read_baseline(path: str) -> Counter[str]:
    """Fingerprints with how often each is excused. InputError when the file is no baseline."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        return Counter(str(one["fingerprint"]) for one in document["findings"])
    except FileNotFoundError as error:
        raise InputError(f"there is no baseline {path}", "write one with --write-baseline") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no baseline", "write it anew with --write-baseline") from error


def without(findings: Sequence[Finding], known: Counter[str]) -> list[Finding]:
    """The findings that a baseline does not hold."""
    left = Counter(known)
    out = []
    for one in findings:
        if left[one.fingerprint] > 0:
            left[one.fingerprint] -= 1
        else:
            out.append(one)
    return out


def write_baseline(path: str, findings: Sequence[Finding]) -> None:
    """Write the findings as a baseline: readable, in a stable order."""
    document = {
        "format": 1,
        "findings": [
            {"rule": one.rule, "file": one.file, "message": one.message, "fingerprint": one.fingerprint}
            for one in findings
        ],
    }
    try:
        Path(path).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise EnvironmentMissing(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error
