"""The installed headers: found by their files, without importing what they belong to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from opwalker.facts import clang_headers
from opwalker.facts.clang_headers import base_arguments, find_headers


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with nothing installed, and a folder for what a test puts there."""
    for name in ("CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(clang_headers.shutil, "which", lambda name: None)
    monkeypatch.setattr(clang_headers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(clang_headers, "CUDA_HOME", str(tmp_path / "nothing"))
    return tmp_path


def put(folder: Path, *files: str, text: str = "") -> Path:
    for name in files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def test_nothing_is_found_where_nothing_is(bare: Path) -> None:
    found = find_headers()
    assert (found.torch, found.torch_version, found.cuda, found.cuda_version) == ((), None, (), None)


def test_torch_of_the_active_environment_is_read_and_not_imported(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = put(
        bare / "env/lib/python3.12/site-packages/torch", "include/torch/extension.h", "__init__.py", text="1/0"
    )
    put(package, "include/torch/csrc/api/include/torch/all.h")
    put(package, "version.py", text="__version__ = '2.9.1+cu130'\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(bare / "env"))
    found = find_headers()
    assert found.torch == (f"{package}/include", f"{package}/include/torch/csrc/api/include")
    assert found.torch_version == "2.9.1+cu130"
    assert "torch" not in sys.modules or sys.modules["torch"].__file__ != str(package / "__init__.py")


def test_the_toolkit_named_first_counts_and_others_fill_in(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = put(bare / "cuda", "include/cuda_runtime.h", "include/cccl/cub/cub.cuh")
    put(home, "include/cuda.h", text="#define CUDA_VERSION 12080\n")
    wheel = put(bare / "env/lib/python3.11/site-packages/nvidia", "cublas/include/cublas_v2.h")
    monkeypatch.setenv("CUDA_HOME", str(home))
    monkeypatch.setenv("CONDA_PREFIX", str(bare / "env"))
    found = find_headers()
    assert found.cuda == (f"{home}/include", f"{home}/include/cccl", f"{wheel}/cublas/include")
    assert found.cuda_version == 12080
    assert "-DOPWALKER_CUDA=12080" in base_arguments("a.cu", found)


def test_parts_of_a_toolkit_without_the_runtime_are_none(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bare / "env/lib/python3.11/site-packages/nvidia", "cublas/include/cublas_v2.h")
    monkeypatch.setenv("VIRTUAL_ENV", str(bare / "env"))
    assert find_headers().cuda == ()


@pytest.mark.parametrize(
    ("path", "device", "language"), [("a.cu", None, "cuda"), ("a.cpp", None, "c++"), ("a.cpp", True, "cuda")]
)
def test_the_language_follows_the_suffix_or_what_the_build_says(path: str, device: bool | None, language: str) -> None:
    arguments = base_arguments(path, clang_headers.Headers(), device)
    assert arguments[:2] == ("-x", language)
    assert ("-include" in arguments) == (language == "cuda")
