"""Builds as sets of macros: what is known of a name, in host and device code, with what build files and users set."""

from __future__ import annotations

import pytest

from opwalker.expand.configuration import configuration
from opwalker.expand.files import holds
from opwalker.expand.macros import MacroTable
from opwalker.model.build import Define
from tests.trees import tree


def define(name: str, value: str | None) -> Define:
    return Define(name, value, "CMakeLists.txt", 1)


@pytest.mark.parametrize(
    ("build", "device", "name", "known"),
    [
        ("cuda", False, "__CUDACC__", True),
        ("cuda", False, "USE_ROCM", False),
        ("cuda", False, "__CUDA_ARCH__", False),
        ("cuda", True, "__CUDA_ARCH__", None),
        ("rocm", False, "USE_ROCM", True),
        ("rocm", False, "__CUDACC__", False),
        ("rocm", False, "__HIP_DEVICE_COMPILE__", False),
        ("cpu", False, "USE_ROCM", False),
        ("cpu", False, "__CUDACC__", False),
        ("cuda", False, "_WIN32", False),
        ("cuda", False, "ANYTHING_ELSE", None),
    ],
)
def test_what_a_build_says_of_a_name(build: str, device: bool, name: str, known: bool | None) -> None:
    assert configuration(build, device).state(name)[0] is known


def test_what_the_build_files_set() -> None:
    made = configuration("cuda", False, [define("ENABLE_X", "1"), define("VERSION", "3"), define("VERSION", "4")])
    assert made.state("ENABLE_X") == (True, "1")
    assert made.state("VERSION") == (True, None), "set, but to what depends on the target"
    assert configuration("cuda", False, [define("USE_ROCM", None)]).state("USE_ROCM")[0] is True


def test_what_the_user_asked_for() -> None:
    made = configuration("cuda", False, [define("X", "1")], [("X", "2"), ("Y", None), ("__CUDA_ARCH__", "900")])
    assert made.state("X") == (True, "2")
    assert made.state("Y") == (True, "1")
    assert made.state("__CUDA_ARCH__") == (True, "900")


@pytest.mark.parametrize(
    ("terms", "value"),
    [
        ((), True),
        (("defined(YES)",), True),
        (("!defined(NO)",), True),
        (("defined(NO)",), False),
        (("defined(MAYBE)",), None),
        (("defined(MAYBE)", "defined(NO)"), False),
        (("defined(MAYBE)", "defined(YES)"), None),
        (("!(defined(YES))",), False),
        (("YES >= 3",), True),
        (("YES < 3",), False),
        (("MAYBE > 3",), None),
        (("NO",), False),
        (("0",), False),
        (("1",), True),
        (("defined(NO) && MAYBE",), False),
        (("defined(YES) || MAYBE",), True),
    ],
)
def test_conditions_in_three_values(terms: tuple[str, ...], value: bool | None) -> None:
    def state(name: str) -> tuple[bool | None, str | None]:
        return {"YES": (True, "5"), "NO": (False, None)}.get(name, (None, None))

    assert holds(terms, state) is value


@pytest.mark.parametrize(
    ("archs", "term", "value"),
    [
        (["9.0a"], "__CUDA_ARCH__ >= 900", True),
        (["8.0"], "__CUDA_ARCH__ >= 900", False),
        (["8.0", "9.0a"], "__CUDA_ARCH__ >= 900", None),
        (["8.0", "9.0a"], "__CUDA_ARCH__ >= 800", True),
        (["8.0", "8.9"], "defined(__CUDA_ARCH_FEAT_SM90_ALL)", False),
        (["9.0a"], "defined(__CUDA_ARCH_FEAT_SM90_ALL)", True),
        (["9.0"], "defined(__CUDA_ARCH_FEAT_SM90_ALL)", False),
        (["9.0", "9.0a"], "defined(__CUDA_ARCH_FEAT_SM90_ALL)", None),
        (["10.3f"], "__CUDA_ARCH_FAMILY_SPECIFIC__ == 1030", True),
        (["10.3f"], "defined(__CUDA_ARCH_SPECIFIC__)", False),
        (["8.0+PTX"], "__CUDA_ARCH__ == 800", True),
        (["8.0", "9.0a"], "SOMETHING_ELSE && __CUDA_ARCH__ >= 800", None),
        (["8.0", "9.0a"], "SOMETHING_ELSE && __CUDA_ARCH__ < 800", False),
        (["8.0"], "defined(__CUDA_ARCH_LIST__)", None),
        ([], "__CUDA_ARCH__ >= 900", None),
    ],
)
def test_device_code_has_one_pass_for_each_architecture(archs: list[str], term: str, value: bool | None) -> None:
    index = tree({"a.cu": ""}).index
    assert MacroTable(index, configuration("cuda", True, archs=archs)).truth("a.cu", (term,), 0, "a.cu") is value


def test_what_the_user_says_of_the_architecture_goes_before_the_passes() -> None:
    made = configuration("cuda", True, asked=[("__CUDA_ARCH__", "750")], archs=["9.0a"])
    assert (made.passes, made.state("__CUDA_ARCH__")) == ((), (True, "750"))


def test_host_code_has_no_passes_and_macros_of_other_architectures_are_unset() -> None:
    made = configuration("cuda", False, archs=["9.0a"], unset=["ENABLE_X", "CUTLASS_X"])
    assert made.passes == ()
    assert made.state("CUTLASS_X") == (False, None)
    assert configuration("cuda", False, [define("ENABLE_X", "1")], unset=["ENABLE_X"]).state("ENABLE_X")[0] is True


def test_a_file_has_macros_of_its_own() -> None:
    files = {"h.h": "#pragma once\n#ifdef WIDE\n#define SIZE 8\n#else\n#define SIZE 4\n#endif\n"}
    files |= dict.fromkeys(("a.cu", "b.cu"), '#include "h.h"\n')
    made = configuration("cuda", True, closed=True, units={"a.cu": [define("WIDE", "1")]})
    table = MacroTable(tree(files).index, made)
    assert table.truth("a.cu", ("defined(WIDE)",), 0, "a.cu") is True
    assert table.truth("b.cu", ("defined(WIDE)",), 0, "b.cu") is False
    assert table.truth("h.h", ("defined(WIDE)",), 0, "a.cu") is True
    for unit, size in (("b.cu", "4"), ("a.cu", "8")):
        choice = table.lookup("SIZE", unit, 20, unit)
        assert choice is not None and choice.event.body.strip() == size


def test_what_the_user_asked_for_goes_before_the_macros_of_a_file() -> None:
    made = configuration("cuda", True, asked=[("WIDE", "2")], units={"a.cu": [define("WIDE", "1")]})
    assert made.units == {"a.cu": {}}


def test_what_a_flag_sets_for_an_unknown_file_may_be_set_and_its_cases_are_read() -> None:
    text = "#ifdef LIB_WIDE\n#define CASE(x) case 2: x\n#else\n#define CASE(x)\n#endif\n"
    index = tree({"a.cu": text}).index
    named = MacroTable(index, configuration("cuda", False, closed=True, flagged=["LIB_WIDE"]))
    choice = named.lookup("CASE", "a.cu", len(text), "a.cu")
    assert named.truth("a.cu", ("defined(LIB_WIDE)",), 0, "a.cu") is None
    assert (choice.event.body.strip(), choice.certainty, choice.others) == ("case 2: x", "possible", 1)
    nobody = MacroTable(index, configuration("cuda", False, closed=True, flagged=["LIB_NARROW"]))
    choice = nobody.lookup("CASE", "a.cu", len(text), "a.cu")
    assert nobody.truth("a.cu", ("defined(LIB_WIDE)",), 0, "a.cu") is False
    assert (choice.event.body.strip(), choice.certainty) == ("", "proved")
