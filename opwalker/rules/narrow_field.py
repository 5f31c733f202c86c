"""A 64-bit size or stride kept in a narrower member.

*Why.* A stride of exactly 2^32 becomes 0 in a `uint32_t`: every batch reads the first one. Nothing warns.

*Flagged*

```cuda
#include <torch/all.h>
struct Args {
  using index_t = uint32_t;
  index_t batch_stride;
  int rows, cols;
  float* x;
};
void fill(Args& p, const torch::Tensor& x) {
  p.batch_stride = x.stride(0);  // flagged
  const int64_t cols = x.size(1);
  p.cols = cols;  // flagged
  TORCH_CHECK(x.dim() == 2 && x.size(0) > 0);
  p.x = x.data_ptr<float>();
}
void shape(Args& p, size_t rows, size_t cols) {
  p.rows = rows;  // flagged
  p.cols = cols;
}
void wide(Args& p, const torch::Tensor& x) {
  const int cols = x.size(1);
  shape(p, x.size(0), cols);
}
```

*Clean*

```cuda
#include <torch/all.h>
struct Args {
  using index_t = int64_t;
  index_t batch_stride;
  int rows, cols;
};
void fill(Args& p, const torch::Tensor& x) {
  p.batch_stride = x.stride(0);
  TORCH_CHECK(x.size(1) <= INT_MAX, "too wide");
  p.cols = x.size(1);
  p.rows = static_cast<int>(x.dim());
}
void settings(Args& p, int64_t window_left, int64_t pad_slot_id) {
  p.rows = window_left;
  p.cols = pad_slot_id;
}
#define CHECK_SHAPE(x, ...) TORCH_CHECK(x.sizes() == torch::IntArrayRef({__VA_ARGS__}))
void again(Args& p, const torch::Tensor& x) {
  p.cols = x.size(1) * 2;
  CHECK_SHAPE(x, x.size(0), p.cols / 2);
}
void shape(Args& p, size_t rows, size_t cols) {
  p.rows = rows;
  p.cols = cols / rows;
}
void narrow_before(Args& p, const torch::Tensor& x) {
  const int rows = x.size(0);
  TORCH_CHECK(x.size(1) <= 4096, "too wide");
  shape(p, rows, x.size(1));
}
```

*Use instead.* A member of 64 bits, or a check of the range before the assignment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import AssignText, Routine, Statement
from opwalker.notation.cpp_expression import parse_expression
from opwalker.rules._above import every_caller
from opwalker.rules._ranges import is_bounded, sized_terms
from opwalker.rules._values import split
from opwalker.rules._widths import Widths

#: A member, or an element of an array, of one too.
_MEMBER = re.compile(r"(\w+)\s*(?:\.|->)\s*(\w+)(?:\s*\[[^\[\]]*\])*|(\w+)(?:\s*\[[^\[\]]*\])+")
#: ``{.rows = n, .pitch = p}``.
_NAMED = re.compile(r"\s*=?\s*(?:[\w:]+\s*)?\{(\s*\.\w+\s*=.*)\}\s*\Z", re.DOTALL)
#: A member of the class whose method it is, by its name alone.
_OWN = re.compile(r"()()(\w+)")
_INDEX = re.compile(r"(?:\s*\[[^\[\]]*\])+\s*\Z")
_SIZE = re.compile(r"\b(?:size|stride|numel)\(")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        kept = [a for one in routine.walk() for a in _assigned(one) if a.operator == "="]
        if routine.on_device or not kept:
            continue
        widths = Widths(tree, routine)
        for one in routine.walk():
            for assigned in _assigned(one):
                own = assigned.target.strip() in widths.own_members
                member = (_OWN if own else _MEMBER).fullmatch(assigned.target.strip())
                if assigned.operator != "=" or member is None:
                    continue
                if re.search(r"static_cast|\(int\)|int\(|narrow", assigned.value) or one.macro is not None:
                    continue
                if widths.of(parse_expression(_INDEX.sub("", assigned.target))) != 32:
                    continue
                if widths.of(parse_expression(assigned.value)) != 64:
                    continue
                if not _SIZE.search(assigned.value) and not sized_terms(routine, assigned.value):
                    continue
                if is_bounded(routine, assigned.value, assigned.line):
                    continue
                if _compared_later(routine, assigned):
                    continue
                parts = sized_terms(routine, assigned.value)
                if parts and all(every_caller(tree, routine, one, lambda *given: _fits(tree, *given)) for one in parts):
                    continue
                yield Draft(
                    routine.file,
                    assigned.line,
                    f"`{assigned.value}` has 64 bits, and {assigned.target} keeps 32 of them",
                    _declared(tree, routine, member[1] or "", member[2] or ""),
                    member[2] or member[3],
                )


def _assigned(one: Statement) -> Iterator[AssignText]:
    """The assignments of a statement, and the members that the initialisers of its variables name."""
    yield from one.assigns
    for declared in one.declares:
        found = _NAMED.match(declared.value or "")
        parts = split(found[1]) if found else ()
        line = declared.line
        for part in parts:
            member = re.fullmatch(r"\s*\.(\w+)\s*=\s*(.*)", part, re.DOTALL)
            if member is not None:
                yield AssignText(f"{declared.name}.{member[1]}", "=", member[2].strip(), line, declared.macro)


def _fits(tree: CheckedTree, caller: Routine, given: str, line: int) -> bool:
    """Whether what a caller hands over is narrow already, or is checked there."""
    return Widths(tree, caller).of(parse_expression(given)) == 32 or is_bounded(caller, given, line)


def _compared_later(routine: Routine, assigned: AssignText) -> bool:
    """Whether a check behind the assignment compares what was kept with the tensor again."""
    tensors = re.findall(r"(\w+)(?:\.|->)(?:size|stride|numel)\(", assigned.value)
    later = (call for one in routine.walk() if one.line > assigned.line for call in one.calls if call.arguments)
    return any(
        assigned.target in call.arguments[0] and re.search(rf"\b{tensor}\b", call.arguments[0])
        for call in later
        if re.search(r"CHECK|ASSERT|[Cc]heck|[Aa]ssert", call.simple)
        for tensor in tensors
    )


def _declared(tree: CheckedTree, routine: Routine, held: str, member: str) -> tuple[Related, ...]:
    kinds = [one.type for one in routine.parameters if one.name == held]
    kinds += [d.type for one in routine.walk() for d in one.declares if d.name == held]
    for kind in kinds:
        for file, definition in tree.classes(re.sub(r"\b(?:const|struct)\b|[&*]|<.*", "", kind).strip()):
            for name, type_, line in tree.fields(file, definition):
                if name == member:
                    return (Related(file, line, f"{name} is {type_}"),)
    return ()


RULE = Rule("narrow-field", "warning", _run, spread="own")
