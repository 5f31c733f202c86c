"""A kernel launch whose error nobody asks for.

*Why.* A launch returns nothing. One that never ran (a bad configuration, too much shared memory) leaves old data in
its output, and the error appears at whatever call comes next, which is then blamed.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void twice(torch::Tensor& x, cudaStream_t stream) {
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());  // flagged
  x.add_(1);
}
#define LAUNCH_TWICE(x) twice_kernel<<<1, 32, 0, stream>>>(x);  // flagged
void thrice(float* x, cudaStream_t stream) {
  LAUNCH_TWICE(x)
  LAUNCH_TWICE(x)
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void twice(torch::Tensor& x, cudaStream_t stream) {
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  AT_CUDA_CHECK(cudaGetLastError());
  if (x.numel() > 1) {
    twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  } else {
    twice_kernel<<<2, 32, 0, stream>>>(x.data_ptr<float>());
  }
  cudaError_t error = cudaPeekAtLastError();
}
```

*Use instead.* `C10_CUDA_KERNEL_LAUNCH_CHECK()` (or the project's own check, named under `launch-checks` in the
settings) directly behind each launch. A launch in a macro is reported once, at the macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import LaunchText, Routine, Statement
from opwalker.rules._launches import ASKS

_CHECK = re.compile(r"(?i)\b\w*(?:launch_?check|check\w*_?launch|check_?last|check_cuda_last|post_?launch)\w*\s*\(")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device:
            continue
        for launch in _unasked(routine.statements, (), tree.settings.launch_checks):
            yield _draft(routine, launch)


def _draft(routine: Routine, launch: LaunchText) -> Draft:
    kernel = launch.kernel.split("<", 1)[0].rsplit("::", 1)[-1]
    message = f"the launch of {kernel} is not followed by a check for its error"
    if launch.macro is not None and not launch.macro.known:
        return Draft(launch.macro.file, launch.macro.line, message, symbol=kernel)
    return Draft(routine.file, launch.line, message, symbol=kernel)


def _unasked(
    statements: Sequence[Statement], after: Sequence[Statement], checks: Sequence[str]
) -> Iterator[LaunchText]:
    """Launches in ``statements`` that what follows does not ask for. ``after`` follows the whole block."""
    for number, one in enumerate(statements):
        following = [*statements[number + 1 :], *after]
        if one.launches and not _asked(one, checks) and not (following and _asked(following[0], checks)):
            yield from one.launches
        rest = following[:1]
        yield from _unasked(one.body, rest, checks)
        yield from _unasked(one.orelse, rest, checks)
        for held in one.lambdas:
            yield from _unasked(held.body, rest, checks)


def _asked(one: Statement, checks: Sequence[str]) -> bool:
    """Whether a statement asks for the last error."""
    if one.kind == "break" or (one.kind in ("block", "case") and one.body):
        return bool(one.body) and _asked(one.body[0], checks)
    text = one.text
    if ASKS.search(text) or _CHECK.search(text):
        return True
    return any(call.simple in checks for call in one.calls)


RULE = Rule("missing-launch-check", "warning", _run)
