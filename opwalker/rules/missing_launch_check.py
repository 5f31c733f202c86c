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
void as_hip_spells_it(float* x, hipStream_t stream) {
  hipLaunchKernelGGL((twice_kernel), dim3(1), dim3(32), 0, stream, x);  // flagged
}
void each(torch::Tensor& x, cudaStream_t stream) {
  auto launch = [&](int blocks) {
    twice_kernel<<<blocks, 32, 0, stream>>>(x.data_ptr<float>());  // flagged
  };
  for_each_width(launch);
  TORCH_CHECK(x.dim() == 2, "rows and columns");
}
#define LAUNCH_TWICE(x) twice_kernel<<<1, 32, 0, stream>>>(x);  // flagged
void thrice(float* x, cudaStream_t stream) {
  LAUNCH_TWICE(x)
  LAUNCH_TWICE(x)
}
#define LAUNCH(name, n) \\
  name<<<n, 32, 0, stream>>>(x);  // flagged
#define EITHER(n) \\
  if (n > 4) { \\
    LAUNCH(twice_kernel, n); \\
  } else { \\
    LAUNCH(twice_kernel, 4); \\
  }
void either(float* x, int n, cudaStream_t stream) { EITHER(n) }
void local(float* x, int n, cudaStream_t stream) {
  auto launch = [&](int blocks) {
    twice_kernel<<<blocks, 32, 0, stream>>>(x);  // flagged
  };
  launch(n);
  cudaGetLastError();
  launch(n + 1);
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
  nvtxRangePop();
  AT_CUDA_CHECK(cudaGetLastError());
  if (x.numel() > 1) {
    twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  } else {
    twice_kernel<<<2, 32, 0, stream>>>(x.data_ptr<float>());
  }
  cudaError_t error = cudaPeekAtLastError();
  auto launch = [&](int blocks) { twice_kernel<<<blocks, 32, 0, stream>>>(x.data_ptr<float>()); };
  switch (x.dim()) {
    case 1: launch(1); break;
    default: twice_kernel<<<2, 32, 0, stream>>>(x.data_ptr<float>()); break;
  }
  TORCH_CHECK(cudaGetLastError() == cudaSuccess);
}
#define KIT_CUDA_CHECK(call) \\
  [&] { \\
    cudaError_t error = call; \\
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error)); \\
  }();
#define KIT_CHECK(cond, what) if (!(cond)) { throw std::runtime_error(what); }
void own_check(float* x, int n, cudaStream_t stream) {
  bool found = false;
  auto launch = [&](int blocks) {
    found = true;
    twice_kernel<<<blocks, 32, 0, stream>>>(x);
  };
  if (n == 1) {
    launch(n);
  }
  KIT_CHECK(found, "no kernel");
  KIT_CUDA_CHECK(cudaGetLastError());
}
#define PICK(flag, ...) \\
  [&] { \\
    if (flag) { constexpr bool FLAG = true; return [&] __VA_ARGS__(); } \\
    constexpr bool FLAG = false; \\
    return [&] __VA_ARGS__(); \\
  }()
void dispatched(torch::Tensor& x, bool flag, cudaStream_t stream) {
  if (flag) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", ([&] {
      if (x.dim() == 1) {
        twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
        return;
      }
      twice_kernel<<<2, 32, 0, stream>>>(x.data_ptr<float>());
    }));
  } else {
    PICK(x.dim() == 1, { twice_kernel<<<FLAG, 32, 0, stream>>>(x.data_ptr<float>()); });
  }
  C10_CUDA_CHECK(cudaGetLastError());
}
void ask(const char* what) { TORCH_CHECK(cudaGetLastError() == cudaSuccess, what); }
void each(torch::Tensor& x, int n, cudaStream_t stream) {
  bool found = false;
  auto launch = [&](auto width) {
    found = true;
    twice_kernel<<<width.value, 32, 0, stream>>>(x.data_ptr<float>());
  };
  auto of = [&](auto width) {
    if (width.value == n) launch(width);
  };
  of(std::integral_constant<int, 1>());
  of(std::integral_constant<int, 2>());
  TORCH_CHECK(found, "no kernel");
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void handed(torch::Tensor& x, cudaStream_t stream) {
  auto launch = [&](int blocks) { twice_kernel<<<blocks, 32, 0, stream>>>(x.data_ptr<float>()); };
  for_each_width(launch);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void inner(float* x, cudaStream_t stream) { twice_kernel<<<1, 32, 0, stream>>>(x); }
void outer(torch::Tensor& x, cudaStream_t stream) {
  if (x.dim() == 2) {
    inner(x.data_ptr<float>(), stream);
  }
  ask("twice");
}
```

Of several launches in a row with one check behind them, those before the last are told as `info`: the error is found,
and put down to the wrong kernel.

*Use instead.* `C10_CUDA_KERNEL_LAUNCH_CHECK()` (or the project's own check, named under `launch-checks` in the
settings) directly behind each launch. A launch in a macro is reported once, at the macro.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import MacroUse, Routine, Statement
from opwalker.rules._asked import Asked

#: The one launch by a call that has no status to return.
_VOID = "hipLaunchKernelGGL"


def _run(tree: CheckedTree) -> Iterator[Draft]:
    asked = Asked(tree)
    for routine in tree.routines:
        if routine.on_device:
            continue
        for one in routine.walk():
            void = [call for call in one.calls if call.simple == _VOID and call.arguments]
            if not (one.launches or void) or asked.at(routine, one) or asked.behind(routine, one):
                continue
            shared = asked.shared(routine, one)
            for launch in one.launches:
                yield _draft(tree, routine, launch.kernel, launch.line, launch.macro, shared)
            for call in void:
                yield _draft(tree, routine, call.arguments[0].strip("( )"), call.line, call.macro, shared)


def _draft(
    tree: CheckedTree, routine: Routine, launched: str, line: int, macro: MacroUse | None, shared: Statement | None
) -> Draft:
    kernel = launched.split("<", 1)[0].rsplit("::", 1)[-1]
    message = f"the launch of {kernel} is not followed by a check for its error"
    if macro is not None and not macro.known:
        return Draft(*tree.place(macro), message, symbol=kernel)
    if shared is None:
        return Draft(routine.file, line, message, symbol=kernel)
    message = f"the launch of {kernel} has no check of its own: the one behind the launches cannot tell which failed"
    related = (Related(routine.file, shared.line, "their one check"),)
    return Draft(routine.file, line, message, related, kernel, "info")


RULE = Rule("missing-launch-check", "warning", _run, spread="own")
