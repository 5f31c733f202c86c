"""A fake implementation whose parameters are not those of its op.

*Why.* The tracer calls the fake as it would call the op. Another order or count gives a wrong shape, or an error that
names neither.

*Flagged*

```cpp kit.cpp
#include <torch/library.h>
TORCH_LIBRARY(kit, m) {
  m.def("pack(Tensor x, int rows, *, float by=1.0) -> Tensor");
  m.def("fold(Tensor x, Tensor y) -> Tensor");
}
```

```python fakes.py
import torch

@torch.library.register_fake("kit::pack")
def pack_fake(x, by):  # flagged
    return x

@torch.library.register_fake("kit::fold")
def fold_fake(y, x):  # flagged
    return x
```

*Clean*

```cpp kit.cpp
#include <torch/library.h>
TORCH_LIBRARY(kit, m) {
  m.def("pack(Tensor x, int rows, *, float by=1.0) -> Tensor");
  m.def("fold(Tensor x, Tensor y) -> Tensor");
  m.def("other(Tensor x, Tensor y) -> Tensor");
}
```

```python fakes.py
import torch

@torch.library.register_fake("kit::pack")
def pack_fake(x, rows, *, by=1.0):
    return x

@torch.library.register_fake("kit::fold")
def fold_fake(*args, **kwargs):
    return args[0]

@torch.library.register_fake("kit::other")
def other_fake(x, y, unused=None):
    return x
```

*Use instead.* The schema's arguments, in order, with the same names and defaults.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, PythonFunction, Related, Rule
from opwalker.model.ops import Op


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if op.schema is None or not op.defs:
            continue
        for fake in tree.fakes(op):
            said = _difference(op, fake)
            if said is not None:
                at = op.defs[0]
                yield Draft(
                    fake.file,
                    fake.line,
                    f"the fake of {op.name} {said}",
                    (Related(at.file, at.line, f"schema {op.schema}"),),
                    fake.name,
                    "info" if said.startswith("calls ") else None,
                    op.name,
                )


def _difference(op: Op, fake: PythonFunction) -> str | None:
    """What differs, in words; None where the fake can be called as the op is."""
    parameters = list(fake.parameters)
    wanted = [argument.name for argument in op.arguments]
    if parameters[:1] in (["self"], ["cls"], ["ctx"]) and parameters[0] not in wanted:
        parameters = parameters[1:]
    packs = [one for one in parameters if one.startswith("*")]
    plain = [one for one in parameters if not one.startswith("*")]
    if len(packs) == 2:
        return None
    optional = {name for name, _ in fake.defaults}
    if len(plain) < len(wanted) and not packs:
        missing = [name for name in wanted if name not in plain]
        return f"takes {len(plain)} arguments, and the op has {len(wanted)}: {', '.join(missing)} has no parameter"
    extra = [name for name in plain[len(wanted) :] if name not in optional]
    if extra:
        return f"wants {', '.join(extra)}, which the op does not have"
    for name, theirs in zip(wanted, plain, strict=False):
        if name != theirs and theirs in wanted and name in plain:
            return f"takes {theirs} where the op has {name}"
    if packs:
        return None
    return _defaults(op, fake) or _kinds(op, fake, plain) or _names(wanted, plain)


def _defaults(op: Op, fake: PythonFunction) -> str | None:
    """A default of the op that the fake has not: torch hands on no argument that is left at its default."""
    theirs = dict(fake.defaults)
    for argument in op.arguments:
        if argument.default is None or argument.name not in fake.parameters:
            continue
        if argument.name not in theirs:
            return f"has no default for {argument.name}, which the op gives {argument.default}"
        one, other = _value(argument.default), _value(theirs[argument.name])
        if one is not None and other is not None and one != other:
            return f"gives {argument.name} the default {theirs[argument.name]}, and the op {argument.default}"
    return None


def _kinds(op: Op, fake: PythonFunction, plain: list[str]) -> str | None:
    """An argument that the op takes by position and the fake by name alone, or the reverse under another name."""
    for argument in op.arguments:
        if argument.name in fake.keyword_only and not argument.kwarg_only:
            return f"takes {argument.name} by name alone, and the op by position"
        if argument.kwarg_only and argument.name not in plain:
            return f"has no {argument.name}, which the op takes by name alone"
    return None


def _names(wanted: list[str], plain: list[str]) -> str | None:
    for name, theirs in zip(wanted, plain, strict=False):
        if name != theirs and theirs.strip("_") not in ("", name.strip("_")):
            return f"calls {theirs} what the op calls {name}"
    return None


def _value(text: str) -> object:
    """The value of a default where both languages spell it alike; None for one that says nothing."""
    plain = {"True": "true", "False": "false", "None": "none"}.get(text.strip(), text.strip())
    if plain.lower() in ("true", "false", "none"):
        return plain.lower()
    try:
        return float(plain)
    except ValueError:
        return None


RULE = Rule("fake-signature-mismatch", "warning", _run, spread="own")
