"""Template parameters deduced from types, and printed arguments read back.

In: type patterns and canonical types. Out: terms by parameter name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwalker.expand.shapes import Shape, shape
from opwalker.expand.terms import (
    INTEGERS,
    ConstTerm,
    FunctionTerm,
    ListTerm,
    PackTerm,
    Term,
    TypeTerm,
    Unknown,
    print_term,
)
from opwalker.expand.tokens import names_any
from opwalker.notation.regex import Regex

QUALIFIER = Regex(r"\b(?:const|volatile|typename|constexpr|static|struct|class|enum)\b|\b__restrict__\b")
_ENUM = Regex(r"\(([\w: ]+)\)(-?\d+)")
_NUMBER = Regex(r"(-?\d+)(u|l|ul|ll|ull)?")
_WORD = Regex(r"[A-Za-z_]\w*")


class Mismatch(Exception):
    """The type passed can never fit the pattern."""


#: torch's names for one class of accessors, by the type of an index.
_ACCESSOR = Regex(r"PackedTensorAccessor(?:32|64)?\Z")


def literal_term(text: str) -> Term:
    """A printed template argument as the term that it was."""
    text = text.strip()
    if text in ("true", "false"):
        return ConstTerm(int(text == "true"), "bool")
    enum = _ENUM.fullmatch(text)
    if enum:
        return ConstTerm(int(enum.group(2)), enum.group(1))
    number = _NUMBER.fullmatch(text)
    if number:
        kinds = {
            "u": "unsigned int",
            "l": "long",
            "ul": "unsigned long",
            "ll": "long long",
            "ull": "unsigned long long",
        }
        return ConstTerm(int(number.group(1)), kinds.get(number.group(2) or "", "int"))
    return FunctionTerm(text) if text.startswith("&") else TypeTerm(text)


def deduce(pattern: str, actual: str, names: set[str]) -> dict[str, Term]:
    """Template parameters that a parameter's type pattern fixes, given an argument's canonical type; none where they
    do not fit each other."""
    try:
        return unify(pattern, actual, names)
    except Mismatch:
        return {}


def unify(pattern: str, actual: str, names: set[str], canonical: Callable[[str], str] | None = None) -> dict[str, Term]:
    """As ``deduce``; raises Mismatch where the argument can never fit. ``canonical`` spells a piece of the pattern
    that holds no parameter, and may raise Unknown: then the piece fits anything."""
    found: dict[str, Term] = {}
    _unify(shape(pattern), shape(actual), names, found, canonical, True)
    return found


def deduced_pack(patterns: Sequence[str], actuals: Sequence[str | None], name: str) -> PackTerm:
    """A parameter pack that the parameters of a function fix, given the types of all its arguments; empty where none
    names it. Raises Unknown where they do not, or one that matters is not known."""
    for number, pattern in enumerate(patterns):
        if not names_any(pattern, (name,)):
            continue
        if pattern.rstrip().endswith("..."):
            one = pattern.rstrip()[:-3].strip()
            held = [deduce(one, kind, {name}).get(name) if kind else None for kind in actuals[number:]]
            if None not in held:
                return PackTerm(tuple(held))
        elif number < len(actuals) and actuals[number] is not None:
            found = deduce(pattern, actuals[number], {name}).get(name)
            if isinstance(found, PackTerm):
                return found
        raise Unknown(f"the pack `{name}` of a lambda is not deduced")
    return PackTerm(())


def _unify(want: Shape, have: Shape, names, found: dict[str, Term], canonical, outer: bool) -> None:
    wanted, held = list(want.marks), list(have.marks)
    constant_have, constant_want = have.const, want.const
    if outer:
        # A parameter that is no reference takes a copy; a reference binds to what it refers to.
        while wanted and wanted[-1] in ("&", "&&"):
            wanted.pop()
        while held and held[-1] in ("&", "&&"):
            held.pop()
        if not held and not wanted and not want.marks:
            constant_have = False
    while wanted and held:
        if wanted[-1] == held[-1]:
            pass
        elif wanted[-1] == "*" and held[-1].startswith("["):
            pass  # an array decays
        elif wanted[-1].startswith("[") and held[-1].startswith("["):
            _extent(wanted[-1][1:-1], held[-1][1:-1], names, found)
        else:
            raise Mismatch
        wanted.pop()
        held.pop()
    if want.parameters is not None:
        _function(want, have, names, found, canonical)
        return
    if wanted:
        if want.base in names or have.base not in INTEGERS:
            raise Mismatch
        raise Mismatch
    if want.base in names:
        if outer and held and held[-1].startswith("[") and not want.marks:
            held[-1] = "*"
        const = constant_have and not constant_want
        rest = Shape(have.base, const, tuple(held), have.parameters)
        _bind(found, want.base, literal_term(rest.text))
        return
    if held:
        raise Mismatch
    _base(want, have, names, found, canonical)


def _base(want: Shape, have: Shape, names, found, canonical) -> None:
    """Two names with their arguments."""
    left, right = want.arguments, have.arguments
    mentioned = names.intersection(_WORD.findall(want.base))
    if left is None or not mentioned:
        if mentioned:
            return  # `typename T::type`: nothing is deduced from it
        if canonical is not None:
            try:
                spelt = canonical(want.base)
            except Unknown:
                return
            if _squeezed(spelt) != _squeezed(have.base):
                raise Mismatch
        return
    name = want.base[: want.base.index("<")].strip().rsplit("::", 1)[-1]
    if want.base[want.base.rindex(">") :].strip(" >"):
        return  # a member of a template: not deduced
    if _ACCESSOR.match(name):
        name = "GenericPackedTensorAccessor"
    if name in ("index_sequence", "make_index_sequence"):
        name, left = "integer_sequence", ("unsigned long", *left)
    if right is None:
        raise Mismatch
    have_name = have.base[: have.base.index("<")].strip().rsplit("::", 1)[-1]
    if name in names:
        _bind(found, name, TypeTerm(have.base[: have.base.index("<")].strip()))
    elif name != have_name:
        raise Mismatch
    _arguments(left, right, names, found, canonical)


def _arguments(left: tuple[str, ...], right: tuple[str, ...], names, found, canonical) -> None:
    for number, one in enumerate(left):
        if one.endswith("..."):
            inner = one[:-3].strip()
            _pack(inner, right[number:], names, found, canonical)
            return
        if number >= len(right):
            raise Mismatch
        argument(one, right[number], names, found, canonical)
    if len(right) > len(left) and not any(p.endswith("...") for p in left):
        return  # what stands behind is given by defaults


def _pack(pattern: str, texts: tuple[str, ...], names, found, canonical) -> None:
    """A pack's pattern against each of the arguments that are left."""
    each: dict[str, list[Term]] = {n: [] for n in names.intersection(_WORD.findall(pattern))}
    for text in texts:
        one: dict[str, Term] = {}
        argument(pattern, text, names, one, canonical)
        for name, held in each.items():
            if name not in one:
                return
            held.append(one[name])
    for name, held in each.items():
        _bind(found, name, PackTerm(tuple(held)))


def argument(pattern: str, text: str, names, found: dict[str, Term], canonical=None) -> None:
    """One template argument of a pattern against a printed one. Raises Mismatch."""
    if pattern in names:
        _bind(found, pattern, literal_term(text))
        return
    given = literal_term(text)
    if isinstance(given, TypeTerm):
        _unify(shape(pattern), shape(text), names, found, canonical, False)
        return
    if names.intersection(_WORD.findall(pattern)):
        return  # an expression: not deduced
    wanted = literal_term(pattern)
    if isinstance(wanted, TypeTerm):
        if canonical is None:
            return
        try:
            wanted = literal_term(canonical(pattern))
        except Unknown:
            return
    if isinstance(wanted, ConstTerm) and isinstance(given, ConstTerm):
        if wanted.value != given.value:
            raise Mismatch
    elif _squeezed(print_term(wanted, None)) != _squeezed(text):
        raise Mismatch


def _function(want: Shape, have: Shape, names, found, canonical) -> None:
    """A pointer to a function: result and parameters."""
    if have.parameters is None:
        raise Mismatch
    _unify(shape(want.base), shape(have.base), names, found, canonical, False)
    _arguments(want.parameters, have.parameters, names, found, canonical)


def _extent(want: str, have: str, names, found) -> None:
    if want in names and have:
        _bind(found, want, literal_term(have))


def _bind(found: dict[str, Term], name: str, term: Term) -> None:
    held = found.setdefault(name, term)
    if held == term:
        return
    if isinstance(held, ConstTerm) and isinstance(term, ConstTerm) and held.value == term.value:
        return
    raise Mismatch


def _squeezed(text: str) -> str:
    return "".join(text.split())


def as_type(term: Term, kind: str) -> ConstTerm:
    """A constant converted to a canonical type. Raises Unknown for what is no number."""
    if isinstance(term, ListTerm) and len(term.items) == 1:
        term = term.items[0]
    if not isinstance(term, ConstTerm):
        raise Unknown("a number was expected")
    if kind == "bool":
        return ConstTerm(int(bool(term.value)), "bool")
    if kind in INTEGERS and not isinstance(term.value, float):
        return ConstTerm(int(term.value), kind)
    return ConstTerm(term.value, kind)
