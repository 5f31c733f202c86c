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
from opwalker.model.statements import Routine, Statement
from opwalker.rules._schemas import bound_pairs
from opwalker.rules._values import split

_MADE = re.compile(
    r"(?:std::)?(?:make_tuple|tie|make_pair|pair<.*>|vector<[^>]*>|tuple<.*>)?\s*[({](.*)[)}]", re.DOTALL
)
#: What shares the data of the tensor that it is called on, or is that tensor where nothing has to be done.
_SHARES = re.compile(
    r"(\w+)((?:\.(?:view|reshape|contiguous|to|squeeze|unsqueeze|transpose|permute|t|select|slice|narrow|flatten|expand|detach|"
    r"view_as|value|expand_as|alias)\((?:[^()]|\([^()]*\))*\))+)"
)
_DEEPEST = 3


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if not op.defs or not any("Tensor" in one.type and one.alias is None for one in op.returns):
            continue
        told: set[str] = set()
        for _, routine in tree.implementations(op):
            names = {parameter.name: argument for argument, parameter in bound_pairs(op, routine)}
            for part, one in _results(tree, routine, 0):
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


def _results(tree: CheckedTree, routine: Routine, depth: int) -> Iterator[tuple[str, Statement]]:
    """The names of tensors that a function can return as they are, each with the ``return``: its parameters among
    them."""
    held = _held(routine)
    for one in routine.walk(lambdas=False):
        if one.kind != "return" or not one.text:
            continue
        for part in _returned(one.text):
            for name in (part, *held.get(part, ())):
                yield name, one
        for call in one.calls if depth < _DEEPEST else ():
            # What a function of the source returns of what it is given, where its result is returned.
            if call.receiver is None and call.text.strip() in {held.strip() for held in _parts(one.text)}:
                for target in tree.targets(routine, call):
                    handed = {one.name: given for one, given in zip(target.parameters, call.arguments, strict=False)}
                    for name, _ in _results(tree, target, depth + 1):
                        for given in _returned(handed.get(name, "")):
                            yield given, one


def _held(routine: Routine) -> dict[str, list[str]]:
    """Locals that are a name for another tensor to the end, as far as it is not set anew whichever way is taken."""
    out: dict[str, list[str]] = {}
    unset: set[str] = set()
    for one in routine.walk(lambdas=False):
        for declared in one.declares:
            if declared.value is None:
                unset.add(declared.name)
            else:
                out[declared.name] = list(_returned(declared.value.strip().removeprefix("=").strip()))
        for assigned in one.assigns:
            if assigned.operator != "=":
                continue
            if assigned.target in unset:
                out.setdefault(assigned.target, []).extend(_returned(assigned.value))  # one of the ways that set it
            else:
                out.pop(assigned.target, None)  # it may be set anew: which way is taken is not followed
    return out


def _parts(text: str) -> list[str]:
    """A returned expression, or the parts of the list that it is."""
    made = _MADE.fullmatch(text.strip())
    return split(made[1]) if made else [text]


def _returned(text: str) -> Iterator[str]:
    """The plain names that a returned expression is, or is a list of; a view of one counts as the name."""
    for part in _parts(text):
        for choice in re.split(r"\?|(?<!:):(?!:)", part):
            shared = _SHARES.fullmatch(choice.strip())
            plain = re.sub(r"(?:std::)?move\s*\(|\)|\(|\*|\.value\(\)", "", choice).strip()
            if shared is not None or re.fullmatch(r"\w+", plain):
                yield shared[1] if shared is not None else plain


RULE = Rule("schema-return-alias", "warning", _run, spread="own")
