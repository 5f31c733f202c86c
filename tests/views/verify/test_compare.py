"""Every way in which a call can break its contract is seen, and said in documented coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from opwalker.views.verify.arrays import Array
from opwalker.views.verify.compare import judge, place
from opwalker.views.verify.contract import EXACT, Contract, TensorArgument, Tolerance, tensors

OUTSIDE = "memory outside out was written: 1 bytes, the first"


def contract(tolerance: Tolerance = EXACT) -> Contract:
    return Contract(
        op="move",
        summary="",
        names=(),
        arguments={"out": TensorArgument("[num_tokens, d]", mutated=True), "input": TensorArgument("[num_tokens, d]")},
        cases=(),
        inputs=dict,
        golden=dict,
        tolerance=tolerance,
        wrong={},
        coordinates={"num_tokens": "token"},
    )


def called(change, tolerance: Tolerance = EXACT, dtype: str = "bfloat16") -> list[str]:
    """Reasons after ``change`` has worked on a right result: three rows of four, within a storage of six columns."""
    values = np.arange(12, dtype=float).reshape(3, 4) + 1
    wide = Array.of(np.zeros((3, 6)), dtype)
    arguments = {"out": wide[:, :4], "input": Array.of(values, dtype)}
    before = {id(one.storage): one.storage.copy() for one in tensors(arguments).values()}
    arguments["out"].view[...] = arguments["input"].view
    change(arguments, wide)
    return judge(contract(tolerance), arguments, before, {"out": values}, (), ("out",)).reasons


def poke(name: str, index: tuple[int, ...], value: float):
    def change(arguments, wide) -> None:
        one = arguments[name]
        one.view[index] = Array.of(np.array([value]), one.type.name).view[0]

    return change


def test_a_right_result_gives_no_reason() -> None:
    assert called(lambda arguments, wide: None) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (poke("out", (2, 1), 3.0), "out[token 2, 1]: 3 where 10 is right"),
        (poke("out", (1, 0), float("nan")), "out[token 1, 0]: nan where 5 is right"),
        (poke("input", (0, 3), 3.0), "input[token 0, 3] was changed, and the schema does not mark input as mutated"),
        (lambda a, wide: wide.view.__setitem__((0, 5), 7), f"{OUTSIDE} between the rows"),
        (lambda a, wide: wide.storage.__setitem__(3, 0), f"{OUTSIDE} 509 bytes in front of"),
        (lambda a, wide: wide.storage.__setitem__(-1, 0), OUTSIDE),
    ],
)
def test_what_is_wrong_is_said(change, told: str) -> None:
    reasons = called(change)
    assert len(reasons) == 1
    assert reasons[0].startswith(told)


def test_a_tolerance_is_a_number_of_steps() -> None:
    near = Tolerance("a rounding more", steps=1)
    assert called(poke("out", (2, 1), 10.0625), near) == []
    assert called(poke("out", (2, 1), 10.125), near) != []


def test_not_a_number_is_within_no_tolerance() -> None:
    assert called(poke("out", (2, 1), float("nan")), Tolerance("none", absolute=1e30)) != []


def test_a_result_that_is_missing_or_unexpected_is_said() -> None:
    one = Array.of(np.ones(2), "float32")
    before = {id(one.storage): one.storage.copy()}
    missing = judge(contract(), {"input": one}, before, {"return 0": np.ones(2)}, (), ())
    assert missing.reasons == ["return 0: nothing came back"]
    shape = judge(contract(), {"input": one}, before, {"return 0": np.ones(3)}, (one,), ())
    assert shape.reasons == ["return 0 has shape [2] where [3] is right"]
    unknown = judge(contract(), {"input": one}, before, {}, (one,), ())
    assert unknown.reasons == ["return 0: the contract gives no golden result for it"]


def test_places_have_the_words_of_documented_dimensions() -> None:
    labels = ("block", "head", "", "offset", "")
    assert place("key_cache", (3, 1, 0, 5, 2), labels) == "key_cache[block 3, head 1, 0, offset 5, 2]"
    assert place("out", (1, 2, 7), ("...token", "")) == "out[token 1, token 2, 7]"
    assert place("out", (1, 2), ()) == "out[1, 2]"
