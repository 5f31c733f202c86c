"""Template parameters deduced from types, and printed arguments read back.

In: type patterns and canonical types. Out: terms by parameter name.
"""

from __future__ import annotations

import re

from opwalker.expand.terms import INTEGERS, ConstTerm, FunctionTerm, Term, TypeTerm, Unknown
from opwalker.facts.cpp_brackets import split_commas

QUALIFIER = re.compile(r"\b(?:const|volatile|typename|constexpr|static|struct|class|enum)\b|\b__restrict__\b")


def literal_term(text: str) -> Term:
    """A printed template argument as the term that it was."""
    text = text.strip()
    if text in ("true", "false"):
        return ConstTerm(int(text == "true"), "bool")
    enum = re.fullmatch(r"\(([\w:]+)\)(-?\d+)", text)
    if enum:
        return ConstTerm(int(enum.group(2)), enum.group(1))
    number = re.fullmatch(r"(-?\d+)(u|l|ul|ll|ull)?", text)
    if number:
        kind = {"u": "unsigned int", "l": "long", "ul": "unsigned long"}.get(number.group(2) or "", "int")
        return ConstTerm(int(number.group(1)), kind)
    return FunctionTerm(text) if text.startswith("&") else TypeTerm(text)


def deduce(pattern: str, actual: str, names: set[str]) -> dict[str, Term]:
    """Template parameters that a parameter's type pattern fixes, given an argument's canonical type."""
    shape = " ".join(QUALIFIER.sub(" ", pattern).split()).replace(" ", "")
    given = actual.replace(" const", "").replace(" ", " ").strip()
    while shape.endswith("&"):
        shape = shape[:-1]
    while given.endswith("&"):
        given = given[:-1]
    while shape.endswith("*") and given.endswith("*"):
        shape, given = shape[:-1], given[:-1].strip()
    if shape in names:
        return {shape: literal_term(given)}
    if shape.endswith(">") and given.endswith((">", "> ")):
        at, bt = shape.find("<"), given.find("<")
        if shape[:at].rsplit("::", 1)[-1] != given[:bt].rsplit("::", 1)[-1]:
            return {}
        left = [shape[at + 1 : -1][a:b] for a, b in split_commas(shape[at + 1 : -1])]
        inside = given[bt + 1 : given.rindex(">")]
        right = [inside[a:b].strip() for a, b in split_commas(inside)]
        out: dict[str, Term] = {}
        for one, other in zip(left, right, strict=False):
            out.update(deduce(one, other, names))
        return out
    return {}


def as_type(term: Term, kind: str) -> ConstTerm:
    """A constant converted to a canonical type. Raises Unknown for what is no number."""
    if not isinstance(term, ConstTerm):
        raise Unknown("a number was expected")
    if kind == "bool":
        return ConstTerm(int(bool(term.value)), "bool")
    if kind in INTEGERS and not isinstance(term.value, float):
        return ConstTerm(int(term.value), kind)
    return ConstTerm(term.value, kind)
