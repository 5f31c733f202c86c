"""Kernels read apart from what launches them, and registrations followed one by one: the same as all at once."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest

from opwalker.asking import Options, Session
from opwalker.expand.values import Number, Pointer
from opwalker.link.moved import moved
from opwalker.model.walk import Span
from opwalker.notation.polynomial import Atom, Poly, poly, symbol
from opwalker.views.following import HostSide
from opwalker.views.kernel_values import Documented, Passed
from opwalker.views.walk import WalkView
from opwalker.views.walk_kernels import KernelSide, Launched, pack, unpack
from tests.views.miniatures import implementation

KITS = Path(__file__).resolve().parents[2] / "fixtures" / "libraries"


def noted(session: Session) -> list[str]:
    """The questions that a session is asked apart from now on."""
    asked: list[str] = []
    apart = session.apart
    session.apart = lambda question, *rest, **more: asked.append(question) or apart(question, *rest, **more)
    return asked


@pytest.mark.parametrize("kit", ["classickit", "pagekit"])
def test_pieces_make_the_whole(tmp_path: Path, kit: str) -> None:
    pieces = 0
    with contextlib.closing(Session(Options(source=str(KITS / kit), cache=tmp_path, jobs=1))) as session:
        ops = session.ops().ops
        whole = [WalkView(session.workbench, session.source).native(op) for op in ops]
    for _ in range(2):
        with contextlib.closing(Session(Options(source=str(KITS / kit), cache=tmp_path, jobs=1))) as session:
            session.single = True
            asked = noted(session)
            made = [WalkView(session.workbench, session.source).native(op) for op in ops]
            assert msgspec.json.encode(made) == msgspec.json.encode(whole)
            pieces += sum(question.startswith("kernels of:") for question in asked)
    assert pieces


PASSED = Passed(
    {"n": Number(symbol("n") * 2 + poly(-1 << 80)), "zero": Number(poly(0))},
    {"grid.x": Poly({((Atom("quotient", "", (symbol("n"), poly(32))), 2),): 3})},
    {"x": Documented("x", (("n", "2 * d"),), "[n, 2 * d]", Span("a.cu", 4, 5))},
    {Atom("call", "x.stride", (poly(0),)): ("x", 0)},
    ((Atom("symbol", "s"), Atom("symbol", "t"), "s is t (checked at :12)"),),
    {"x": "x"},
    {"x": [[("n", symbol("n")), ("*", None)]]},
    frozenset(("y", "b")),
    {Atom("symbol", "s"): "n is 4"},
    {"n": "4"},
    frozenset(("x",)),
    {"block.x": poly(32)},
)


def test_what_a_launch_passes_as_text() -> None:
    text = pack(PASSED)
    assert text == pack(PASSED)
    one = Launched("a.cu", "k", 0, "a.cu", text, tuple(PASSED.tensors.items()))
    made = unpack(msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Launched))
    assert made == PASSED
    assert list(made.bound) == ["n", "zero"]
    assert unpack(Launched("a.cu", "k", 0, "a.cu", pack(Passed()), ())) == Passed()


def test_what_cannot_be_told_as_text() -> None:
    assert pack(Passed({"n": Pointer("x", poly(1))})) is None


def test_lines_of_what_is_passed() -> None:
    side = KernelSide(Span("a.cu", 3, 3), (Launched("b.cu", "k", 0, "b.cu", pack(PASSED), ()),), (), (), ())
    found = moved(side, {"a.cu": lambda line: line + 10})
    assert "checked at :22" in found.launched[0].passed and found.host.line == 13
    documented = Launched("b.cu", "k", 0, "b.cu", "[]", tuple(PASSED.tensors.items()))
    assert moved(documented, {"a.cu": lambda line: line + 10}).tensors[0][1].at == Span("a.cu", 14, 15)


@pytest.mark.parametrize("kind", [HostSide, KernelSide])
def test_they_can_be_kept(kind: type) -> None:
    assert msgspec.inspect.type_info(kind).cls is kind


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("", ()),
        ('#include "b.cu"\n', ("isnan",)),
        ("__device__ bool isnan(float v);\n", ("isnan",)),  # relocatable device code: the linker joins them
    ],
)
def test_a_device_function_of_another_unit_is_meant_only_where_it_is_declared(before, found):
    files = {
        "a.cu": f"{before}__global__ void k(float* a) {{ if (isnan(a[0])) a[0] = 0; }}\n"
        "void f(float* a) { k<<<1, 1>>>(a); }\n"
        'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n',
        "b.cu": "__device__ bool isnan(float v) { __syncthreads(); return v != v; }\n",
    }
    (kernel,) = implementation(files, "ns::f").kernels
    assert kernel.device_functions == found
    assert tuple(call.name for call in kernel.calls) == found
