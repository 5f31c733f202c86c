"""Which files say how to build, and what each of them says on its own."""

from __future__ import annotations

import msgspec
import pytest

from opwalker.facts.build_files import MAX_SIZE, build_language, makes_extensions, read_build_file
from opwalker.facts.build_words import flag_macros
from opwalker.model.build import BuildFile, ProjectExtension


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("CMakeLists.txt", "cmake"),
        ("cmake/utils.cmake", "cmake"),
        ("pyproject.toml", "project"),
        ("sub/pyproject_cpu.toml", "project"),
        ("setup.py", "python"),
        ("lib/ops.py", "python"),
        ("notes.txt", None),
        ("other.toml", None),
    ],
)
def test_files_are_told_by_their_names(path: str, language: str | None) -> None:
    assert build_language(path) == language


@pytest.mark.parametrize(
    ("text", "makes"),
    [
        ("from torch.utils import cpp_extension", True),
        ("CUDAExtension(name='a', sources=[])", True),
        ("class B:\n    def sources(self):\n        return []\n", True),
        ("build(name='x', sources=['a.cu'])", True),
        ("resources = load()", False),
        ("print('the sources of this')", False),
        ("data_sources=1", False),
    ],
)
def test_python_that_compiles_is_told_from_other_python(text: str, makes: bool) -> None:
    assert makes_extensions(text) is makes


def test_python_that_compiles_nothing_is_no_build_file() -> None:
    assert read_build_file("lib/model.py", "x = 1") is None
    assert read_build_file("setup.py", "x = 1") == BuildFile("setup.py", "python", text="x = 1")
    assert read_build_file("README.md", "CUDAExtension(") is None
    assert read_build_file("big.cmake", "#" * (MAX_SIZE + 1)) is None


PROJECT = """
[build-system]
build-backend = "scikit_build_core.build"
[project]
name = "nimbus"
[tool.scikit-build]
cmake.args = ["-DNIMBUS_PYTHON=ON", "-DWITH_X:BOOL=OFF", "-GNinja"]
cmake.source-dir = "csrc"
wheel.install-dir = "nimbus"
[tool.scikit-build.cmake.define]
A = true
B = {env = "NIMBUS_B", default = "two"}
C = 3
[[tool.setuptools.ext-modules]]
name = "nimbus._low"
sources = ["src/low.c"]
define-macros = [["FAST", "1"], ["PLAIN"]]
include-dirs = ["include"]
"""


def test_a_project_file_says_how_cmake_is_called_and_which_extensions_there_are() -> None:
    file = read_build_file("pyproject.toml", PROJECT)
    assert file is not None and file.project is not None
    project = file.project
    assert (project.name, project.backend) == ("nimbus", "scikit_build_core.build")
    assert (project.cmake_source_dir, project.install_dir) == ("csrc", "nimbus")
    assert project.cmake_defines == (
        ("NIMBUS_PYTHON", "ON"),
        ("WITH_X", "OFF"),
        ("A", "ON"),
        ("B", "two"),
        ("C", "3"),
    )
    assert project.extensions == (
        ProjectExtension("nimbus._low", ("src/low.c",), (("FAST", "1"), ("PLAIN", None)), ("include",), 15),
    )


def test_a_faulty_project_file_is_a_problem() -> None:
    file = read_build_file("pyproject.toml", "[tool\n")
    assert file is not None
    assert [problem.kind for problem in file.problems] == ["bad-build-file"]
    odd = read_build_file("pyproject.toml", 'tool = 3\n[project]\nname = ["x"]\n')
    assert odd is not None and odd.project is not None and odd.project.name is None


@pytest.mark.parametrize(
    ("path", "text"),
    [("CMakeLists.txt", 'if(A)\n set(X "y")\nelse()\nendif()'), ("pyproject.toml", PROJECT), ("setup.py", "x")],
)
def test_a_build_file_can_be_stored(path: str, text: str) -> None:
    file = read_build_file(path, text)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(file), type=BuildFile) == file


def test_macros_that_flags_in_python_set() -> None:
    text = 'flags = ["-O3", "-DWIDE", \'-DDEPTH=4\', f"-D{name}"]\nline = "nvcc -DLATE a.cu"\nX-DNOT = 1\n'
    assert flag_macros(text) == {"WIDE", "DEPTH", "LATE"}
