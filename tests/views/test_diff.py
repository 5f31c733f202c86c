"""Two small versions of one library, compared: each kind of change is found, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.model.diff import DiffResult, KernelsDiff, OpsDiff, Survey
from opwalker.model.places import Gap, SourceInfo, Span
from opwalker.serve.render.diff import diff_page, markdown
from opwalker.serve.render.words import Reading
from opwalker.views.diff import Version, compare

BINDINGS = """
#include <torch/library.h>
void scale(torch::Tensor& out, const torch::Tensor& x, double by);
void drop(torch::Tensor& out);
void shift(torch::Tensor& out, int64_t by);
TORCH_LIBRARY(kit, m) {{
  m.def("scale({arguments}) -> ()");
  {drop}
  m.def("shift(Tensor! out, int by) -> ()");
}}
{other}
TORCH_LIBRARY_IMPL(kit, CUDA, m) {{
  m.impl("scale", &scale);
  {shift}
}}
"""
KERNEL = """
#include <torch/all.h>
template <typename T, int N>
__global__ void scale_kernel(T* out, const T* x, float by) {{ out[blockIdx.x * N + threadIdx.x] = x[0] * by; }}
void scale(torch::Tensor& out,  // {shape}
           const torch::Tensor& x, double by) {{
  dim3 block({block});
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {{
    scale_kernel<scalar_t, {width}><<<x.size(0), block, 0, stream>>>(out.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), by);
  }});
}}
"""  # noqa: E501
OLD = {
    "csrc/bind.cpp": BINDINGS.format(
        arguments="Tensor! out, Tensor x, float by",
        drop='m.def("drop(Tensor! out) -> ()");',
        shift='m.impl("shift", &shift);',
        other='TORCH_LIBRARY(old_kit, m) { m.def("turn(Tensor x) -> Tensor"); }',
    ),
    "csrc/scale.cu": KERNEL.format(shape="[rows, cols]", block="256", width="4"),
}
NEW = {
    "csrc/bind.cpp": BINDINGS.format(
        arguments="Tensor! out, Tensor x, float by=1.0",
        drop='m.def("grow(Tensor! out) -> ()");',
        shift="",
        other='TORCH_LIBRARY(new_kit, m) { m.def("turn(Tensor x) -> Tensor"); }',
    ),
    "csrc/scale/scale.cu": KERNEL.format(shape="[rows, cols / 2]", block="std::min(x.size(1), 512)", width="8")
    + "__global__ void extra_kernel(float* x) { x[0] = 1; }\n",
}


def _written(folder: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> DiffResult:
    base = tmp_path_factory.mktemp("diff")
    options = pipeline.Options(cache=base / "cache")
    return pipeline.diff(options, _written(base / "old", OLD), _written(base / "new", NEW))


def test_ops_that_came_and_went(compared: DiffResult) -> None:
    assert [op.name for op in compared.ops.added] == ["kit::grow"]
    assert [op.name for op in compared.ops.removed] == ["kit::drop"]


def test_an_op_in_another_namespace_is_moved_not_new(compared: DiffResult) -> None:
    assert [(m.name, m.to, m.breaking) for m in compared.ops.moved] == [("old_kit::turn", "new_kit::turn", True)]


def test_a_schema_that_takes_more_is_compatible(compared: DiffResult) -> None:
    (changed,) = compared.ops.changed
    assert (changed.name, changed.changes, changed.breaking) == (
        "kit::scale",
        ("argument by: default 1.0 added",),
        False,
    )


def test_a_key_that_is_gone(compared: DiffResult) -> None:
    assert [(k.name, k.added, k.removed) for k in compared.ops.keys] == [("kit::shift", (), ("CUDA",))]


def test_kernels_and_their_instances(compared: DiffResult) -> None:
    kernels = compared.kernels
    assert [k.name for k in kernels.added] == ["extra_kernel"]
    assert kernels.removed == ()
    assert [(m.old_files, m.new_files) for m in kernels.moved] == [(("csrc/scale.cu",), ("csrc/scale/scale.cu",))]
    (instances,) = kernels.instances
    assert instances.added == ("double, 8", "float, 8")
    assert instances.removed == ("double, 4", "float, 4")


def test_launches_and_shapes(compared: DiffResult) -> None:
    (launch,) = compared.launches
    assert (launch.op, launch.kernel, launch.field) == ("kit::scale", "scale_kernel", "block")
    assert "256" in launch.old[0] and "512" in launch.new[0]
    (shape,) = compared.shapes
    assert (shape.argument, shape.old, shape.new) == ("out", "[rows, cols]", "[rows, cols / 2]")


def test_what_breaks_is_told(compared: DiffResult) -> None:
    assert compared.breaking == (
        "kit::drop removed",
        "old_kit::turn is new_kit::turn now",
        "kit::shift lost CUDA",
    )


def test_markdown_names_every_change(compared: DiffResult) -> None:
    text = markdown(compared)
    assert text.startswith("# old → new\n")
    assert "- **breaking** `kit::drop`" in text
    assert "- `kit::scale`: argument by: default 1.0 added" in text
    headings = [line.partition(" (")[0] for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Ops removed",
        "## Ops added",
        "## Ops moved",
        "## Schemas changed",
        "## Dispatch keys changed",
        "## Kernels added",
        "## Kernels moved",
        "## Instances changed",
        "## Launches changed",
        "## Documented shapes changed",
        "## Gaps of the old version alone",
    ]


def test_a_version_against_itself_has_no_change(tmp_path: Path) -> None:
    folder = _written(tmp_path / "same", OLD)
    found = pipeline.diff(pipeline.Options(cache=tmp_path / "cache"), folder, folder)
    assert found.breaking == ()
    assert (found.ops, found.kernels) == (type(found.ops)(), type(found.kernels)())
    assert (found.launches, found.shapes) == ((), ())


def test_what_is_not_known_is_no_change(tmp_path: Path) -> None:
    """A kernel whose new instances are not all known has lost none that can be named."""
    unknown = dict(OLD)
    unknown["csrc/scale.cu"] = OLD["csrc/scale.cu"].replace("<scalar_t, 4>", "<scalar_t, kWidth>")
    options = pipeline.Options(cache=tmp_path / "cache")
    found = pipeline.diff(options, _written(tmp_path / "a", OLD), _written(tmp_path / "b", unknown))
    assert all(one.removed == () for one in found.kernels.instances)


def test_two_revisions_of_one_version_are_told_apart() -> None:
    old, new = (SourceInfo("kit", "1.0", revision * 20) for revision in ("ab", "cd"))
    text = markdown(DiffResult(old=old, new=new, build="cuda", ops=OpsDiff(), kernels=KernelsDiff()))
    assert text.startswith("# kit 1.0 abababababab → kit 1.0 cdcdcdcdcdcd\n")
    assert "Nothing that is compared has changed." in text


def _with_gaps(*gaps: tuple[str, int]) -> Version:
    held = tuple(Gap("call", Span("a.cu", line, line), reason) for reason, line in gaps)
    return Version(SourceInfo("kit"), (), (), Survey(()), held)


def test_gaps_of_one_version_are_told_and_those_of_both_are_counted() -> None:
    old = _with_gaps(("no body of f", 1), ("no body of g", 2), ("no body of g", 3))
    new = _with_gaps(("no body of g", 9), *((f"no body of h{number:02}", number) for number in range(22)))
    found = compare(old, new, "cuda")
    assert [gap.reason for gap in found.old_gaps] == ["no body of f", "no body of g"]
    assert [gap.reason for gap in found.gaps] == [f"no body of h{number:02}" for number in range(22)]
    assert found.gaps_in_both == 1
    text = markdown(found)
    assert "## Gaps of the new version alone (22)\n\n- call: no body of h00\n" in text
    assert "h19\n- 2 more\n" in text
    assert text.endswith("Not listed: 1 gap that both versions have.\n")
    page = diff_page(found, Reading())
    assert [len(section.rows) for section in page.sections[-3:]] == [21, 2, 0]
    assert page.sections[-3].rows[-1].cells == ((("2 more", "quiet"),),)
    assert page.sections[-1].paragraphs == ((("not listed: 1 gap that both versions have", "quiet"),),)
