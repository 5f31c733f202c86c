"""An untyped data pointer cast to a fixed element type, with no check of the tensor's type.

*Why.* `data_ptr()` without a type checks nothing. A tensor of another type is read as bytes of the wrong meaning.

*Flagged*

```cuda
#include <torch/all.h>
void run(const float* p);
void twice(const torch::Tensor& x) {
  run(reinterpret_cast<const float*>(x.data_ptr()));  // flagged
  run((const float*)x.const_data_ptr());
}
```

*Clean*

```cuda
#include <torch/all.h>
void run(const float* p);
template <typename T> void typed(const T* p);
void twice(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& z, const torch::Tensor& v,
           const torch::Tensor& w) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "float");
  run(reinterpret_cast<const float*>(x.data_ptr()));
  run(y.data_ptr<float>());
  for (const torch::Tensor* one : {&v, &w}) TORCH_CHECK(one->scalar_type() == at::kFloat, "float");
  run(reinterpret_cast<const float*>(v.data_ptr()));
  run(reinterpret_cast<const float*>(w.data_ptr()));
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "twice", [&] {
    typed<scalar_t>(reinterpret_cast<const scalar_t*>(z.data_ptr()));
  });
}
```

*Use instead.* `x.data_ptr<float>()`, or a check of `scalar_type()`. Off by default: functions that are reached behind
a check made elsewhere are common."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import CallText, Routine, Statement
from opwalker.rules._tensors import is_tensor, stands_for

_FIXED = (
    r"(?:float|double|int|int8_t|int32_t|int64_t|uint8_t|uint32_t|half|__half2?|__nv_bfloat162?|c10::Half|c10::BFloat16|"
    r"at::Half|at::BFloat16)"
)
_POINTER = r"(\w+)\s*(?:\.|->)\s*(?:mutable_|const_)?data_ptr\s*\(\s*\)"
#: A tensor of another interface.
_VIEW = re.compile(r"\b(?:ffi::)?TensorView\b")
_CAST = re.compile(
    rf"(?:reinterpret_cast|static_cast)<\s*(?:const\s+)?({_FIXED})\s*(?:const\s*)?\*\s*(?:const\s*)?>\s*\(\s*{_POINTER}"
    rf"|\(\s*(?:const\s+)?({_FIXED})\s*(?:const\s*)?\*\s*\)\s*\(?\s*{_POINTER}"
)
_TYPE = (
    r"\b{name}\s*(?:\.|->)\s*(?:scalar_type|dtype|element_size|is_floating_point)\b"
    r"|\b\w*(?:TYPE|Type|dtype|DTYPE)\w*\s*\([^;]*\b{name}\b"
)
#: A check of a framework: its condition says what it asks.
_SAYS = re.compile(r"(?:STD_)?TORCH_\w+|AT_ASSERT\w*|C10_\w+|assert")
#: A function that is made to cast the pointer of the tensor that it is given.
_HELPER = re.compile(
    rf"(?:reinterpret_cast|static_cast)<\s*(?:const\s+)?(\w+)\s*(?:const\s*)?\*\s*>\s*\(\s*{_POINTER}"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        tensors = {one.name for one in routine.parameters if is_tensor(one.type) or _VIEW.search(one.type)}
        if not tensors or routine.on_device or routine.template is not None:
            continue
        told: set[str] = set()
        for one in routine.walk():
            if one.macro is not None:
                continue  # which type a macro casts to is decided where it is used
            found = [(m[1], m[2]) if m[1] else (m[3], m[4]) for m in _CAST.finditer(one.text)]
            for kind, tensor in (*found, *_through(tree, routine, one)):
                if tensor not in tensors or tensor in told:
                    continue
                told.add(tensor)
                if not _is_asked(tree, routine, tensor, 0):
                    said = f"the data of {tensor} is read as {kind}, and nothing checks its type"
                    yield Draft(routine.file, _line(tree, routine, one, tensor), said, symbol=tensor)


def _line(tree: CheckedTree, routine: Routine, one: Statement, tensor: str) -> int:
    """The line of a statement on which the pointer is taken; its first where that is not to be seen."""
    name = re.escape(tensor)
    taken = re.compile(rf"(?<![\w.]){name}\s*(?:\.|->)\s*\w*data_ptr|<[^<>]*>\s*\(\s*{name}\s*\)")
    lines = tree.text(routine.file).split("\n")[one.line - 1 : one.end_line]
    return next((number for number, text in enumerate(lines, one.line) if taken.search(text)), one.line)


def _through(tree: CheckedTree, routine: Routine, one: Statement) -> Iterator[tuple[str, str]]:
    """The tensors whose pointer a template of the source casts for a statement: ``pointer<float>(x)``."""
    for call in one.calls:
        kind = call.template[0].strip() if call.template else ""
        if re.fullmatch(_FIXED, kind) and len(call.arguments) == 1:
            for target in tree.targets(routine, call):
                given = target.parameters[0].name if len(target.parameters) == 1 else ""
                if any(m[2] == given for held in target.walk() for m in _HELPER.finditer(held.text)):
                    yield kind, call.arguments[0].strip()
                    break


def _is_asked(tree: CheckedTree, routine: Routine, tensor: str, depth: int) -> bool:
    """Whether a routine, or what it hands the tensor to, looks at its type."""
    for name, statements in stands_for(routine, tensor):
        asked = re.compile(_TYPE.format(name=re.escape(name)))
        word = re.compile(rf"(?<![\w.>]){re.escape(name)}(?![\w(])")
        for one in statements:
            if asked.search(one.text):
                return True
            if any(_hands_on(tree, routine, call, word, depth) for call in one.calls):
                return True
    return False


def _hands_on(tree: CheckedTree, routine: Routine, call: CallText, word: re.Pattern[str], depth: int) -> bool:
    """Whether a call gives the tensor to a check: one of the source that looks at its type, or one of another."""
    places = [at for at, argument in enumerate(call.arguments) if word.fullmatch(argument.strip("&* "))]
    if not places or depth > 2:
        return False
    targets = tree.targets(routine, call)
    if not targets:
        named = re.search(r"(?i)check|valid|require", call.simple) and not _SAYS.fullmatch(call.simple)
        return bool(named)
    return any(
        _is_asked(tree, target, target.parameters[at].name, depth + 1)
        for target in targets
        for at in places
        if at < len(target.parameters)
    )


RULE = Rule("untyped-pointer-cast", "warning", _run, default=False, spread="own")
