"""A device guard without a name: it is gone before the next statement.

*Why.* An object that is made and not named ends with its full expression. The device is switched and switched back,
and what follows runs on the old one.

*Flagged*

```cuda
#include <torch/all.h>
void first(torch::Tensor& x) {
  c10::cuda::CUDAGuard(x.device());  // flagged
  at::cuda::OptionalCUDAGuard{device_of(x)};  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
void first(torch::Tensor& x) {
  c10::cuda::CUDAGuard guard(x.device());
  const at::cuda::OptionalCUDAGuard other{device_of(x)};
  auto third = c10::cuda::CUDAGuard(x.device());
  std::optional<c10::cuda::CUDAGuard> fourth;
  fourth.emplace(x.device());
}
```

*Use instead.* `const c10::cuda::CUDAGuard guard(x.device());`
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.rules._guards import unnamed


def _run(tree: CheckedTree) -> Iterator[Draft]:
    told: set[tuple[str, int]] = set()
    for routine in tree.routines:
        for one in routine.walk():
            if "Guard" not in one.text or not unnamed(one) or (one.macro is not None and one.macro.known):
                continue
            kind = one.text.split("(", 1)[0].split("{", 1)[0].strip()
            at = (routine.file, one.line) if one.macro is None else tree.place(one.macro)
            if at not in told:
                told.add(at)
                yield Draft(*at, f"the guard {kind} has no name: it ends at once", symbol=kind)


RULE = Rule("guard-unnamed", "error", _run, spread="own")
