"""The least torch that a source asks for, and what it changes for an op that only writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.model.check import CheckOptions
from opwalker.views.check.requirements import least, least_torch


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (">=2.4", (2, 4)),
        ("== 2.13.0", (2, 13, 0)),
        (">=2.4,<3", (2, 4)),
        ("~=2.6.0", (2, 6, 0)),
        ("==2.5.*", (2, 5)),
        ("<3", None),
        ("!=2.4", None),
        ("of any kind", None),
    ],
)
def test_the_least_release_of_specifiers(written: str, expected: tuple[int, ...] | None) -> None:
    assert least(written) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": '[build-system]\nrequires = ["setuptools", "torch >= 2.10"]\n'}, (2, 10)),
        ({"requirements.txt": "numpy\ntorch==2.4.1\n"}, (2, 4, 1)),
        ({"requirements/cuda.txt": "torch==2.7\n", "setup.py": "install_requires=['torch>=2.6']\n"}, (2, 6)),
        ({"setup.cfg": "install_requires =\n    torch>=2.3,<3\n"}, (2, 3)),
        ({"setup.py": "install_requires=['torch', 'torchvision>=0.20', 'pytorch-metric>=1']\n"}, None),
        ({}, None),
    ],
)
def test_the_least_release_of_a_source(tmp_path: Path, files: dict[str, str], expected: tuple[int, ...] | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert least_torch(str(tmp_path)) == expected


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [("torch>=2.5\n", [3]), ("torch>=2.4\n", [3, 4]), ("", [3, 4])],
)
def test_an_op_that_only_writes_needs_no_fake_for_a_new_torch(
    tmp_path: Path, requirements: str, expected: list[int]
) -> None:
    source = tmp_path / "kit"
    source.mkdir()
    (source / "kit.cpp").write_text(
        "#include <torch/library.h>\n"
        "TORCH_LIBRARY(kit, m) {\n"
        '  m.def("fold(Tensor x) -> Tensor");\n'
        '  m.def("write(Tensor! x) -> ()");\n'
        "}\n"
    )
    (source / "requirements.txt").write_text(requirements)
    options = pipeline.Options(source=str(source), cache=tmp_path / "cache", jobs=1)
    found, _ = pipeline.check(options, CheckOptions(select=("missing-fake",)))
    assert [one.line for one in found.findings] == expected
