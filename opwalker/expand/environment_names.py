"""Names at a place: the part of ``Environment`` that looks them up, from the innermost branch outwards."""

from __future__ import annotations

import re

from opwalker.expand.deduction import as_type, deduce
from opwalker.expand.expressions import evaluate
from opwalker.expand.resolve import strip_arguments, visible
from opwalker.expand.scalar_types import enumerator_value
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import ConstTerm, Term, TypeTerm, Unknown, builtin
from opwalker.model.body import LambdaFact, LocalFact


class NameLookup:
    """Names looked up: locals, parameters of lambdas and templates, then the class and namespaces around."""

    def name(self, text: str) -> Term:
        """A name without template arguments."""
        self._deeper()
        if "::" in text:
            return self._qualified(text)
        if text in self.bound:
            return self._known(self.bound[text], text)
        found = self._local(text)
        if found is not None:
            return found
        if self.frame is not None and text in self.frame.bound:
            if self.frame.bound[text] is None and self.frame.unbound:
                raise Unknown(self.frame.unbound)
            return self._known(self.frame.bound[text], text)
        return self._global(text)

    @staticmethod
    def _known(term: Term | None, name: str) -> Term:
        if term is None:
            raise Unknown(f"the template parameter `{name}` has no value that could be worked out")
        return term

    def holder(self, name: str) -> LocalFact | LambdaFact | None:
        """The local that a name means here, or the lambda that has it as a parameter; None for a name from outside."""
        if self.body is None:
            return None
        best: LocalFact | None = None
        for local in self.body.locals.get(name, ()):
            block = self.body.facts.blocks[local.block] if local.block >= 0 else None
            if local.start < self.offset and (block is None or block.start <= self.offset < block.end):
                best = local
        held = self.body.enclosing_lambdas(self.offset)
        inner = next((f for f in held if self._binds(f, name)), None)
        return inner if inner is not None and (best is None or best.start < inner.start) else best

    def _local(self, name: str) -> Term | None:
        """A local of an enclosing block, or a parameter of an enclosing lambda."""
        best = self.holder(name)
        if isinstance(best, LambdaFact):
            return self._lambda_term(best, name)
        if best is None:
            return None
        if best.type in ("using", "namespace"):
            return self.at(best.start).type(self.body.text(best.value))
        if best.value is None or not re.search(r"\bconst(?:expr|eval)?\b", best.type):
            raise Unknown(f"`{name}` is a variable of the run")
        value = self.body.text(best.value).strip()
        if value[:1] in "({" and value[-1:] in ")}":
            value = value[1:-1]
        term = self.at(best.start).term_of_value(value)
        kind = re.sub(r"\b(?:constexpr|const|static|inline)\b", "", best.type).strip()
        if kind not in ("auto", "") and isinstance(term, ConstTerm):
            return as_type(term, self.at(best.start).type(kind).text)
        return term

    def term_of_value(self, text: str) -> Term:
        """The value of an initialiser."""
        return evaluate(text, self)

    @staticmethod
    def _binds(held: LambdaFact, name: str) -> bool:
        if any(p == name for _, p in held.parameters):
            return True
        return any(p.name == name for p in template_parameters(held.template))

    def _lambda_term(self, held: LambdaFact, name: str) -> Term:
        call = self.choices.get(held.start)
        if call is None:
            raise Unknown(f"`{name}` is a parameter of a lambda whose call could not be followed")
        outside = self.at(call.start)
        parameters = template_parameters(held.template)
        for number, parameter in enumerate(parameters):
            if parameter.name != name:
                continue
            given = call.template_arguments or ()
            if number < len(given):
                return outside.term(self.body.text(given[number]), parameter)
            for (kind, _), span in zip(held.parameters, call.arguments, strict=False):
                found = deduce(kind, outside.type_of(self.body.text(span)).text, {name})
                if name in found:
                    return found[name]
            raise Unknown(f"the lambda's template parameter `{name}` is not given at its call")
        raise Unknown(f"`{name}` is a parameter of the run")

    def _global(self, name: str) -> Term:
        """A name of the class or namespace around, or of any that is visible."""
        index = self.tools.index
        scopes = visible(self.context.scope)
        for path, variable in self._seen(index.entries(name, ("variable",), lambda facts: facts.variables)):
            if variable.constant and variable.value is not None and self._in_reach(variable.scope, scopes):
                inside = self.elsewhere(path, variable.scope, self.bound)
                value = self.tools.expand(path, variable.value, variable.offset).strip()
                if value[:1] == "{" and value[-1:] == "}":
                    value = value[1:-1]
                term = evaluate(value, inside)
                kind = re.sub(r"\b(?:constexpr|const|static|inline)\b", "", variable.type).strip()
                return as_type(term, inside.type(kind).text) if kind != "auto" and isinstance(term, ConstTerm) else term
        for path, alias in self._seen(index.entries(name, ("alias",), lambda facts: facts.aliases)):
            if alias.kind in ("type", "using") and alias.template is None and self._in_reach(alias.scope, scopes):
                if alias.target == name:
                    # `typedef struct {…} name;` is a class of its own.
                    return TypeTerm("::".join((*visible(alias.scope), name)))
                if strip_arguments(alias.target).split("::")[-1] == name and alias.kind == "using":
                    return self.elsewhere(path, ()).type(alias.target)
                return self.elsewhere(path, alias.scope, self.bound).type(alias.target)
        enumerator = self._enumerator(name, ())
        if enumerator is not None:
            return enumerator
        for _, made in self._seen(index.entries(name, ("class",), lambda facts: facts.classes)):
            if made.template is None and self._in_reach(made.scope, scopes):
                return TypeTerm("::".join((*visible(made.scope), made.name)))
        for _, enum in self._seen(index.entries(name, ("enum",), lambda facts: facts.enums)):
            if self._in_reach(enum.scope, scopes):
                return TypeTerm("::".join((*visible(enum.scope), enum.name)))
        raise Unknown(f"`{name}` is not known in the source")

    def _seen(self, entries):
        """Entries of files that the translation unit reads, in conditions that may hold; nearest scope first."""
        closure = self.tools.index.closure(self.context.root) | {self.context.path}
        out = []
        for path, entry in entries:
            if path not in closure:
                continue
            facts = self.tools.index.facts(path)
            terms = facts.conditions[entry.condition]
            if terms and self.tools.resolver.holds(path, terms, entry.offset) is False:
                continue
            out.append((path, entry))
        return sorted(out, key=lambda item: -len(item[1].scope))

    def _in_reach(self, scope: tuple[str, ...], from_scope: tuple[str, ...]) -> bool:
        seen = visible(scope)
        if seen == from_scope[: len(seen)]:
            return True
        return any(seen == used for used in self.tools.resolver.used_namespaces(self.context))

    def _enumerator(self, name: str, qualifiers: tuple[str, ...]) -> ConstTerm | None:
        if name not in self.tools.index.names_of_kind("enumerator"):
            return None
        found: dict[str, ConstTerm] = {}
        for path in self.tools.index.store.paths_of(name, ("enumerator",)):
            facts = self.tools.index.facts(path)
            for _, enum in self._seen((path, e) for e in facts.enums if any(m == name for m, _ in e.members)):
                names = (*visible(enum.scope), enum.name)
                if (
                    qualifiers
                    and names[-len(qualifiers) :] != qualifiers
                    and names[:-1][-len(qualifiers) :] != qualifiers
                ):
                    continue
                if not qualifiers and enum.scoped:
                    continue
                found["::".join(names)] = ConstTerm(self._enum_value(path, enum, name), "::".join(names))
        return next(iter(found.values())) if len(found) == 1 else None

    def _enum_value(self, path: str, enum, name: str) -> int:
        value = -1
        inside = self.elsewhere(path, enum.scope)
        for member, text in enum.members:
            if text is None:
                value += 1
            else:
                term = evaluate(text, inside)
                if not isinstance(term, ConstTerm):
                    raise Unknown(f"the value of `{member}` is not a number")
                value = int(term.value)
            if member == name:
                return value
        raise Unknown(f"`{name}` is no member of `{enum.name}`")

    def _qualified(self, text: str) -> Term:
        parts = tuple(p for p in text.split("::") if p)
        simple = parts[-1]
        if text in ("std::true_type", "std::false_type"):
            return TypeTerm(f"std::integral_constant<bool, {'true' if 'true' in text else 'false'}>")
        known = builtin(text)
        if known is not None:
            return TypeTerm(known)
        value = enumerator_value(text)
        if value is not None:
            return ConstTerm(value, "c10::ScalarType")
        found = self._enumerator(simple, parts[:-1])
        if found is not None:
            return found
        owner: Term | None = None
        why = ""
        try:
            owner = self.name("::".join(parts[:-1])) if len(parts) > 1 else None
        except Unknown as unknown:
            why = str(unknown)
        if isinstance(owner, TypeTerm):
            return self.member(owner, simple)
        index = self.tools.index
        for _, made in self._seen(index.entries(simple, ("class",), lambda facts: facts.classes)):
            scope = visible(made.scope)
            if made.template is None and scope[-len(parts) + 1 :] == parts[:-1]:
                return TypeTerm("::".join((*scope, made.name)))
        for _, enum in self._seen(index.entries(simple, ("enum",), lambda facts: facts.enums)):
            if visible(enum.scope)[-len(parts) + 1 :] == parts[:-1]:
                return TypeTerm("::".join((*visible(enum.scope), enum.name)))
        for path, alias in self._seen(index.entries(simple, ("alias",), lambda facts: facts.aliases)):
            if (
                alias.kind == "type"
                and alias.template is None
                and visible(alias.scope)[-len(parts) + 1 :] == parts[:-1]
            ):
                return self.elsewhere(path, alias.scope).type(alias.target)
        for path, variable in self._seen(index.entries(simple, ("variable",), lambda facts: facts.variables)):
            if variable.constant and variable.value and visible(variable.scope)[-len(parts) + 1 :] == parts[:-1]:
                inside = self.elsewhere(path, variable.scope)
                return evaluate(self.tools.expand(path, variable.value, variable.offset), inside)
        raise Unknown(why or f"`{text}` is not known in the source")
