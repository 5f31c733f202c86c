"""An op that is defined and, in some build, has no implementation for a device.

*Why.* The op is listed and its calls fail, with "not implemented for CUDA", in the build that left the entry out.

*Flagged*

```cpp
#include <torch/library.h>
torch::Tensor unpack(const torch::Tensor& w) { return w; }
TORCH_LIBRARY(kit, m) {
  m.def("unpack(Tensor w) -> Tensor");  // flagged
#ifdef KIT_HAVE_CUDA
  m.impl("unpack", torch::kCUDA, &unpack);
#endif
  m.impl("unpack", torch::kMeta, &unpack);
  m.def("gone(Tensor w) -> Tensor");  // flagged
  m.impl("gone", torch::kMeta, &unpack);
}
```

*Clean*

```cpp
#include <torch/library.h>
torch::Tensor unpack(const torch::Tensor& w) { return w; }
TORCH_LIBRARY(kit, m) {
  m.def("unpack(Tensor w) -> Tensor");
  m.impl("unpack", torch::kCUDA, &unpack);
  m.def("composed(Tensor w) -> Tensor", &unpack);
#ifndef KIT_SMALL
  m.def("large(Tensor w) -> Tensor");
  m.impl("large", torch::kCUDA, &unpack);
#endif
  m.def("either(Tensor w) -> Tensor");
#ifdef KIT_FAST
  m.impl("either", torch::kCUDA, &unpack);
#else
  m.impl("either", torch::kCUDA, &unpack);
#endif
}
```

*Use instead.* The definition under the same condition as its implementation, or an implementation that says what is
missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.ops import Op, OpImpl
from opwalker.notation.condition_parse import parse_condition
from opwalker.notation.condition_terms import TRUE, condition_text, conjoin, disjoin, names_of, negate
from opwalker.notation.conditions import evaluate

#: Keys that run nothing on a device.
_TRACES = frozenset("Meta FakeTensor Autograd AutogradCUDA AutogradCPU ADInplaceOrView Autocast AutocastCUDA".split())
_MOST_NAMES = 6


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if op.kind != "torch_library" or op.schema is None or not op.defs:
            continue
        if not any("Tensor" in one.type for one in (*op.arguments, *op.returns)):
            continue
        draft = _judged(op)
        if draft is not None:
            yield draft


def _judged(op: Op) -> Draft | None:
    at = op.defs[0]
    real = [one for one in op.impls if one.key not in _TRACES]
    related = tuple(Related(one.file, one.line, f"implementation for {one.key}") for one in op.impls[:4])
    if not real:
        if not op.impls:
            return None  # implemented where this source does not show it: a library that only declares ops
        return Draft(at.file, at.line, f"{op.name} has no implementation for a device", related, _short(op), op=op.name)
    if any(one.condition is None for one in real):
        return None
    missing = _missing(at.condition, real)
    if missing is None:
        return None
    keys = ", ".join(sorted({one.key or "every key" for one in real}))
    return Draft(
        at.file,
        at.line,
        f"{op.name} has no implementation for {keys} when {missing}",
        related,
        _short(op),
        op=op.name,
    )


def _missing(defined: str | None, impls: list[OpImpl]) -> str | None:
    """The condition under which the op is there and none of its implementations is; None where there is no such one."""
    there = parse_condition(defined) if defined else TRUE
    held = disjoin(parse_condition(one.condition or "1") for one in impls)
    wanted = conjoin((there, negate(held)))
    names = sorted(names_of(wanted))
    if not names or len(names) > _MOST_NAMES:
        return None
    for chosen in itertools.product((False, True), repeat=len(names)):
        defines = dict.fromkeys(itertools.compress(names, chosen), "1")
        absent = frozenset(names) - defines.keys()
        # A name that is compared with a number decides nothing here: such a condition is unknown, and stays out.
        if evaluate(there, defines, absent) and evaluate(held, defines, absent) is False:
            return condition_text([wanted])
    return None


def _short(op: Op) -> str:
    return op.name.rsplit("::", 1)[-1]


RULE = Rule("def-without-impl", "warning", _run)
