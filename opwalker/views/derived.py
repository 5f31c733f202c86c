"""Shapes that code shows: ``int heads = key.size(1)`` names a dimension, ``CHECK(x.dim() == 2)`` gives the rank.

In: the functions of a walk, as values at the host function. Out: what they say of each tensor parameter, and how that
compares with what is documented. A contradiction needs ground: a rank that a check excludes, a dimension that is read
and not there, a number that differs, or a documented name that the code binds to another dimension of the same tensor.
Other names for one dimension are no contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from opwalker.model.reach import LaunchSite
from opwalker.model.walk import Contradiction, DerivedFact, ParameterFact, ShapeSource
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression, terms
from opwalker.notation.regex import Regex
from opwalker.notation.tensor_expression import as_comparison, asked, dimension_of, extents_of, rank_of, whole
from opwalker.views.branches import Branches, Guard, compiled_under, needed
from opwalker.views.checks import demands_of
from opwalker.views.values import Values

_ELLIPSIS = ("...", "..", "…")
_UNKNOWN = "?"
#: Which name of a dimension is shown where there are several.
_WEIGHT = {"named": 0, "checked": 1, "passed": 2}
#: Types of parameters that are one value and have no shape.
_VALUE = Regex(r"(?:const\s+)?(?:std::)?(?:int|bool|float|double|long|size_t|u?int(?:8|16|32|64)_t)(?:\s+const)?\Z")
#: A number by such a name is an address, and the shape is that of what lies there.
_ADDRESS = Regex(r"(?i)(?:_|\A)(?:data_?)?(?:ptrs?|addr(?:ess)?|pointer)\Z|Ptr\Z")


def derived_facts(
    values: Values,
    host: Values,
    tensors: Sequence[str],
    launches: Sequence[LaunchSite] = (),
    entered: tuple[str, ...] = (),
    anchors: Sequence[int] = (),
) -> Iterator[tuple[str, DerivedFact]]:
    """What one function says of the host function's tensors, ``(tensor, fact)``; ``launches`` are those in its body,
    ``entered`` the conditions under which it is entered: what it demands, it demands there. ``anchors`` are where it
    goes on to what is done with them."""
    body = values.body
    branches = Branches(body)

    def of(name: str, offset: int) -> str | None:
        """The host's tensor that a name means."""
        if not re.fullmatch(r"\w+", name):
            return None
        where, text, _ = values.origin(name, offset, tensor=True)
        return text if where is host and text in tensors else None

    def under(guards: Sequence[Guard], name: str) -> tuple[str, ...]:
        return tuple(said(g.condition) for g in needed(guards) if not _presence(g.condition, name))

    for local in body.facts.locals:
        if local.value is None or local.type in ("using", "namespace", "using namespace") or not local.name:
            continue
        found = dimension_of(parse_expression(_initialiser(body.text(local.value))))
        tensor = of(found[0], local.start) if found else None
        if found and tensor is not None:
            conditions = under(branches.around(local.block), found[0])
            line = body.use_line(local.start)
            yield tensor, DerivedFact(found[1], local.name, "named", body.path, line, conditions)
    for site in launches:
        kernel = site.kernels[0].function
        for parameter, span in zip(kernel.parameters, site.passed, strict=False):
            found = dimension_of(parse_expression(body.text(span)))
            tensor = of(found[0], span[0]) if found else None
            if found and tensor is not None and parameter.name:
                conditions = under(branches.around(branches.innermost(site.at)), found[0])
                line = body.use_line(span[0])
                yield tensor, DerivedFact(found[1], parameter.name, "passed", body.path, line, conditions)
    for demand in demands_of(body):
        for name, dimension, text, how in _demanded(demand.condition):
            tensor = of(name, demand.offset)
            if tensor is not None:
                compiled = (said(one.condition) for one in compiled_under(body, demand.offset, anchors))
                conditions = tuple(dict.fromkeys((*entered, *under(demand.guards, name), *compiled)))
                yield tensor, DerivedFact(dimension, text, how, body.path, demand.line, conditions)


def _initialiser(text: str) -> str:
    return text[1:-1] if text[:1] in "({" and text[-1:] in ")}" else text


def _presence(condition: Expr, tensor: str) -> bool:
    """Whether a condition only says that the tensor is there."""
    found = asked(condition)
    if found and found[1] in ("has_value", "defined"):
        return found[0] == tensor
    return print_expression(condition) == tensor


def _demanded(expr: Expr) -> Iterator[tuple[str, int | None, str, str]]:
    """``(tensor, dimension, text, how)`` of what a demanded condition says of shapes."""
    expr = as_comparison(expr)
    ranks = [_rank(part) for part in terms(expr, "||")]
    if all(ranks) and len({name for name, _ in ranks if name}) == 1:
        yield ranks[0][0], None, " or ".join(str(number) for _, number in ranks), "rank"
        return
    if expr.kind != "binary" or expr.text != "==":
        return
    for left, right in (expr.parts, expr.parts[::-1]):
        found = dimension_of(left)
        if found is not None and dimension_of(right) != found:
            yield found[0], found[1], print_expression(right), "checked"
        told = asked(left)
        if told and told[1] in ("sizes", "shape") and not told[2]:
            extents = extents_of(right)
            if extents is not None:
                yield told[0], None, str(len(extents)), "rank"
                for number, extent in enumerate(extents):
                    if dimension_of(extent) == (told[0], number):
                        continue  # a size that equals itself says nothing
                    yield told[0], number, print_expression(extent), "checked"


def _rank(expr: Expr) -> tuple[str, int] | None:
    if expr.kind != "binary" or expr.text != "==":
        return None
    for left, right in (expr.parts, expr.parts[::-1]):
        name, number = rank_of(left), whole(right)
        if name is not None and number is not None:
            return name, number
    return None


def with_derived(parameter: ParameterFact, facts: Sequence[DerivedFact], file: str, line: int) -> ParameterFact:
    """A parameter with what code says of its shape, compared with what is documented; declared at the place given."""
    facts = tuple(dict.fromkeys(facts))
    if _VALUE.match(parameter.type) and parameter.sources and not _ADDRESS.search(parameter.name):
        wrong = tuple(
            Contradiction(s.text, s.span, parameter.type, f"{parameter.type} is one value", file, line)
            for s in parameter.sources
            if ("1",) not in s.alternatives
        )
        return replace(parameter, agrees=False if wrong else None, contradictions=wrong)
    if not facts:
        return parameter
    certain = [f for f in facts if not f.under]
    ranks: tuple[int, ...] = ()
    for one in certain:
        if one.how == "rank":
            found = tuple(int(text) for text in one.text.split(" or "))
            ranks = tuple(r for r in found if r in ranks) if ranks else found
    rank = ranks[0] if len(ranks) == 1 else None
    wrong, agreed = _compared(parameter.sources, certain, ranks)
    return replace(
        parameter,
        derived_shape=_shape([f for f in certain if f.dimension is not None], rank),
        rank=rank,
        ranks=ranks,
        derived_from=facts,
        agrees=False if wrong else True if agreed else None,
        contradictions=wrong,
    )


def _shape(facts: Sequence[DerivedFact], rank: int | None) -> tuple[str, ...] | None:
    """The dimensions by place: a name before what a check demands, ``?`` where nothing says."""
    front: dict[int, str] = {}
    back: dict[int, str] = {}
    for one in sorted(facts, key=lambda f: _WEIGHT.get(f.how, 0)):
        dimension = one.dimension or 0
        if rank is not None and dimension < 0:
            dimension += rank
        (front if dimension >= 0 else back).setdefault(dimension, one.text)
    if rank is not None:
        return tuple(front.get(number, _UNKNOWN) for number in range(rank))
    if not front and not back:
        return None
    ahead = [front.get(number, _UNKNOWN) for number in range(max(front, default=-1) + 1)]
    behind = [back.get(number, _UNKNOWN) for number in range(min(back, default=0), 0)]
    return (*ahead, "...", *behind)


def _compared(
    sources: Sequence[ShapeSource], facts: Sequence[DerivedFact], ranks: tuple[int, ...]
) -> tuple[tuple[Contradiction, ...], bool]:
    """Contradictions with the documented shapes, and whether anything was found to be the same.

    A documented shape with several readings is contradicted only where each of them is.
    """
    wrong: list[Contradiction] = []
    agreed = False
    for source in sources:
        readings = [_against(source, dims, facts, ranks) for dims in source.alternatives]
        agreed = agreed or any(same and not bad for bad, same in readings)
        if all(bad for bad, _ in readings):
            wrong += readings[0][0]
    return tuple(dict.fromkeys(wrong)), agreed


def _against(
    source: ShapeSource, dims: tuple[str, ...], facts: Sequence[DerivedFact], ranks: tuple[int, ...]
) -> tuple[list[Contradiction], bool]:
    open_ended = any(dim in _ELLIPSIS or dim.endswith("...") for dim in dims)
    wrong: list[Contradiction] = []
    same = miscounted = False
    told: set[int] = set()
    other: set[int] = set()

    def say(fact: DerivedFact, derived: str, reason: str) -> None:
        wrong.append(Contradiction(source.text, source.span, derived, reason, fact.file, fact.line))

    for fact in sorted(facts, key=lambda one: one.how != "rank"):
        if fact.how == "rank":
            allowed = [int(text) for text in fact.text.split(" or ")]
            if not open_ended and len(dims) not in allowed:
                miscounted = True
                say(fact, f"{fact.text} dimensions", f"{len(dims)} dimensions are documented, {fact.text} are demanded")
            same = same or (not open_ended and allowed == [len(dims)])
            continue
        place = _place(dims, fact.dimension or 0, open_ended)
        derived = f"dimension {fact.dimension} is {fact.text}"
        if place is None:
            if not open_ended and not miscounted:
                say(fact, derived, f"dimension {fact.dimension} of {len(dims)} documented ones is not there")
            continue
        documented = _normal(dims[place])
        said_here = _normal(fact.text)
        if documented == said_here:
            same = True
            told.add(place)
        elif documented.isdigit() and said_here.isdigit():
            say(fact, derived, f"dimension {fact.dimension} is documented as {dims[place]}")
        elif fact.how == "named" and documented.isidentifier():
            others = [n for n, dim in enumerate(dims) if _normal(dim) == said_here]
            if len(others) == 1 and not open_ended:
                reason = f"{fact.text} is documented as dimension {others[0]}, and dimension {place} as {dims[place]}"
                say(fact, derived, reason)
        elif fact.how == "checked" and documented.isidentifier() and said_here.isidentifier():
            other.add(place)  # a demand of another name: what is documented may be the same or not
    return wrong, same and other <= told


def _place(dims: tuple[str, ...], dimension: int, open_ended: bool) -> int | None:
    """The documented dimension that an index means; behind an ellipsis only indices from the end have a place."""
    marks = [n for n, dim in enumerate(dims) if dim in _ELLIPSIS or dim.endswith("...")]
    if dimension >= 0:
        return dimension if dimension < (marks[0] if open_ended else len(dims)) else None
    behind = len(dims) + dimension
    return behind if behind >= 0 and (not open_ended or behind > marks[-1]) else None


def _normal(text: str) -> str:
    """A dimension's text without blanks, casts and trailing underscores."""
    plain = re.sub(r"\((?:u?int\d*(?:_t)?|size_t|long|int)\)", "", "".join(text.split()))
    return re.sub(r"static_cast<[^<>]*>\((.*)\)", r"\1", plain).rstrip("_")
