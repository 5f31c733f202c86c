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
from collections.abc import Callable, Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement
from opwalker.rules._launches import Site, sites

_POOL = re.compile(r"\bget\w*Stream\w*FromPool\b|\bgetStreamFromPool\b")
_MAKES = re.compile(r"(?:cuda|hip)StreamCreate\w*\Z")
_JOINS = re.compile(
    r"(?:cuda|hip)(?:StreamWaitEvent|StreamSynchronize|DeviceSynchronize|EventSynchronize)\Z|block\Z|synchronize\Z|wait\w*\Z"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    known: dict[int, tuple[Routine, dict[str, int]]] = {}

    def own(routine: Routine) -> dict[str, int]:
        # By the object, which is kept, so that no other gets its number.
        if id(routine) not in known:
            known[id(routine)] = (routine, _own_streams(tree, routine))
        return known[id(routine)][1]

    for routine in tree.routines:
        for site in sites(routine):
            stream = _plain(site.stream or "")
            made = own(routine)
            if stream in made and not _joined(routine, site.line):
                file, line = site.place(tree, routine)
                said = f"{site.name} is launched on {stream}, which is never joined to the current stream"
                yield Draft(file, line, said, (Related(routine.file, made[stream], f"{stream} is taken here"),), stream)
            elif stream not in made:
                yield from _handed(tree, own, routine, site, stream)


def _handed(
    tree: CheckedTree, own: Callable[[Routine], dict[str, int]], routine: Routine, site: Site, stream: str
) -> Iterator[Draft]:
    """A launch on a parameter for which a caller takes a stream, or the callers' calls where others give theirs."""
    number = next((n for n, one in enumerate(routine.parameters) if one.name == stream), None)
    callers = tree.callers(routine) if number is not None else ()
    taken = []
    for one in callers:
        given = _plain(one.call.arguments[number]) if number < len(one.call.arguments) else ""
        if given in own(one.caller) and not _joined(one.caller, one.call.line):
            taken.append((one, given))
    for one, given in taken:
        made = Related(one.caller.file, own(one.caller)[given], f"{given} is taken here")
        said = f"{site.name} is launched on {given}, which is never joined to the current stream"
        if len(taken) < len(callers):
            launched = Related(routine.file, site.line, f"{site.name} is launched here")
            yield Draft(one.caller.file, one.call.line, said, (made, launched), given)
            continue
        called = Related(one.caller.file, one.call.line, f"called by {one.caller.name}")
        yield Draft(*site.place(tree, routine), said, (made, called), given)
        break


def _plain(stream: str) -> str:
    return re.sub(r"\.stream\(\)\Z", "", stream.strip())


def _own_streams(tree: CheckedTree, routine: Routine) -> dict[str, int]:
    """Streams from a pool or newly made in a routine, or in a function that returns them, with the line."""
    out: dict[str, int] = {}
    for one in routine.walk():
        for declared in one.declares:
            if declared.value and (_POOL.search(declared.value) or _returned(tree, routine, one)):
                out[declared.name] = declared.line
        for assigned in one.assigns:
            if _POOL.search(assigned.value):
                out[assigned.target] = assigned.line
        for call in one.calls:
            if _MAKES.match(call.simple) and call.arguments:
                out[call.arguments[0].strip("& ")] = call.line
    return out


def _returned(tree: CheckedTree, routine: Routine, one: Statement) -> bool:
    """Whether a statement makes a variable of what a function of the source takes from a pool and returns."""
    called = one.calls[0] if len(one.calls) == 1 and len(one.declares) == 1 else None
    if called is None or called.receiver is not None or "tream" not in called.name + one.declares[0].name:
        return False
    made = [held.text for target in tree.targets(routine, called) for held in target.walk() if held.kind == "return"]
    return bool(made) and all(map(_POOL.search, made))


def _joined(routine: Routine, line: int) -> bool:
    """Whether something after a line waits for a stream or an event."""
    return any(call.line >= line and _JOINS.match(call.simple) for one in routine.walk() for call in one.calls)


RULE = Rule("stream-pool", "warning", _run, spread="up")
