"""Builds for some CUDA architectures: what falls away, what stays, and what each source is compiled for."""

from __future__ import annotations

import pytest

from opwalker.facts.build_files import read_build_file
from opwalker.link.build_cuda import AskedArchitectures, architecture, compiled_for, in_order, plain
from opwalker.link.build_targets import read_builds
from opwalker.model.build import BuildFacts


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("9.0", "9.0"), ("9.0a", "9.0a"), ("9.0A", "9.0a"), ("12.1f", "12.1f"), ("8.0+PTX", "8.0+PTX"),
        ("8.0+ptx", "8.0+PTX"), ("90a", "9.0a"), ("sm_90a", "9.0a"), ("compute_100f", "10.0f"), ("120", "12.0"),
        ("gfx942", None), ("9", None), ("", None), ("native", None), ("99.0", None), ("9.0b", None),
    ],
)  # fmt: skip
def test_spellings_of_an_architecture(text: str, wanted: str | None) -> None:
    assert architecture(text) == wanted


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (["-gencode arch=compute_90a,code=sm_90a"], ("9.0a",)),
        (["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_80,code=compute_80"], ("8.0+PTX",)),
        (["-gencode=arch=compute_120f,code=sm_120f", "-gencode=arch=compute_75,code=sm_75"], ("7.5", "12.0f")),
        (["-gencode=arch=compute_80,code=[sm_80,compute_80]"], ("8.0+PTX",)),
        (["-arch=sm_89"], ("8.9",)),
        (["$<$<COMPILE_LANGUAGE:CUDA>:-gencode", "arch=compute_100a,code=sm_100a>"], ("10.0a",)),
        (["-O3", "-DARCH=90"], ()),
    ],
)
def test_flags_read_back(flags: list[str], wanted: tuple[str, ...]) -> None:
    assert compiled_for(flags) == wanted


def test_what_is_made_of_a_list_is_read_back() -> None:
    asked = AskedArchitectures(("7.5", "8.0+PTX", "9.0a", "12.1f"), "12.8")
    assert compiled_for([asked.flags]) == asked.names
    assert asked.variables()["CMAKE_CUDA_ARCHITECTURES"] == "75;80;90a;121f"


def test_architectures_stand_by_number() -> None:
    assert in_order(["12.0", "9.0a", "7.5", "9.0", "10.0f", "9.0"]) == ("7.5", "9.0", "9.0a", "10.0f", "12.0")
    assert plain(["9.0a", "90a-real", "8.0+PTX", "9.0", "12.1f", "nonsense"]) == ("8.0", "9.0", "12.1")


# The way of a large library: the list is taken out of the flags, met with what each kernel is for, put back per file.
CMAKE = """
project(mini LANGUAGES CXX CUDA)
find_package(Torch REQUIRED)
string(REGEX MATCHALL "code=sm_[0-9]+[af]?" codes ${CMAKE_CUDA_FLAGS})
string(REGEX REPLACE "-gencode arch=[^ ]+ *" "" CMAKE_CUDA_FLAGS ${CMAKE_CUDA_FLAGS})
set(HAVE)
foreach(code ${codes})
  string(REGEX REPLACE "^code=sm_([0-9]+)([0-9])([af]?)$" "\\\\1.\\\\2\\\\3" one ${code})
  list(APPEND HAVE ${one})
endforeach()
function(meet OUT WANTED)
  set(found)
  foreach(one ${WANTED})
    if(one IN_LIST HAVE)
      list(APPEND found ${one})
    endif()
  endforeach()
  set(${OUT} ${found} PARENT_SCOPE)
endfunction()
function(compile_for)
  cmake_parse_arguments(a "" "" "SRCS;ARCHS" ${ARGN})
  foreach(arch ${a_ARCHS})
    string(REPLACE "." "" number ${arch})
    set_property(SOURCE ${a_SRCS} APPEND PROPERTY COMPILE_OPTIONS
      "$<$<COMPILE_LANGUAGE:CUDA>:-gencode;arch=compute_${number},code=sm_${number}>")
  endforeach()
endfunction()
set(SRCS bindings.cpp common.cu)
compile_for(SRCS common.cu ARCHS ${HAVE})
meet(WIDE_ARCHS "9.0a;10.0a")
if(${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 12.0 AND WIDE_ARCHS)
  list(APPEND SRCS wide.cu)
  list(APPEND FLAGS -DENABLE_WIDE=1)
  compile_for(SRCS wide.cu ARCHS ${WIDE_ARCHS})
endif()
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
  list(APPEND SRCS late.cu)
endif()
add_library(_mini MODULE ${SRCS})
target_compile_options(_mini PRIVATE ${FLAGS})
"""
PATHS = ("bindings.cpp", "common.cu", "wide.cu", "late.cu")


def built(
    files: dict[str, str], names: tuple[str, ...], toolkit: str = "13.0", paths: tuple = PATHS, assumed=False
) -> BuildFacts:
    read = {path: file for path, text in files.items() if (file := read_build_file(path, text)) is not None}
    asked = AskedArchitectures(names, toolkit, assumed) if names else None
    return read_builds(read, [*files, *paths], None, asked)


def cuda_sources(facts: BuildFacts) -> dict[str, tuple[str, ...]]:
    return {s.path: s.archs for t in facts.targets if "cuda" in t.builds for s in t.sources}


def cuda_macros(facts: BuildFacts) -> set[str]:
    return {d.name for t in facts.targets if "cuda" in t.builds for d in t.defines if d.name.startswith("ENABLE")}


@pytest.mark.parametrize(
    ("names", "toolkit", "sources", "macros"),
    [
        (("8.0",), "12.8", {"bindings.cpp": (), "common.cu": ("8.0",)}, set()),
        (
            ("8.0", "9.0a"),
            "12.8",
            {"bindings.cpp": (), "common.cu": ("8.0", "9.0a"), "wide.cu": ("9.0a",)},
            {"ENABLE_WIDE"},
        ),
        (("9.0a",), "11.8", {"bindings.cpp": (), "common.cu": ("9.0a",)}, set()),
    ],
)
def test_sources_and_macros_fall_away(names, toolkit, sources, macros) -> None:
    facts = built({"CMakeLists.txt": CMAKE}, names, toolkit)
    assert (cuda_sources(facts), cuda_macros(facts)) == (sources, macros)


def test_the_toolkit_decides() -> None:
    assert "late.cu" in cuda_sources(built({"CMakeLists.txt": CMAKE}, ("8.0",), "13.0"))


def test_without_a_list_everything_stays_with_its_condition() -> None:
    facts = built({"CMakeLists.txt": CMAKE}, ())
    assert set(cuda_sources(facts)) == set(PATHS)
    assert cuda_macros(facts) == {"ENABLE_WIDE"}
    (target,) = [t for t in facts.targets if "cuda" in t.builds]
    assert [s.condition is None for s in target.sources] == [True, True, False, False]
    assert not any(cuda_sources(facts).values())


def test_other_builds_are_as_they_were() -> None:
    asked, plain_facts = built({"CMakeLists.txt": CMAKE}, ("8.0",)), built({"CMakeLists.txt": CMAKE}, ())
    rocm = [[t for t in facts.targets if "cuda" not in t.builds] for facts in (asked, plain_facts)]
    assert rocm[0] == rocm[1]


def test_the_architectures_variable_of_cmake() -> None:
    text = (
        'project(mini LANGUAGES CUDA)\nif("90a" IN_LIST CMAKE_CUDA_ARCHITECTURES)\n  list(APPEND S wide.cu)\nendif()\n'
        "add_library(_mini MODULE common.cu ${S})\n"
    )
    assert set(cuda_sources(built({"CMakeLists.txt": text}, ("8.0", "9.0a")))) == {"common.cu", "wide.cu"}
    assert set(cuda_sources(built({"CMakeLists.txt": text}, ("8.0",)))) == {"common.cu"}


FIXED = {
    "the variable": ("set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)\nadd_library(_m MODULE common.cu)\n", ("8.0", "9.0a")),
    "the property": (
        "add_library(_m MODULE common.cu)\nset_property(TARGET _m PROPERTY CUDA_ARCHITECTURES 75 80)\n",
        ("7.5", "8.0"),
    ),
    "properties": (
        "add_library(_m MODULE common.cu)\nset_target_properties(_m PROPERTIES CUDA_ARCHITECTURES 89)\n",
        ("8.9",),
    ),
    "a word": ("set(CMAKE_CUDA_ARCHITECTURES native)\nadd_library(_m MODULE common.cu)\n", ()),
    "nothing": ("add_library(_m MODULE common.cu)\n", ("10.0",)),
    "flags": (
        "add_library(_m MODULE common.cu)\ntarget_compile_options(_m PRIVATE -gencode arch=compute_90,code=sm_90)\n",
        ("9.0",),
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_a_target_is_compiled_for(name: str) -> None:
    text, wanted = FIXED[name]
    facts = built({"CMakeLists.txt": f"project(mini LANGUAGES CUDA)\n{text}"}, ("10.0",))
    assert cuda_sources(facts) == {"common.cu": wanted}


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"CMakeLists.txt": CMAKE}, {"common.cu": ("8.0", "9.0"), "wide.cu": ()}),
        ({"setup.py": "from torch.utils.cpp_extension import CUDAExtension\nfrom setuptools import setup\n"
          "setup(ext_modules=[CUDAExtension('_m', ['common.cu'])])\n"}, {"common.cu": ()}),
        ({"CMakeLists.txt": "project(m LANGUAGES CUDA)\nfind_package(Torch REQUIRED)\n"
          "add_library(_m MODULE common.cu)\n"},
         {"common.cu": ()}),
        ({"CMakeLists.txt": "project(m LANGUAGES CUDA)\nset(F -gencode arch=compute_80,code=sm_80)\nif(LARGE)\n"
          "list(APPEND F -gencode arch=compute_90,code=sm_90)\nendif()\nadd_library(_m MODULE common.cu)\n"
          "target_compile_options(_m PRIVATE ${F})\n"}, {"common.cu": ()}),
    ],
    ids=["flags of files", "no flags", "flags of a folder", "a flag under a condition"],
)  # fmt: skip
def test_what_nobody_asked_for_is_not_said_of_files_without_flags(files, wanted) -> None:
    facts = built(files, ("8.0", "9.0"), assumed=True)
    found = cuda_sources(facts)
    assert {path: found.get(path, ()) for path in wanted} == wanted


@pytest.mark.parametrize("test", ["DEFINED ENV{TORCH_CUDA_ARCH_LIST}", '"$ENV{TORCH_CUDA_ARCH_LIST}" MATCHES "8.0"'])
def test_the_environment_in_cmake(test: str) -> None:
    text = f"project(mini LANGUAGES CUDA)\nif({test})\n  set(S wide.cu)\nendif()\n"
    text += "add_library(_m MODULE common.cu ${S})\n"
    assert set(cuda_sources(built({"CMakeLists.txt": text}, ("8.0",)))) == {"common.cu", "wide.cu"}
    assert "wide.cu" not in cuda_sources(built({"CMakeLists.txt": text}, ()))


SETUP = """
import os
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

archs = {read}
sources = ["bindings.cpp", "common.cu"]
flags = ["-O3"]
if any(arch.startswith("9.0") for arch in archs.split(";")):
    sources.append("wide.cu")
    flags.append("-DENABLE_WIDE")
setup(ext_modules=[CUDAExtension("_mini", sources, extra_compile_args={{"cxx": [], "nvcc": flags}})],
      cmdclass={{"build_ext": BuildExtension}})
"""


@pytest.mark.parametrize(
    "read",
    ['os.environ.get("TORCH_CUDA_ARCH_LIST", "")', 'os.getenv("TORCH_CUDA_ARCH_LIST", "8.0")',
     'os.environ["TORCH_CUDA_ARCH_LIST"]'],
)  # fmt: skip
def test_a_setup_script_reads_the_environment(read: str) -> None:
    files = {"setup.py": SETUP.replace("{read}", read).replace("{{", "{").replace("}}", "}")}
    wide = built(files, ("8.0", "9.0a"))
    assert cuda_sources(wide) == {"bindings.cpp": (), "common.cu": ("8.0", "9.0a"), "wide.cu": ("8.0", "9.0a")}
    assert cuda_macros(wide) == {"ENABLE_WIDE"}
    assert set(cuda_sources(built(files, ("8.0",)))) == {"bindings.cpp", "common.cu"}


def test_flags_of_a_setup_script_say_what_it_is_compiled_for() -> None:
    text = SETUP.replace("{read}", '""').replace("{{", "{").replace("}}", "}")
    text = text.replace('["-O3"]', '["-gencode", "arch=compute_80,code=sm_80"]')
    assert cuda_sources(built({"setup.py": text}, ("8.0", "9.0a")))["common.cu"] == ("8.0",)
