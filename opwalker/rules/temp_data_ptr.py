"""A data pointer of a tensor that is gone when the pointer is used.

*Why.* `x.contiguous().data_ptr()` points into a copy that lives to the end of the statement. A launch goes on after
it: the kernel reads memory that was given back.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* y, const float* x) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
void twice(torch::Tensor& y, const torch::Tensor& x, cudaStream_t stream) {
  twice_kernel<<<1, 32, 0, stream>>>(y.data_ptr<float>(), x.contiguous().data_ptr<float>());  // flagged
  float* p = x.to(torch::kFloat32).data_ptr<float>();  // flagged
  twice_kernel<<<1, 32, 0, stream>>>(y.data_ptr<float>(), p);
  float* q = torch::empty_like(y, x.options()).data_ptr<float>();  // flagged
}
struct Given { const float* x; float sum; };
void fill(Given& given, const torch::Tensor& x) {
  given.x = x.contiguous().data_ptr<float>();  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* y, const float* x) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
void use(const float* p);
void twice(torch::Tensor& y, const torch::Tensor& x, cudaStream_t stream) {
  const auto dense = x.contiguous();
  twice_kernel<<<1, 32, 0, stream>>>(y.data_ptr<float>(), dense.data_ptr<float>());
  twice_kernel<<<1, 32, 0, stream>>>(y.data_ptr<float>(), x.view({-1}).data_ptr<float>());
  twice_kernel<<<1, 32, 0, stream>>>(y.data_ptr<float>(), x.select(0, 1).data_ptr<float>());
  use(x.contiguous().data_ptr<float>());
  float first = 0;
  first = x.cpu().data_ptr<float>()[0];
  first += *x.cpu().data_ptr<float>();
}
```

*Use instead.* A named tensor that lives until the work is on the stream. (The caching allocator hands memory out again
on the same stream in order, which hides the fault until another stream takes it.)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.notation.cpp_expression import parse_expression
from opwalker.rules._launches import sites
from opwalker.rules._tensors import POINTER

#: What returns a new tensor; a view keeps the storage alive through the tensor that it is taken of.
_COPIES = re.compile(
    r"(?:\.|->)(?:contiguous|to|clone|float|half|bfloat16|cuda|cpu|toType|type|neg|add|mul|sub|div|sum|mean|abs|exp|cat|repeat|"
    r"index_select|masked_select|flip|sort|cumsum)\((?:[^()]|\([^()]*\))*\)\Z"
)

#: The data pointer of a tensor that is made where it is taken.
_MADE = re.compile(
    r"((?:(?:at|torch|aten|native)::)+(?!from_blob|\w*(?:view|narrow|select|slice|squeeze|transpose|permute|reshape|flatten|"
    r"detach|alias|expand|diagonal|unbind|chunk|split)\w*\()\w+"
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))\s*\.\s*(?:template\s+)?(?:mutable_|const_)?data_ptr\b"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device:
            continue
        for site in sites(routine):
            for argument in site.arguments:
                copy = _copied(argument)
                if copy is not None:
                    file, line = site.place(tree, routine)
                    said = f"{site.name} is given a pointer into `{copy}`, a copy that is gone when the kernel runs"
                    yield Draft(file, line, said, symbol=copy.split(".")[0].split("-")[0])
        for one in routine.walk():
            for assigned in one.assigns:
                copy = _copied(assigned.value) if assigned.operator == "=" and one.macro is None else None
                if copy is not None and _is_pointer(assigned.value):
                    said = f"{assigned.target} points into `{copy}`, a copy that is gone after this statement"
                    yield Draft(routine.file, assigned.line, said, symbol=assigned.target)
            copy = _copied(one.text) if one.kind == "return" and one.macro is None else None
            if copy is not None and _is_pointer(one.text):
                said = f"{routine.name} returns a pointer into `{copy}`, a copy that is gone then"
                yield Draft(routine.file, one.line, said, symbol=copy.split(".")[0].split("-")[0])
            for declared in one.declares:
                pointer = "*" in declared.type or ("auto" in declared.type and _is_pointer(declared.value or ""))
                copy = _copied(declared.value or "") if pointer else None
                if copy is not None and (one.macro is None or not one.macro.known):
                    said = f"{declared.name} points into `{copy}`, a copy that is gone after this statement"
                    file, line = routine.file, declared.line
                    if one.macro is not None:
                        file, line = tree.place(one.macro)
                    yield Draft(file, line, said, symbol=declared.name)


#: The sum, or another result, of tensors.
_RESULT = re.compile(
    r"(\(\s*[A-Za-z_][\w.]*\s[-+*/]\s[\w.]+\s*\))\s*\.\s*(?:template\s+)?(?:mutable_|const_)?data_ptr\b"
)


def _is_pointer(value: str) -> bool:
    """Whether a value is the data pointer that it takes, cast or moved on: what a function makes of one may be
    anything."""
    found = [parse_expression(value.strip().removeprefix("=").strip())]
    while found:
        one = found.pop()
        if one.kind == "call" and one.parts and re.search(r"data_ptr(?:<.*>)?\Z", one.parts[0].text):
            return True
        if one.kind == "cast":
            found.append(one.parts[-1])
        elif one.kind in ("binary", "braces", "paren", "ternary"):
            found += one.parts
    return False


def _copied(text: str) -> str | None:
    """The copy, or the new tensor, whose data pointer a text takes; None where it takes none."""
    made = _MADE.search(text) or _RESULT.search(text)
    if made is not None:
        return made[1]
    found = POINTER.search(text)
    if found is None or not _COPIES.search(found["way"]):
        return None
    return found["name"] + found["way"]


RULE = Rule("temp-data-ptr", "error", _run, spread="own")
