"""A kernel attribute that is set once in a process, though it belongs to a device.

*Why.* `cudaFuncSetAttribute` speaks of the function on the current device. Behind a static flag it is set for the
first GPU alone: launches on the second fail.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void tile_kernel(float* x) { x[threadIdx.x] *= 2; }
void run(float* x, cudaStream_t stream) {
  static bool ready = false;
  if (!ready) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304));  // flagged
    ready = true;
  }
}
void once(float* x) {
  static std::once_flag flag;
  std::call_once(flag, [&] {
    cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304);  // flagged
  });
}
static std::once_flag of_the_file;
void once_in_the_file() {
  std::call_once(of_the_file, [] {
    C10_CUDA_CHECK(cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304));  // flagged
  });
}
void swapped() {
  static std::atomic<bool> ready{false};
  if (!ready.exchange(true)) {
    cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304);  // flagged
  }
}
void initialised() {
  auto what = cudaFuncAttributeMaxDynamicSharedMemorySize;
  static const cudaError_t set = cudaFuncSetAttribute(tile_kernel, what, 98304);  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void tile_kernel(float* x) { x[threadIdx.x] *= 2; }
void run(float* x, int device, cudaStream_t stream) {
  static bool ready[64] = {};
  if (!ready[device]) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304));
    ready[device] = true;
  }
  C10_CUDA_CHECK(cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304));
}
static std::once_flag of_each[64];
void once_for_each(int device) {
  std::call_once(of_each[device], [] {
    cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304);
  });
}
void each(float* x, int wanted) {
  static int most = 0;
  if (most == 0) most = wanted;
  if (most >= 98304) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304));
  }
}
```

*Use instead.* The call before every launch (it is cheap), or a flag for each device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement
from opwalker.rules._launches import Point, points

_SETS = re.compile(r"(?:cuda|hip|cu)FuncSet(?:Attribute|CacheConfig|SharedMemConfig)\Z")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device:
            continue
        yield from _through(tree, routine)
        if not any(_SETS.match(c.simple) for one in routine.walk() for c in one.calls):
            continue
        statics = {d.name: d for one in routine.walk() for d in one.declares if d.static}
        for point in points(routine.statements):
            for call in point.statement.calls:
                if not _SETS.match(call.simple):
                    continue
                flag = _flag(point, statics)
                if flag is None:
                    continue
                file, line, at = routine.file, call.line, statics.get(flag)
                if call.macro is not None and not call.macro.known:
                    file, line = tree.place(call.macro)
                yield Draft(
                    file,
                    line,
                    f"{call.simple} runs once in the process, under {flag}, and holds for one device alone",
                    (Related(routine.file, at.line, f"{flag} lives as long as the program"),) if at is not None else (),
                    call.simple,
                )


def _through(tree: CheckedTree, routine: Routine) -> Iterator[Draft]:
    """The same where a function that is called for it makes the call."""
    statics = {d.name: d for one in routine.walk() for d in one.declares if d.static}
    once = any(call.simple == "call_once" for one in routine.walk() for call in one.calls)
    for point in points(routine.statements) if statics or once else ():
        for call in point.statement.calls:
            flag = _flag(point, statics) if not _SETS.match(call.simple) and call.simple != "call_once" else None
            for target in tree.targets(routine, call) if flag is not None else ():
                for made in (made for one in target.statements for made in one.calls if _SETS.match(made.simple)):
                    said = f"{made.simple} runs once in the process, under {flag}, and holds for one device alone"
                    at = Related(routine.file, call.line, f"{target.name} is called under {flag}")
                    yield Draft(target.file, made.line, said, (at,), made.simple)


def _flag(point: Point, statics: dict) -> str | None:
    """The static that keeps a statement from running again, where it is not indexed."""
    for one in point.statement.declares:
        if one.static:
            return one.name
    for around in point.around:
        text = around.text if around.kind == "if" else ""
        once = next((c.arguments[0].strip() for c in around.calls if c.simple == "call_once" and c.arguments), "")
        if re.fullmatch(r"\w+", once):
            return once  # of this function or of the file: not one for each device
        if any(one.static for one in around.declares):
            return next(one.name for one in around.declares if one.static)
        for name in statics:
            if re.search(rf"\b{re.escape(name)}\b(?!\s*(?:\[|\.\s*(?:find|count|contains|at|insert)|\())", text):
                # A value that is remembered is no flag: nothing in the branch keeps it from being entered.
                if around.kind != "if" or "once" in statics[name].type or name in _changed(around):
                    return name
    return None


def _changed(around: Statement) -> set[str]:
    """What is assigned below a statement, or has a method called."""
    names = {assigned.target.strip() for held in around.walk() for assigned in held.assigns}
    return names | {(call.receiver or "").strip() for held in around.walk() for call in held.calls}


RULE = Rule("smem-optin-per-device", "warning", _run, spread="down")
