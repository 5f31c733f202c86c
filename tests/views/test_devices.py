"""Whose device a guard is for and which stream is meant."""

from __future__ import annotations

import pytest

from opwalker.model.walk import Host
from tests.views.miniatures import implementation


def host(code: str) -> Host:
    text = f"void f(torch::Tensor& x, torch::Tensor& y) {{\n{code}\n}}\n"
    return implementation(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f").host


@pytest.mark.parametrize(
    ("code", "device"),
    [
        ("CUDAGuard guard(x.device());", "the device of x"),
        ("CUDAGuard guard{(char)x.get_device()};", "the device of x"),
        ("const OptionalCUDAGuard guard(device_of(y));", "the device of y"),
        ("auto d = x.device(); DeviceGuard guard(d.index());", "the device of x"),
        (
            "auto d = x.is_cuda() ? x.device() : y.device(); DeviceGuard guard(d.index());",
            "the device of x where x is on the GPU, else the device of y",
        ),
        ("ffi::CUDADeviceGuard guard(x.device().device_id);", "the device of x"),
        ("DeviceGuard guard(index);", None),
    ],
)
def test_whose_device(code: str, device: str | None) -> None:
    (guard,) = host(code).guards
    assert (guard.device, guard.line, guard.end_line) == (device, 2, 3)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("auto s = at::cuda::getCurrentCUDAStream();", "the current stream"),
        ("auto s = at::cuda::getCurrentCUDAStream().stream();", "the current stream"),
        ("auto s = get_current_cuda_stream(x.get_device_index());", "the current stream of the device of x"),
        ("auto s = at::cuda::getStreamFromPool();", "a stream of the pool"),
    ],
)
def test_which_stream(code: str, words: str) -> None:
    assert [stream.words for stream in host(code).streams] == [words]


def test_what_stands_in_a_branch_of_the_preprocessor_is_told_with_it() -> None:
    found = host(
        "#if TORCH_VERSION_MAJOR > 2\n"
        "c10::DeviceGuard guard(x.device());\nauto s = at::cuda::getCurrentCUDAStream();\n"
        "auto z = x.contiguous();\nif (x.numel() == 0) { return; }\n"
        "#else\nat::cuda::CUDAGuard guard(x.device());\n#endif\nuse(s, z);\nat::cuda::CUDAGuard always(y.device());"
    )
    newer = "TORCH_VERSION_MAJOR > 2"
    assert [(one.line, one.compiled) for one in found.guards] == [(3, newer), (8, f"!({newer})"), (11, None)]
    assert [one.compiled for one in (*found.streams, *found.contiguous_calls, *found.returns)] == [newer] * 3


def test_a_guard_that_a_macro_brings_is_told_with_the_branch_of_its_use() -> None:
    code = "#define ON(t) c10::DeviceGuard guard(t.device());\n#ifdef MANY\nON(x)\n#endif\n"
    assert [one.compiled for one in host(code).guards] == ["MANY"]
