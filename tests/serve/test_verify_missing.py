"""What `verify` says where a tool is missing: one line that names what brings it, and exit code 5."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = "import sys; {}; from opwalker.serve.cli import main; sys.argv[0] = 'opwalker'; sys.exit(main())"
NO_TORCH = "sys.modules['torch'] = None"
NO_NUMPY = "sys.modules['numpy'] = None"
#: A torch that is there and has no device, or no compiler.
A_TORCH = "; ".join(
    (
        "import types",
        "names = ('torch', 'torch.utils', 'torch.utils.cpp_extension')",
        "torch, utils, ext = map(types.ModuleType, names)",
        "torch.__version__, torch.utils, utils.cpp_extension, ext.CUDA_HOME = '2.11.0', utils, ext, None",
        "sys.modules.update({one.__name__: one for one in (torch, utils, ext)})",
    )
)


@pytest.mark.parametrize(
    ("before", "words", "environment", "said"),
    [
        (NO_NUMPY, ["--device", "cpu"], {}, "numpy is missing; pip install numpy"),
        (NO_TORCH, [], {}, "torch is missing; pip install 'opwalker[verify]', or --device cpu"),
        (NO_TORCH, ["--build-only"], {}, "torch is missing; pip install 'opwalker[verify]'"),
        (A_TORCH, ["--build-only"], {"PATH": "", "CUDA_HOME": ""}, "nvcc is missing; install the CUDA toolkit"),
        ("pass", ["--device", "cpu"], {"PATH": "", "CXX": ""}, "there is no C++ compiler; install the package g++"),
        ("pass", ["--device", "cpu"], {"CXX": "/nowhere/g++"}, "/nowhere/g++ does not run"),
    ],
)
def test_a_missing_tool(tmp_path: Path, before: str, words: list[str], environment: dict[str, str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(before), "verify", "silu_and_mul", *words],
        cwd=ROOT,
        env={**os.environ, "OPWALKER_CACHE": str(tmp_path), "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"opwalker: error: {said}"), line
    assert done.stdout == ""
