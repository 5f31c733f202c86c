"""Names to languages."""

from __future__ import annotations

import pytest

from opwalker.model.source import LANGUAGES
from opwalker.source.languages import language_of


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("cache_kernels.cu", "cuda"),
        ("dispatch_utils.cuh", "cuda"),
        ("attention.hip", "cuda"),
        ("bindings.cpp", "cpp"),
        ("a.cc", "cpp"),
        ("a.cxx", "cpp"),
        ("a.c", "cpp"),
        ("a.h", "cpp"),
        ("a.hpp", "cpp"),
        ("a.hxx", "cpp"),
        ("permute.inl", "cpp"),
        ("args.inc", "cpp"),
        ("detail.ipp", "cpp"),
        ("detail.tpp", "cpp"),
        ("LEGACY.C", "cpp"),
        ("KERNEL.CU", "cuda"),
        ("decode.cu.jinja", "cuda"),
        ("decode.cu.in", "cuda"),
        ("config.h.in", "cpp"),
        ("host.cc.j2", "cpp"),
        ("csrc/ops/host.cc.in", "cpp"),
        ("ops.py", "python"),
        ("CMakeLists.txt", "cmake"),
        ("csrc/CMakeLists.txt", "cmake"),
        ("utils.cmake", "cmake"),
        ("pyproject.toml", "toml"),
        ("native_functions.yaml", "yaml"),
        ("more_functions_cuda.yml", "yaml"),
        ("ops.yaml", "yaml"),
        ("custom-ops.yml", "yaml"),
    ],
)
def test_is_read_as(name: str, language: str) -> None:
    assert language in LANGUAGES
    assert language_of(name) == language


@pytest.mark.parametrize(
    "name",
    [
        "ops.pyi",
        "README.md",
        "requirements.txt",
        "MyCMakeLists.txt",
        "tool_chat_template.jinja",
        "setup.py.in",
        "MANIFEST.in",
        "Config.cmake.in",
        ".in",
        "x.in",
        "docs.yaml",
        "devops.yaml",
        "functions/docs.yaml",
        "Cargo.toml",
        "_C.so",
        "cu",
        "Makefile",
        "dir.cu/Makefile",
        "",
    ],
)
def test_is_not_read(name: str) -> None:
    assert language_of(name) is None
