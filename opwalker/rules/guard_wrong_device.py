"""A guard made from a tensor that may be on the CPU, or from another one than the kernel writes.

*Why.* Lookup tables, lengths and scales often stay on the host. A guard from such a tensor leaves the current device
as it was, and the launch goes there.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void swap_kernel(float* dst, const float* src) { dst[threadIdx.x] = src[threadIdx.x]; }
void swap(torch::Tensor& dst, const torch::Tensor& src, const torch::Tensor& mapping, cudaStream_t stream) {
  TORCH_CHECK(mapping.device().is_cpu(), "mapping stays on the host");
  const c10::cuda::CUDAGuard guard(mapping.device());  // flagged
  swap_kernel<<<1, 32, 0, stream>>>(dst.data_ptr<float>(), src.data_ptr<float>());
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void swap_kernel(float* dst, const float* src) { dst[threadIdx.x] = src[threadIdx.x]; }
void swap(torch::Tensor& dst, const torch::Tensor& src, const torch::Tensor& mapping, cudaStream_t stream) {
  TORCH_CHECK(mapping.device().is_cpu(), "mapping stays on the host");
  const c10::cuda::CUDAGuard guard(dst.device());
  swap_kernel<<<1, 32, 0, stream>>>(dst.data_ptr<float>(), src.data_ptr<float>());
}
void either(torch::Tensor& dst, const torch::Tensor& src, cudaStream_t stream) {
  if (dst.is_cuda()) {
    TORCH_CHECK(src.is_cuda(), "both on the device");
  } else {
    TORCH_CHECK(dst.device().is_cpu(), "on the host");
  }
  const at::DeviceGuard guard(dst.device());
}
```

*Use instead.* The device of a tensor that the kernel writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement
from opwalker.rules._guards import is_guard
from opwalker.rules._launches import locals_of, points, sites
from opwalker.rules._tensors import pointers, tensor_parameters

_OF = re.compile(r"(?:device_of\s*\(\s*)?\b(\w+)\s*(?:(?:\.|->)\s*(?:get_device\w*|device)\b|\))")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        tensors = set(tensor_parameters(routine))
        if not tensors or routine.on_device:
            continue
        for point in points(routine.statements):
            one = point.statement
            for declared in one.declares:
                found = _OF.search(declared.value or "") if is_guard(declared.type, tree.settings.guards) else None
                on_host = _on_host((*point.before, *point.after), tensors) if found else {}
                if found and found[1] in tensors and found[1] not in on_host:
                    other = _other(tree, routine, found[1])
                    if other is not None:
                        said = f"{declared.name} guards the device of {found[1]}, of which no kernel takes anything"
                        related = (Related(routine.file, other[1], f"{other[0]} is launched on other tensors"),)
                        yield Draft(routine.file, declared.line, said, related, found[1])
                if found and found[1] in on_host:
                    related = (Related(routine.file, on_host[found[1]], f"{found[1]} is on the host"),)
                    said = f"{declared.name} guards the device of {found[1]}, which is on the host"
                    yield Draft(routine.file, declared.line, said, related, found[1])


#: What is asked of a tensor without use of its data.
_ASKED = (
    r"(?:\.|->)(?:device|get_device\w*|size|sizes|dim|numel|stride|strides|"
    r"scalar_type|dtype|is_\w+|defined|element_size|nbytes)\b"
)


def _other(tree: CheckedTree, routine: Routine, tensor: str) -> tuple[str, int] | None:
    """``(kernel, line)`` of the first launch of a routine, or of what it calls with other tensors, where it takes no
    data of a tensor at all, makes nothing beside it, and does not compare its device."""
    used = re.compile(rf"\b{re.escape(tensor)}\b(?!\s*{_ASKED})")
    for one in routine.walk():
        if any(is_guard(d.type, tree.settings.guards) for d in one.declares):
            continue
        checked = any(re.search(r"CHECK|ASSERT", call.simple) for call in one.calls)
        if used.search(one.text) or (
            checked and re.search(rf"\b{re.escape(tensor)}\s*(?:\.|->)\s*(?:device|get_device)", one.text)
        ):
            return None
    for site in sites(routine):
        if any(pointers(site.arguments, locals_of(site))):
            return site.name, site.line
    for one in routine.walk():
        for call in one.calls:
            for target in tree.targets(routine, call) if call.receiver is None else ():
                launched = next(sites(target), None)
                if launched is not None and tensor_parameters(target):
                    return launched.name, call.line
    return None


def _on_host(around: Iterable[Statement], tensors: set[str]) -> dict[str, int]:
    """Tensors that a check demands on the CPU, whichever way is taken."""
    out: dict[str, int] = {}
    plain = (part for one in around for part in (one.walk() if one.kind in ("do", "block") else (one,)))
    for one in plain:
        for call in one.calls:
            if not re.search(r"CHECK|ASSERT", call.simple) or not call.arguments:
                continue
            for name in tensors:
                if re.search(
                    rf"\b{re.escape(name)}\b[\w.()>-]*(?:is_cpu\(\)|device\(\)(?:\.type\(\))?\s*==\s*[\w:]*(?:kCPU|CPU))",
                    call.arguments[0],
                ):
                    if not call.arguments[0].lstrip().startswith("!"):
                        out.setdefault(name, call.line)
    return out


RULE = Rule("guard-wrong-device", "warning", _run, spread="own")
