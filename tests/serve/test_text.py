"""The text forms: what a reader sees, at a narrow and a wide terminal and in a pipe."""

from __future__ import annotations

import io
import re

import pytest
from msgspec.structs import replace

from opwalker.model.host import DerivedFact
from opwalker.model.kernel import VectorFact
from opwalker.model.layout import LayoutFact
from opwalker.model.notes import NotesWritten
from opwalker.model.walk import Argument, Host, Implementation, ParameterFact, PatternRef, Span
from opwalker.serve.render.schema import schema_spans
from opwalker.serve.render.shapes import shape_groups
from opwalker.serve.render.text import write_text
from opwalker.serve.render.words import Reading
from tests.serve import samples
from tests.views.miniatures import walk_of

RESULTS = {
    "walk": samples.WALK,
    "walk of a kernel": samples.KERNEL_WALK,
    "walk with a second opinion": samples.CLANG_WALK,
    "ops": samples.OPS,
    "no ops": samples.NO_OPS,
    "kernels": samples.KERNELS,
    "index": samples.REPORT,
}


def text(result: object, width: int | None = None, colour: bool = False, **reading: str | bool) -> str:
    out = io.StringIO()
    write_text(result, Reading(**reading), out, width=width, colour=colour)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 100, None], ids=["60", "100", "pipe"])
@pytest.mark.parametrize("name", RESULTS)
def test_pages(name: str, width: int | None, snapshot) -> None:
    page = text(RESULTS[name], width)
    assert page == snapshot
    assert "\x1b" not in page


@pytest.mark.parametrize(("result", "count"), [(samples.WALK, "3"), (samples.KERNELS, "2 instances")])
def test_instances_are_counted_and_listed_when_asked_for(result: object, count: str) -> None:
    short, whole = text(result), text(result, instances=True)
    assert count in short and "<c10::Half, c10::Half, 8>" not in short
    assert count in whole and "<c10::Half, c10::Half, 8>" in whole


@pytest.mark.parametrize(
    ("places", "rows"),
    [
        ([("raii-guard", "a.cu", 3)], ["raii-guard  a.cu:3"]),
        ([("mma", "a.cu", n) for n in range(1, 5)], ["mma  a.cu:1, :2, :3, :4"]),
        ([("mma", "a.cu", n) for n in range(1, 80)], ["mma  a.cu:1, :2, :3, :4 and 75 more"]),
        ([("mma", "a.cu", 1), ("mma", "b.cu", 2), ("tma", "a.cu", 1)], ["mma  a.cu:1", "mma  b.cu:2", "tma  a.cu:1"]),
    ],
)
def test_places_of_a_pattern_stand_together(places: list[tuple[str, str, int]], rows: list[str]) -> None:
    walk = replace(samples.WALK, patterns=tuple(PatternRef(*one) for one in places))
    section = text(walk).split("\nPatterns\n", 1)[1].split("\n\n", 1)[0]
    assert [" ".join(row.split()) for row in section.splitlines()] == [" ".join(row.split()) for row in rows]


@pytest.mark.parametrize("width", [60, 100, 160])
@pytest.mark.parametrize("name", RESULTS)
def test_colour_changes_nothing_but_the_colour(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    painted = text(RESULTS[name], width, colour=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == text(RESULTS[name], width)


def test_a_result_without_a_page_of_its_own_is_shown_by_its_fields() -> None:
    assert text(samples.SOURCE).splitlines() == [
        "  name           rowkit",
        "  version        1.4.0",
        "  revision       None",
    ]


def test_what_was_written_names_its_source_and_leaves_out_what_is_empty() -> None:
    assert text(NotesWritten(source=samples.SOURCE, folder="notes", written=("index.md",))).splitlines() == [
        "  source         rowkit 1.4.0",
        "  folder         notes",
        "  written        index.md",
    ]


def test_a_source_that_cannot_change_was_not_read_again() -> None:
    assert "this source cannot change" in text(replace(samples.REPORT, scanned=False))


def test_no_word_of_a_walk_gets_lost_in_a_narrow_terminal() -> None:
    wide, narrow = (re.sub(r"[\s├─└│]", "", text(samples.WALK, width)) for width in (None, 40))
    assert narrow == wide


@pytest.mark.parametrize(
    ("build", "order"),
    [("cuda", ["CUDA", "CUDA", "CPU"]), ("rocm", ["CUDA", "CPU", "CUDA"]), ("cpu", ["CPU", "CUDA", "CUDA"])],
)
def test_the_chosen_build_comes_first(build: str, order: list[str]) -> None:
    assert re.findall(r"^Implementation \d of 3 (\w+)", text(samples.WALK, build=build), re.MULTILINE) == order


def test_every_step_says_where_it_stands() -> None:
    steps = re.findall(r"^[├└]─ (.*)$", text(samples.WALK), re.MULTILINE)
    placed = [step for step in steps if re.search(r"\.\w+:\d+", step)]
    without = [step for step in steps if step not in placed]
    assert len(placed) == 10
    assert without == [
        "Host function scatter_rows_wide  its body was not found in this source",
        "No launch and no other end was found; the gaps say why",
    ]


def test_written_arguments_are_marked_in_the_text_as_well() -> None:
    page = text(samples.WALK)
    assert "Tensor! pool" in page
    assert "writes  pool!, page_counts!" in page
    assert re.search(r"page_counts +torch::stable::Tensor& +=\s+page_counts!", page)


def test_what_is_passed_by_value_is_not_written_whatever_the_schema_marks() -> None:
    argument = Argument("count", "int?", mutated=True)
    op = replace(samples.SCATTER, arguments=(*samples.SCATTER.arguments, argument))
    host = replace(samples.CUDA.host, parameters=(ParameterFact("count", "std::optional<int64_t>", "count"),))
    page = text(replace(samples.WALK, op=op, implementations=(replace(samples.CUDA, host=host),)))
    assert "writes  pool!, page_counts!\n" in page
    assert re.search(r"std::optional<int64_t> += count\n", page)


def test_what_an_index_takes_for_granted_is_said_once() -> None:
    fact = LayoutFact("x", "x", "[n]", "i", "equal", 70, "a.cu", "read", given=("x is given", "x is given"))
    kernel = replace(samples.CUDA.kernels[0], layouts=(fact,))
    page = text(replace(samples.WALK, implementations=(replace(samples.CUDA, kernels=(kernel,)),)))
    assert re.search(r"given +x is given\n", page)


def test_what_memory_is_seen_as_says_nothing_of_accesses() -> None:
    kernel = replace(samples.CUDA.kernels[0], vectors=(VectorFact("uint4", 70, "16", 16),))
    page = text(replace(samples.WALK, implementations=(replace(samples.CUDA, kernels=(kernel,)),)))
    assert re.search(r":70 +uint4 +16 bytes an element", page)


def test_an_op_without_implementation_says_so() -> None:
    page = text(replace(samples.WALK, implementations=(), python=()))
    assert "Implementation\n  none found in this source" in page
    assert "no call from Python found in this source" in page


def test_what_a_host_function_does_not_do_is_said() -> None:
    host = Host("f", "a.cu", 1, 9)
    page = text(replace(samples.WALK, implementations=(Implementation("CUDA", "proved", host),)))
    assert re.search(r"none found +checks, guards, stream", page)


def test_an_encoding_without_strokes_gets_ascii() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write_text(samples.WALK, Reading(), out, width=None, colour=False)
    out.flush()
    page = out.buffer.getvalue().decode("ascii")
    assert "|- Host function scatter_rows" in page
    assert "ROWKIT_DISPATCH_PAIR -> LAUNCH_SCATTER" in page
    assert "?" not in page.replace("float? scale", "")


ARGUMENTS = (Argument("a", "Tensor", mutated=True), Argument("b", "int[2]", default="[1, 2]"))


@pytest.mark.parametrize(
    ("schema", "marked"),
    [
        ("f(Tensor! a, int[2] b=[1, 2]) -> ()", ["Tensor! a"]),
        ("f(Tensor(x!) a, *, int[2] b=[1, 2]) -> Tensor(x!)", ["Tensor(x!) a"]),
        ('f(Tensor! a, str b=",)(") -> ()', ["Tensor! a"]),
        ("f(Tensor! a", []),
        ("f(Tensor! a) -> ()", []),
        ("nothing like a schema", []),
    ],
)
def test_a_schema_is_shown_as_it_is_with_its_written_arguments_marked(schema: str, marked: list[str]) -> None:
    spans = schema_spans(schema, ARGUMENTS)
    assert "".join(part for part, _ in spans) == schema
    assert [part for part, style in spans if style == "mutated"] == marked


@pytest.mark.parametrize(("file", "shown"), [("wrap.cpp", "run.cu:9"), ("run.cu", ":9")])
def test_the_place_of_a_derived_shape_names_its_file_where_that_is_another(file: str, shown: str) -> None:
    fact = DerivedFact(None, "2 dimensions", "rank", "run.cu", 9)
    (group,) = shape_groups([ParameterFact("n", "Tensor", derived_shape=("?", "?"), derived_from=(fact,))], file)
    assert ((shown, "place"),) in group.rows[0].cells


def test_a_further_launch_that_never_runs_is_told_with_why_and_not_with_conditions_that_contradict_each_other() -> None:
    head = """#include <torch/library.h>
template <int N> __global__ void one(float* out) { out[0] = N; }
void run(torch::Tensor& x, int64_t n) {
  if (n == 4) {
    one<4><<<1, 32>>>(x.data_ptr<float>());
    if (n == 2) {
      one<2><<<1, 32>>>(x.data_ptr<float>());
    }
  }
}
"""
    walk = walk_of(head + 'TORCH_LIBRARY(ns, m) { m.impl("run", torch::kCUDA, &run); }\n', "ns::run")
    page = text(walk)
    assert re.search(r"also .*<2>.*never run: n == 2 \(:6\) contradicts n == 4 \(:4\)", page)
    assert not re.search(r"where .*n is 4 and n is 2", page)
    assert re.search(r"where +n is 4  :4\n", page)


def test_the_place_of_a_layout_in_another_file_names_the_file() -> None:
    asked = "must be contiguous"
    parameters = (
        ParameterFact("a", "Tensor", layout=asked, layout_line=3),
        ParameterFact("b", "Tensor", layout=asked, layout_at=Span("work.h", 7, 7)),
        ParameterFact("c", "Tensor", layout=asked, layout_at=Span("work.h", 9, 9)),
        ParameterFact("d", "Tensor", layout=asked, layout_at=Span("work.h", 7, 7)),
    )
    host = Host("f", "f.cu", 1, 20, parameters)
    (chosen,) = samples.WALK.implementations[:1]
    page = text(replace(samples.WALK, implementations=(replace(chosen, host=host),)))
    assert "a, b, c, d  must be contiguous  :3, work.h:7, :9" in page
