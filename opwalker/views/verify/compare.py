"""What a call did, judged: every result against the golden one, every other byte against what it was.

In: the arguments before and after, golden results, tolerances. Out: reasons why the contract does not hold, empty when
it does; and the largest error. Places are given in the coordinates of the documented shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from opwalker.views.verify.arrays import Array
from opwalker.views.verify.contract import Contract, TensorArgument, Tolerance
from opwalker.views.verify.numbers import decode, encode, spacing

#: How many differing places of one tensor are shown.
SHOWN = 3


class Judgement(Struct):
    """Reasons against the contract, and the largest error met (None: nothing was compared)."""

    reasons: list[str] = field(default_factory=list)
    max_error: float | None = None

    def saw(self, error: float) -> None:
        """Notes an error."""
        self.max_error = error if self.max_error is None else max(self.max_error, error)


def judge(
    contract: Contract,
    arguments: Mapping[str, Array],
    before: Mapping[int, np.ndarray],
    expected: Mapping[str, np.ndarray],
    returned: Sequence[Array],
    mutated: Sequence[str],
) -> Judgement:
    """The judgement of a call that has returned. ``before`` are copies of the storages by ``id``, ``mutated`` the
    arguments that the schema marks."""
    judgement = Judgement()
    results = {name: arguments[name] for name in mutated if name in arguments}
    results |= {f"return {number}": one for number, one in enumerate(returned)}
    for name, right in expected.items():
        if name not in results:
            judgement.reasons.append(f"{name}: nothing came back")
            continue
        labels = _labels(contract, contract.arguments.get(name), results[name])
        _compare(name, results[name], right, contract.tolerance_of(name), labels, judgement)
    for name in results:
        if name not in expected:
            judgement.reasons.append(f"{name}: the contract gives no golden result for it")
    _untouched(contract, arguments, before, mutated, judgement)
    return judgement


def _compare(
    name: str, got: Array, right: np.ndarray, tolerance: Tolerance, labels: Sequence[str], judgement: Judgement
) -> None:
    right = np.asarray(right)
    if got.shape != right.shape:
        judgement.reasons.append(f"{name} has shape {list(got.shape)} where {list(right.shape)} is right")
        return
    if right.size == 0:
        return
    raw = np.ascontiguousarray(got.view)
    value = decode(raw, got.type)
    if tolerance.exact or got.type.kind != "float":
        fine = raw == encode(right, got.type)
        allowed = np.zeros(1)
        if got.type.kind == "float":
            fine &= ~np.isnan(value)
            right = decode(encode(right, got.type), got.type)
        with np.errstate(invalid="ignore"):
            error = np.abs(np.subtract(value, right, dtype=np.float64))
    else:
        allowed = tolerance.steps * spacing(right, got.type)
        allowed = allowed + tolerance.relative * np.abs(right) + tolerance.absolute
        if tolerance.peak:
            largest = np.max(np.abs(right[np.isfinite(right)]), initial=0.0)
            allowed = allowed + tolerance.peak * spacing(largest, got.type)
        with np.errstate(invalid="ignore"):
            error = np.where(value == right, 0.0, np.abs(value - right))
            fine = error <= allowed
        fine |= encode(right, got.type) == raw  # what is too large for the type, or infinite, has one right answer
        fine &= ~np.isnan(value)  # but NaN is never right
    known = error[np.isfinite(error) & np.isfinite(np.asarray(right, dtype=np.float64))]
    judgement.saw(float(known.max()) if known.size else 0.0)
    wrong = np.argwhere(~fine)
    if not len(wrong):
        return
    shown = []
    for index in wrong[:SHOWN]:
        at = tuple(int(i) for i in index)
        shown.append(f"{place(name, at, labels)}: {_text(value[at])} where {_text(right[at])} is right")
    bound = f" (tolerance {tolerance})" if not tolerance.exact else ""
    judgement.reasons.append(f"{'; '.join(shown)}; {len(wrong):,} of {fine.size:,} differ{bound}")


def _text(value: object) -> str:
    number = value.item() if isinstance(value, np.generic) else value
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _labels(contract: Contract, described: TensorArgument | None, one: Array) -> tuple[str, ...]:
    """The words for each documented dimension; ``...`` first where the shape leaves a number of dimensions open."""
    if described is None:
        return ()
    dims = described.dims(len(one.shape))
    return tuple(("..." if dim == "..." else "") + contract.coordinates.get(dim, "") for dim in dims)


def place(name: str, index: Sequence[int], labels: Sequence[str]) -> str:
    """An element in documented coordinates: ``key_cache[block 3, head 1, 0, offset 5, 2]``."""
    words = list(labels)
    for at, word in enumerate(words):
        if word.startswith("..."):
            words[at : at + 1] = [word[3:]] * (len(index) - len(words) + 1)
            break
    if len(words) != len(index):
        words = [""] * len(index)
    return f"{name}[{', '.join(f'{word} {i}'.strip() for word, i in zip(words, index, strict=True))}]"


def _untouched(
    contract: Contract,
    arguments: Mapping[str, Array],
    before: Mapping[int, np.ndarray],
    mutated: Sequence[str],
    judgement: Judgement,
) -> None:
    """Every byte that no mutated argument covers is what it was."""
    may_change: dict[int, np.ndarray] = {}
    for name in mutated:
        one = arguments.get(name)
        if one is not None:
            mask = may_change.setdefault(id(one.storage), np.zeros(one.storage.size, dtype=bool))
            one.covered(mask)
    seen: set[int] = set()
    for name, one in arguments.items():
        if id(one.storage) in seen:
            continue
        seen.add(id(one.storage))
        changed = one.storage != before[id(one.storage)]
        if id(one.storage) in may_change:
            changed &= ~may_change[id(one.storage)]
        if not changed.any():
            continue
        judgement.reasons.append(_change(contract, name, one, changed))


def _change(contract: Contract, name: str, one: Array, changed: np.ndarray) -> str:
    """Where memory changed that should not have: an element of the view, or the bytes around it."""
    within = np.zeros(one.storage.size, dtype=bool)
    one.covered(within)
    inside = np.flatnonzero(changed & within)
    if inside.size:
        mask = Array(changed.view(np.uint8), _same_place(changed.view(np.uint8), one), one.type)
        index = tuple(int(i) for i in np.argwhere(np.ascontiguousarray(mask.view) != 0)[0])
        labels = _labels(contract, contract.arguments.get(name), one)
        return f"{place(name, index, labels)} was changed, and the schema does not mark {name} as mutated"
    first = int(np.flatnonzero(changed)[0])
    count = int(changed.sum())
    payload = np.flatnonzero(within)
    if not payload.size or first < payload[0]:
        where = f"{(int(payload[0]) - first) if payload.size else 0} bytes in front of"
    elif first > payload[-1]:
        where = f"{first - int(payload[-1])} bytes behind the end of"
    else:
        where = f"between the rows, {first - int(payload[0])} bytes from the start of"
    return f"memory outside {name} was written: {count} bytes, the first {where} it"


def _same_place(storage: np.ndarray, one: Array) -> np.ndarray:
    """The view that ``one`` has of its storage, on another storage of that size."""
    return np.ndarray(one.shape, one.type.raw, storage, one.offset, one.view.strides)
