"""Axes of instances: values in order, origins at one place joined, and what occurs with what."""

from __future__ import annotations

import pytest

from opwalker.model.axis import AxisGiven
from opwalker.model.reach import KernelRef, Origin
from opwalker.model.walk import Axis, AxisOrigin
from opwalker.views.axes import JoinedAxes, axes_of
from opwalker.views.kernels import list_kernels
from tests.trees import function, scan_text
from tests.views.miniatures import LIBRARY, SOURCE, implementation, line_of, ops_of

KERNEL = function(scan_text("template <typename T, int N, bool B> __global__ void k(T* a) {}\n"), "k")


def axes(*instances: str, origins: tuple = ()) -> tuple[Axis, ...]:
    return axes_of(KERNEL.template, [KernelRef("a.cu", KERNEL, (), True, instances, None, origins)])


def test_numbers_stand_by_size_and_types_as_found():
    found = axes("float, 16, true", "float, 8, true", "c10::Half, 16, true", "c10::Half, 8, true")
    assert [a.values for a in found] == [("float", "c10::Half"), ("8", "16"), ("true",)]
    assert [a.parameter for a in found] == ["T", "N", "B"]
    assert [a.depends_on for a in found] == [None, None, None]


DEPENDING = {
    "a value for each": (
        ["float, 4, true", "int, 8, true"],
        "T",
        (AxisGiven(("float",), ("4",)), AxisGiven(("int",), ("8",))),
    ),
    "one value less": (
        ["float, 4, true", "int, 4, true", "int, 8, true", "half, 4, true", "half, 8, true"],
        "T",
        (AxisGiven(("float",), ("4",)), AxisGiven(("int", "half"), ("4", "8"))),
    ),
}


@pytest.mark.parametrize("name", DEPENDING)
def test_what_depends_on_what(name):
    instances, other, given = DEPENDING[name]
    found = axes(*instances)
    assert (found[1].depends_on, found[1].given) == (other, given)
    assert found[0].depends_on is None


def test_two_parameters_together_decide():
    rows = [f"{t}, {n}, {b}" for t in "ab" for n in "12" for b in ("true", "false")]
    found = axes(*[row for row in rows if row != "a, 1, true"])
    # Every pair occurs; only the three together do not.
    assert [a.depends_on for a in found] == [None, None, "*"]


def test_origins_at_one_place_are_one():
    origins = (
        (1, "8", Origin("macro", "PICK", "a.cu", 7, "8")),
        (1, "4", Origin("macro", "PICK", "a.cu", 7, "4")),
        (1, "8", Origin("argument", "8", "a.cu", 3)),
    )
    found = axes("float, 4, true", "float, 8, true", origins=origins)
    assert found[1].origins == (
        AxisOrigin("macro", "PICK", "a.cu", 7, ("4", "8"), ("4", "8")),
        AxisOrigin("argument", "8", "a.cu", 3, ("8",)),
    )
    assert found[0].origins == ()


def test_several_launches_of_one_kernel_are_joined():
    one = axes("float, 4, true", origins=((1, "4", Origin("switch", "n", "a.cu", 7, "4")),))
    two = axes("int, 8, true", origins=((1, "8", Origin("switch", "n", "a.cu", 7, "8")),))
    joined = JoinedAxes()
    joined.add(one)
    joined.add(two)
    found = joined.of(["float, 4, true", "int, 8, true"])
    assert found[1].origins == (AxisOrigin("switch", "n", "a.cu", 7, ("4", "8"), ("4", "8")),)
    assert (found[1].depends_on, found[1].given[0]) == ("T", AxisGiven(("float",), ("4",)))


def test_a_launch_says_why():
    (launch,) = implementation(LIBRARY, "mini::norm").launches
    types, vec = launch.axes
    used = line_of(LIBRARY["csrc/norm.cu"], "DISPATCH_FLOATING(")
    assert types == Axis(
        "scalar_t",
        ("float", "c10::Half"),
        (
            AxisOrigin(
                "macro",
                "DISPATCH_FLOATING",
                "csrc/norm.cu",
                used,
                ("float", "c10::Half"),
                ("at::ScalarType::Float", "at::ScalarType::Half"),
            ),
        ),
    )
    assert vec == Axis("VEC", ("4",), (AxisOrigin("argument", "4", "csrc/norm.cu", used + 1, ("4",)),))


def test_a_kernel_says_why():
    ops, _, bench = ops_of(LIBRARY)
    (kernel,) = list_kernels(bench, SOURCE, list(ops.values()), None).kernels
    assert kernel.axes == implementation(LIBRARY, "mini::norm").launches[0].axes


def test_an_explicit_instantiation_says_so():
    text = (
        "template <typename T, int N> __global__ void k(T* a) {}\n"
        "template <typename T> void go(T* a) { k<T, 2><<<1, 2>>>(a); }\n"
        "template void go<float>(float* a);\n"
        "template __global__ void k<int, 3>(int* a);\n"
    )
    _, _, bench = ops_of(text)
    (kernel,) = list_kernels(bench, SOURCE, [], None).kernels
    types, sizes = kernel.axes
    assert [(o.kind, o.line, o.values) for o in types.origins] == [
        ("instantiation", 3, ("float",)),
        ("instantiation", 4, ("int",)),
    ]
    assert [(o.kind, o.line, o.values) for o in sizes.origins] == [
        ("argument", 2, ("2",)),
        ("instantiation", 4, ("3",)),
    ]


def test_the_names_in_a_computed_argument_are_axes_of_their_own():
    def computed(value: str) -> Origin:
        return Origin("computed", "S<W>", "a.cu", 9, None, (("W", value, Origin("switch", "n", "a.cu", 3, value)),))

    found = axes("S<8>, 1, true", "S<4>, 1, true", origins=((0, "S<8>", computed("8")), (0, "S<4>", computed("4"))))
    (origin,) = found[0].origins
    assert origin.parts == (Axis("W", ("4", "8"), (AxisOrigin("switch", "n", "a.cu", 3, ("4", "8"), ("4", "8")),)),)
    joined = JoinedAxes()
    joined.add(axes("S<8>, 1, true", origins=((0, "S<8>", computed("8")),)))
    joined.add(axes("S<4>, 1, true", origins=((0, "S<4>", computed("4")),)))
    assert joined.of(["S<4>, 1, true", "S<8>, 1, true"])[0].origins[0].parts == origin.parts
