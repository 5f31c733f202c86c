"""Hostile and faulty build files: bounded in time and size, told as problems, never raised."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.facts.build_files import read_build_file
from opwalker.link.build_lookup import extension_names
from opwalker.link.build_targets import read_builds
from opwalker.model.build import BuildFacts
from tests.endless import must_end


def facts_of(files: dict[str, str], *others: str) -> BuildFacts:
    read = {path: file for path, text in files.items() if (file := read_build_file(path, text)) is not None}
    return read_builds(read, [*files, *others])


LOOPS = """
foreach(a RANGE 200)
  foreach(b RANGE 200)
    foreach(c RANGE 200)
      if(U${a}${b}${c})
        list(APPEND L ${c})
      endif()
    endforeach()
  endforeach()
endforeach()
"""

#: Commands without the arguments that they need.
BARE = """
set() list() list(APPEND) string() string(REGEX) if() endif() foreach() endforeach() function() endfunction()
target_sources() set_property() set_property(TARGET) install() include() project() cmake_parse_arguments()
set_target_properties() find_package() file() file(GLOB) add_library() option() unset() math()
string(SUBSTRING a 9 9 X) list(GET L 9 X) list(SUBLIST L 5 -1 X) list(INSERT L x y)
"""


@pytest.mark.parametrize(
    "text",
    [
        "function(f)\n f()\nendfunction()\nf()",
        "macro(f X)\n f(${X}x)\nendmacro()\nf(y)",
        "while(TRUE)\n set(A b)\nendwhile()",
        "while(U)\n set(A b)\nendwhile()",
        "foreach(i RANGE 0 999999)\n list(APPEND L ${i})\nendforeach()",
        "set(L a)\nforeach(i RANGE 60)\n set(L ${L} ${L})\nendforeach()",
        'set(S a)\nforeach(i RANGE 60)\n set(S "${S}${S}")\nendforeach()',
        "set(S a)\nforeach(i RANGE 60)\n string(APPEND S ${S})\nendforeach()",
        "include(CMakeLists.txt)",
        "add_subdirectory(.)",
        "add_subdirectory(sub)\nadd_subdirectory(gone)",
        LOOPS,
        "".join(f"if(U{i})\n set(X{i} a)\nendif()\nif(X{i})\n set(Y ${{Y}} b{i})\nendif()\n" for i in range(400)),
        "".join(f'if(U{i})\n set(S "${{S}} -D{i}")\nendif()\n' for i in range(200)),
        'string(REGEX MATCH "(a+)+b" X "' + "a" * 5_000 + '")',
        'string(REGEX REPLACE "((((" "" X y)\nlist(FILTER L INCLUDE REGEX "[z-a]")',
        "set(" + "${" * 500 + "X" + "}" * 500 + " y)",
        "if(" + "NOT " * 5_000 + "X)\nset(A b)\nendif()",
        "if(" + "(" * 5_000 + "X" + ")" * 5_000 + ")\nset(A b)\nendif()",
        'math(EXPR A "' + "(" * 2_000 + "1" + ")" * 2_000 + '")\nmath(EXPR B "9/0")\nmath(EXPR C "1//")',
        BARE,
    ],
)
def test_no_cmake_file_raises_or_runs_on(text: str) -> None:
    with must_end():
        facts = facts_of({"CMakeLists.txt": text + "\nadd_library(last last.cpp)", "sub/CMakeLists.txt": "set(A"})
    ended_early = any(problem.problem.kind == "limit" for problem in facts.problems)
    assert ended_early or any(target.name == "last" for target in facts.targets)


@pytest.mark.parametrize(
    "text",
    [
        "x = [1]\nfor i in range(1000):\n    x = x + x\n",
        "x = 'a'\nfor i in range(1000):\n    x = x + x\n    y = f'{x}{x}'\n",
        "x = [a for a in range(1000) for b in range(1000) for c in range(1000) if False]\n",
        "m = {}\nm['a'] = m\nimport copy\ncopy.deepcopy(m)\n",
        "".join(f"if ask({i}):\n    x = {i}\n" for i in range(300)) + "print(x)\n",
        "def f(n):\n    if ask(n):\n        return f(n + 1)\n    return f(n + 2)\nf(0)\n",
        "import a.b.c\nfrom . import x\nfrom .... import y\n",
        "import glob\nglob.glob('[')\nglob.glob('**/[!a')\nglob.glob('../../*')\n",
        "x = 'é' * 3\nwith open(x) as f, lock:\n    y = f.read()\n",
        "match x:\n    case 1:\n        pass\n",
        "async def f():\n    await g()\nclass A:\n    def __init__(self):\n        self.a = A()\nA()\n",
    ],
)
def test_no_script_raises_or_runs_on(text: str) -> None:
    last = "from setuptools import Extension\nExtension('last', ['last.cpp'])\n"
    with must_end():
        facts = facts_of({"setup.py": text + last})
    ended_early = any(problem.problem.kind == "limit" for problem in facts.problems)
    assert ended_early or any(target.name == "last" for target in facts.targets)


def test_faults_name_their_file_and_line() -> None:
    facts = facts_of(
        {
            "CMakeLists.txt": "set(A b)\ninclude(sub/x.cmake)\ninclude(gone/y.cmake)\nadd_library(m ${NONE})",
            "sub/x.cmake": "\n\nendif()\n",
            "setup.py": "from setuptools import setup\n\nsetup(\n",
        }
    )
    told = {(p.file, p.problem.line, p.problem.kind) for p in facts.problems}
    assert told == {
        ("CMakeLists.txt", 3, "unresolved"),
        ("CMakeLists.txt", 4, "unresolved"),
        ("sub/x.cmake", 3, "bad-build-file"),
        ("setup.py", 3, "bad-build-file"),
    }


_NAME = st.sampled_from(["A", "B", "L", "SRC", "m", "n", "a.cpp", "b.cu", "1", "2.0", "ON", "OFF", ""])
_ARGUMENT = st.one_of(
    _NAME,
    _NAME.map("${{{}}}".format),
    _NAME.map('"${{{}}};x"'.format),
    _NAME.map('"-D{}"'.format),
    st.sampled_from(["APPEND", "REMOVE_ITEM", "PARENT_SCOPE", "PRIVATE", "MODULE", "STREQUAL", "AND", "OR", "NOT"]),
    st.sampled_from(["GLOB", "REGEX", "REPLACE", "MATCHES", "IN", "LISTS", "CACHE", "TARGETS", "DESTINATION", "RANGE"]),
    st.sampled_from(["$<$<CONFIG:X>:", "$<", ">", "${", "}", "\\;", ".*", "(", ")"]).map('"{}"'.format),
)
_COMMAND = st.builds(
    lambda name, arguments: f"{name}({' '.join(arguments)})",
    st.sampled_from(
        "set unset list string file math option add_library add_executable target_sources target_compile_definitions"
        " target_compile_options target_link_libraries set_property set_target_properties install include return break"
        " continue f g message project find_package cmake_parse_arguments add_definitions".split()
    ),
    st.lists(_ARGUMENT, max_size=5),
)


def _block(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, max_size=4).map("\n".join)
    condition = st.lists(_ARGUMENT, min_size=1, max_size=3).map(" ".join)
    return st.one_of(
        st.builds("if({})\n{}\nelse()\n{}\nendif()".format, condition, body, body),
        st.builds("foreach(A {})\n{}\nendforeach()".format, condition, body),
        st.builds("while({})\n{}\nendwhile()".format, condition, body),
        st.builds("function(f {})\n{}\nendfunction()".format, _NAME, body),
        st.builds("macro(g {})\n{}\nendmacro()".format, _NAME, body),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.recursive(_COMMAND, _block, max_leaves=12), max_size=8).map("\n".join))
def test_any_cmake_program_is_read(text: str) -> None:
    facts = facts_of({"CMakeLists.txt": text}, "a.cpp", "b.cu")
    assert facts == facts_of({"CMakeLists.txt": text}, "a.cpp", "b.cu")


_EXPRESSION = st.recursive(
    st.sampled_from(
        ["x", "y", "'a.cpp'", "['b.cu', x]", "1", "None", "f(x)", "os.getenv('Z')", "torch.version.hip", "{}"]
    ),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("[e for e in {} if {}]".format, inner, inner),
        st.builds("({} in {})".format, inner, inner),
        st.builds("({} and not {})".format, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}.append({})".format, inner, inner),
        st.builds("str({}).split({})".format, inner, inner),
        st.builds("dict(a={}, **{})".format, inner, inner),
        st.builds("os.path.join({}, {})".format, inner, inner),
        st.builds("CUDAExtension(name={}, sources={}, extra_compile_args={})".format, inner, inner, inner),
        st.builds('f"{{{}}}.cu"'.format, st.sampled_from(["x", "y"])),
    ),
    max_leaves=8,
)
_STATEMENT = st.recursive(
    st.one_of(
        st.builds("x = {}".format, _EXPRESSION),
        st.builds("y += {}".format, _EXPRESSION),
        _EXPRESSION,
        st.sampled_from(["raise x", "assert x", "import os", "from m import *", "x, *y = y", "del x", "pass"]),
    ),
    lambda inner: st.builds(
        lambda head, body: head + "\n" + "\n".join("    " + line for one in body for line in one.split("\n")),
        st.sampled_from(["if x:", "while y:", "for x in y:", "def f(x, *y, **z):", "class C(x):", "with x as y:"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(_STATEMENT, max_size=8).map("\n".join))
def test_any_script_is_read(text: str) -> None:
    script = f"import os, torch\nfrom torch.utils.cpp_extension import CUDAExtension\nx = y = []\n{text}\nf(x)\n"
    facts = facts_of({"setup.py": script}, "a.cpp", "b.cu")
    assert extension_names(facts, "a.cpp") == tuple(dict.fromkeys(extension_names(facts, "a.cpp")))
