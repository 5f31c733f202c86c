"""Conditions of host code in words: ``x.dim() == 1 || x.dim() == 2`` is "x has 1 or 2 dimensions".

In: a condition as an ``Expr``. Out: a clause without a full stop, or None where nothing of it has a word and the code
is the best that can be shown. What has no word inside a clause stands there as code. A word is only used where it says
exactly what the code says; names of methods are those of public tensor interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from opwalker.notation.cpp_expression import Expr, negated, parse_expression, print_expression, terms
from opwalker.notation.regex import Regex
from opwalker.notation.said_once import is_constant, said_once, without_truths
from opwalker.notation.some_builds import is_of_some_builds
from opwalker.notation.tensor_expression import (
    as_comparison,
    asked,
    dimension_of,
    extents_of,
    rank_of,
    scalar_type,
    stride_of,
    tensor_of,
    whole,
)

#: What a tensor, an optional or a device is asked, without arguments: as a predicate and its opposite.
_ASKED = {
    "is_contiguous": ("is contiguous", "is not contiguous"),
    "IsContiguous": ("is contiguous", "is not contiguous"),
    "is_cuda": ("is on the GPU", "is not on the GPU"),
    "is_hip": ("is on the GPU", "is not on the GPU"),
    "is_cpu": ("is on the CPU", "is not on the CPU"),
    "is_meta": ("is on the meta device", "is not on the meta device"),
    "has_value": ("is given", "is not given"),
    "defined": ("is given", "is not given"),
    "empty": ("is empty", "is not empty"),
    "is_sparse": ("is sparse", "is not sparse"),
    "is_floating_point": ("is of a floating-point type", "is not of a floating-point type"),
    "is_complex": ("is of a complex type", "is not of a complex type"),
    "requires_grad": ("requires a gradient", "requires no gradient"),
    "is_non_overlapping_and_dense": ("is dense without overlaps", "is not dense or overlaps"),
}
_PLURAL = {"is": "are", "has": "have", "requires": "require"}
#: A clause about one thing: the thing, and what is said of it.
_PREDICATE = Regex(r"([\w.:\[\]>-]+) ((?:is|has|requires) .+)\Z")
_TYPE = frozenset(("scalar_type", "dtype", "type", "options_dtype"))
_DEVICE = frozenset(("device", "get_device", "get_device_index"))
_SHAPE = frozenset(("sizes", "sym_sizes", "shape"))
_COUNT = frozenset(("numel", "sym_numel"))
_COMPARED = {"<": "is less than", "<=": "is at most", ">": "is greater than", ">=": "is at least"}
_MOST = {"<": "fewer than ", "<=": "at most ", ">": "more than ", ">=": "at least "}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_ENUMERATOR = Regex(r"((?:\w+::)+)(k[A-Z]\w*|[A-Z]\w*)\Z")
_GPU = Regex(r"(?:\w+::)*(?:DeviceType::|k)?(?:CUDA|kDLCUDA|HIP|PrivateUse1)\Z")
_CPU = Regex(r"(?:\w+::)*(?:DeviceType::|k)?(?:CPU|kDLCPU)\Z")
#: What stands for nothing on the right of a comparison, and how its left side is called then.
_NOTHING = {
    "nullptr": ("is null", "is not null"),
    "NULL": ("is null", "is not null"),
    **dict.fromkeys(("std::nullopt", "c10::nullopt", "nullopt"), ("is not given", "is given")),
}
_PLACES = {-1: "the last dimension", -2: "the second-last dimension"}


def in_words(condition: Expr | str) -> str | None:
    """The clause that a condition says; None where it would be code alone."""
    expr = parse_expression(condition) if isinstance(condition, str) else condition
    return _clause(without_truths(expr))


def said(condition: Expr | str) -> str:
    """The clause that a condition says, or its code."""
    expr = parse_expression(condition) if isinstance(condition, str) else condition
    expr = without_truths(expr)
    return _clause(expr) or print_expression(expr)


def _clause(expr: Expr) -> str | None:
    expr = as_comparison(expr)
    if is_of_some_builds(expr):
        several = expr.parts[0].kind == "binary" and expr.parts[0].text in ("&&", "||")
        return (f"({said(expr.parts[0])})" if several else said(expr.parts[0])) + expr.text
    if expr.kind == "binary" and expr.text in ("&&", "||"):
        return _joined(terms(expr, expr.text), expr.text)
    if expr.kind == "unary" and expr.text == "!":
        inner = expr.parts[0]
        opposite = negated(inner)
        if opposite != expr:
            return _clause(opposite)
        return _asked(inner, 1)
    if expr.kind == "binary" and expr.text in _TURNED:
        return _comparison(expr)
    return _asked(expr, 0)


def _asked(expr: Expr, opposite: int) -> str | None:
    """A question with yes or no for an answer: ``x.is_contiguous()``."""
    found = asked(expr)
    if found is None and expr.kind == "member" and expr.simple == "requires_grad":
        found = (tensor_of(expr.parts[0]), expr.simple, ())
    if found is None or found[1] not in _ASKED:
        return None
    subject = found[0].removesuffix(".device()").removesuffix("->device()")
    words = f"{subject} {_ASKED[found[1]][opposite]}"
    if found[2]:
        words += f" in {', '.join(print_expression(a) for a in found[2])}"
    return words


def _joined(parts: Sequence[Expr], operator: str) -> str | None:
    """The parts of a chain of ``&&`` or ``||``; what several say of one thing is said once."""
    word = "and" if operator == "&&" else "or"
    parts = said_once(parts, operator)
    if len(parts) == 1:
        return _clause(parts[0])
    if operator == "||":
        merged = _choices(parts)
        if merged is not None:
            return merged
        present = _present(parts[0])
        if present is not None:
            rest = parts[1] if len(parts) == 2 else None
            behind = (_clause(rest) or print_expression(rest)) if rest is not None else _joined(parts[1:], "||")
            if behind is not None:
                return f"where {present}, {behind}"
    else:
        none = _none_of(parts)
        if none is not None:
            return none
    clauses = [_clause(part) for part in parts]
    if not any(clauses):
        return None
    shown = []
    for part, clause in zip(parts, clauses, strict=True):
        text = clause or print_expression(part)
        # An "or" inside an "and" (or the other way) needs its own limits.
        mixed = part.kind == "binary" and part.text in ("&&", "||") and part.text != operator
        shown.append(f"({text})" if mixed else text)
    if operator == "&&":
        shown = _factored(shown)
    return listed(shown, word, ", " if len(shown) > 2 else " ")


def _factored(clauses: Sequence[str]) -> list[str]:
    """What clauses say of one thing drawn together, and the one thing that several are said of: ``a and b are …``."""
    split = [_PREDICATE.match(clause) for clause in clauses]
    predicates = {match[2] for match in split if match}
    if len(clauses) > 1 and all(split) and len(predicates) == 1 and len({m[1] for m in split if m}) == len(clauses):
        verb, rest = predicates.pop().split(" ", 1)
        return [f"{listed([match[1] for match in split if match], 'and')} {_PLURAL[verb]} {rest}"]
    out: list[str] = []
    subject = None
    for clause, match in zip(clauses, split, strict=True):
        same = match is not None and match[1] == subject
        out.append(match[2] if match is not None and same else clause)
        subject = match[1] if match else None
    return out


def listed(texts: Sequence[str], word: str, before: str = " ") -> str:
    """``a, b or c``."""
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])}{before}{word} {texts[-1]}"


def _choices(parts: Sequence[Expr]) -> str | None:
    """Several equalities of one left side: ``x.dim() == 1 || x.dim() == 2``; None for anything else."""
    pairs = [_equality(part) for part in parts]
    if any(pair is None for pair in pairs) or len({pair[0] for pair in pairs if pair}) != 1:
        return None
    left = pairs[0][0]
    return _equal(left, [pair[1] for pair in pairs if pair])


def _none_of(parts: Sequence[Expr]) -> str | None:
    """Several constants that one thing is not: ``n != 1 && n != 2``; None for anything else."""
    if len(parts) < 2 or any(p.kind != "binary" or p.text != "!=" or not is_constant(p.parts[1]) for p in parts):
        return None
    lefts = {print_expression(part.parts[0]) for part in parts}
    if len(lefts) != 1 or rank_of(parts[0].parts[0]) or any(scalar_type(p.parts[1]) for p in parts):
        return None
    values = [_value(part.parts[1]) for part in parts]
    if len(values) == 2:
        return f"{_value(parts[0].parts[0])} is neither {values[0]} nor {values[1]}"
    return f"{_value(parts[0].parts[0])} is none of {listed(values, 'and')}"


def _equality(expr: Expr) -> tuple[Expr, Expr] | None:
    if expr.kind != "binary" or expr.text != "==":
        return None
    left, right = expr.parts
    return (right, left) if is_constant(left) and not is_constant(right) else (left, right)


def _present(expr: Expr) -> str | None:
    """What is there where a condition does not hold that asks for its absence: ``!weight.has_value()``."""
    if expr.kind == "unary" and expr.text == "!":
        found = asked(expr.parts[0])
        return f"{found[0]} is given" if found and found[1] in ("has_value", "defined") else None
    if expr.kind == "binary" and expr.text == "==" and print_expression(expr.parts[1]) in _NOTHING:
        return f"{tensor_of(expr.parts[0])} {_NOTHING[print_expression(expr.parts[1])][1]}"
    return None


def _comparison(expr: Expr) -> str | None:
    left, right, operator = *expr.parts, expr.text
    if is_constant(left) and not is_constant(right):
        left, right, operator = right, left, _TURNED[operator]
    if operator == "==":
        return _equal(left, [right])
    if operator == "!=":
        return _unequal(left, right)
    subject = rank_of(left)
    if subject is not None:
        return f"{subject} has {_MOST[operator]}{_counted(right, 'dimension')}"
    found = asked(left)
    if found and found[1] in _COUNT:
        return f"{found[0]} has {_MOST[operator]}{_counted(right, 'element')}"
    return f"{_value(left)} {_COMPARED[operator]} {_value(right)}"


def _counted(expr: Expr, noun: str) -> str:
    number = whole(expr)
    return f"{_value(expr)} {noun}" if number == 1 else f"{_value(expr)} {noun}s"


def _equal(left: Expr, rights: Sequence[Expr]) -> str:
    """``left`` is one of ``rights``."""
    if left.kind == "binary" and left.text == "%" and len(rights) == 1 and whole(rights[0]) == 0:
        pointer = _pointer(left.parts[0])
        if pointer is not None:
            return f"{pointer} is aligned to {_counted(left.parts[1], 'byte')}"
        return f"{_value(left.parts[0])} is divisible by {_value(left.parts[1])}"
    subject = rank_of(left)
    if subject is not None:
        if len(rights) == 1 and (other := rank_of(rights[0])) is not None:
            return f"{subject} and {other} have equally many dimensions"
        return f"{subject} has {listed([_value(r) for r in rights], 'or')} dimension{_plural(rights)}"
    if len(rights) == 1:
        both = _same(left, rights[0])
        if both is not None:
            return both
        if (nothing := _NOTHING.get(print_expression(rights[0]))) is not None:
            return f"{tensor_of(left)} {nothing[0]}"
    of = _typed(left)
    if of is not None and all(scalar_type(r) for r in rights):
        return f"{of} is of type {listed([scalar_type(r) or '' for r in rights], 'or')}"
    found = asked(left)
    if found and found[1] in _COUNT and not any(_value(r).startswith(("dimension", "the ")) for r in rights):
        return f"{found[0]} has {listed([_value(r) for r in rights], 'or')} element{_plural(rights)}"
    shown = enumerators(rights)
    word = "is" if shown or all(is_constant(r) for r in rights) else "equals"
    return f"{_value(left)} {word} {listed(shown or [scalar_type(r) or _value(r) for r in rights], 'or')}"


def enumerators(values: Sequence[Expr]) -> list[str] | None:
    """Enumerators of one scope by their own names (``Mode::kAuto``: ``kAuto``); None for anything else."""
    found = [_ENUMERATOR.match(one.text) if one.kind == "name" else None for one in values]
    scopes = {match[1] for match in found if match}
    return [match[2] for match in found if match] if all(found) and len(scopes) == 1 else None


def _plural(numbers: Sequence[Expr]) -> str:
    return "" if len(numbers) == 1 and whole(numbers[0]) == 1 else "s"


def _pointer(expr: Expr) -> str | None:
    """The pointer in ``reinterpret_cast<uintptr_t>(p)``, which is tested for its alignment."""
    if expr.kind != "cast" or not re.search(r"\bu?int(?:ptr|64)_t\b|\bsize_t\b|\blong\b", expr.text):
        return None
    found = asked(expr.parts[0])
    if found and "data_ptr" in found[1]:
        return f"the data of {found[0]}"
    return print_expression(expr.parts[0]) if "intptr" in expr.text else None


def _typed(expr: Expr) -> str | None:
    """The tensor whose scalar type an expression is."""
    found = asked(expr)
    return found[0] if found and found[1] in _TYPE and not found[2] and not found[0].endswith("device()") else None


def _same(left: Expr, right: Expr) -> str | None:
    """What two tensors have in common where these two are equal."""
    one, other = asked(left), asked(right)
    first, second = dimension_of(left), dimension_of(right)
    if first and second and first[1] == second[1]:
        return f"{first[0]} and {second[0]} have the same size in {_place(first[1])}"
    if one and other and one[1] == other[1] and not one[2] and not other[2]:
        pair = f"{one[0]} and {other[0]}"
        for methods, words in (
            (_TYPE, "are of the same type"),
            (_DEVICE, "are on the same device"),
            (_SHAPE, "have the same shape"),
            (frozenset(("strides",)), "have the same strides"),
            (_COUNT, "have equally many elements"),
            (frozenset(("has_value", "defined")), "are both given or both not"),
        ):
            if one[1] in methods:
                return f"{pair} {words}"
    kinds = [_device_field(side) for side in (left, right)]
    if kinds[0] and kinds[1] and kinds[0][1] == kinds[1][1]:
        what = "kind of device" if kinds[0][1] == "device_type" else "device number"
        return f"{kinds[0][0]} and {kinds[1][0]} have the same {what}"
    if kinds[0] and kinds[0][1] == "device_type" and right.kind == "name":
        for pattern, place in ((_GPU, "GPU"), (_CPU, "CPU")):
            if pattern.match(right.text):
                return f"{kinds[0][0]} is on the {place}"
    if one and (one[1] == "device_type" or (one[1] == "type" and one[0].endswith("device()"))):
        subject = re.sub(r"(?:\.|->)device\(\)\Z", "", one[0])
        for pattern, place in ((_GPU, "GPU"), (_CPU, "CPU")):
            if right.kind == "name" and pattern.match(right.text):
                return f"{subject} is on the {place}"
    if one and one[1] == "device" and right.kind == "name":
        for pattern, place in ((_GPU, "GPU"), (_CPU, "CPU")):
            if pattern.match(right.text):
                return f"{one[0]} is on the {place}"
    if one and one[1] in _SHAPE and not one[2] and (extents := extents_of(right)) is not None:
        return f"{one[0]} has shape [{', '.join(_value(e) for e in extents)}]"
    return None


def _device_field(expr: Expr) -> tuple[str, str] | None:
    """``(tensor, field)`` of ``x.device().device_type`` and ``x.device().device_id``; None for anything else."""
    if expr.kind != "member" or expr.simple not in ("device_type", "device_id"):
        return None
    told = asked(expr.parts[0])
    return (told[0], expr.simple) if told and told[1] == "device" else None


def _unequal(left: Expr, right: Expr) -> str:
    if (nothing := _NOTHING.get(print_expression(right))) is not None:
        return f"{tensor_of(left)} {nothing[1]}"
    if left.kind == "binary" and left.text == "%" and whole(right) == 0:
        pointer = _pointer(left.parts[0])
        if pointer is not None:
            return f"{pointer} is not aligned to {_counted(left.parts[1], 'byte')}"
        return f"{_value(left.parts[0])} is not divisible by {_value(left.parts[1])}"
    subject = rank_of(left)
    if subject is not None and rank_of(right) is None:
        return f"{subject} does not have {_counted(right, 'dimension')}"
    of = _typed(left)
    if of is not None and scalar_type(right):
        return f"{of} is not of type {scalar_type(right)}"
    word = "is not" if is_constant(right) else "differs from"
    return f"{_value(left)} {word} {scalar_type(right) or _value(right)}"


def _place(dimension: int) -> str:
    return _PLACES.get(dimension, f"dimension {dimension}")


def _value(expr: Expr) -> str:
    """A value in words where it has some, otherwise its code."""
    if (found := dimension_of(expr)) is not None:
        return f"{_place(found[1])} of {found[0]}"
    if (found := stride_of(expr)) is not None:
        return f"the stride of {found[0]} in {_place(found[1])}"
    if (subject := rank_of(expr)) is not None:
        return f"the number of dimensions of {subject}"
    told = asked(expr)
    if told and told[1] in _COUNT and not told[2]:
        return f"the number of elements of {told[0]}"
    return print_expression(expr)
