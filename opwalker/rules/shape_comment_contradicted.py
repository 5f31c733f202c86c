"""A shape comment that the code beside it contradicts.

*Why.* Readers, fakes and tests are written from the comment. A comment that names another rank or another order than
the code uses hides a wrong stride until somebody passes a shape for which the two differ.

*Flagged*

```cpp kit.cpp
#include <torch/library.h>
torch::Tensor fold(const torch::Tensor& q,       // [num_tokens, num_heads, head_size]
                   int64_t num_kv_heads) {       // [num_heads]  // flagged
  return q;
}
TORCH_LIBRARY(kit, m) {
  m.def("fold(Tensor q, int num_kv_heads) -> Tensor");
  m.impl("fold", torch::kCUDA, &fold);
}
```

```cpp marks.cpp
#include <torch/library.h>
torch::Tensor turn(const torch::Tensor& q,       // [num_tokens, num_heads, head_size]  // flagged
                   const torch::Tensor& lens) {  // [batch]  // flagged
  const int num_heads = q.size(2);
  TORCH_CHECK(lens.dim() == 2);
  return q;
}
TORCH_LIBRARY_FRAGMENT(kit, m) {
  m.def("turn(Tensor q, Tensor lens) -> Tensor");
  m.impl("turn", torch::kCUDA, &turn);
}
```

*Clean*

```cpp kit.cpp
#include <torch/library.h>
torch::Tensor fold(const torch::Tensor& q,       // [num_tokens, num_heads, head_size]
                   const torch::Tensor& lens,    // [batch] or [batch, beams]
                   const torch::Tensor& rest) {  // [..., d]
  const int heads = q.size(1);
  TORCH_CHECK(lens.dim() == 1 || lens.dim() == 2);
  const int d = rest.size(-1);
  return q;
}
TORCH_LIBRARY(kit, m) {
  m.def("fold(Tensor q, Tensor lens, Tensor rest) -> Tensor");
  m.impl("fold", torch::kCUDA, &fold);
}
```

*Use instead.* The shape that the code reads; where both are meant, both: `[batch] or [batch, beams]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        for parameter in tree.shapes(op):
            for one in parameter.contradictions:
                at = one.documented_at
                yield Draft(
                    at.file,
                    at.line,
                    f"{parameter.name} is documented as {one.documented}; in the code, {one.reason}",
                    (Related(one.file, one.line, one.derived),),
                    parameter.name,
                    op=op.name,
                )


RULE = Rule("shape-comment-contradicted", "warning", _run, spread="own")
