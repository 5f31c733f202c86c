"""A sum over data kept in 32 bits and used as a size or an offset.

*Why.* How large it becomes depends on what arrives: lengths of sequences, tokens of experts. It wraps for the batch
that nobody tried.

*Flagged*

```cuda
#include <torch/all.h>
torch::Tensor pack(const int* lengths, int n, const torch::Tensor& x) {
  int total = 0;
  for (int i = 0; i < n; ++i) total += lengths[i];  // flagged
  return torch::empty({total, x.size(1)}, x.options());
}
```

*Clean*

```cuda
#include <torch/all.h>
torch::Tensor pack(const int* lengths, int n, const torch::Tensor& x) {
  int64_t total = 0;
  int count = 0;
  for (int i = 0; i < n; ++i) {
    total += lengths[i];
    count += 1;
  }
  return torch::empty({total, count}, x.options());
}
```

*Use instead.* `int64_t` for the sum. Off by default: most such sums are small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement

_NARROW = re.compile(r"\b(?:int|unsigned|u?int32_t)\b(?!.*\*)")
_SIZES = re.compile(r"empty|zeros|resize|reserve|malloc|Malloc|new_empty|\[|data_ptr")
_SUMS = re.compile(r"=?\s*(?:std::)?(?:accumulate|reduce)\s*\(.*,\s*0[uU]?\s*[,)]", re.DOTALL)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        declared = [(d, one) for one in routine.walk() for d in one.declares if d.value]
        narrow = {d.name: d.line for d, _ in declared if _NARROW.search(d.type) and "__shared__" not in d.type}
        if not narrow:
            continue
        sums = list(_sums(routine.statements, narrow, False))
        sums += [(d.name, d.line) for d, _ in declared if d.name in narrow and _SUMS.match(d.value or "")]
        pointers = {one.name for one in routine.parameters if "*" in one.type}
        for name, line in sums:
            if _offsets(routine, name, line, pointers) if routine.on_device else _is_size(routine, name, line):
                said = f"{name} sums what arrives in 32 bits, and is used as a size or an offset"
                yield Draft(
                    routine.file, line, said, (Related(routine.file, narrow[name], f"{name} is made here"),), name
                )


def _sums(statements: Sequence[Statement], narrow: dict[str, int], loop: bool) -> Iterator[tuple[str, int]]:
    for one in statements:
        inside = loop or one.kind in ("for", "while", "do", "range for")
        for assigned in one.assigns if loop else ():
            again = assigned.operator == "=" and re.match(rf"{re.escape(assigned.target)}\s*\+", assigned.value)
            if (assigned.operator == "+=" or again) and assigned.target in narrow and "[" in assigned.value:
                # What a comparison, or a bit of a mask, adds up counts no further than there are turns.
                if not re.search(r"[!=<>]=|[<>&?]|&&", assigned.value):
                    yield assigned.target, assigned.line
        yield from _sums(one.body, narrow, inside)
        yield from _sums(one.orelse, narrow, inside)


def _offsets(routine: Routine, name: str, line: int, pointers: set[str]) -> bool:
    """Whether a kernel reaches memory that it was given with a sum, itself and nothing made of it."""
    given = "|".join(map(re.escape, sorted(pointers)))
    reached = re.compile(rf"\b(?:{given})\s*(?:\[[^\]]*|\+\s*[^;,]*)\b{re.escape(name)}\b")
    return bool(given) and any(
        one.line > line and one.kind in ("declaration", "expression") and reached.search(one.text)
        for one in routine.walk()
    )


def _is_size(routine: Routine, name: str, line: int) -> bool:
    word = re.compile(rf"\b{re.escape(name)}\b")
    for one in routine.walk():
        if one.line > line and one.kind in ("declaration", "expression", "return") and word.search(one.text):
            if _SIZES.search(one.text):
                return True
    return False


RULE = Rule("narrow-accumulate", "warning", _run, default=False, spread="own")
