"""A runtime call whose status nobody reads.

*Why.* The runtime's calls return their error. Dropped, it appears at a later call that has nothing to do with it.

*Flagged*

```cuda
#include <torch/all.h>
void copy(float* y, const float* x, size_t n, cudaStream_t stream) {
  cudaMemcpyAsync(y, x, n, cudaMemcpyDeviceToDevice, stream);  // flagged
  cudaStreamSynchronize(stream);  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
#define RUN(x) do { cudaError_t e = (x); TORCH_CHECK(e == cudaSuccess); } while (0)
cudaError_t copy(float* y, const float* x, size_t n, cudaStream_t stream) {
  C10_CUDA_CHECK(cudaMemcpyAsync(y, x, n, cudaMemcpyDeviceToDevice, stream));
  RUN(cudaStreamSynchronize(stream));
  cudaError_t error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) return error;
  if (cudaStreamQuery(stream) == cudaSuccess) return cudaSuccess;
  (void)cudaGetLastError();
  return cudaStreamSynchronize(stream);
}
struct Owner {
  float* p;
  ~Owner() { cudaFree(p); }
};
```

*Use instead.* `C10_CUDA_CHECK(...)`, the project's own macro, or `(void)` where the error is of no interest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import Routine

#: Runtime and driver calls that return a status. Those that cannot fail, or are asked for their answer, are not here.
_CALLS = re.compile(
    r"(?:cuda|hip)(?:Mem(?:cpy|set|Prefetch)\w*|Malloc\w*|Free\w*|HostAlloc|HostRegister|Stream(?:Create|Synchronize|"
    r"WaitEvent|Destroy|BeginCapture|EndCapture)\w*|Event(?:Create|Record|Synchronize|Destroy)\w*|DeviceSynchronize|"
    r"SetDevice|FuncSetAttribute|FuncSetCacheConfig|Ipc\w+|Launch\w+|Graph\w+|DeviceSetLimit|DeviceEnablePeerAccess|"
    r"OccupancyMax\w+|DeviceGetAttribute|GetDeviceProperties)\Z|cu(?:Mem\w+|Launch\w+|Ctx\w+|Module\w+|TensorMap\w+)\Z"
)
#: Clean-up is often past caring.
_CLEANS = re.compile(
    r"(?:cuda|hip)(?:Free\w*|StreamDestroy|EventDestroy|GraphDestroy|GraphExecDestroy)\Z|cuMem(?:Free|Unmap|Release)\w*\Z"
)
_ENDS = re.compile(r"(?i)~|free|destroy|release|close|cleanup|finali[sz]e|reset|delete")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device:
            continue
        for one in routine.walk():
            if one.kind != "expression" or len(one.calls) < 1:
                continue
            call = one.calls[0]
            if call.receiver is not None or not _CALLS.match(call.simple) or not one.text.startswith(call.name):
                continue
            if one.text != call.text or (_CLEANS.match(call.simple) and _ends(routine)):
                continue
            file, line = routine.file, call.line
            if call.macro is not None:
                if call.macro.known:
                    continue
                file, line = call.macro.file, call.macro.line
            yield Draft(file, line, f"the error that {call.simple} returns is dropped", symbol=call.simple)


def _ends(routine: Routine) -> bool:
    """Whether a routine takes things down: a destructor, a deleter, a function named for it."""
    return bool(_ENDS.search(routine.name))


RULE = Rule("cuda-error-dropped", "warning", _run)
