"""An element type that a sibling's dispatch covers and this one's does not.

*Why.* "not implemented for BFloat16" in the backward pass alone.

*Flagged*

```cuda
#include <torch/all.h>
template <typename T> void run(torch::Tensor& y);
void bag_fwd(torch::Tensor& y) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, y.scalar_type(), "bag_fwd", [&] { run<scalar_t>(y); });
}
void bag_bwd(torch::Tensor& y) {
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(y.scalar_type(), "bag_bwd", [&] { run<scalar_t>(y); });  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
template <typename T> void run(torch::Tensor& y);
void bag_fwd(torch::Tensor& y) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, y.scalar_type(), "bag_fwd", [&] { run<scalar_t>(y); });
}
void bag_bwd(torch::Tensor& y) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, y.scalar_type(), "bag_bwd", [&] { run<scalar_t>(y); });
}
void other(torch::Tensor& y) {
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "other", [&] { run<scalar_t>(y); });
}
```

*Use instead.* The same set of types on both sides. Types that a project asks for (`required-dtypes` in its settings)
are missed everywhere, at level info."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import CallText, Routine

_FAMILIES = {
    "FLOATING_TYPES": ("Double", "Float"),
    "FLOATING_AND_COMPLEX_TYPES": ("Double", "Float", "ComplexDouble", "ComplexFloat"),
    "INTEGRAL_TYPES": ("Byte", "Char", "Int", "Long", "Short"),
    "ALL_TYPES": ("Byte", "Char", "Int", "Long", "Short", "Double", "Float"),
    "ALL_TYPES_AND_COMPLEX": (
        "Byte",
        "Char",
        "Int",
        "Long",
        "Short",
        "Double",
        "Float",
        "ComplexDouble",
        "ComplexFloat",
    ),
    "COMPLEX_TYPES": ("ComplexDouble", "ComplexFloat"),
}
_MACRO = re.compile(
    rf"(?:AT|THO)_DISPATCH_({'|'.join(sorted(_FAMILIES, key=len, reverse=True))})(?:_AND(\d?)|_AND_(HALF))?\Z"
)
#: A case of a framework's switch over element types: for one of them, or for those of a family.
_CASE = re.compile(rf"(?:AT|THO)_DISPATCH_CASE(?:_({'|'.join(sorted(_FAMILIES, key=len, reverse=True))}))?\Z")
_ANY = re.compile(f"{_MACRO.pattern}|{_CASE.pattern}")
_TYPE = re.compile(r"(?:.*::)?(?:k|ScalarType::)?(\w+)\Z")
#: Parts of a name that tell two of a pair apart.
_SIDES = re.compile(r"(?<![a-z])(?:fwd|bwd|forward|backward|fw|bw|grad|out|inplace|cuda|cpu)(?![a-z])")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    if not any(_ANY.match(call.name) for routine in tree.routines for one in routine.walk() for call in one.calls):
        return
    found: dict[str, list[tuple[Routine, CallText, frozenset[str]]]] = {}
    for routine in tree.calling(_ANY):
        if not routine.on_device:
            for call, types in _dispatches(routine):
                found.setdefault(_stem(routine.name), []).append((routine, call, types))
    for stem, held in found.items():
        for routine, call, types in held:
            siblings = [
                s
                for s in held
                if s[0].name != routine.name and s[0].file.rsplit(".", 1)[-1] == routine.file.rsplit(".", 1)[-1]
            ]
            wanted = {kind: at for at in siblings if stem for kind in at[2]}
            missing = sorted(kind for kind in wanted if kind not in types)
            if missing:
                at = wanted[missing[0]]
                yield Draft(
                    routine.file,
                    call.line,
                    f"{call.name} in {routine.name} leaves out {', '.join(missing)}, which {at[0].name} covers",
                    (Related(at[0].file, at[1].line, f"{at[1].name} in {at[0].name}"),),
                    missing[0],
                )
                continue
            asked = sorted(set(tree.settings.required_dtypes) - types)
            if asked:
                said = f"{call.name} in {routine.name} leaves out {', '.join(asked)}, which the project asks for"
                yield Draft(routine.file, call.line, said, symbol=asked[0], severity="info")


def _dispatches(routine: Routine) -> Iterator[tuple[CallText, frozenset[str]]]:
    """The dispatches of a routine with the element types of each: a macro, or a switch made of cases."""
    for one in routine.walk():
        for call in one.calls:
            types = _covered(call)
            if types is not None:
                yield call, types
        cases = [c for held in one.walk() for c in held.calls if _CASE.match(c.name)] if one.kind == "switch" else []
        if cases:
            yield replace(cases[0], name="AT_DISPATCH_SWITCH", line=one.line), frozenset().union(*map(_of_case, cases))


def _of_case(call: CallText) -> frozenset[str]:
    family = _CASE.match(call.name)[1]
    named = None if family or not call.arguments else _TYPE.match(call.arguments[0].strip())
    return frozenset(_FAMILIES[family] if family else (named[1],) if named else ())


def _covered(call: CallText) -> frozenset[str] | None:
    """The element types of a framework's dispatch macro; None for anything else."""
    found = _MACRO.match(call.name)
    if found is None:
        return None
    types = set(_FAMILIES[found[1]])
    if found[3]:
        types.add("Half")
    elif "_AND" in call.name.removeprefix(f"AT_DISPATCH_{found[1]}"):
        for argument in call.arguments[: int(found[2] or 1)]:
            named = _TYPE.match(argument.strip())
            if named:
                types.add(named[1])
    return frozenset(types)


def _stem(name: str) -> str:
    """A function's name without what tells a forward from a backward; empty where nothing does."""
    short = name.rsplit("::", 1)[-1].lower()
    words = [word for word in re.split(r"_+", short) if word]
    kept = [word for word in words if not _SIDES.fullmatch(word)]
    return "_".join(kept) if len(kept) < len(words) else ""


RULE = Rule("dispatch-missing-dtype", "warning", _run, spread="own")
