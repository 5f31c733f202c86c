"""A 64-bit size passed to a parameter of 32 bits.

*Why.* The conversion is implicit. A matrix of 2^32 + 64 columns gives, bit for bit, the result of one with 64.

*Flagged*

```cuda
#include <torch/all.h>
void launch(const void* w, float* y, int cols, int rows, cudaStream_t stream);
void run(torch::Tensor& y, const torch::Tensor& w, int64_t rows, cudaStream_t stream) {
  const int64_t cols = w.size(1);
  launch(w.data_ptr(), y.data_ptr<float>(), cols, rows, stream);  // flagged 2
}
```

*Clean*

```cuda
#include <torch/all.h>
void launch(const void* w, float* y, int cols, int rows, cudaStream_t stream);
void wide(const void* w, int64_t cols);
void run(torch::Tensor& y, const torch::Tensor& w, int64_t rows, cudaStream_t stream) {
  const int64_t cols = w.size(1);
  TORCH_CHECK(cols <= INT_MAX && rows <= INT_MAX, "too large");
  launch(w.data_ptr(), y.data_ptr<float>(), cols, rows, stream);
  wide(w.data_ptr(), cols);
}
void explicit_one(torch::Tensor& y, const torch::Tensor& w, cudaStream_t stream) {
  launch(w.data_ptr(), y.data_ptr<float>(), static_cast<int>(w.size(1)), 4, stream);
}
```

*Use instead.* `int64_t` parameters, or a check of the range and an explicit cast. Off by default: counts of experts,
heads and splits are passed so everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import CallText, Routine
from opwalker.notation.cpp_expression import parse_expression
from opwalker.rules._ranges import is_bounded, sized_terms
from opwalker.rules._widths import Widths

_WIDE = re.compile(r"int64_t|size_t|Tensor")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device or not _has_wide(routine):
            continue
        widths = Widths(tree, routine)
        for one in routine.walk():
            if one.macro is not None:
                continue
            for call in one.calls:
                yield from _call(tree, routine, widths, call)
            for launch in one.launches:
                for kernel in tree.kernels(routine, launch)[:1]:
                    kinds = [(p.type, p.name) for p in kernel.parameters]
                    yield from _passed(
                        routine, widths, launch.arguments, kinds, launch.line, kernel.name, (kernel.file, kernel.line)
                    )


def _has_wide(routine: Routine) -> bool:
    return any(_WIDE.search(one.type) for one in routine.parameters)


def _call(tree: CheckedTree, routine: Routine, widths: Widths, call: CallText) -> Iterator[Draft]:
    if not call.name or not call.arguments:
        return
    found = [(file, f) for file, f in tree.functions(call.simple) if len(f.parameters) >= len(call.arguments)]
    if call.receiver is not None:
        owner = _class_of(routine, call.receiver)
        found = [(file, f) for file, f in found if owner is not None and f.scope[-1:] == (owner,)]
    near = [(file, f) for file, f in found if file in tree.included(routine.file)] or found
    shapes = {tuple(p.type for p in f.parameters) for _, f in near}
    if len(shapes) != 1 or any(f.template is not None for _, f in near):
        return
    file, function = near[0]
    kinds = [(p.type, p.name) for p in function.parameters]
    yield from _passed(routine, widths, call.arguments, kinds, call.line, call.name, (file, function.line))


def _class_of(routine: Routine, receiver: str) -> str | None:
    """The class of an object that is a parameter or a local."""
    kinds = [one.type for one in routine.parameters if one.name == receiver]
    kinds += [d.type for one in routine.walk() for d in one.declares if d.name == receiver]
    found = re.fullmatch(r"(?:const\s+)?(?:\w+::)*(\w+)\s*[&*]?", kinds[0].strip()) if kinds else None
    return found[1] if found else None


def _passed(
    routine: Routine,
    widths: Widths,
    arguments: Sequence[str],
    kinds: Sequence[tuple[str, str]],
    line: int,
    callee: str,
    at: tuple[str, int],
) -> Iterator[Draft]:
    for argument, (kind, name) in zip(arguments, kinds, strict=False):
        if widths.of_type(kind) != 32 or re.search(r"static_cast|\bint\s*\(|\(\s*int\s*\)", argument):
            continue
        if widths.of(parse_expression(argument)) != 64 or not sized_terms(routine, argument):
            continue
        if is_bounded(routine, argument, line):
            continue
        said = f"`{argument}` has 64 bits, and {name} of {callee} takes 32 of them"
        yield Draft(
            routine.file, line, said, (Related(*at, f"{callee} takes {kind} {name}"),), re.split(r"\W", argument)[0]
        )


RULE = Rule("narrow-arg", "warning", _run, default=False, spread="named")
