"""A runtime call whose status nobody reads.

*Why.* The runtime's calls return their error. Dropped, it appears at a later call that has nothing to do with it.

*Flagged*

```cuda
#include <torch/all.h>
void copy(float* y, const float* x, size_t n, cudaStream_t stream) {
  cudaMemcpyAsync(y, x, n, cudaMemcpyDeviceToDevice, stream);  // flagged
  cudaStreamSynchronize(stream);  // flagged
}
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
int blocks_of(float* x, cudaStream_t stream) {
  cudaFuncSetAttribute(twice_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);  // flagged
  twice_kernel<<<1, 32, 65536, stream>>>(x);
  C10_CUDA_CHECK(cudaGetLastError());
  int blocks = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, twice_kernel, 128, 0);  // flagged
  return blocks;
}
void start(const cudaLaunchConfig_t& config, float* x) {
  cudaLaunchKernelEx(&config, twice_kernel, x);  // flagged
}
void grow(float* scratch, int most) {
  if (most > 49152) {
    cudaFree(scratch);  // flagged
    most = 49152;
  }
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
int blocks_of(const void* kernel) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  C10_CUDA_CHECK(cudaGetLastError());
  int blocks = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0);
  if (blocks <= 0) blocks = 1;
  return blocks;
}
struct Owner {
  float* p;
  ~Owner() { cudaFree(p); }
};
torch::Tensor view(const void* from, size_t n) {
  void* held = nullptr;
  C10_CUDA_CHECK(cudaHostAlloc(&held, n, cudaHostAllocMapped));
  if (cudaMemcpy(held, from, n, cudaMemcpyDefault) != cudaSuccess) {
    cudaFreeHost(held);
    TORCH_CHECK(false, "no copy");
  }
  auto deleter = [held](void*) { cudaFreeHost(held); };
  return torch::from_blob(held, {1}, deleter);
}
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void inner(const cudaLaunchConfig_t& config, float* x) { cudaLaunchKernelEx(&config, twice_kernel, x); }
void outer(const cudaLaunchConfig_t& config, float* x) {
  inner(config, x);
  TORCH_CHECK(cudaGetLastError() == cudaSuccess);
  hipLaunchKernelGGL(twice_kernel, dim3(1), dim3(32), 0, config.stream, x);
}
```

*Use instead.* `C10_CUDA_CHECK(...)`, the project's own macro, or `(void)` where the error is of no interest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import CallText, Routine, Statement
from opwalker.rules._asked import Asked
from opwalker.rules._launches import ASKS, Point, points

#: Runtime and driver calls that return a status. Those that cannot fail, or are asked for their answer, are not here.
_CALLS = re.compile(
    r"(?:cuda|hip)(?:Mem(?:cpy|set|Prefetch)\w*|Malloc\w*|Free\w*|HostAlloc|HostRegister|Stream(?:Create|Synchronize|"
    r"WaitEvent|Destroy|BeginCapture|EndCapture)\w*|Event(?:Create|Record|Synchronize|Destroy)\w*|DeviceSynchronize|"
    r"SetDevice|FuncSetAttribute|FuncSetCacheConfig|Ipc\w+|Launch(?!KernelGGL)\w+|Graph\w+|DeviceSetLimit|DeviceEnablePeerAccess|"
    r"OccupancyMax\w+|DeviceGetAttribute|GetDeviceProperties)\Z|cu(?:Mem\w+|Launch\w+|Ctx\w+|Module\w+|TensorMap\w+)\Z"
    # Libraries answer with a status of their own: of what computes, sends, or makes a handle.
    r"|(?:nccl|rccl)(?:All\w+|Reduce\w*|Broadcast|Bcast|Send|Recv|Gather|Scatter|Group\w+|CommInit\w+|MemAlloc|CommRegister)\Z"
    r"|(?:cublas|hipblas|rocblas)(?:Lt)?(?:Create|Gem\w+|Matmul|[SDCHZ](?!et|estroy)\w+)\Z"
)
#: Clean-up is often past caring.
_CLEANS = re.compile(
    r"(?:cuda|hip)(?:Free\w*|StreamDestroy|EventDestroy|GraphDestroy|GraphExecDestroy)\Z|cuMem(?:Free|Unmap|Release)\w*\Z"
)
_QUESTIONS = re.compile(r"OccupancyMax|DeviceGetAttribute")
_ANSWER = re.compile(r"&\s*(\w+)")
_FAILS = re.compile(r"\w*(?:CHECK|ASSERT)\w*\s*\(\s*false\b|\b(?:abort|exit|PyErr_\w+)\s*\(|\w*Error\s*\(")
_ENDS = re.compile(r"(?i)~|free|destroy|release|close|cleanup|finali[sz]e|reset|delete")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    asked = Asked(tree)
    for routine in tree.routines:
        if routine.on_device or not any(_CALLS.match(c.simple) for one in routine.walk() for c in one.calls):
            continue
        deleters = {id(held) for held in _deleters(routine)}
        for point in points(routine.statements):
            one = point.statement
            call = _dropped(routine, one) or _overwritten(one, point.after)
            if call is None or call.receiver is not None or not _CALLS.match(call.simple):
                continue
            if _CLEANS.match(call.simple) and (_ends(routine) or id(one) in deleters or _gives_up(point)):
                continue
            if asked.behind(routine, one):
                continue
            if _asked(point.after) or _answer_tested(routine, call, point.after):
                continue
            file, line = routine.file, call.line
            if call.macro is not None:
                if call.macro.known:
                    continue
                file, line = tree.place(call.macro)
            yield Draft(file, line, f"the error that {call.simple} returns is dropped", symbol=call.simple)


def _dropped(routine: Routine, one: Statement) -> CallText | None:
    """The call whose answer a statement drops: it is nothing else, or it makes a variable that nobody reads."""
    if not one.calls:
        return None
    call = one.calls[0]
    if one.kind == "expression":
        return call if one.text == call.text else None
    made = one.declares[0] if one.kind == "declaration" and len(one.declares) == 1 else None
    if made is None or (made.value or "").strip().removeprefix("=").strip() != call.text:
        return None
    read = re.compile(rf"\b{re.escape(made.name)}\b")
    others = (text for other in routine.walk() if other is not one for text in _texts(other))
    return None if any(map(read.search, others)) else call


def _overwritten(one: Statement, after: Sequence[Statement]) -> CallText | None:
    """The call whose answer the next statement writes over unread."""
    kept = [(d.name, d.value or "") for d in one.declares] + [(a.target.strip(), a.value) for a in one.assigns]
    if len(kept) != 1 or not one.calls or not after or after[0].kind != "expression":
        return None
    (name, value), call = kept[0], one.calls[0]
    if value.strip().removeprefix("=").strip() != call.text or not name.isidentifier():
        return None
    again = [a for a in after[0].assigns if a.target.strip() == name and a.operator == "="]
    read = re.search(rf"(?<![\w.>]){re.escape(name)}\b", again[0].value) if again else True
    return None if read or after[0].line == one.line else call


def _texts(one: Statement) -> Iterator[str]:
    yield from (one.text, one.step)
    yield from (argument for launch in one.launches for argument in launch.arguments)


def _asked(after: Sequence[Statement]) -> bool:
    """Whether the last error is asked for before anything else is launched: it is the dropped one then."""
    for one in after:
        if ASKS.search(one.text):
            return True
        if one.kind not in ("expression", "declaration") or one.launches:
            return False
    return False


def _answer_tested(routine: Routine, call: CallText, after: Sequence[Statement]) -> bool:
    """Whether a question's answer begins as a number that is no answer, and is tested before its use."""
    names = [found[1] for found in map(_ANSWER.fullmatch, call.arguments) if found]
    begins = {d.name for one in routine.walk() for d in one.declares if re.fullmatch(r"=?\s*-?\d+", d.value or "")}
    if not _QUESTIONS.search(call.simple) or not names or names[0] not in begins:
        return False
    for one in after[:3]:
        conditions = [one.text] if one.kind == "if" else [c.arguments[0] for c in one.calls if c.arguments]
        if any(re.search(rf"\b{names[0]}\s*[<>=!]=?\s*-?\d", text) for text in conditions):
            return True
    return False


def _deleters(routine: Routine) -> Iterator[Statement]:
    """The statements of lambdas that do nothing but clean up: a deleter of a pointer or a tensor."""
    for one in routine.walk():
        for held in one.lambdas:
            calls = [call for part in held.body for inner in part.walk() for call in inner.calls]
            if calls and all(_CLEANS.match(call.simple) for call in calls):
                yield from (inner for part in held.body for inner in part.walk())


def _gives_up(point: Point) -> bool:
    """Whether a statement stands in a branch that ends in an error of its own."""
    inner = point.around[-1] if point.around else None
    if inner is None or inner.kind not in ("if", "block", "catch"):
        return False
    last = point.after[-1] if point.after else point.statement
    if last.kind == "throw" or (last.kind == "return" and inner.kind != "block" and last.text):
        return True
    return any(_FAILS.search(call.text) for call in last.calls)


def _ends(routine: Routine) -> bool:
    """Whether a routine takes things down: a destructor, a deleter, a function named for it."""
    return bool(_ENDS.search(routine.name))


RULE = Rule("cuda-error-dropped", "warning", _run, spread="own")
