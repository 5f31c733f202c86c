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
from functools import lru_cache

from msgspec.structs import replace

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import CallText, Routine, Statement

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
    "REDUCED_FLOATING_TYPES": ("Half", "BFloat16"),
}
_MACRO = re.compile(
    rf"(?:AT|THO)_DISPATCH_({'|'.join(sorted(_FAMILIES, key=len, reverse=True))})(?:_AND(\d?)|_AND_(HALF))?\Z"
)
#: A case of a framework's switch over element types: for one of them, or for those of a family.
_CASE = re.compile(rf"(?:AT|THO)_DISPATCH_CASE(?:_({'|'.join(sorted(_FAMILIES, key=len, reverse=True))}))?\Z")
#: The same in the body of a project's macro.
_CASES = re.compile(
    rf"(?:AT|THO)_DISPATCH_CASE(?:_({'|'.join(sorted(_FAMILIES, key=len, reverse=True))})\b"
    r"|\s*\(\s*(?:[\w:]*::)?k?(\w+))"
)
#: A comparison with an element type, and a label of one.
_EQUALS = re.compile(r"\b(?:scalar_type|dtype)\(\)\s*==\s*(?:[\w:]*::)?(?:k|ScalarType::)(\w+)")
_FAILS = re.compile(r"\b\w*(?:CHECK|ERROR|THROW|ASSERT)\w*\s*\(|\babort\s*\(")
_LABEL = re.compile(r"(?:[\w:]*::)?(?:k|ScalarType::)([A-Z]\w+)")
#: A dispatch, by its name: a framework's, or a project's; and a question for a type.
_ASKS = re.compile(rf"{_MACRO.pattern}|{_CASE.pattern}|(?:[A-Z][A-Z0-9_]*)?DISPATCH[A-Z0-9_]*\Z|scalar_type\Z")
_TYPE = re.compile(r"(?:.*::)?(?:k|ScalarType::)?(\w+)\Z")
#: Parts of a name that tell two of a pair apart.
_SIDES = re.compile(r"(?<![a-z])(?:fwd|bwd|forward|backward|fw|bw|grad|out|inplace|cuda|cpu)(?![a-z])")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    if not any(_ASKS.match(call.name) for routine in tree.routines for one in routine.walk() for call in one.calls):
        return
    found: dict[str, list[tuple[Routine, CallText, frozenset[str]]]] = {}
    for routine in tree.calling(_ASKS):
        if not routine.on_device:
            held = [(call, types) for call, types in _dispatches(tree, routine) if not _is_made(routine, call)]
            # What one dispatch leaves out another of the same function may cover.
            every = frozenset().union(*(types for _, types in held))
            for call, types in held:
                found.setdefault(_stem(routine.name), []).append((routine, call, every if len(held) > 1 else types))
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


def _is_made(routine: Routine, call: CallText) -> bool:
    """Whether a dispatch is on a tensor that the function makes itself, of a type that it chooses."""
    asked = re.match(r"\s*(\w+)\s*\.\s*(?:scalar_type|dtype)\b", call.arguments[0] if call.arguments else "")
    if asked is None:
        return False
    made = [d.value or "" for one in routine.walk() for d in one.declares if d.name == asked[1]]
    return any(re.search(r"\.to\(|\bk[A-Z]\w+|ScalarType::", value) for value in made)


def _dispatches(tree: CheckedTree, routine: Routine) -> Iterator[tuple[CallText, frozenset[str]]]:
    """The dispatches of a routine with the element types of each: a macro, or a switch made of cases."""
    for one in routine.walk():
        for call in one.calls:
            types = _covered(call)
            if types is None and call.name.isupper() and "DISPATCH" in call.name and not _CASE.match(call.name):
                types = _of_macro(tree, routine.file, call.name, 0) or None
            if types is not None:
                yield call, types
        told = _compared(one)
        if told is not None:
            yield told
        cases = [c for held in one.walk() for c in held.calls if _CASE.match(c.name)] if one.kind == "switch" else []
        if cases:
            yield replace(cases[0], name="AT_DISPATCH_SWITCH", line=one.line), frozenset().union(*map(_of_case, cases))


def _compared(one: Statement) -> tuple[CallText, frozenset[str]] | None:
    """The element types of a chain of ``if``s, or of a ``switch``, over a tensor's type that fails for all others."""
    types: set[str] = set()
    if one.kind == "switch" and re.search(r"\b(?:scalar_type|dtype)\(\)", one.text):
        labels = [(held, _LABEL.fullmatch(held.text.strip())) for held in one.body if held.kind == "case"]
        types = {found[1] for _, found in labels if found}
        last: tuple[Statement, ...] = next((held.body for held, _ in labels if not held.text), ())
        name = "switch"
    else:
        last, name, held = (), "if", one
        while held.kind == "if" and (found := _EQUALS.search(held.text)):
            types.add(found[1])
            last = held.orelse
            if len(last) != 1 or last[0].kind != "if":
                break
            held = last[0]
    fails = any(_FAILS.search(part.text) or part.kind == "throw" for first in last for part in first.walk())
    if len(types) < 2 or not fails:
        return None
    return CallText(f"the {name} over its types", None, None, (), one.line, one.text), frozenset(types)


def _of_macro(tree: CheckedTree, file: str, name: str, depth: int) -> frozenset[str]:
    """The element types that the cases of a project's own macro cover."""
    bodies = _bodies(tree, file).get(name, ())
    if len(bodies) != 1 or depth > 3:
        return frozenset()  # unknown, or one for each build
    out: set[str] = set()
    for found in _CASES.finditer(bodies[0]):
        out |= set(_FAMILIES[found[1]]) if found[1] else {found[2]}
    for other in set(re.findall(r"\b([A-Z]\w*DISPATCH\w*)\s*\(", bodies[0])) - {name}:
        family = _MACRO.match(other)
        out |= set(_FAMILIES[family[1]]) if family and not (family[2] or family[3]) else set()
        out |= _of_macro(tree, file, other, depth + 1) if family is None else set()
    return frozenset(out)


@lru_cache(maxsize=64)
def _bodies(tree: CheckedTree, file: str) -> dict[str, tuple[str, ...]]:
    """The bodies of the macros that a file sees."""
    out: dict[str, set[str]] = {}
    for path in tree.included(file):
        for one in tree.macros(path):
            if one.body and "DISPATCH" in one.name:
                out.setdefault(one.name, set()).add(one.body)
    return {name: tuple(sorted(bodies)) for name, bodies in out.items()}


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
    """A function's name without what tells a forward from a backward; empty where there is nothing else."""
    short = name.rsplit("::", 1)[-1].lower()
    words = [word for word in re.split(r"_+", short) if word]
    kept = [word for word in words if not _SIDES.fullmatch(word)]
    return "_".join(kept)


RULE = Rule("dispatch-missing-dtype", "warning", _run, spread="own")
