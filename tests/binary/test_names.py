"""Demangled names taken apart, and the demangler itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.binary import demangle as module
from opwalker.binary import demangler
from opwalker.binary.demangle import demangled, outline
from opwalker.binary.names import kernel_name, unit_of
from opwalker.errors import EnvironmentMissing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fill(float*)", ("fill", "")),
        ("rows::fill(float*, int)", ("rows::fill", "")),
        ("void rows::fill<float, 2>(float*)", ("rows::fill", "float, 2")),
        ("void fill<c10::Half, (rows::Kind)1, true>(int)", ("fill", "c10::Half, (rows::Kind)1, true")),
        ("(anonymous namespace)::fill(int)", ("(anonymous namespace)::fill", "")),
        ("void rows::(anonymous namespace)::fill<int>(int)", ("rows::(anonymous namespace)::fill", "int")),
        ("void fill<(anonymous namespace)::Tag>(int)", ("fill", "(anonymous namespace)::Tag")),
        ("std::enable_if<((8)>(0))&&Is<float>::value, void>::type rows::fill<float, 8>(float*)",
         ("rows::fill", "float, 8")),
        ("void fill<float, &(float rows::act<float>(float const&))>(float*)",
         ("fill", "float, &(float rows::act<float>(float const&))")),
        ("void fill<Box<Box<int> > >(int)", ("fill", "Box<Box<int> >")),
        ("void fill<rows::f(int)::{lambda(auto:1)#1}>(int)", ("fill", "rows::f(int)::{lambda(auto:1)#1}")),
        ("void fill<1024l, 3u, -1>(void (*)(int))", ("fill", "1024l, 3u, -1")),
        ("rows::table", None),
        ("rows::Box<int>::table", None),
        ("", None),
    ],
)  # fmt: skip
def test_name_and_arguments(text: str, expected: tuple[str, str] | None) -> None:
    assert kernel_name(text) == expected


parts = st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
types = st.recursive(
    st.sampled_from(["float", "int", "c10::Half", "(rows::Kind)1", "8", "true", "(anonymous namespace)::T"]),
    lambda inner: st.builds(lambda name, args: f"{name}<{', '.join(args)}>", parts, st.lists(inner, min_size=1)),
    max_leaves=6,
)


returns = st.sampled_from(["void", "rows::Box<int, 2>", "std::enable_if<((8)>(0))||(!(false)), void>::type"])


@given(st.lists(parts, min_size=1, max_size=4), st.lists(types, max_size=4), st.lists(types, max_size=3), returns)
def test_a_name_that_was_put_together_comes_apart(
    scope: list[str], arguments: list[str], parameters: list[str], returned: str
) -> None:
    name, listed = "::".join(scope), ", ".join(arguments)
    head = f"{returned} {name}<{listed}>" if arguments else name
    assert kernel_name(f"{head}({', '.join(parameters)})") == (name, listed)


@given(st.text(alphabet="ab<>()[]{}:,& -0", max_size=40))
def test_any_text_is_taken_or_left(text: str) -> None:
    found = kernel_name(text)
    assert found is None or found[0] in text


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("_ZN43_GLOBAL__N__0a1b2c3d_11_rows_sum_cu_112233443sumEPi", "rows_sum_cu"),
        ("_ZN36_GLOBAL__N__0a1b2c3d_4_k_cu_11223344_5671fEPi", "k_cu"),
        ("_ZN12_GLOBAL__N_14fillEPi", None),
        ("_Z4fillPi", None),
    ],
)
def test_the_file_of_an_anonymous_namespace(symbol: str, expected: str | None) -> None:
    assert unit_of(symbol) == expected


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("_ZN7cutlass13device_kernelINS_4gemm6kernelEEEvNT_6ParamsE", "cutlass::device_kernel"),
        ("_Z4fillIfEvPT_", "fill"),
        ("_ZN12_GLOBAL__N_14fillEPi", "(anonymous namespace)::fill"),
        ("_ZTV3Box", ""),
        ("plain", ""),
    ],
)
def test_what_is_told_without_a_demangler(symbol: str, expected: str) -> None:
    assert outline(symbol) == expected


def test_names_are_spelt_as_predictions_are() -> None:
    names = {
        "_ZN4rows4fillIN3c104HalfELi8ELNS_4KindE1ELb1EEEvPT_": "void rows::fill<c10::Half, 8, (rows::Kind)1, true>",
        "_Z4fillIhjlEvPT_": "void fill<unsigned char, unsigned int, long>",
        "_Z4fillILj512ELl7EEvv": "void fill<512u, 7l>",
    }
    found = demangled(names)
    assert {symbol: text.partition("(")[0] if "Kind" not in symbol else text[: len(names[symbol])]
            for symbol, text in found.items()} == names  # fmt: skip


def test_what_is_no_mangled_name_is_left_out() -> None:
    found = demangled(["plain", "_Zxx", "_Z4fillv", "_Z4fill\nv", "_Zü", "_Z" + "9" * 70_000])
    assert found == {"_Z4fillv": "fill()"}


def test_a_name_that_breaks_the_demangler_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that ends at one name, as the real one would in a crash."""
    script = "import sys\nfor name in sys.stdin.read().split('\\n'):\n"
    script += "    if name == '_Zbad': sys.exit(-11)\n    print(name.upper(), flush=True)"
    real = subprocess.run

    def run(command, **settings):
        return real([sys.executable, "-I", "-c", script], **settings)

    monkeypatch.setattr(module.subprocess, "run", run)
    assert demangled(["_Za", "_Zbad", "_Zc"]) == {"_Za": "_ZA", "_Zc": "_ZC"}


def test_a_machine_without_a_demangler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command, **settings):
        return subprocess.CompletedProcess(command, demangler.NO_DEMANGLER, b"", b"")

    monkeypatch.setattr(module.subprocess, "run", run)
    with pytest.raises(EnvironmentMissing, match="no C\\+\\+ runtime library") as caught:
        demangled(["_Z4fillv"])
    assert caught.value.exit_code == 5
