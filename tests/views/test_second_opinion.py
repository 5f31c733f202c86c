"""A second opinion on a walk: edges that clang proves, contradicts, rules out and cannot confirm."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from opwalker.facts import clang_workers
from opwalker.facts.workers_job import Limits
from opwalker.model.clang import ClangEdge, ClangUnit, UnitRequest
from opwalker.model.walk import Span, Walk
from opwalker.pipeline import Options, walk
from opwalker.views.clang_reading import plain_instance
from tests.views.clang_library import RING, asked, changed

Write = Callable[[dict[str, str]], Path]


def edges(asked_for: Walk) -> dict[str, ClangEdge]:
    """Edges by what they join; a launch or use that occurs twice keeps its line behind it."""
    out: dict[str, ClangEdge] = {}
    for edge in asked_for.clang.edges:
        key = edge.what if edge.what not in out else f"{edge.what} :{edge.at.line}"
        out[key] = edge
    return out


def statuses(asked_for: Walk) -> dict[str, str]:
    return {what: edge.status for what, edge in edges(asked_for).items()}


def test_every_edge_of_a_walk_is_proved(library: Write, tmp_path: Path) -> None:
    found = asked(library(RING), tmp_path / "cache", "turn")
    assert statuses(found) == {
        "CUDA → turn": "proved",
        "RING_DISPATCH": "proved",
        "turn → launch_turn": "proved",
        "launch_turn → turn_kernel": "proved",
        "launch_turn → turn_kernel :15": "proved",
        "turn_kernel": "proved",
        "turn_kernel :15": "proved",
    }
    assert [launch.certainty for launch in found.implementations[0].launches] == ["proved", "proved"]
    assert (found.clang.proved, found.clang.contradicted, found.clang.not_confirmed) == (7, 0, 0)
    assert [unit.file for unit in found.clang.units] == ["csrc/bindings.cpp", "csrc/turn.cu"]
    assert {unit.flags_from for unit in found.clang.units} == {"CMakeLists.txt"}
    assert len(found.clang.missing) == 1 and found.clang.missing[0].startswith("no CUDA headers were found (CUDA_HOME")


def test_the_instances_of_a_launch_are_those_that_clang_compiles(library: Write, tmp_path: Path) -> None:
    def one_more(walk: Walk) -> Walk:
        made = walk.implementations[0]
        first, *others = made.launches
        first = replace(first, instances=(*first.instances, "double, 4"))
        return replace(walk, implementations=(replace(made, launches=(first, *others)),))

    root = library(RING)
    right = asked(root, tmp_path / "cache", "turn")
    assert [launch.instances for launch in right.implementations[0].launches] == [
        ("float, 4", "short, 4"),
        ("float, 1", "short, 1"),
    ]
    assert edges(right)["turn_kernel"].says == edges(right)["turn_kernel :15"].says == "2 instances"
    wrong = edges(asked(root, tmp_path / "cache", "turn", edit=one_more))
    assert (wrong["turn_kernel"].status, wrong["turn_kernel"].says) == ("not confirmed", "clang shows 2 of 3")
    assert wrong["turn_kernel :15"].status == "proved"


def test_a_kernel_that_only_a_device_pass_takes_is_no_contradiction(library: Write, tmp_path: Path) -> None:
    """Which of two kernels of one name is meant hangs on ``__CUDA_ARCH__``, which the host pass does not set; what runs
    is what the device pass takes."""
    files = changed(
        RING,
        "csrc/turn.cu",
        "template <typename T, int Width>\n__global__ void turn_kernel(T* out, const T* in, int n) {",
        "template <bool B, class T = void> struct only_if {};\n"
        "template <class T> struct only_if<true, T> { using type = T; };\n"
        "template <class T> struct wide { static constexpr bool value = false; };\n"
        "#ifdef __CUDA_ARCH__\n"
        "template <> struct wide<short> { static constexpr bool value = true; };\n"
        "#endif\n"
        "template <typename T, int Width>\n"
        "__global__ typename only_if<wide<T>::value>::type turn_kernel(T* out, const T* in, int n) { *out = *in; }\n"
        "template <typename T, int Width>\n"
        "__global__ typename only_if<!wide<T>::value>::type turn_kernel(T* out, const T* in, int n) {",
    )

    def on_device(walk: Walk) -> Walk:
        made = walk.implementations[0]
        first = replace(made.launches[0], kernel_at=Span("csrc/turn.cu", 11, 11), complete=True)
        return replace(walk, implementations=(replace(made, launches=(first,)),))

    found = asked(library(files), tmp_path / "cache", "turn", edit=on_device)
    launch = edges(found)["launch_turn → turn_kernel"]
    assert (launch.status, launch.says) == ("not confirmed", "clang's host pass takes the overload at csrc/turn.cu:13")
    assert found.clang.contradicted == 0


@pytest.mark.parametrize(
    ("demangled", "printed"),
    [
        ("float const*, 4", "const float *, 4"),
        ("unsigned char const*, 8u, -1l", "const unsigned char *, 8, -1"),
        ("a::B<int, 2> const&", "const a::B<int,2> &"),
        ("(vllm::Kind)0, true", "(vllm::Kind)0, true"),
        ("x8u::T, float4", "x8u::T,float4"),
        ("int, &(n::T<int> n::f<int>(int const&, float)), true", "int, &n::f, true"),
        ("&(void f())", "&f"),
    ],
)
def test_template_arguments_are_compared_as_two_printers_spell_them(demangled: str, printed: str) -> None:
    assert plain_instance(demangled) == plain_instance(printed)
    assert plain_instance(demangled) != plain_instance(printed + "1")


def test_a_launch_through_a_variable_is_proved_for_each_kernel_that_is_put_into_it(
    library: Write, tmp_path: Path
) -> None:
    found = asked(library(RING), tmp_path / "cache", "shift")
    assert statuses(found) == {
        "CUDA → shift": "proved",
        "shift → shift_both": "proved",
        "shift → shift_left": "proved",
        "shift → shift_right": "proved",
    }


def test_a_kernel_that_nothing_puts_into_the_variable_is_not_confirmed(library: Write, tmp_path: Path) -> None:
    def claim(walk: Walk) -> Walk:
        made = walk.implementations[0]
        launches = tuple(
            replace(launch, kernel="shift_nowhere", kernel_at=Span("csrc/shift.cu", 22, 22)) for launch in made.launches
        )
        return replace(walk, implementations=(replace(made, launches=launches[:1]),))

    files = changed(
        RING, "csrc/shift.cu", "void shift(", "\n__global__ void shift_nowhere(float*, const float*) {}\n\nvoid shift("
    )
    root = library(files)
    line = files["csrc/shift.cu"].split("\n").index("__global__ void shift_nowhere(float*, const float*) {}") + 1

    def placed(walk: Walk) -> Walk:
        made = claim(walk)
        one = made.implementations[0]
        at = Span("csrc/shift.cu", line, line)
        return replace(
            made, implementations=(replace(one, launches=tuple(replace(x, kernel_at=at) for x in one.launches)),)
        )

    edge = edges(asked(root, tmp_path / "cache", "shift", edit=placed))["shift → shift_nowhere"]
    assert edge.status == "not confirmed"
    assert edge.says == "it goes through a variable, and clang does not show how it gets there"


OVERLOADS = changed(
    changed(
        RING,
        "csrc/turn.cu",
        "template <typename T>\nvoid launch_turn",
        "struct Odd {};\nvoid prepare(Odd, int) {}\nvoid prepare(long, int) "
        "{ turn_kernel<int, 1><<<1, 1>>>(0, 0, 1); }\n\n"
        "template <typename T>\nvoid launch_turn",
    ),
    "csrc/turn.cu",
    "  RING_DISPATCH",
    "  prepare(steps, 2);\n  RING_DISPATCH",
)


def test_of_several_candidates_clang_takes_one_and_rules_out_the_others(library: Write, tmp_path: Path) -> None:
    """The overloads take as many arguments: which one is meant, the type of ``steps`` decides."""

    def pointed(walk: Walk) -> Walk:
        # The way to a launch leads through the wrong overload, as one of several.
        made = walk.implementations[0]
        launches = tuple(
            replace(launch, certainty="possible", path=(launch.path[0], replace(launch.path[1], line=11)))
            if launch.path[1].function == "prepare"
            else launch
            for launch in made.launches
        )
        return replace(walk, implementations=(replace(made, launches=launches),))

    root = library(OVERLOADS)
    right = edges(asked(root, tmp_path / "cache", "turn"))["turn → prepare"]
    wrong = edges(asked(root, tmp_path / "cache", "turn", edit=pointed))["turn → prepare"]
    assert (right.status, right.at.line) == ("proved", wrong.at.line)
    assert wrong.status == "ruled out"
    assert wrong.says == "clang takes prepare at csrc/turn.cu:12"
    assert wrong.found_at == Span("csrc/turn.cu", 12, 12)


def test_what_opwalker_is_sure_of_is_contradicted(library: Write, tmp_path: Path) -> None:
    """A call without a qualifier whose function is found by its argument's namespace: the global one does not fit."""
    files = changed(
        OVERLOADS,
        "csrc/turn.cu",
        "struct Odd {};\nvoid prepare(Odd, int) {}\nvoid prepare(long, int) {",
        "namespace ring { struct Odd { Odd(long); };\nvoid prepare(Odd, int) {} }\nvoid prepare(const char*, int) {",
    )
    files = changed(files, "csrc/turn.cu", "prepare(steps, 2)", "prepare(ring::Odd(steps), 2)")

    def sure(walk: Walk) -> Walk:
        made = walk.implementations[0]
        launch = next(one for one in made.launches if one.path[1].function.endswith("prepare"))
        return replace(walk, implementations=(replace(made, launches=(replace(launch, certainty="matched"),)),))

    found = asked(library(files), tmp_path / "cache", "turn", edit=sure)
    edge = edges(found)["turn → prepare"]
    assert edge.status == "contradicted"
    assert edge.says == "clang takes ring::prepare at csrc/turn.cu:11"
    assert found.implementations[0].launches[0].certainty == "possible"
    assert found.clang.contradicted == 1


def test_a_registration_of_another_function_is_contradicted(library: Write, tmp_path: Path) -> None:
    """The op is bound to the overload that is declared in the header; the walk claims the other one."""
    files = changed(
        RING, "csrc/turn.cu", "void turn(torch::Tensor& out", "void turn(int) {}\n\nvoid turn(torch::Tensor& out"
    )
    line = files["csrc/turn.cu"].split("\n").index("void turn(int) {}") + 1

    def wrong(walk: Walk) -> Walk:
        made = walk.implementations[0]
        host = replace(made.host, line=line, end_line=line)
        return replace(walk, implementations=(replace(made, host=host, launches=(), dispatch=()),))

    edge = edges(asked(library(files), tmp_path / "cache", "turn", edit=wrong))["CUDA → turn"]
    assert edge.status == "contradicted"
    assert edge.found_at == Span("csrc/turn.cu", line + 2, line + 2)


def test_a_macro_that_is_defined_elsewhere_is_contradicted(library: Write, tmp_path: Path) -> None:
    def moved(walk: Walk) -> Walk:
        made = walk.implementations[0]
        use = replace(made.dispatch[0], defined_at=Span("csrc/dispatch.h", 2, 3))
        return replace(walk, implementations=(replace(made, dispatch=(use,)),))

    edge = edges(asked(library(RING), tmp_path / "cache", "turn", edit=moved))["RING_DISPATCH"]
    assert edge.status == "contradicted"
    assert edge.says == "clang takes the definition at csrc/dispatch.h:4"


def test_a_header_that_is_missing_costs_what_depends_on_it_and_is_named(library: Write, tmp_path: Path) -> None:
    files = {path: text for path, text in RING.items() if not path.startswith("stubs/")}
    found = asked(library(files), tmp_path / "cache", "turn")
    report = found.clang
    assert report.contradicted == report.ruled_out == 0
    assert edges(found)["CUDA → turn"].status == "not confirmed"
    # What needs none of it is proved all the same.
    assert edges(found)["RING_DISPATCH"].status == "proved"
    assert all(unit.missing == ("torch/library.h",) and unit.errors for unit in report.units)
    assert "torch is not installed: its types are unknown, and calls that pass them are not resolved" in report.missing
    assert any("read without torch/library.h" in (edge.says or "") for edge in report.edges)


def test_a_unit_that_takes_too_long_is_said_and_costs_its_edges(
    library: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_unit = clang_workers.read_unit

    def read(request: UnitRequest) -> ClangUnit:
        if request.path == "csrc/turn.cu":
            os.kill(os.getpid(), signal.SIGXCPU)  # what the system sends when the time is up
        return read_unit(request)

    monkeypatch.setattr(clang_workers, "read_unit", read)
    found = asked(library(RING), tmp_path / "cache", "turn", limits=Limits(seconds=600))
    unread = {unit.file: unit.unread for unit in found.clang.units}
    assert unread == {"csrc/bindings.cpp": None, "csrc/turn.cu": "not read within 600 seconds"}
    assert edges(found)["turn → launch_turn"].status == "not confirmed"
    assert edges(found)["turn → launch_turn"].says == "no unit was read that has csrc/turn.cu"


def test_flags_come_from_a_compile_database_where_there_is_one(library: Write, tmp_path: Path) -> None:
    """Only with the macro of the database is the launch there at all."""
    files = changed(RING, "csrc/turn.cu", "  if (n % 4 == 0) {", "#ifdef RING_FOURS\n  if (n % 4 == 0) {")
    files = changed(
        files,
        "csrc/turn.cu",
        "  } else {\n    turn_kernel<T, 1>",
        "  } else {\n#else\n  {\n#endif\n    turn_kernel<T, 1>",
    )
    files["build/compile_commands.json"] = json.dumps(
        [
            {
                "directory": "..",
                "file": "csrc/turn.cu",
                "command": "nvcc -forward-unknown-to-host-compiler -DRING_FOURS -gencode arch=compute_90,code=sm_90 "
                "-I stubs --include-path=csrc -Xcompiler -fPIC,-O2 -x cu -c csrc/turn.cu -o turn.o",
            }
        ]
    )
    root = library(files)
    database = json.loads(files["build/compile_commands.json"])
    database[0]["directory"] = str(root)
    (root / "build" / "compile_commands.json").write_text(json.dumps(database))
    found = asked(root, tmp_path / "cache", "turn")
    assert [unit.flags_from for unit in found.clang.units] == ["CMakeLists.txt", "build/compile_commands.json"]
    assert set(statuses(found).values()) == {"proved"}


def test_what_was_read_once_is_not_read_again(library: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = library(RING)
    first = asked(root, tmp_path / "cache", "turn")
    read: list[str] = []

    def none_left(requests, *_: object) -> list:
        read.extend(request.path for request in requests)
        return []

    monkeypatch.setattr("opwalker.views.clang_report.read_units", none_left)
    assert asked(root, tmp_path / "cache", "turn") == first
    assert read == []


def test_explicit_instantiations_are_looked_into(library: Write, tmp_path: Path) -> None:
    """The launcher is called from another unit, which sees its declaration alone."""
    files = changed(
        RING,
        "csrc/turn.cu",
        "void turn(torch::Tensor& out, const torch::Tensor& in, long steps) {",
        "template void launch_turn<float>(float*, const float*, int);\n\nvoid unused(torch::Tensor& out) {",
    )
    files = changed(files, "csrc/turn.cu", "in.data_ptr<scalar_t>(), in.size(0)", "out.data_ptr<scalar_t>(), 1")
    files = changed(files, "csrc/turn.cu", "RING_DISPATCH(in.scalar_type(),", "(void)0; //")
    files = changed(files, "csrc/turn.cu", "                launch_turn<scalar_t>(out.data_ptr<scalar_t>()", "  //")
    files["csrc/entry.cpp"] = """#include "ops.h"
template <typename T> void launch_turn(T* out, const T* in, int n);

void turn(torch::Tensor& out, const torch::Tensor& in, long steps) {
  launch_turn<float>(out.data_ptr<float>(), in.data_ptr<float>(), in.size(0));
}
"""
    files = changed(files, "CMakeLists.txt", "csrc/turn.cu", "csrc/turn.cu csrc/entry.cpp")
    found = asked(library(files), tmp_path / "cache", "turn")
    verdicts = statuses(found)
    assert verdicts.pop("CUDA → turn") == "proved"
    launches = {"turn → launch_turn", "launch_turn → turn_kernel", "launch_turn → turn_kernel :15"}
    assert set(verdicts) == launches | {"turn_kernel", "turn_kernel :15"}
    assert set(verdicts.values()) == {"proved"}


def test_without_clang_one_line_says_so_and_the_answer_is_the_same(
    library: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("clang", "clang.cindex"):
        monkeypatch.setitem(sys.modules, name, None)
    root = library(RING)
    options = Options(source=str(root), cache=tmp_path / "cache")
    said: list[str] = []
    with_opinion = walk(options, "turn", clang=True, say=said.append)
    assert said == [
        "no second opinion: clang is not installed; install the package libclang, as by: pip install 'opwalker[clang]'"
    ]
    assert with_opinion == walk(options, "turn")
    assert with_opinion.clang is None


def test_the_pipeline_asks_clang_with_what_is_installed(library: Write, tmp_path: Path) -> None:
    options = Options(source=str(library(RING)), cache=tmp_path / "cache")
    found = walk(options, "turn", clang=True)
    assert {edge.status for edge in found.clang.edges} == {"proved"}
    assert replace(found, clang=None, implementations=()) == replace(walk(options, "turn"), implementations=())
    # A walk that starts elsewhere has edges too, without a registration.
    entry = walk(options, "csrc/shift.cu::shift", clang=True)
    assert [edge.kind for edge in entry.clang.edges] == ["launch", "launch", "launch"]
    assert {edge.status for edge in entry.clang.edges} == {"proved"}
