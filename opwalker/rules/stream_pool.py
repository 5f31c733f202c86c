"""A launch on a stream of its own that is never joined to the current one.

*Why.* Work on a pool stream or a new stream runs beside the current stream. What reads the result next, on the current
stream, may run before it: NaN and wrong values, now and then.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void pooled(torch::Tensor& x) {
  auto stream = at::cuda::getStreamFromPool(false, x.get_device());
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());  // flagged
}
void fresh(torch::Tensor& x) {
  cudaStream_t side;
  cudaStreamCreate(&side);
  twice_kernel<<<1, 32, 0, side>>>(x.data_ptr<float>());  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void joined(torch::Tensor& x, at::cuda::CUDAEvent& done) {
  auto side = at::cuda::getStreamFromPool(false, x.get_device());
  twice_kernel<<<1, 32, 0, side>>>(x.data_ptr<float>());
  done.record(side);
  done.block(at::cuda::getCurrentCUDAStream());
}
void waited(torch::Tensor& x) {
  cudaStream_t side;
  cudaStreamCreate(&side);
  twice_kernel<<<1, 32, 0, side>>>(x.data_ptr<float>());
  cudaStreamSynchronize(side);
}
void current(torch::Tensor& x) {
  auto stream = at::cuda::getCurrentCUDAStream();
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
}
```

*Use instead.* The current stream; or an event recorded on the side stream that the current stream waits for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.rules._launches import sites

_POOL = re.compile(r"\bget\w*Stream\w*FromPool\b|\bgetStreamFromPool\b")
_MAKES = re.compile(r"(?:cuda|hip)StreamCreate\w*\Z")
_JOINS = re.compile(
    r"(?:cuda|hip)(?:StreamWaitEvent|StreamSynchronize|DeviceSynchronize|EventSynchronize)\Z|block\Z|synchronize\Z|wait\w*\Z"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        made = None
        for site in sites(routine):
            made = _own_streams(routine) if made is None else made
            stream = re.sub(r"\.stream\(\)\Z", "", (site.stream or "").strip())
            if stream not in made or _joined(routine, site.line):
                continue
            file, line = site.place(routine)
            yield Draft(
                file,
                line,
                f"{site.name} is launched on {stream}, which is never joined to the current stream",
                (Related(routine.file, made[stream], f"{stream} is taken here"),),
                stream,
            )


def _own_streams(routine: Routine) -> dict[str, int]:
    """Streams from a pool or newly made in a routine, with the line."""
    out: dict[str, int] = {}
    for one in routine.walk():
        for declared in one.declares:
            if declared.value and _POOL.search(declared.value):
                out[declared.name] = declared.line
        for assigned in one.assigns:
            if _POOL.search(assigned.value):
                out[assigned.target] = assigned.line
        for call in one.calls:
            if _MAKES.match(call.simple) and call.arguments:
                out[call.arguments[0].strip("& ")] = call.line
    return out


def _joined(routine: Routine, line: int) -> bool:
    """Whether something after a line waits for a stream or an event."""
    return any(call.line >= line and _JOINS.match(call.simple) for one in routine.walk() for call in one.calls)


RULE = Rule("stream-pool", "warning", _run)
