"""What CMake files fetch and generate."""

from __future__ import annotations

from opwalker.facts.build_cmake import read_cmake
from opwalker.link.build_origins import BuildOrigins, read_origins
from opwalker.model.audit import Provenance


def origins(**files: str) -> BuildOrigins:
    return read_origins({f"{name}.cmake": read_cmake(text)[0] for name, text in files.items()})


def said(found: tuple[Provenance, ...]) -> list[tuple[str, str, int]]:
    return [(one.kind, one.name, one.span.line if one.span else 0) for one in found]


def test_a_declared_repository_by_its_address() -> None:
    found = origins(a="FetchContent_Declare(\n  colkit\n  GIT_REPOSITORY https://code.invalid/x/colkit.git\n)")
    assert said(found.fetched) == [("fetched", "code.invalid/x/colkit", 1)]


def test_an_address_in_a_variable_and_a_local_folder() -> None:
    text = """
set(HOME "https://code.invalid")
set(REPO "${HOME}/colkit.git")
if(COLKIT_DIR)
  FetchContent_Declare(colkit SOURCE_DIR ${COLKIT_DIR})
else()
  FetchContent_Populate(colkit GIT_REPOSITORY "${REPO}")
endif()
"""
    assert said(origins(a=text).fetched) == [("fetched", "code.invalid/colkit", 7)]


def test_an_address_that_nothing_gives_leaves_the_name() -> None:
    assert said(origins(a="ExternalProject_Add(colkit URL ${SOMEWHERE})").fetched) == [("fetched", "colkit", 1)]


def test_a_variable_that_names_itself_ends() -> None:
    found = origins(a='set(A "${A}${A}x")\nFetchContent_Declare(colkit GIT_REPOSITORY "${A}")')
    assert said(found.fetched) == [("fetched", "colkit", 2)]


def test_sources_in_the_folder_of_a_project_are_its() -> None:
    found = origins(a="FetchContent_Declare(ColKit URL u)")
    assert said(found.mentioned("${colkit_SOURCE_DIR}/csrc/a.cu")) == [("fetched", "u", 1)]
    assert said(found.mentioned("build/_deps/colkit-src/csrc/a.cu")) == [("fetched", "u", 1)]
    assert found.mentioned("csrc/colkit.cu") == ()


def test_a_library_is_found_by_the_file_that_names_it() -> None:
    found = origins(
        a="FetchContent_Declare(colkit URL one)\ninstall(TARGETS _colkit_C)",
        b="FetchContent_Declare(rowkit URL two)\ninstall(TARGETS _rowkit_C)",
        c="install(TARGETS _colkit_C)",
    )
    assert said(found.naming("kit/_colkit_C.abi3.so")) == [("fetched", "one", 1)]
    assert found.naming("kit/_other_C.so") == ()


def test_a_short_name_counts_only_with_its_folder() -> None:
    found = origins(
        a="FetchContent_Declare(colkit URL one)\ninstall(FILES _C.so DESTINATION kit/parts/colkit)",
        b="FetchContent_Declare(rowkit URL two)\nadd_library(_C a.cpp)",
    )
    assert said(found.naming("kit/parts/colkit/_C.cpython-313-x86_64-linux-gnu.so")) == [("fetched", "one", 1)]
    assert found.naming("kit/_C.abi3.so") == ()


def test_generators_by_the_line_before_which_they_run() -> None:
    text = """
set(GEN "${CMAKE_CURRENT_SOURCE_DIR}/csrc/make_rows.py")
execute_process(COMMAND python ${GEN} 8.0)
add_custom_command(OUTPUT x COMMAND python csrc/make_columns.py)
execute_process(COMMAND git describe)
"""
    found = origins(a=text)
    assert said(found.generators) == [
        ("generated", "csrc/make_rows.py", 3),
        ("generated", "csrc/make_columns.py", 4),
    ]
    assert found.generator_before("a.cmake", 4) == found.generators[0]
    assert found.generator_before("a.cmake", 9) == found.generators[1]
    assert found.generator_before("a.cmake", 2) is None
    assert found.generator_before("b.cmake", 9) is None
