"""Tensors of a host function: what is asked of their layout, what their pointers are, where those go.

In: a routine. Out: facts about a tensor by name, each with its line; and pointers that a call or launch is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from opwalker.model.check import CheckedTree
from opwalker.model.statements import Routine, Statement
from opwalker.rules._launches import Site

#: A pointer taken from a tensor: ``x.data_ptr<float>()``, ``x.value().const_data_ptr()``.
POINTER = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z_]\w*)(?P<way>(?:(?:\.|->)(?!\w*data_ptr\b)[a-z]\w*(?:<[^<>]*>)?\((?:[^()]|\([^()]*\))*\))*)"
    r"\s*(?:\.|->)\s*(?:template\s+)?(?:mutable_|const_)?data_ptr\b"
)
_TENSOR = re.compile(r"\bTensor\b")
_CHECK = re.compile(r"\w*(?:CHECK|ASSERT|ENFORCE|assert|check)\w*\Z")


class Pointer(Struct, frozen=True):
    """A pointer to a tensor's data among the arguments of a call: which argument, of which tensor, and what is called
    on the tensor before (``.contiguous()``)."""

    number: int
    tensor: str
    way: str


def is_tensor(kind: str) -> bool:
    """Whether a type is a tensor, an optional one, or a reference to either."""
    return bool(_TENSOR.search(kind)) and "vector" not in kind and "List" not in kind and "*" not in kind


def tensor_parameters(routine: Routine) -> list[str]:
    """The names of a routine's tensor parameters."""
    return [one.name for one in routine.parameters if is_tensor(one.type)]


def pointers(arguments: Sequence[str], known: dict[str, str]) -> Iterator[Pointer]:
    """The data pointers among arguments; a local that holds one counts as the pointer it is made of."""
    for number, argument in enumerate(arguments):
        plain = re.sub(r"(?:reinterpret|static|const)_cast<(?:[^<>]|<[^<>]*>)*>", "", argument).strip("()& ")
        found = POINTER.search(known.get(plain, argument))
        if found is not None:
            yield Pointer(number, found["name"], found["way"])


def questions(statements: Iterator[Statement] | Sequence[Statement]) -> Iterator[tuple[str, int, bool]]:
    """Conditions that a routine asks: ``(text, line, demanded)``; ``demanded`` is true for a check that fails."""
    for one in statements:
        for call in one.calls:
            if _CHECK.match(call.simple):
                for argument in call.arguments[:1] if call.simple.isupper() else call.arguments:
                    yield argument, call.line, True
        if one.kind in ("if", "while"):
            yield one.text, one.line, False


def stands_for(routine: Routine, tensor: str) -> Iterator[tuple[str, Iterator[Statement]]]:
    """The names that a tensor is asked under, each with the statements in which it is: its own, and the variable of a
    loop over a list that holds it (``for (const Tensor* one : {&x, &y}) CHECK(one->is_contiguous())``)."""
    yield tensor, routine.walk()
    held = re.compile(rf"[{{,(]\s*&?\s*{re.escape(tensor)}\s*[,)}}]")
    for one in routine.walk():
        if one.kind == "range for" and one.declares and "{" in one.text and held.search(one.text):
            yield one.declares[0].name, (part for inner in one.body for part in inner.walk())


def layout_line(routine: Routine, tensor: str) -> int | None:
    """The line on which a routine asks for (or makes) the layout of a tensor: a check that it is contiguous, a rebind
    to ``.contiguous()``, a question for a stride, a project's own check named for it."""
    for known, statements in stands_for(routine, tensor):
        name = re.escape(known)
        asked = re.compile(
            rf"\b{name}\s*(?:\.|->)\s*(?:value\(\)\s*\.\s*)?(?:is_contiguous|stride|strides|is_non_overlapping_and_dense|sym_strides?)\b"
            rf"|\b\w*(?:contig|CONTIG|dense|DENSE|CHECK_INPUT|CHECK_CUDA_INPUT|check_tensor|CheckTensor)\w*\s*\((?:[^()]|\([^()]*\))*\b{name}\b"
        )
        for one in statements:
            if asked.search(one.text) or asked.search(one.written):
                return one.line
            for assigned in one.assigns:
                if assigned.target == known and "contiguous" in assigned.value:
                    return assigned.line
    return None


def contiguous_above(tree: CheckedTree, routine: Routine, tensor: str, depth: int = 0) -> bool:
    """Whether every caller asks for the layout of what it passes as a parameter (or makes it itself)."""
    names = [one.name for one in routine.parameters]
    calls = tree.callers(routine)
    if tensor not in names or not calls or depth > 3:
        return False
    number = names.index(tensor)
    for one in calls:
        if number >= len(one.call.arguments):
            return False
        passed = one.call.arguments[number].strip("*& ")
        if "contiguous()" in passed:
            continue
        if not re.fullmatch(r"\w+", passed):
            return False
        if layout_line(one.caller, passed) is None and not _made_here(one.caller, passed):
            if not contiguous_above(tree, one.caller, passed, depth + 1):
                return False
    return True


def _made_here(routine: Routine, name: str) -> bool:
    """Whether a tensor is made in a routine, so that its layout is known."""
    made = re.compile(r"\b(?:empty|zeros|ones|full|new_empty|new_zeros|contiguous|clone|arange)\b")
    return any(d.name == name and d.value and made.search(d.value) for one in routine.walk() for d in one.declares)


def made_here(routine: Routine, name: str) -> bool:
    """Whether a tensor is made in a routine by an allocation or a copy."""
    return _made_here(routine, name)


def handed(site: Site) -> tuple[str, ...]:
    """The arguments of a launch."""
    return site.arguments
