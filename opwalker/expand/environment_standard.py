"""Templates of the standard library, of torch and of CuTe at a place: the part of ``Environment`` that knows them by
name.

In: a name with its arguments, each with the environment it is read in. Out: the term that it means, None for a template
that is not known here.
"""

from __future__ import annotations

from opwalker.expand import traits
from opwalker.expand.arithmetic import limit
from opwalker.expand.deduction import as_type
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.scalar_types import scalar_type_value
from opwalker.expand.terms import (
    ConstTerm,
    NoType,
    Term,
    TypeTerm,
    Unknown,
    flattened,
    join_arguments,
    print_term,
)
from opwalker.facts.cpp_brackets import split_commas

_SEQUENCES = {"make_index_sequence": "unsigned long", "make_integer_sequence": None}
_CONSTANTS = frozenset(("integral_constant", "bool_constant"))
_LOGIC = {"conjunction": all, "disjunction": any, "negation": lambda truths: not truths[0]}
#: Elements of one pack that are followed.
MAX_PACK = 4000


class StandardTemplates:
    """Templates that no source holds."""

    def _standard(self, text: str, parts, member: str | None) -> Term | None:
        """Templates of the standard library and of torch that are known by name; None for others."""
        scope, _, simple = text.rpartition("::")
        if scope and scope.removeprefix("::").split("::")[0] not in ("std", "cuda", "at", "c10", "torch", "cute"):
            return None
        base = simple.removesuffix("_t")
        if base in ("conditional", "enable_if") and parts:
            return self._conditional(base, parts)
        if simple in _CONSTANTS or (simple in ("Int", "C") and (scope == "cute" or not self._is_class(simple))):
            return self._constant_type(simple, parts, member)
        if simple in ("index_sequence", "integer_sequence", *_SEQUENCES):
            return self._sequence(simple, parts)
        if base == "void":
            return TypeTerm("void") if [s.type(t) for t, s in parts] else None
        if simple.removesuffix("_v") in _LOGIC and parts:
            truths = [self._truth(t, s) for t, s in parts]
            return self._answer(bool(_LOGIC[simple.removesuffix("_v")](truths)), simple, member)
        if simple.removesuffix("_v").startswith("is_") and parts and not self._is_class(simple):
            kinds = [s.type(t).text for t, s in parts]
            found = traits.truth(simple, kinds)
            return None if found is None else self._answer(found, simple, member)
        if base == "tuple_element" and len(parts) == 2:
            return self._tuple_element(parts)
        if simple == "CppTypeToScalarType" and len(parts) == 1:
            return self._scalar_type(parts, member)
        if simple == "numeric_limits" and len(parts) == 1 and not self._is_class(simple):
            kind = parts[0][1].type(parts[0][0]).text
            return limit(kind, member) if member else TypeTerm(f"std::numeric_limits<{kind}>")
        if not parts or (not scope and simple in self.tools.index.names_of_kind("class")):
            return None
        made = traits.made_type(simple, [parts[0][1].type(parts[0][0]).text]) if base in traits.TYPE_NAMES else None
        if made is not None:
            return TypeTerm(made)
        if scope.removeprefix("::") == "std" and simple == "vector" and len(parts) == 1 and member is None:
            held = join_arguments(self._printed_parts(parts))
            return TypeTerm(f"std::vector<{held.rstrip()}, std::allocator<{held}> >")
        if simple in traits.PLAIN_TEMPLATES.get(scope.removeprefix("::"), ()) and member is None:
            printed = self._printed_parts(parts)
            if simple == "array" and len(parts) == 2:
                printed[1] = print_term(as_type(value_of(evaluate(*parts[1])), "unsigned long"), None)
            return TypeTerm(f"{scope.removeprefix('::')}::{simple}<{join_arguments(printed)}>")
        return None

    def _is_class(self, simple: str) -> bool:
        return simple in self.tools.index.names_of_kind("class") or simple in self.tools.index.names_of_kind("alias")

    @staticmethod
    def _scalar_type(parts, member: str | None) -> Term | None:
        """torch's enumerator for a type, or the class that holds it."""
        value = scalar_type_value(parts[0][1].type(parts[0][0]).text)
        if value is None:
            return None
        if member == "value":
            return ConstTerm(value, "c10::ScalarType")
        return TypeTerm(f"std::integral_constant<c10::ScalarType, (c10::ScalarType){value}>")

    @staticmethod
    def _printed_parts(parts) -> list[str]:
        return [print_term(term, None) for term in flattened(s.term(t) for t, s in parts)]

    def _conditional(self, base: str, parts) -> TypeTerm:
        chosen = value_of(evaluate(parts[0][0], parts[0][1]))
        if chosen is None:
            raise Unknown(f"`{parts[0][0][:80]}` is not a constant that could be worked out")
        if base == "conditional":
            text, scope = parts[1 if chosen.value else 2]
            return scope.type(text)
        if not chosen.value:
            raise NoType(f"`{parts[0][0][:80]}` does not hold")
        return parts[1][1].type(parts[1][0]) if len(parts) > 1 else TypeTerm("void")

    @staticmethod
    def _truth(text: str, scope) -> bool:
        found = scope.type(text)
        held = value_of(scope.member(found, "value"))
        if held is None:
            raise Unknown(f"`{text[:80]}::value` is not known")
        return bool(held.value)

    @staticmethod
    def _answer(found: bool, simple: str, member: str | None) -> Term:
        if simple.endswith("_v") or member == "value":
            return ConstTerm(int(found), "bool")
        return TypeTerm(f"std::integral_constant<bool, {'true' if found else 'false'}>")

    def _constant_type(self, simple: str, parts, member: str | None) -> Term:
        value = value_of(evaluate(parts[-1][0], parts[-1][1]))
        if value is None:
            raise Unknown(f"`{parts[-1][0]}` is not a number")
        kind = "bool" if simple == "bool_constant" else parts[0][1].type(parts[0][0]).text if len(parts) > 1 else "int"
        if member in ("value", "kValue"):
            return as_type(value, kind)
        return TypeTerm(f"std::integral_constant<{kind}, {print_term(as_type(value, kind), kind)}>")

    def _sequence(self, simple: str, parts) -> TypeTerm:
        if simple == "index_sequence":
            kind, given = "unsigned long", parts
        elif simple == "make_index_sequence":
            kind, given = "unsigned long", None
        else:
            kind = parts[0][1].type(parts[0][0]).text
            given = parts[1:] if simple == "integer_sequence" else None
        if given is None:
            count = value_of(evaluate(parts[-1][0], parts[-1][1]))
            if count is None or not 0 <= count.value <= MAX_PACK:
                raise Unknown(f"the length of `{simple}` is not known")
            values: list[Term] = [ConstTerm(i, kind) for i in range(int(count.value))]
        else:
            values = [as_type(value_of(evaluate(t, s)), kind) for t, s in given]
        return TypeTerm(f"std::integer_sequence<{', '.join([kind, *(print_term(v, kind) for v in values)])}>")

    @staticmethod
    def _tuple_element(parts) -> TypeTerm:
        number = value_of(evaluate(parts[0][0], parts[0][1]))
        held = parts[1][1].type(parts[1][0]).text
        inner = held[held.find("<") + 1 : held.rindex(">")] if "<" in held else ""
        listed = [inner[a:b].strip() for a, b in split_commas(inner)]
        if number is None or not 0 <= number.value < len(listed):
            raise Unknown("the element of a tuple is not known")
        return TypeTerm(listed[int(number.value)])
