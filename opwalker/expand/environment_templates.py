"""Templates at a place: the part of ``Environment`` that binds parameters and reads templates with their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.expand.arity import is_pack
from opwalker.expand.deduction import Mismatch, argument, as_type
from opwalker.expand.environment_standard import MAX_PACK, StandardTemplates
from opwalker.expand.resolve import Context, visible
from opwalker.expand.scalar_types import cpp_type
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import (
    INTEGERS,
    ConstTerm,
    ListTerm,
    NoMember,
    NoType,
    PackTerm,
    TemplateTerm,
    Term,
    TypeTerm,
    Unknown,
    builtin,
    flattened,
    join_arguments,
    print_term,
)
from opwalker.facts.cpp_brackets import split_commas
from opwalker.notation.regex import Regex
from opwalker.notation.short_texts import kept_if_short

_WORD = Regex(r"(?<![\w.])(?<!::)[A-Za-z_]\w*")
_HEAD = Regex(r"(?:typename\s+)?((?:::)?(?:\w+::)*\w+)\s*<")


class TemplateReading(StandardTemplates):
    """Class, alias and variable templates with their arguments."""

    def template(self, text: str, arguments: str, member: str | None) -> Term:
        """``text<arguments>`` or a member of it."""
        self._deeper()
        mapped = cpp_type(f"{text}<{arguments}>" + (f"::{member}" if member else ""))
        if mapped is not None:
            return TypeTerm(mapped)
        held = self.bound.get(text) if text in self.bound else self.frame.bound.get(text) if self.frame else None
        if isinstance(held, TemplateTerm | TypeTerm):
            text = held.text  # what is deduced from a name for a template template parameter looks like a type
        parts = self.parts(arguments)
        found = self._standard(text, parts, member)
        if found is None:
            found = self._of_tree(text, parts, member)
        elif member is not None and isinstance(found, TypeTerm) and member not in ("type", "value", "kValue"):
            return self.member(found, member)
        return found

    # -- packs ------------------------------------------------------------------------------------------------------

    def count(self, pack: str) -> int:
        """How many elements a parameter pack has."""
        held = self.name(pack)
        if isinstance(held, PackTerm):
            return len(held.items)
        raise Unknown(f"`{pack}` is no pack whose elements are known")

    def spread(self, text: str) -> list:
        """For a pattern that names packs: an environment for each of their elements."""
        packs: dict[str, PackTerm] = {}
        for word in dict.fromkeys(_WORD.findall(f"{text} {self._pack_types(text)}")):
            held = self.pack(word)
            if held is not None:
                packs[word] = held
        if not packs:
            raise Unknown(f"the pack in `{text.strip()[:60]}` is not known")
        counts = {len(p.items) for p in packs.values()}
        if len(counts) > 1 or max(counts) > MAX_PACK:
            raise Unknown(f"the packs in `{text.strip()[:60]}` are not of one length")
        return [
            replace(self, bound={**self.bound, **{name: held.items[i] for name, held in packs.items()}})
            for i in range(counts.pop())
        ]

    def _pack_types(self, text: str) -> str:
        """The types of the function's parameter packs that a text names."""
        function = self.frame.candidate.function if self.frame is not None and self.frame.candidate else None
        words = set(_WORD.findall(text))
        held = [p for p in function.parameters if is_pack(p) and p.name.strip(". ") in words] if function else []
        return " ".join(p.type for p in held)

    def pack(self, word: str) -> PackTerm | None:
        """The pack that a name means, if it means one."""
        held = self.bound.get(word) if word in self.bound else None
        if held is None and self.frame is not None and word not in self.bound:
            held = self.frame.bound.get(word)
        if held is None and self.choices:
            try:
                held = self._local(word)
            except Unknown:
                return None
        return held if isinstance(held, PackTerm) else None

    def parts(self, arguments: str) -> list[tuple[str, TemplateReading]]:
        """Template arguments, each with the environment it is read in; expansions of packs spread."""
        out: list[tuple[str, TemplateReading]] = []
        for piece in _pieces(arguments):
            if piece.endswith("..."):
                pattern = piece[:-3].strip()
                out += [(pattern, scope) for scope in self.spread(pattern)]
            elif piece:
                out.append((piece, self))
        return out

    # -- the tree's -------------------------------------------------------------------------------------------------

    def _of_tree(self, text: str, parts, member: str | None) -> Term:
        """A class, alias or variable template of the source."""
        simple = text.rsplit("::", 1)[-1]
        written = tuple(p for p in text.split("::") if p)[:-1]
        wanted = self._scope_of(written)
        inner = self._inner_template(written, simple, parts, member) if simple else None
        if inner is None and simple and wanted != written:
            inner = self._inner_template(wanted, simple, parts, member)
        if inner is not None:
            return inner
        index = self.tools.index
        aliases = self._meant(index.entries(simple, ("alias",), lambda facts: facts.aliases), wanted)
        for path, alias in aliases:
            if alias.template is not None and alias.kind == "type":
                self._decided(path, alias, alias.target, [(p, a, a.target) for p, a in aliases if a.template])
                return self._alias(path, alias, parts, member)
        found = [
            (path, variable)
            for path, variable in self._meant(
                index.entries(simple, ("variable",), lambda facts: facts.variables), wanted
            )
            if variable.template is not None and variable.value is not None
        ]
        if found and member is None:
            return self._variable(found, parts)
        made = [
            (path, c)
            for path, c in self._meant(index.entries(simple, ("class",), lambda facts: facts.classes), wanted)
            if c.template is not None or c.specialisation is not None
        ]
        if not any(c.specialisation is None for _, c in made):
            made += [(p, c) for p, c in self._meant(self._declared(simple), wanted) if c.template is not None]
        if not made:
            raise Unknown(f"`{text}<…>` is not defined in the source")
        primary = next(((p, c) for p, c in made if c.specialisation is None), None)
        qualified = "::".join((*made[0][1].scope, simple))
        found_type = self.class_type(qualified, primary, parts)
        return self.member(found_type, member) if member else found_type

    def _alias(self, path: str, alias, parts, member: str | None, bound=None, owner: str | None = None) -> Term:
        parameters = template_parameters(alias.template)
        context = Context(path, self.context.root, alias.scope)
        given = self.bind(parameters, self._arguments_of(parts, parameters), context)
        inside = self.elsewhere(path, alias.scope, {**(bound or {}), **given}, owner)
        found = inside.type(self.tools.expand(path, alias.target, alias.offset))
        return self.member(found, member) if member else found

    def _variable(self, found, parts) -> Term:
        """A variable template: the specialisation for the arguments, or the template itself."""
        primary = next(((p, v) for p, v in found if v.specialisation is None), None)
        parameters = template_parameters(primary[1].template) if primary else ()
        given = self._arguments_of(parts, parameters)
        context = Context(primary[0], self.context.root, primary[1].scope) if primary else None
        bound = self.bind(parameters, given, context) if primary else {}
        printed = [print_term(t, None) for t in (flattened(bound.values()) if primary else given)]
        for path, variable in found:
            if variable.specialisation is None:
                continue
            held = self.pattern_bound(path, variable, printed)
            if held is not None:
                return self._initial(path, variable, held)
        if primary is None:
            raise Unknown(f"`{found[0][1].name}` is not defined for these arguments in the source")
        return self._initial(primary[0], primary[1], bound)

    def _initial(self, path: str, variable, bound) -> Term:
        value = self.tools.expand(path, variable.value, variable.offset).strip()
        return self.elsewhere(path, variable.scope, bound).initialiser(value, variable.type)

    def pattern_bound(self, path: str, special, printed: Sequence[str]) -> dict[str, Term | None] | None:
        """What a specialisation's pattern binds for printed arguments; None where it does not fit. Raises Unknown."""
        parameters = template_parameters(special.template)
        names = {p.name for p in parameters if p.name}
        text = special.specialisation
        patterns = [text[a:b].strip() for a, b in split_commas(text)]
        found: dict[str, Term | None] = {}
        inside = self.elsewhere(path, special.scope)
        late: list[tuple[str, str]] = []
        try:
            for number, pattern in enumerate(patterns):
                if pattern.endswith("...") and pattern[:-3].strip() in names:
                    found[pattern[:-3].strip()] = PackTerm(tuple(_literals(printed[number:])))
                    break
                if number >= len(printed):
                    return None
                if self._is_alias(pattern):
                    late.append((pattern, printed[number]))
                    continue
                before = dict(found)
                argument(pattern, printed[number], names, found, lambda t: print_term(inside.term(t), None))
                if names.intersection(_WORD.findall(pattern)) and found == before and pattern not in names:
                    late.append((pattern, printed[number]))
            else:
                if len(printed) > len(patterns):
                    return None
        except Mismatch:
            return None
        held = self.elsewhere(path, special.scope, dict(found))
        for pattern, given in late:
            try:
                if "".join(print_term(held.term(pattern), None).split()) != "".join(given.split()):
                    return None
            except (NoType, NoMember):
                return None
        return found

    def _is_alias(self, pattern: str) -> bool:
        """Whether a pattern is one that nothing is deduced from: what an alias template makes of its arguments."""
        head = _HEAD.match(pattern)
        if head is None or not pattern.endswith(">"):
            return False
        scope, _, simple = head.group(1).rpartition("::")
        return scope in ("std", "::std", "cuda::std") and simple.endswith("_t")

    def class_type(self, qualified: str, primary, parts) -> TypeTerm:
        """A class template with its arguments, defaults filled in."""
        parameters = template_parameters(primary[1].template) if primary else ()
        terms = self._arguments_of(parts, parameters)
        if primary:
            bound = self.bind(parameters, terms, Context(primary[0], self.context.root, primary[1].scope))
            printed = self.printed(parameters, bound)
        else:
            printed = [print_term(t, None) for t in flattened(terms)]
        return TypeTerm(f"{qualified}<{join_arguments(printed)}>")

    # -- binding ----------------------------------------------------------------------------------------------------

    def _arguments(self, text: str | None, parameters) -> list[Term]:
        return self._arguments_of(self.parts(text), parameters) if text else []

    def _arguments_of(self, parts, parameters) -> list[Term]:
        out = []
        for number, (text, scope) in enumerate(parts):
            last = parameters[-1] if parameters and parameters[-1].pack else None
            out.append(scope.term(text, parameters[number] if number < len(parameters) else last))
        return out

    def bind(self, parameters, given: list[Term], context: Context | None = None) -> dict[str, Term | None]:
        """Template parameters with the terms given for them, then their defaults. Raises Unknown for one without."""
        bound: dict[str, Term | None] = {}
        for number, parameter in enumerate(parameters):
            key = parameter.name or f"#{number}"
            if parameter.pack:
                rest = flattened(given[number:])
                bound[key] = PackTerm(tuple(self._typed(t, parameter, bound, context) for t in rest))
            elif number < len(given):
                bound[key] = self._typed(given[number], parameter, bound, context)
            elif parameter.default is not None:
                inside = self.under(context or self.context, dict(bound))
                bound[key] = self._typed(inside.term(parameter.default, parameter), parameter, bound, context)
            else:
                raise Unknown(f"the template parameter `{parameter.name}` is not given")
        return bound

    def _typed(self, term: Term, parameter: TemplateParameter, bound, context) -> Term:
        if not isinstance(term, ConstTerm | ListTerm) or parameter.type in (None, "auto"):
            return term
        plain = builtin(parameter.type)
        if plain is not None and isinstance(term, ConstTerm):
            return as_type(term, plain)
        inside = self.under(context or self.context, dict(bound))
        kind = plain or inside.type(parameter.type).text
        if isinstance(term, ConstTerm):
            return as_type(term, kind)
        number = inside.converted(term, kind)
        if number is None and kind in INTEGERS:
            raise Unknown(f"which number `{term.type or term.text}` converts to is not known")
        return inside.aggregate(term, kind) if number is None else as_type(number, kind)

    def printed(self, parameters, bound: dict[str, Term | None]) -> list[str]:
        """The arguments in the order of the parameters, as a demangler prints them; a pack is spread."""
        terms = [self._known(bound.get(p.name or f"#{n}"), p.name) for n, p in enumerate(parameters)]
        return [print_term(term, None) for term in flattened(terms)]


@kept_if_short
def _pieces(arguments: str) -> tuple[str, ...]:
    """The arguments of a list as it is written, each without surrounding blanks."""
    return tuple(arguments[a:b].strip() for a, b in split_commas(arguments))


def _literals(texts: Sequence[str]) -> list[Term]:
    from opwalker.expand.deduction import literal_term

    return [literal_term(text) for text in texts]


__all__ = ["NoType", "TemplateReading", "visible"]
