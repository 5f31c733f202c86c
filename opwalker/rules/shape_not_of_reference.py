"""A documented shape that is not the one for which the op's reference kernel was confirmed.

*Why.* For some well-known ops this program holds a contract: shapes under which a small kernel was built, run and
compared. A source that documents the same op otherwise has another layout, or a comment that is no longer true.

*Flagged*

```cpp kit.cpp
#include <torch/library.h>
void reshape_and_cache(const torch::Tensor& key,    // [num_tokens, num_heads, head_size]
                       const torch::Tensor& value,  // [num_tokens, num_heads, head_size]
                       torch::Tensor& key_cache,    // [num_blocks, block_size, num_heads, head_size]  // flagged
                       torch::Tensor& value_cache,  // [num_blocks, num_heads, head_size, block_size]
                       const torch::Tensor& slot_mapping) {}  // [num_tokens]
TORCH_LIBRARY(_C_cache_ops, m) {
  m.def("reshape_and_cache(Tensor key, Tensor value, Tensor! key_cache, Tensor! value_cache, "
        "Tensor slot_mapping) -> ()");
  m.impl("reshape_and_cache", torch::kCUDA, &reshape_and_cache);
}
```

*Clean*

```cpp kit.cpp
#include <torch/library.h>
void reshape_and_cache(const torch::Tensor& k,      // [tokens, heads, size]
                       const torch::Tensor& value,  // [num_tokens, num_heads, head_size]
                       torch::Tensor& key_cache,    // [num_blocks, num_heads, head_size/x, block_size, x]
                       torch::Tensor& value_cache,
                       const torch::Tensor& slot_mapping) {}  // [num_tokens]
void store(const torch::Tensor& key_cache) {}  // [num_blocks, block_size, num_heads, head_size]
TORCH_LIBRARY(_C_cache_ops, m) {
  m.def("reshape_and_cache(Tensor key, Tensor value, Tensor! key_cache, Tensor! value_cache, "
        "Tensor slot_mapping) -> ()");
  m.impl("reshape_and_cache", torch::kCUDA, &reshape_and_cache);
  m.def("store(Tensor key_cache) -> ()");
  m.impl("store", torch::kCUDA, &store);
}
```

*Use instead.* The comment that says what the kernel does; `opwalker verify` shows which layout the op really has.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.notation.shape_alike import same_shape


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        documented = [one for one in tree.documented(op) if one.shape_text and one.shape_span and one.argument]
        contract = tree.contract(op) if documented else None
        if contract is None:
            continue
        for one in documented:
            wanted = contract.shapes.get(one.argument)
            if wanted is not None and not same_shape(wanted, one.shape_text):
                yield Draft(
                    one.shape_span.file,
                    one.shape_span.line,
                    f"{one.name} of {op.name} is documented as {one.shape_text}; "
                    f"the reference kernel {contract.kernel} is confirmed for {wanted}",
                    (),
                    one.name,
                    op=op.name,
                )


RULE = Rule("shape-not-of-reference", "warning", _run, spread="own")
