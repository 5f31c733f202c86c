"""Rows counted over all leading dimensions, and stepped over by the stride of one.

*Why.* With two dimensions both agree. With three the address of a row is wrong unless the leading dimensions lie
dense.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void norm_kernel(float* y, const float* x, int64_t pitch, int64_t d) { y[0] = x[blockIdx.x * pitch]; }
void norm(torch::Tensor& y, const torch::Tensor& x, cudaStream_t stream) {
  const int64_t d = x.size(-1);
  const int64_t rows = x.numel() / d;
  const int64_t pitch = x.stride(0);  // flagged
  norm_kernel<<<rows, 32, 0, stream>>>(y.data_ptr<float>(), x.data_ptr<float>(), pitch, d);
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void norm_kernel(float* y, const float* x, int64_t pitch, int64_t d) { y[0] = x[blockIdx.x * pitch]; }
void norm(torch::Tensor& y, const torch::Tensor& x, cudaStream_t stream) {
  TORCH_CHECK(x.dim() == 2, "two dimensions");
  const int64_t d = x.size(-1);
  const int64_t rows = x.numel() / d;
  const int64_t pitch = x.stride(0);
  norm_kernel<<<rows, 32, 0, stream>>>(y.data_ptr<float>(), x.data_ptr<float>(), pitch, d);
}
void rows(torch::Tensor& y, const torch::Tensor& x, cudaStream_t stream) {
  norm_kernel<<<x.size(0), 32, 0, stream>>>(y.data_ptr<float>(), x.data_ptr<float>(), x.stride(0), x.size(1));
}
void flat(torch::Tensor& y, const torch::Tensor& x0, cudaStream_t stream) {
  auto x = x0.view({-1, x0.size(-1)});
  const int64_t rows = x.numel() / x.size(-1);
  norm_kernel<<<rows, 32, 0, stream>>>(y.data_ptr<float>(), x.data_ptr<float>(), x.stride(0), x.size(1));
}
```

*Use instead.* A check of the rank, a check that the leading dimensions are dense, or a stride for each dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.rules._tensors import questions, tensor_parameters

_PITCH = r"\b{name}\s*(?:\.|->)\s*stride\s*\(\s*(?:0|-2)\s*\)"


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device:
            continue
        for tensor in tensor_parameters(routine):
            counted = _rows(routine, tensor)
            # Of a product of sizes the rank is known, and wrong for one pitch: then the layout alone may make it right.
            product = _product(routine, tensor) if counted is None else None
            counted_at = counted if counted is not None else product
            if counted_at is None:
                continue
            pitch = re.compile(_PITCH.format(name=re.escape(tensor)))
            for one in routine.walk():
                if pitch.search(one.text) and not _is_question(one.text):
                    if not (_rank_known(routine, tensor) if product is None else _pitched(routine, tensor)):
                        yield Draft(
                            routine.file,
                            one.line,
                            f"rows of {tensor} are counted over all leading dimensions, and this is the stride of one",
                            (Related(routine.file, counted_at, "the rows are counted here"),),
                            tensor,
                        )
                    break


def _rows(routine: Routine, tensor: str) -> int | None:
    """The line on which the rows over all leading dimensions are counted."""
    name = re.escape(tensor)
    sizes = {
        d.name
        for one in routine.walk()
        for d in one.declares
        if d.value
        and re.search(
            rf"\b{name}\s*(?:\.|->)\s*size\s*\(\s*-1\s*\)|\b{name}\s*(?:\.|->)\s*size\(\s*\w+\.dim\(\) - 1", d.value
        )
    }
    last = "|".join([rf"{name}\s*(?:\.|->)\s*size\s*\(\s*-1\s*\)", *map(re.escape, sorted(sizes))])
    counted = re.compile(
        rf"\b{name}\s*(?:\.|->)\s*numel\s*\(\s*\)\s*/\s*(?:\(\s*)?(?:{last})\b|\b{name}\s*(?:\.|->)\s*numel\s*\(\s*\)\s*/\s*(?:{last})"
    )
    direct = next((one.line for one in routine.walk() if counted.search(one.text)), None)
    if direct is not None:
        return direct
    # A loop over the leading dimensions.
    for one in routine.walk():
        if one.kind == "for" and re.search(
            rf"\b{name}\s*(?:\.|->)\s*(?:dim|ndimension)\s*\(\)\s*-\s*1|\+\s*1\s*<\s*{name}\s*(?:\.|->)\s*dim", one.text
        ):
            for held in one.walk():
                for assigned in held.assigns:
                    if assigned.operator == "*=" and re.match(rf"{name}\s*(?:\.|->)\s*sizes?\b", assigned.value):
                        return assigned.line
    return None


def _product(routine: Routine, tensor: str) -> int | None:
    """The line on which rows are counted as the first two sizes of a tensor."""
    size = rf"\b{re.escape(tensor)}\s*(?:\.|->)\s*size\s*\(\s*{{}}\s*\)"
    both = re.compile(rf"=?\s*{size.format(0)} \* {size.format(1)}")
    return next(
        (d.line for one in routine.walk() for d in one.declares if d.value and both.fullmatch(d.value.strip())), None
    )


def _pitched(routine: Routine, tensor: str) -> bool:
    """Whether a routine asks for the stride of another dimension than the first, or for the whole layout."""
    asked = re.compile(
        rf"\b{re.escape(tensor)}\s*(?:\.|->)\s*(?:is_contiguous|strides|stride\s*\(\s*(?!0\s*\)|-1\s*\)|-2\s*\)))"
    )
    return any(asked.search(one.text) for one in routine.walk())


def _is_question(text: str) -> bool:
    return bool(re.match(r"\w*(?:CHECK|ASSERT)\w*\s*\(", text))


def _rank_known(routine: Routine, tensor: str) -> bool:
    name = re.escape(tensor)
    asked = re.compile(rf"\b{name}\s*(?:\.|->)\s*(?:dim|ndimension|is_contiguous|sizes)\s*\(\s*\)")
    if any(asked.search(text) for text, _, _ in questions(routine.walk())):
        return True
    ranks = {
        d.name
        for one in routine.walk()
        for d in one.declares
        if d.value and re.search(rf"\b{name}\s*(?:\.|->)\s*dim\(\)", d.value)
    }
    return any(
        re.search(rf"\b{re.escape(rank)}\b", one.text)
        for rank in ranks
        for one in routine.walk()
        if one.kind != "declaration"
    )


RULE = Rule("stride-rank-assumption", "warning", _run, spread="own")
