"""Why-lines: one short row an axis; every place and case when the instances are asked for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from opwalker.model.axis import Axis, AxisGiven, AxisOrigin
from opwalker.model.launch import Unreachable
from tests.serve import samples
from tests.serve.test_text import text

CU = samples.CU
KINDS = {
    "macro": (AxisOrigin("macro", "PICK", CU, 7, ("4", "8"), ("4", "default")), "PICK  :7"),
    "switch": (AxisOrigin("switch", "n % 8", CU, 7, ("4", "8"), ("4", "8")), "switch (n % 8)  :7"),
    "branch": (AxisOrigin("branch", "4", CU, 7, ("4",), ("n == 4",)), "under n == 4  :7"),
    "argument": (AxisOrigin("argument", "4", CU, 7, ("4",)), "written  :7"),
    "local": (AxisOrigin("local", "4", CU, 7, ("4",)), "constant  :7"),
    "deduced": (AxisOrigin("deduced", "out", CU, 7, ("4",)), "from the type of out  :7"),
    "default": (AxisOrigin("default", "4", "csrc/other.cuh", 7, ("4",)), "default  csrc/other.cuh:7"),
    "computed": (AxisOrigin("computed", "16 / W", CU, 7, ("4",)), "from 16 / W  :7"),
    "instantiation": (AxisOrigin("instantiation", "go", CU, 7, ("4",)), "explicit instantiation  :7"),
}


def page(*axes: Axis, **reading: object) -> str:
    kernel = replace(samples.KERNELS.kernels[0], axes=axes)
    return text(replace(samples.KERNELS, kernels=(kernel,)), **{"asked": "of rowkit::x", **reading})


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_in_a_few_words(kind: str) -> None:
    origin, wanted = KINDS[kind]
    assert f"VEC  {', '.join(origin.values)}  {wanted}\n" in page(Axis("VEC", origin.values, (origin,)))


def test_many_places_are_counted() -> None:
    origins = tuple(AxisOrigin("branch", str(n), CU, n, (str(n),), (f"n == {n}",)) for n in range(1, 6))
    shown = page(Axis("VEC", ("1", "2", "3", "4", "5"), origins))
    assert "VEC  1, 2, 3, 4, 5  branches  :1, :2, :3, 2 more\n" in shown
    assert "n == 5" in page(Axis("VEC", ("1", "2", "3", "4", "5"), origins), instances=True)


def test_a_value_whose_way_is_not_known_is_said() -> None:
    origin = AxisOrigin("argument", "4", CU, 7, ("4",))
    assert "VEC  4, 8  written  :7 · 1 not followed\n" in page(Axis("VEC", ("4", "8"), (origin,)))
    assert "VEC  4  origin not followed\n" in page(Axis("VEC", ("4",)))


def test_what_occurs_with_what() -> None:
    given = (AxisGiven(("float",), ("1", "2")), AxisGiven(("int", "half"), ("2",)))
    origin = AxisOrigin("macro", "PICK", CU, 7, ("1", "2"))
    assert "by T  float: 1, 2 · int, half: 2\n" in page(Axis("VEC", ("1", "2"), (origin,), "T", given))
    many = tuple(AxisGiven((str(n),), (str(n),)) for n in range(9))
    assert "not every value occurs with every T: 9 groups" in page(Axis("VEC", ("1",), (origin,), "T", many))
    assert "not every combination" in page(Axis("VEC", ("1",), (origin,), "*"))


def test_parts_of_a_computed_argument_stand_below_it() -> None:
    switch = AxisOrigin("switch", "n", CU, 3, ("4", "8"), ("4", "8"))
    parts = (Axis("W", ("4", "8"), (switch,)), Axis("B", ("true",)), Axis("T", ("float", "int")))
    origin = AxisOrigin("computed", "S<W, B, T>", CU, 7, ("S<4>", "S<8>"), (), parts)
    shown = page(Axis("T", ("float", "int")), Axis("S", ("S<4>", "S<8>"), (origin,)))
    assert "S  S<4>, S<8>  from S<W, B, T>  :7\n      W  4, 8  switch (n)  :3\n" in shown
    assert "      B  " not in shown and "      T  " not in shown


def test_long_values_are_counted() -> None:
    values = tuple(f"Traits<{n}, true, c10::BFloat16, float>" for n in range(6))
    assert "… 6 in all" in page(Axis("S", values))


def test_counts_stand_first() -> None:
    axes = (Axis("T", ("float", "int")), Axis("VEC", ("4",)))
    shown = page(*axes, asked="")
    assert "2 instances  T 2 · VEC 1" in shown
    assert "origin not followed" not in shown


def test_functions_are_shown_by_their_name() -> None:
    value = "&(float ns::act<float>(float const&, float))"
    assert "FN  ns::act<float>  " in page(Axis("FN", (value,)))
    assert value in page(Axis("FN", (value,)), instances=True)


def test_what_can_never_run_stands_below_the_count() -> None:
    reason = "w == 8 (:3), and std::gcd(4, n) (:2) is 1, 2 or 4"
    never = tuple(Unreachable(f"float, {n}", reason, 3, CU) for n in (8, 16))
    implementation = samples.CUDA
    launch = replace(implementation.launches[0], unreachable=never)
    walk = replace(samples.WALK, implementations=(replace(implementation, launches=(launch,)),))
    shown = " ".join(text(walk).split())
    assert "never run 2 of 3 are compiled and can never run" in shown
    assert f"<float, 8> and 1 more {reason}" in shown
    assert f"<float, 8>, <float, 16> {reason}" in " ".join(text(walk, instances=True).split())
