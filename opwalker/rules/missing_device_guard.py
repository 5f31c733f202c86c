"""A launch that is reached without a guard for the device of its tensors.

*Why.* A launch goes to the current device. Called with tensors of a second GPU, the kernel faults there, or reads and
writes nothing of them and returns zeros.

*Flagged*

```cuda
#include <torch/library.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void twice(torch::Tensor& x) {
  auto stream = at::cuda::getCurrentCUDAStream();
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());  // flagged
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
}
void launch(float* x, cudaStream_t stream) {
  twice_kernel<<<1, 32, 0, stream>>>(x);  // flagged
}
void thrice(torch::Tensor& x) { launch(x.data_ptr<float>(), at::cuda::getCurrentCUDAStream()); }
void late(torch::Tensor& x) {
  auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "late", [&] {
    twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());  // flagged
  });
  const c10::cuda::CUDAGuard guard(x.device());
}
extern "C" void pointers(float* x, cudaStream_t stream) {
  twice_kernel<<<1, 32, 0, stream>>>(x);  // flagged
}
void copied(torch::Tensor& x, const torch::Tensor& y) {
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  cudaMemcpyAsync(x.data_ptr(), y.data_ptr(), y.nbytes(), cudaMemcpyDeviceToDevice, stream);  // flagged
  cudaMemsetAsync(x.data_ptr(), 0, 4, stream);
}
void dropped(torch::Tensor& x, bool there) {
  if (there) {
    c10::cuda::CUDAGuard device_guard(x.device());
  }
  twice_kernel<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>());  // flagged
}
void fourth(torch::Tensor& x) { pointers(x.data_ptr<float>(), at::cuda::getCurrentCUDAStream()); }
TORCH_LIBRARY(kit, m) { m.def("thrice(Tensor! x) -> ()"); }
TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("thrice", &thrice); }
struct Hub {
  cudaStream_t stream;
  void twice(torch::Tensor& x) { twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>()); }  // flagged
};
PYBIND11_MODULE(hub, m) { py::class_<Hub>(m, "Hub").def("twice", &Hub::twice); }
```

*Clean*

```cuda
#include <torch/library.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void launch(float* x, cudaStream_t stream) { twice_kernel<<<1, 32, 0, stream>>>(x); }
void twice(torch::Tensor& x) {
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] {
    launch(x.data_ptr<float>(), at::cuda::getCurrentCUDAStream());
  });
}
void copied(torch::Tensor& x, const torch::Tensor& y, cudaStream_t given) {
  cudaMemcpyAsync(x.data_ptr(), y.data_ptr(), y.nbytes(), cudaMemcpyDeviceToDevice, given);
  auto its = at::cuda::getCurrentCUDAStream(x.get_device());
  cudaMemcpyAsync(x.data_ptr(), y.data_ptr(), y.nbytes(), cudaMemcpyDeviceToDevice, its);
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  auto stream = at::cuda::getCurrentCUDAStream();
  cudaMemcpyAsync(x.data_ptr(), y.data_ptr(), y.nbytes(), cudaMemcpyDeviceToDevice, stream);
}
void listed(const torch::Tensor& from, const torch::Tensor& to) {
  TORCH_CHECK(from.device().is_cpu() && to.device().is_cpu());
  auto stream = at::cuda::getCurrentCUDAStream();
  cudaMemcpyAsync((void*)to.data_ptr<int64_t>()[0], (void*)from.data_ptr<int64_t>()[0], 64, cudaMemcpyDefault, stream);
}
void by_hand(torch::Tensor& x, cudaStream_t stream) {
  cudaSetDevice(x.get_device());
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
}
void raw(float* x, cudaStream_t stream) { twice_kernel<<<1, 32, 0, stream>>>(x); }
template <bool kIsMeta>
void optional(torch::Tensor& x) {
  std::optional<c10::cuda::CUDAGuard> device_guard;
  if (!kIsMeta) {
    device_guard.emplace(x.device());
  }
  if (!kIsMeta) {
    twice_kernel<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>());
  }
}
struct Hub {
  float* flags;
  cudaStream_t stream;
  void clear(int rank) { twice_kernel<<<1, 32, 0, stream>>>(flags); }
};
void start(int64_t address, int64_t size, at::ScalarType type, cudaStream_t stream) {
  twice_kernel<<<1, 32, 0, stream>>>(reinterpret_cast<float*>(address));
}
void start_here(int64_t address, int64_t size, at::ScalarType type) {
  start(address, size, type, at::cuda::getCurrentCUDAStream());
}
using address_t = int64_t;
void start_all(const std::vector<address_t>& addresses, int rank) {
  start(addresses[rank], 32, at::kFloat, at::cuda::getCurrentCUDAStream());
}
PYBIND11_MODULE(kit, m) {
  py::class_<Hub>(m, "Hub").def("clear", &Hub::clear);
  m.def("start_all", &start_all);
  m.def("start", &start_here);
}
extern "C" void pointers(float* x, cudaStream_t stream) { twice_kernel<<<1, 32, 0, stream>>>(x); }
void guarded(torch::Tensor& x) {
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  pointers(x.data_ptr<float>(), at::cuda::getCurrentCUDAStream());
}
```

```cuda functor.cu
#include <torch/all.h>
__global__ void third_kernel(float* x) { x[threadIdx.x] /= 3; }
struct Third {
  void operator()(torch::Tensor& x, cudaStream_t stream) { third_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>()); }
};
void third(torch::Tensor& x) {
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  Third work;
  work(x, at::cuda::getCurrentCUDAStream());
}
```

```cuda library.cuh
struct Tensor { void* data; };
template <typename T> __global__ void half_kernel(T* x) { x[threadIdx.x] /= 2; }
template <typename T>
void half(const Tensor& x, cudaStream_t stream) { half_kernel<T><<<1, 32, 0, stream>>>((T*)x.data); }
```

*Use instead.* `const c10::cuda::CUDAGuard guard(x.device());` (or the stable ABI's `DeviceGuard`) at the start of the
function that the op is bound to. A guard in every caller is as good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CallSite, CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.rules._guards import guards_of, sets_device
from opwalker.rules._launches import Point, Site, locals_of_point, points, roots_first, sites

_NUMBER = re.compile(
    r"(?:const\s+)?(?:std::)?(?:signed|bool|char|short|int|long|unsigned|float|double|size_t|u?int(?:8|16|32|64|ptr)_t|string|"
    r"DLDataType|(?:\w+::)*(?:ScalarType|dtype|Dtype|DataType)|\s)+"
    r"(?:const)?\s*&?"
)

_COPIES = re.compile(r"(?:cuda|hip)(?:Memcpy|Memset)\w*Async\Z")
#: The current stream of the device that is current, none named.
_CURRENT = re.compile(r"\bget_?current_?\w*stream\(\)", re.IGNORECASE)
#: A list of something.
_NUMBERS = re.compile(r"(?:const\s+)?(?:\w+::)*(?:vector|Array|ArrayRef|span)\s*<\s*([^<>]+?)\s*>\s*&?")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    open_ways: dict[tuple[str, int], tuple[Related, ...] | None] = {}
    for routine in tree.routines:
        bare = _launch(tree, routine) or _copy(tree, routine)
        if bare is None:
            continue
        way = _way_in(tree, routine, open_ways, 0)
        if way is None:
            continue
        file, line, does, name = bare
        yield Draft(
            file,
            line,
            f"{routine.name} {does} {name} with no guard for the device of its tensors",
            (Related(routine.file, routine.line, f"in {routine.name}"), *way),
            name,
            op=next(iter(tree.ops_of(routine)), None),
        )


def _launch(tree: CheckedTree, routine: Routine) -> tuple[str, int, str, str] | None:
    """``(file, line, what is done, to what)`` of the first launch with no guard alive."""
    site = next((site for site in sites(routine) if not _guarded(tree, site)), None)
    return (*site.place(tree, routine), "launches", site.name) if site is not None else None


def _guarded(tree: CheckedTree, site: Site | Point) -> bool:
    return any(sets_device(one, guards_of(tree)) for one in (*site.before, *site.around))


def _copy(tree: CheckedTree, routine: Routine) -> tuple[str, int, str, str] | None:
    """The same of the first copy on the current stream, which is that of the current device. A routine that asks for
    tensors on the host has no tensor to take a device of."""
    calls = [call for one in routine.walk() for call in one.calls]
    if not any(_COPIES.match(call.simple) for call in calls) or any(call.simple == "is_cpu" for call in calls):
        return None
    for point in points(routine.statements):
        for call in point.statement.calls:
            if _COPIES.match(call.simple) and not _guarded(tree, point):
                stream = call.arguments[-1].strip()
                if _CURRENT.search(locals_of_point(point).get(stream, stream)):
                    return routine.file, call.line, "calls", call.simple
    return None


def _way_in(
    tree: CheckedTree, routine: Routine, known: dict[tuple[str, int], tuple[Related, ...] | None], depth: int
) -> tuple[Related, ...] | None:
    """The steps from outside to a routine on which no guard is alive; None where there is no such way."""
    key = (routine.file, routine.line)
    if key not in known:
        known[key] = None
        if roots_first(tree, routine) and _given_data(tree, routine):
            known[key] = ()
        elif depth < 8:
            for site in tree.callers(routine):
                if not _guarded_call(tree, site):
                    above = _way_in(tree, site.caller, known, depth + 1)
                    if above is not None:
                        step = Related(site.caller.file, site.call.line, f"called by {site.caller.name}")
                        known[key] = (step, *above)
                        break
    return known[key]


def _given_data(tree: CheckedTree, routine: Routine) -> bool:
    """Whether a routine is handed anything that lies on a device: with numbers alone, the current one is meant."""
    for one in routine.parameters:
        held = _NUMBERS.fullmatch(one.type)
        kind = held[1] if held else one.type
        if not _NUMBER.fullmatch(kind) and not _NUMBER.fullmatch(tree.type_of(kind, routine)):
            return True
    return False


def _guarded_call(tree: CheckedTree, site: CallSite) -> bool:
    for point in points(site.caller.statements):
        if site.call in point.statement.calls:
            if not any(sets_device(one, guards_of(tree)) for one in (*point.before, *point.around)):
                return False
    return True


RULE = Rule("missing-device-guard", "warning", _run, spread="up")
