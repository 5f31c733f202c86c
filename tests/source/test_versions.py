"""Names and versions, with ``packaging`` as the second opinion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version

from opwalker.source.versions import canonical_version, meant_spec, normalise_name, parse_spec, split_stem

_numbers = st.integers(0, 40).map(str)
_separators = st.sampled_from(["", ".", "-", "_"])


@st.composite
def _version_texts(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["", "v", "0!", "2!"])) + ".".join(draw(st.lists(_numbers, min_size=1, max_size=4)))
    if draw(st.booleans()):
        words = st.sampled_from(["a", "b", "c", "rc", "alpha", "beta", "pre", "preview", "RC"])
        text += draw(_separators) + draw(words) + draw(_separators) + draw(st.one_of(_numbers, st.just("")))
    if draw(st.booleans()):
        text += draw(_separators) + draw(st.sampled_from(["post", "rev", "r"])) + draw(_separators) + draw(_numbers)
    if draw(st.booleans()):
        text += draw(_separators) + "dev" + draw(_numbers)
    if draw(st.booleans()):
        text += "+" + draw(st.sampled_from(["cu128", "cu12.8", "CPU", "01.g0abc", "git-5_x"]))
    return text


@given(_version_texts())
def test_spelling_is_that_of_the_standard(text: str) -> None:
    try:
        Version(text)
    except InvalidVersion:
        assert canonical_version(text) == text.strip().lower()
        return
    assert canonical_version(text) == canonicalize_version(text)
    assert canonical_version(canonical_version(text)) == canonical_version(text)


@given(st.text())
def test_any_text_gives_some_version(text: str) -> None:
    try:
        expected = canonicalize_version(Version(text))
    except InvalidVersion:
        expected = None
    if expected is not None and text.isascii():
        assert canonical_version(text) == expected
    else:
        canonical_version(text)


@given(st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", fullmatch=True))
def test_names_are_normalised_as_an_index_does(name: str) -> None:
    assert normalise_name(name) == canonicalize_name(name)


@pytest.mark.parametrize(
    ("spec", "parsed"),
    [
        ("vllm==0.30.0", ("vllm", "0.30.0")),
        (" Flash_Attn == 2.8.3.post2 ", ("flash-attn", "2.8.3.post2")),
        ("torch==2.10.0+cu128", ("torch", "2.10.0+cu128")),
        ("vllm", None),
        ("vllm=0.30.0", None),
        ("vllm>=0.30.0", None),
        ("vllm==", None),
        ("==0.30.0", None),
        ("vllm==0.30.*", None),
        ("vllm==0.30.0/..", None),
        ("../vllm==0.30.0", None),
        ("", None),
    ],
)
def test_a_spec_is_a_name_and_a_version(spec: str, parsed: tuple[str, str] | None) -> None:
    assert parse_spec(spec) == parsed


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("vllm=0.30.0", "vllm==0.30.0"),
        ("vllm===0.30.0", "vllm==0.30.0"),
        ("vllm>=0.30.0", "vllm==0.30.0"),
        ("vllm ~= 0.30", "vllm==0.30"),
        ("vllm@0.30.0", "vllm==0.30.0"),
        ("vllm 0.30.0", "vllm==0.30.0"),
        ("vllm-0.30.0", "vllm==0.30.0"),
        ("vllm[audio]==0.30.0", "vllm==0.30.0"),
        ("vllm==v0.30.0", "vllm==0.30.0"),
        ("vllm", "vllm==VERSION"),
        ("%%", None),
        ("", None),
    ],
)
def test_a_slip_is_understood(written: str, meant: str | None) -> None:
    assert meant_spec(written) == meant


@pytest.mark.parametrize(
    ("stem", "split"),
    [
        ("vllm-0.30.0", ("vllm", "0.30.0")),
        ("flash_attn-2.8.3.post2", ("flash_attn", "2.8.3.post2")),
        ("sgl-kernel-0.3.21", ("sgl-kernel", "0.3.21")),
        ("DeepEP-v1.2.1", ("DeepEP", "1.2.1")),
        ("DeepEP-main", ("DeepEP-main", None)),
        ("vllm", ("vllm", None)),
    ],
)
def test_a_file_name_tells_its_version(stem: str, split: tuple[str, str | None]) -> None:
    assert split_stem(stem) == split
