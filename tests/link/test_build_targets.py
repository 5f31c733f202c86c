"""CMake projects to targets, on miniatures in the idioms of real libraries."""

from __future__ import annotations

import msgspec
import pytest

from opwalker.facts.build_files import read_build_file
from opwalker.link.build_lookup import builds_of, defines_of, extension_names, source_index, targets_of
from opwalker.link.build_targets import read_builds
from opwalker.model.build import BuildFacts, Target


def facts_of(files: dict[str, str], *others: str, seeds: dict[str, dict[str, str]] | None = None) -> BuildFacts:
    """The facts of a tree: build files with their texts, and further paths."""
    read = {path: file for path, text in files.items() if (file := read_build_file(path, text)) is not None}
    return read_builds(read, [*files, *others], seeds)


def only(facts: BuildFacts, name: str, build: str) -> Target:
    (target,) = [target for target in facts.targets if target.name == name and build in target.builds]
    return target


def sources(target: Target) -> dict[str, str | None]:
    return {source.path: source.condition for source in target.sources}


def macros(target: Target) -> dict[str, str | None]:
    return {define.name: define.condition for define in target.defines}


# A project in the way of large libraries: one script for three kinds of build, a function of its own for modules,
# device code copied into the build folder for ROCm, per-architecture sources with a macro each.
UTILS = """
function(make_sources_hip OUT)
  set(RESULT)
  foreach(SRC ${ARGN})
    string(REGEX REPLACE "\\.cu$" ".hip" SRC ${SRC})
    list(APPEND RESULT "${CMAKE_CURRENT_BINARY_DIR}/${SRC}")
  endforeach()
  set(${OUT} ${RESULT} PARENT_SCOPE)
endfunction()

function(archs_in_common OUT WANTED PRESENT)
  set(FOUND)
  foreach(A ${WANTED})
    if(A IN_LIST PRESENT)
      list(APPEND FOUND ${A})
    endif()
  endforeach()
  set(${OUT} ${FOUND} PARENT_SCOPE)
endfunction()

function(add_op_module NAME)
  cmake_parse_arguments(PARSE_ARGV 1 M "STABLE" "LANG;INTO" "SRCS;FLAGS")
  if(M_LANG STREQUAL "HIP")
    make_sources_hip(M_SRCS ${M_SRCS})
  endif()
  if(M_STABLE)
    Python_add_library(${NAME} MODULE USE_SABI 3 WITH_SOABI "${M_SRCS}")
  else()
    Python_add_library(${NAME} MODULE WITH_SOABI "${M_SRCS}")
  endif()
  target_compile_options(${NAME} PRIVATE $<$<COMPILE_LANGUAGE:${M_LANG}>:${M_FLAGS}>)
  target_compile_definitions(${NAME} PRIVATE "-DTORCH_EXTENSION_NAME=${NAME}")
  install(TARGETS ${NAME} LIBRARY DESTINATION ${M_INTO})
endfunction()
"""

TOP = """
cmake_minimum_required(VERSION 3.26)
project(nimbus LANGUAGES CXX)
set(NIMBUS_TARGET_DEVICE "cuda" CACHE STRING "what to build for")
include(cmake/utils.cmake)
if(NOT NIMBUS_PYTHON)
  message(FATAL_ERROR "say which python")
endif()
if(NIMBUS_TARGET_DEVICE STREQUAL "cpu")
  include(${CMAKE_CURRENT_LIST_DIR}/cmake/cpu.cmake)
  return()
endif()
if(CUDA_FOUND AND NOT HIP_FOUND)
  set(GPU "CUDA")
elseif(HIP_FOUND)
  set(GPU "HIP")
else()
  message(FATAL_ERROR "no GPU")
endif()
set(SRC "csrc/bindings.cpp" "csrc/norm.cu")
set(FLAGS -DFAST)
if(GPU STREQUAL "CUDA")
  list(APPEND SRC csrc/only_cuda.cu)
  archs_in_common(BIG_ARCHS "9.0a;10.0a" "${CUDA_ARCHS}")
  if(${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 12.8 AND BIG_ARCHS)
    list(APPEND SRC "csrc/big.cu")
    list(APPEND FLAGS "-DENABLE_BIG=1")
  endif()
  archs_in_common(OLD_ARCHS "7.5;8.0+PTX" "${CUDA_ARCHS}")
  if(OLD_ARCHS)
    list(APPEND SRC "csrc/old.cu")
    if(BIG_ARCHS)
      list(APPEND SRC "csrc/big.cu")
    endif()
  endif()
  list(REMOVE_DUPLICATES SRC)
else()
  list(APPEND FLAGS -DUSE_ROCM)
endif()
add_op_module(_N STABLE LANG ${GPU} INTO nimbus SRCS ${SRC} FLAGS ${FLAGS})
target_compile_definitions(_N PRIVATE N_VERSION=2)
"""

CPU = """
set(SRC csrc/cpu/bindings.cpp csrc/cpu/common.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
  add_op_module(_N LANG CXX INTO nimbus SRCS ${SRC} csrc/cpu/avx.cpp FLAGS -mavx2 -DAVX)
  add_op_module(_N_small LANG CXX INTO nimbus SRCS ${SRC} FLAGS -DSMALL)
else()
  add_op_module(_N LANG CXX INTO nimbus SRCS ${SRC} FLAGS -DPLAIN)
endif()
"""

NIMBUS = {"CMakeLists.txt": TOP, "cmake/utils.cmake": UTILS, "cmake/cpu.cmake": CPU}
NIMBUS_SOURCES = [
    *("csrc/bindings.cpp", "csrc/norm.cu", "csrc/only_cuda.cu", "csrc/big.cu", "csrc/old.cu"),
    *("csrc/cpu/bindings.cpp", "csrc/cpu/common.cpp", "csrc/cpu/avx.cpp", "csrc/unused.cu"),
]


@pytest.fixture(scope="module")
def nimbus() -> BuildFacts:
    return facts_of(NIMBUS, *NIMBUS_SOURCES)


def test_each_kind_of_build_has_its_targets(nimbus: BuildFacts) -> None:
    made = [(target.name, target.builds, target.condition) for target in nimbus.targets]
    x86 = 'CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64"'
    assert made == [
        ("_N", ("cuda",), None),
        ("_N", ("rocm",), None),
        ("_N", ("cpu",), x86),
        ("_N", ("cpu",), f"NOT ({x86})"),
        ("_N_small", ("cpu",), x86),
    ]
    assert {target.module for target in nimbus.targets} == {"nimbus._N", "nimbus._N_small"}
    assert not nimbus.problems


def test_sources_keep_the_condition_that_is_left_undecided(nimbus: BuildFacts) -> None:
    big = "${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 12.8 AND BIG_ARCHS"
    assert sources(only(nimbus, "_N", "cuda")) == {
        "csrc/bindings.cpp": None,
        "csrc/norm.cu": None,
        "csrc/only_cuda.cu": None,
        "csrc/big.cu": f"({big}) OR (OLD_ARCHS AND BIG_ARCHS)",
        "csrc/old.cu": "OLD_ARCHS",
    }


def test_sources_say_where_they_are_written_not_where_they_are_used(nimbus: BuildFacts) -> None:
    cuda = only(nimbus, "_N", "cuda")
    lines = TOP.splitlines()
    for source in cuda.sources:
        assert source.file == "CMakeLists.txt"
        assert source.path in lines[source.line - 1]
    assert "add_op_module(_N" in lines[cuda.line - 1]


def test_a_generated_copy_stands_for_the_file_that_it_was_made_from(nimbus: BuildFacts) -> None:
    assert sources(only(nimbus, "_N", "rocm")) == {"csrc/bindings.cpp": None, "csrc/norm.cu": None}


def test_macros_have_condition_and_language(nimbus: BuildFacts) -> None:
    cuda = only(nimbus, "_N", "cuda")
    assert [(d.name, d.value, d.language, d.condition) for d in cuda.defines] == [
        ("FAST", None, "CUDA", None),
        ("ENABLE_BIG", "1", "CUDA", "${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 12.8 AND BIG_ARCHS"),
        ("TORCH_EXTENSION_NAME", "_N", None, None),
        ("N_VERSION", "2", None, None),
    ]
    assert [(d.name, d.language) for d in only(nimbus, "_N", "rocm").defines if d.name == "USE_ROCM"] == [
        ("USE_ROCM", "HIP")
    ]


def test_architectures_are_listed_as_spelt_in_order(nimbus: BuildFacts) -> None:
    assert nimbus.architectures == ("9.0a", "10.0a", "7.5", "8.0+PTX")


def test_lookups_answer_by_file(nimbus: BuildFacts) -> None:
    assert builds_of(nimbus, "csrc/norm.cu") == ("cuda", "rocm")
    assert builds_of(nimbus, "csrc/cpu/bindings.cpp") == ("cpu",)
    assert builds_of(nimbus, "csrc/unused.cu") is None
    assert builds_of(nimbus, "csrc/a.h", {"csrc/a.h": ["csrc/norm.cu", "csrc/cpu/common.cpp"]}) == (
        *("cuda", "rocm", "cpu"),
    )
    assert extension_names(nimbus, "csrc/cpu/common.cpp") == ("_N", "_N_small")
    assert extension_names(nimbus, "csrc/unused.cu") == ()
    assert [target.name for target in targets_of(nimbus, "csrc/cpu/avx.cpp")] == ["_N"]
    assert source_index(nimbus)["csrc/norm.cu"] == targets_of(nimbus, "csrc/norm.cu")


def test_a_file_gets_the_macros_of_its_language(nimbus: BuildFacts) -> None:
    device = {define.name for define in defines_of(nimbus, "cuda", "csrc/norm.cu")}
    host = {define.name for define in defines_of(nimbus, "cuda", "csrc/bindings.cpp")}
    assert device - host == {"FAST", "ENABLE_BIG"}
    assert "USE_ROCM" in {define.name for define in defines_of(nimbus, "rocm", "csrc/norm.cu")}
    (avx,) = [d for d in defines_of(nimbus, "cpu", "csrc/cpu/avx.cpp") if d.name == "AVX"]
    assert avx.condition == 'CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64"'


def test_the_facts_can_be_stored(nimbus: BuildFacts) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(nimbus), type=BuildFacts) == nimbus


def test_further_seeds_decide_what_the_tables_do_not_know() -> None:
    seeds = {"cuda": {"CMAKE_CUDA_COMPILER_VERSION": "13.0", "BIG_ARCHS": "9.0a"}}
    text = TOP.replace('archs_in_common(BIG_ARCHS "9.0a;10.0a" "${CUDA_ARCHS}")', "")
    facts = facts_of({**NIMBUS, "CMakeLists.txt": text}, *NIMBUS_SOURCES, seeds=seeds)
    assert sources(only(facts, "_N", "cuda"))["csrc/big.cu"] is None
    assert macros(only(facts, "_N", "cuda"))["ENABLE_BIG"] is None


def one(text: str, *others: str, **kwargs) -> BuildFacts:
    return facts_of({"CMakeLists.txt": text}, *others, **kwargs)


@pytest.mark.parametrize(
    ("text", "builds"),
    [
        ("project(a LANGUAGES CXX CUDA)\nadd_library(m MODULE a.cpp)", ("cuda",)),
        ("project(a)\nenable_language(HIP)\nadd_library(m MODULE a.cpp)", ("rocm",)),
        ("project(a)\nif(HIP)\nadd_library(m MODULE a.cpp)\nendif()", ("rocm",)),
        ("project(a)\nif(NOT ROCM AND CUDA)\nadd_library(m MODULE a.cpp)\nendif()", ("cuda",)),
        (
            (
                "if(USE_HIP)\nset(L HIP)\nelse()\nset(L CUDA)\nendif()\n"
                'if(${L} STREQUAL "HIP")\nadd_library(m MODULE a.cpp)\nendif()'
            ),
            ("rocm",),
        ),
        ("project(a)\nif(HAVE_CUDA)\nadd_library(m MODULE a.cpp)\nendif()", ("cuda",)),
        ("find_package(CUDAToolkit REQUIRED)\nadd_library(m MODULE a.cpp)", ("cuda",)),
        ("find_package(Torch REQUIRED)\nadd_library(m MODULE a.cpp)", ("cuda", "rocm", "cpu")),
        ("add_library(m MODULE a.cu)", ("cuda",)),
        ("if(USE_ROCM)\nendif()\nadd_library(m MODULE a.cu)", ("cuda", "rocm")),
        ("option(X_WITH_CUDA off OFF)\nif(NOT X_WITH_CUDA)\nadd_library(m MODULE a.cpp)\nendif()", ("rocm", "cpu")),
        ('if(NOT A_TARGET_DEVICE STREQUAL "cpu")\nreturn()\nendif()\nadd_library(m MODULE a.cpp)', ("cpu",)),
    ],
)
def test_what_a_project_needs_says_which_builds_make_it(text: str, builds: tuple[str, ...]) -> None:
    facts = one(text, "a.cpp", "a.cu")
    assert [target.builds for target in facts.targets] == ([builds] if builds else [])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("TRUE", True),
        ("OFF", False),
        ("X-NOTFOUND", False),
        ("A", True),
        ("NOT A", False),
        ("EMPTY", False),
        ('"A"', False),
        ('A STREQUAL "yes"', True),
        ('"${A}" STREQUAL "yes" AND NOT EMPTY', True),
        ('(A STREQUAL "no" OR N EQUAL 3) AND TRUE', True),
        ("N LESS 3", False),
        ("N GREATER_EQUAL 3", True),
        ('"12.10" VERSION_GREATER "12.9"', True),
        ('"12" VERSION_EQUAL "12.0"', True),
        ('"13.0-rc" VERSION_LESS 12', False),
        ('A MATCHES "^y(e)s$" AND CMAKE_MATCH_1 STREQUAL "e"', True),
        ("two IN_LIST LIST", True),
        ("ten IN_LIST LIST", False),
        ("DEFINED A", True),
        ("DEFINED ENV{HOME}", False),
        ("EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/here.cpp", True),
        ("EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/gone.cpp", False),
        ("TARGET made", True),
        ("TARGET other", False),
        ("UNHEARD", None),
        ('UNHEARD STREQUAL "x"', None),
        ("FALSE AND UNHEARD", False),
        ("TRUE OR UNHEARD", True),
        ("NOT (UNHEARD AND FALSE)", True),
        ("${UNHEARD} VERSION_LESS 3", None),
    ],
)
def test_conditions_are_true_false_or_undecided(condition: str, expected: bool | None) -> None:
    facts = one(
        'set(A yes)\nset(EMPTY "")\nset(N 3)\nset(LIST one two)\nadd_library(made made.cpp)\n'
        f"if({condition})\nadd_library(then then.cpp)\nelse()\nadd_library(otherwise otherwise.cpp)\nendif()",
        "here.cpp",
    )
    found = {target.name: target.condition for target in facts.targets if target.name != "made"}
    if expected is None:
        assert set(found) == {"then", "otherwise"}
        assert all(found.values())
    else:
        assert found == {("then" if expected else "otherwise"): None}


def test_only_the_undecided_part_of_a_condition_is_told() -> None:
    facts = one("set(A ON)\nif(A AND (B OR C) AND NOT D)\nadd_library(m a.cpp)\nendif()")
    assert facts.targets[0].condition == "(B OR C) AND NOT D"


def test_a_condition_that_was_assumed_holds_inside() -> None:
    facts = one(
        "if(B)\n set(X one)\nelse()\n set(X two)\nendif()\n"
        "if(B)\n if(NOT B)\n  add_library(never n.cpp)\n endif()\n"
        ' if(X STREQUAL "one")\n  add_library(m ${X}.cpp)\n endif()\nendif()'
    )
    assert [(target.name, target.condition, sources(target)) for target in facts.targets] == [
        ("m", "B", {"one.cpp": None})
    ]


def test_a_way_that_ends_in_an_error_is_not_taken() -> None:
    facts = one("if(UNHEARD)\n add_library(a a.cpp)\n message(FATAL_ERROR x)\nendif()\nadd_library(b b.cpp)")
    assert [(target.name, target.condition) for target in facts.targets] == [("b", None)]
    assert one("add_library(b b.cpp)\nmessage(FATAL_ERROR x)").targets == ()


def test_a_return_under_a_condition_leaves_the_rest_under_the_other() -> None:
    facts = one(
        "function(f N)\n if(STOP)\n  return()\n endif()\n add_library(${N} ${N}.cpp)\nendfunction()\n"
        "f(a)\nadd_library(b b.cpp)"
    )
    assert [(target.name, target.condition) for target in facts.targets] == [("a", "NOT STOP"), ("b", None)]


def test_lists_change_as_in_cmake() -> None:
    facts = one(
        "set(L a.cpp b.cpp c.h;d.cpp)\nlist(APPEND L e.cpp)\nlist(PREPEND L z.cpp)\nlist(REMOVE_ITEM L b.cpp)\n"
        'list(FILTER L EXCLUDE REGEX "\\\\.h$")\nlist(INSERT L 1 i.cpp)\nlist(REVERSE L)\nlist(SUBLIST L 0 4 L)\n'
        'list(TRANSFORM L PREPEND "src/")\nlist(LENGTH L N)\nlist(GET L 0 FIRST)\nlist(JOIN L "+" J)\n'
        "add_library(m ${L})\ntarget_compile_definitions(m PRIVATE N=${N} F=${FIRST} J=${J})"
    )
    assert list(sources(facts.targets[0])) == ["src/e.cpp", "src/d.cpp", "src/a.cpp", "src/i.cpp"]
    values = {define.name: define.value for define in facts.targets[0].defines}
    assert values == {"N": "4", "F": "src/e.cpp", "J": "src/e.cpp+src/d.cpp+src/a.cpp+src/i.cpp"}


def test_an_element_that_is_taken_out_under_a_condition_stays_under_the_other() -> None:
    facts = one("set(L a.cpp b.cpp)\nif(U)\n list(REMOVE_ITEM L b.cpp)\nendif()\nadd_library(m ${L})")
    assert sources(facts.targets[0]) == {"a.cpp": None, "b.cpp": "NOT U"}


def test_strings_change_as_in_cmake() -> None:
    facts = one(
        'string(REPLACE "." "" A "9.0a")\nstring(REGEX REPLACE "([0-9]+)\\\\.([0-9])" "\\\\2-\\\\1" B "12.8")\n'
        'string(TOUPPER "abc" C)\nstring(SUBSTRING "abcdef" 2 3 D)\nstring(FIND "abc" "c" E)\nstring(APPEND C "_x")\n'
        'string(REGEX MATCHALL "[0-9]+" F "a1b22")\nmath(EXPR G "(3 + 4) * 2")\nstring(CONCAT H "${A}" -x)\n'
        "add_library(m a.cpp)\n"
        'target_compile_definitions(m PRIVATE A=${A} B=${B} C=${C} D=${D} E=${E} "F=${F}" G=${G} H=${H})'
    )
    values = {define.name: define.value for define in facts.targets[0].defines}
    wanted = {"A": "90a", "B": "8-12", "C": "ABC_x", "D": "cde", "E": "2", "F": "1", "G": "14", "H": "90a-x"}
    assert values == wanted


def test_functions_have_a_scope_and_macros_do_not() -> None:
    facts = one(
        "set(X outer)\nfunction(f)\n set(X inner)\n set(Y from_f PARENT_SCOPE)\nendfunction()\n"
        "macro(m V)\n set(X ${V})\n set(N ${ARGC}_${ARGN})\nendmacro()\n"
        "f()\nadd_library(a ${X}.cpp ${Y}.cpp)\nm(changed more)\nadd_library(b ${X}.cpp ${N}.cpp)"
    )
    assert [list(sources(target)) for target in facts.targets] == [
        ["outer.cpp", "from_f.cpp"],
        ["changed.cpp", "2_more.cpp"],
    ]


def test_loops_go_over_items_lists_and_ranges() -> None:
    facts = one(
        "set(L a b)\nforeach(i IN LISTS L ITEMS c)\n list(APPEND S ${i}.cpp)\nendforeach()\n"
        "foreach(i RANGE 1 3)\n if(i EQUAL 2)\n  continue()\n endif()\n list(APPEND S ${i}.cpp)\nendforeach()\n"
        'set(n 0)\nwhile(n LESS 2)\n math(EXPR n "${n} + 1")\n list(APPEND S w${n}.cpp)\nendwhile()\n'
        "foreach(i x y)\n if(i STREQUAL y)\n  break()\n endif()\n list(APPEND S ${i}.cpp)\nendforeach()\n"
        "add_library(m ${S})"
    )
    assert list(sources(facts.targets[0])) == [
        *("a.cpp", "b.cpp", "c.cpp", "1.cpp", "3.cpp", "w1.cpp", "w2.cpp", "x.cpp"),
    ]


def test_a_loop_over_undecided_elements_keeps_their_conditions() -> None:
    facts = one(
        "set(K a)\nif(U)\n list(APPEND K b)\nendif()\n"
        "foreach(k ${K})\n list(APPEND S gen/${k}.cpp)\nendforeach()\nadd_library(m ${S})"
    )
    assert sources(facts.targets[0]) == {"gen/a.cpp": None, "gen/b.cpp": "U"}


def test_folders_have_their_own_scope_and_hand_macros_down() -> None:
    facts = facts_of(
        {
            "CMakeLists.txt": "add_definitions(-DALL)\nadd_subdirectory(sub)\nadd_library(top t.cpp)\n"
            'set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -O2 -DFLAG=1")',
            "sub/CMakeLists.txt": "add_compile_definitions(BELOW=2)\nfile(GLOB S *.cpp)\nadd_library(low ${S})",
        },
        "sub/a.cpp",
        "sub/deep/b.cpp",
    )
    low = only(facts, "low", "cpu")
    assert sources(low) == {"sub/a.cpp": None}
    assert {d.name: d.language for d in low.defines} == {"ALL": None, "BELOW": None, "FLAG": "CXX"}
    assert {d.name for d in only(facts, "top", "cpu").defines} == {"ALL", "FLAG"}
    assert [d.name for d in defines_of(facts, "cuda")] == ["ALL", "FLAG"]


def test_globs_find_the_files_of_the_tree() -> None:
    facts = one(
        "file(GLOB_RECURSE A CONFIGURE_DEPENDS src/*.cpp)\nfile(GLOB B RELATIVE ${CMAKE_SOURCE_DIR} src/k_*_[ab].cu)\n"
        "file(GLOB NONE gen/*.cu)\nadd_library(m ${A} ${B} ${NONE})\nif(USE_ROCM)\nendif()",
        *("src/x.cpp", "src/in/y.cpp", "src/k_1_a.cu", "src/k_2_c.cu", "other.cpp"),
    )
    assert list(sources(only(facts, "m", "cuda"))) == ["src/in/y.cpp", "src/x.cpp", "src/k_1_a.cu"]
    assert [(p.file, p.problem.line, p.problem.message) for p in facts.problems] == [
        ("CMakeLists.txt", 3, "file(GLOB gen/*.cu) matches no file of the source")
    ]


def test_a_file_can_have_macros_of_its_own() -> None:
    facts = one(
        "add_library(m a.cpp b.cpp)\nset_source_files_properties(a.cpp PROPERTIES COMPILE_DEFINITIONS ONE=1)\n"
        "set_property(SOURCE b.cpp APPEND PROPERTY COMPILE_OPTIONS -O3 -DTWO)",
        "a.cpp",
        "b.cpp",
    )
    own = {source.path: [define.name for define in source.defines] for source in facts.targets[0].sources}
    assert own == {"a.cpp": ["ONE"], "b.cpp": ["TWO"]}
    assert [define.name for define in defines_of(facts, "cpu", "a.cpp")] == ["ONE"]


def test_linked_targets_pass_their_public_macros_on() -> None:
    facts = one(
        "add_library(flags INTERFACE)\ntarget_compile_definitions(flags INTERFACE SHARED=1)\n"
        "add_library(x::flags ALIAS flags)\nadd_library(base STATIC b.cpp)\n"
        "target_compile_definitions(base PRIVATE MINE PUBLIC OURS)\ntarget_link_libraries(base PUBLIC x::flags)\n"
        "add_library(m MODULE m.cpp)\ntarget_link_libraries(m PRIVATE base)"
    )
    assert [target.name for target in facts.targets] == ["base", "m"]
    assert [set(macros(target)) for target in facts.targets] == [{"MINE", "OURS", "SHARED"}, {"OURS", "SHARED"}]


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("-DA", ("A", None, None, None)),
        ("-DA=b", ("A", "b", None, None)),
        ('"-D A=b"', ("A", "b", None, None)),
        ('"$<$<COMPILE_LANGUAGE:CXX>:-DA>"', ("A", None, None, "CXX")),
        ('"$<$<CONFIG:Debug>:-DA>"', ("A", None, "$<CONFIG:Debug>", None)),
        ('"$<$<COMPILE_LANGUAGE:CUDA>:-x;-DA;-y>"', ("A", None, None, "CUDA")),
        (
            '"$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:ON>>:-DA>"',
            ("A", None, "$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:ON>>", None),
        ),
        ("-O3", None),
        ("-UA", None),
        ("-D1A", None),
    ],
)
def test_macros_among_the_flags(flag: str, expected: tuple[str, str | None, str | None, str | None] | None) -> None:
    facts = one(f"add_library(m a.cpp)\ntarget_compile_options(m PRIVATE {flag})")
    found = [(d.name, d.value, d.condition, d.language) for d in facts.targets[0].defines]
    assert found == ([expected] if expected else [])


def test_a_module_may_be_named_by_a_property_and_two_may_have_one_name() -> None:
    facts = one(
        "foreach(arch sm90 sm100)\n Python_add_library(ops_${arch}_build MODULE WITH_SOABI csrc/ops.cc)\n"
        " set_target_properties(ops_${arch}_build PROPERTIES OUTPUT_NAME ops)\n"
        " install(TARGETS ops_${arch}_build LIBRARY DESTINATION gale/${arch})\nendforeach()"
    )
    assert [(target.name, target.module) for target in facts.targets] == [
        ("ops", "gale.sm90.ops"),
        ("ops", "gale.sm100.ops"),
    ]


def test_files_outside_the_tree_keep_their_spelling() -> None:
    facts = one(
        "FetchContent_MakeAvailable(dep)\nset(S ${dep_SOURCE_DIR}/a.cu $ENV{HOME}/b.cu)\nlist(APPEND S ${MORE})\n"
        "add_library(m MODULE own.cpp ${S})",
        "own.cpp",
    )
    assert list(sources(only(facts, "m", "cuda"))) == ["own.cpp", "${dep_SOURCE_DIR}/a.cu", "/b.cu"]
    assert [p.problem.message for p in facts.problems] == ["a source of m is ${MORE}, which no build file sets"]


def test_a_project_file_gives_cmake_its_options_and_folder() -> None:
    facts = facts_of(
        {
            "pyproject.toml": '[build-system]\nbuild-backend="scikit_build_core.build"\n[project]\nname="zephyr"\n'
            '[tool.scikit-build]\ncmake.args=["-DZ_PYTHON=ON"]\nwheel.install-dir="zephyr"\n',
            "CMakeLists.txt": "option(Z_PYTHON x OFF)\nif(Z_PYTHON AND SKBUILD)\n add_library(core MODULE c.cpp)\n"
            " install(TARGETS core DESTINATION .)\nendif()\nif(NOT SKBUILD)\n add_library(dev d.cpp)\nendif()",
        }
    )
    assert [target.module for target in facts.targets] == ["zephyr.core"]


def test_a_project_file_for_one_kind_of_build_starts_in_its_own_folder() -> None:
    scikit = '[build-system]\nbuild-backend = "scikit_build_core.build"\n'
    facts = facts_of(
        {
            "pyproject.toml": scikit,
            "pyproject_cpu.toml": scikit + '[tool.scikit-build]\ncmake.source-dir = "csrc/cpu"\n',
            "CMakeLists.txt": "project(g LANGUAGES CXX CUDA)\nadd_library(ops MODULE csrc/ops.cu)",
            "csrc/cpu/CMakeLists.txt": "file(GLOB S *.cpp)\nadd_library(ops MODULE ${S})",
        },
        *("csrc/ops.cu", "csrc/cpu/ops.cpp"),
    )
    assert [(target.builds, list(sources(target))) for target in facts.targets] == [
        (("cuda",), ["csrc/ops.cu"]),
        (("cpu",), ["csrc/cpu/ops.cpp"]),
    ]


def test_vendored_projects_and_examples_are_not_ours() -> None:
    text = "add_library(x x.cpp)"
    facts = facts_of({f"{folder}/CMakeLists.txt": text for folder in ("third_party/a", "examples/b", "tests/c", "own")})
    assert [target.file for target in facts.targets] == ["own/CMakeLists.txt"]


def test_the_environment_is_unset_and_options_have_their_defaults() -> None:
    facts = one(
        "option(FAST doc ON)\nif(DEFINED ENV{SLOW})\n set(FAST OFF)\nendif()\nset(V $ENV{V})\n"
        "if(FAST AND NOT V)\n add_library(fast f.cpp)\nendif()"
    )
    assert [(target.name, target.condition) for target in facts.targets] == [("fast", None)]


def test_what_is_computed_twice_is_not_taken_for_the_same() -> None:
    facts = one(
        "execute_process(COMMAND a OUTPUT_VARIABLE R)\nif(R)\n list(APPEND S a.cpp)\nendif()\n"
        "execute_process(COMMAND b OUTPUT_VARIABLE R)\nif(R)\n list(APPEND S b.cpp)\nelse()\n"
        " list(APPEND S c.cpp)\nendif()\nadd_library(m ${S})"
    )
    assert sources(facts.targets[0]) == {"a.cpp": "R", "b.cpp": "R", "c.cpp": "NOT R"}


def test_a_pattern_over_files_that_cannot_be_seen_may_match_nothing() -> None:
    facts = one("file(GLOB L ${dep_DIR}/*.so)\nif(L)\n add_library(m a.cpp)\nendif()")
    assert [target.condition for target in facts.targets] == ["L"]
