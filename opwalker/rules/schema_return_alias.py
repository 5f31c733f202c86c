"""An op that may return the tensor it was given, with no alias set in its schema.

*Why.* Without an alias set the result counts as new. A compiler then reuses or frees the argument while the result
still points into it.

*Flagged*

```cpp
#include <torch/library.h>
torch::Tensor dense(const torch::Tensor& x) {
  if (x.is_contiguous()) return x;
  return x.clone();
}
torch::Tensor fill(torch::Tensor& x) {
  x.zero_();
  return x;
}
TORCH_LIBRARY(kit, m) {
  m.def("dense(Tensor x) -> Tensor");  // flagged
  m.def("fill(Tensor! x) -> Tensor");  // flagged
}
TORCH_LIBRARY_IMPL(kit, CUDA, m) {
  m.impl("dense", &dense);
  m.impl("fill", &fill);
}
```

*Clean*

```cpp
#include <torch/library.h>
torch::Tensor dense(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  y.copy_(x);
  return y;
}
torch::Tensor fill(torch::Tensor& x) { return x; }
TORCH_LIBRARY(kit, m) {
  m.def("dense(Tensor x) -> Tensor");
  m.def("fill(Tensor(a!) x) -> Tensor(a!)");
}
TORCH_LIBRARY_IMPL(kit, CUDA, m) {
  m.impl("dense", &dense);
  m.impl("fill", &fill);
}
```

*Use instead.* `Tensor(a)` on the argument and the result, or a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._schemas import bound_pairs

_MADE = re.compile(r"(?:std::)?(?:make_tuple|tie|vector<[^>]*>|tuple<.*>)?\s*[({](.*)[)}]", re.DOTALL)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if not op.defs or not any("Tensor" in one.type and one.alias is None for one in op.returns):
            continue
        told: set[str] = set()
        for _, routine in tree.implementations(op):
            names = {parameter.name: argument for argument, parameter in bound_pairs(op, routine)}
            for one in routine.walk(lambdas=False):
                if one.kind != "return" or not one.text:
                    continue
                for part in _returned(one.text):
                    argument = names.get(part)
                    if argument is None or argument.name in told or "Tensor" not in argument.type:
                        continue
                    told.add(argument.name)
                    yield Draft(
                        op.defs[0].file,
                        op.defs[0].line,
                        f"{op.name} can return its argument {argument.name}, and the schema has no alias set for it",
                        (Related(routine.file, one.line, f"`return {one.text[:60]}`"),),
                        argument.name,
                        op=op.name,
                    )


def _returned(text: str) -> Iterator[str]:
    """The plain names that a returned expression is, or is a list of."""
    made = _MADE.fullmatch(text.strip())
    for part in made[1].split(",") if made else (text,):
        for choice in re.split(r"\?|:(?!:)", part):
            plain = re.sub(r"(?:std::)?move\s*\(|\)|\(|\*|\.value\(\)", "", choice).strip()
            if re.fullmatch(r"\w+", plain):
                yield plain


RULE = Rule("schema-return-alias", "warning", _run)
