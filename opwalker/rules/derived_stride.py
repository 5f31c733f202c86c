"""A stride that is worked out from sizes, of a tensor whose layout nobody checked.

*Why.* `x.size(1) * x.size(2)` is the stride of dimension 0 of a dense tensor alone.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void turn_kernel(float* q, int64_t stride) { q[blockIdx.x * stride] = 0; }
void turn(torch::Tensor& q, cudaStream_t stream) {
  const int64_t row_stride = q.size(1) * q.size(2);  // flagged
  turn_kernel<<<4, 128, 0, stream>>>(q.data_ptr<float>(), row_stride);
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void turn_kernel(float* q, int64_t stride) { q[blockIdx.x * stride] = 0; }
void turn(torch::Tensor& q, cudaStream_t stream) {
  TORCH_CHECK(q.is_contiguous(), "dense");
  const int64_t row_stride = q.size(1) * q.size(2);
  turn_kernel<<<4, 128, 0, stream>>>(q.data_ptr<float>(), row_stride);
}
void asked(torch::Tensor& q, cudaStream_t stream) {
  const int64_t row_stride = q.stride(0);
  const int64_t elements = q.size(1) * q.size(2);
  turn_kernel<<<4, 128, 0, stream>>>(q.data_ptr<float>(), row_stride + elements);
}
```

*Use instead.* `x.stride(0)`, or a check that the tensor is contiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import Routine
from opwalker.rules._ranges import known_values
from opwalker.rules._tensors import contiguous_above, layout_line, tensor_parameters
from opwalker.rules._values import terms_of

_NAMED = re.compile(r"(?i)stride|pitch\Z|\Ald[a-z]?\Z|leading_dim")
_ASKED = re.compile(r"(?:\.|->)(?:sym_)?strides?\s*\(")
_SIZE = re.compile(r"(\w+)(?:\.|->)size\(")
_MEMBER = re.compile(r"\w+(?:(?:\.|->)\w+)+(?:\[[^\[\]]*\])?")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        tensors = set(tensor_parameters(routine))
        if not tensors or routine.on_device:
            continue
        made = [one for one in _made(routine) if _NAMED.search(one[0]) and _is_plain(one[1])]
        known = known_values(routine) if made else {}
        for name, value, line in made:
            terms = terms_of(value, known)
            if any(_ASKED.search(f"{one} {known.get(one, '')}") for one in terms):
                continue
            lists = {one: found[1] for one in terms if (found := _LIST.fullmatch(known.get(one, "").strip()))}
            sized = [found[1] for one in sorted(terms) if (found := _SIZE.match(one))] + sorted(set(lists.values()))
            for tensor in dict.fromkeys(sized):
                if tensor in tensors and layout_line(routine, tensor) is None:
                    if not contiguous_above(tree, routine, tensor):
                        said = f"{name} is worked out from sizes of {tensor}, whose layout is not checked"
                        yield Draft(routine.file, line, said, symbol=name)


#: All sizes of a tensor.
_LIST = re.compile(r"[={(\s]*(\w+)(?:\.|->)sizes\(\)[)}\s]*")


def _is_plain(value: str) -> bool:
    """Whether a value is worked out of sizes alone: what a function makes of them may be anything."""
    plain = re.sub(
        r"(?:\.|->)sizes?\(\)?|\b(?:(?:static_cast\s*<[^<>]*>|u?int(?:32_t|64_t)?|size_t|long)\s*\()", "", value
    )
    return not re.search(r"\w\s*\(|\?", plain)


def _made(routine: Routine) -> Iterator[tuple[str, str, int]]:
    """``(name, value, line)`` of the locals that are handed on, and of the members, that get a value."""
    handed = " ".join(_handed(routine))
    for one in routine.walk():
        for declared in one.declares:
            if declared.value and re.search(rf"\b{re.escape(declared.name)}\b", handed):
                yield declared.name, declared.value, declared.line
        for assigned in one.assigns:
            if assigned.operator == "=" and _MEMBER.fullmatch(assigned.target.strip()):
                yield re.split(r"\.|->|\[", assigned.target.strip())[1], assigned.value, assigned.line


def _handed(routine: Routine) -> Iterator[str]:
    """What leaves a routine's own statements: arguments, values of members and of lists, what it returns."""
    for one in routine.walk():
        yield from (argument for call in one.calls for argument in call.arguments)
        yield from (argument for launch in one.launches for argument in launch.arguments)
        yield from (assigned.value for assigned in one.assigns if _MEMBER.fullmatch(assigned.target.strip()))
        yield from (declared.value or "" for declared in one.declares)
        if one.kind == "return":
            yield one.text


RULE = Rule("derived-stride", "warning", _run, spread="own")
