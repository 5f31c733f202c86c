"""The class that a call is made on, and where in it a member function stands.

In: a call at a place. Out: the canonical type of the object or class, and for a candidate its ``Home``: the class
definition (or base of it) that the function belongs to, with the class's parameters bound.
"""

from __future__ import annotations

import contextlib
import re

from msgspec import Struct, field

from opwalker.expand.arity import accepts
from opwalker.expand.deduction import Mismatch, argument
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.environment_classes import Place
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.shapes import components, shape
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import Term, Unknown
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.model.body import CallFact
from opwalker.model.cpp import ClassDef, Function

_MAX_BASES = 40


class Home(Struct, frozen=True):
    """Where a candidate stands: ``type`` is its class (None: no class, or not known), ``bound`` the parameters of class
    templates around it, ``why`` the reason where they are not known; ``outer`` counts those of the class that stand in
    the function's own template head."""

    type: str | None = None
    bound: dict[str, Term | None] = field(default_factory=dict)
    why: str | None = None
    outer: int = 0

    def parameters(self, function: Function) -> tuple[TemplateParameter, ...]:
        """The function's own template parameters."""
        return template_parameters(function.template)[self.outer :]


class Homes:
    """Finds the classes of calls and candidates."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def in_template(self, candidate: Candidate) -> bool:
        """Whether a function is a member of a class template, or of a class within one."""
        return any(made.template is not None or made.specialisation for _, made in self.classes(candidate))

    def owner(self, environment: Environment, call: CallFact) -> str | None:
        """The class of the tree that a call is made on, in canonical spelling; None where it is none."""
        found = self.of_call(environment, call)
        return found if isinstance(found, str) else None

    def of_call(self, environment: Environment, call: CallFact) -> str | Unknown | None:
        """As ``owner``; Unknown (as a value) where the class could not be worked out."""
        body = environment.body
        try:
            if call.receiver is not None:
                return self._class(environment, environment.type_of(body.text(call.receiver)).text)
            text = body.text(call.callee)
            bare = re.sub(r"^new\s+|^typename\s+|^template\s+", "", text)
            if "::" in call.name or "::" in bare:
                qualifier = _qualifier(bare)
                if qualifier:
                    return self._class(environment, environment.type(qualifier).text)
            if text[-1:] in ")}" or self._is_variable(environment, text):
                return self._class(environment, environment.type_of(text).text)
        except Unknown as unknown:
            return unknown
        return environment.around

    @staticmethod
    def _is_variable(environment: Environment, text: str) -> bool:
        frame = environment.frame
        return environment.holder(text) is not None or (frame is not None and text in frame.parameter_names)

    def made_by(self, environment: Environment, call: CallFact) -> str | Unknown | None:
        """The class whose constructor a call runs; Unknown (as a value) where it could not be worked out."""
        body = environment.body
        text = re.sub(r"^new\s+|^typename\s+", "", body.text(call.callee) or call.name)
        simple = call.name.rsplit("::", 1)[-1].split("<")[0]
        if simple.startswith("make_") and call.template_arguments:
            text = body.text(call.template_arguments[0])
        try:
            return self._class(environment, environment.type(text).text)
        except Unknown as unknown:
            return unknown

    def _class(self, environment: Environment, kind: str) -> str | None:
        held = shape(kind)
        base = held.base
        pointed = held.arguments
        if pointed and held.name.rsplit("::", 1)[-1] in ("unique_ptr", "shared_ptr", "optional"):
            base = shape(pointed[0]).base
        return base if environment.located(base) is not None else None

    def functions(self, environment: Environment, owner: str, name: str, count: int | None) -> list[Candidate]:
        """The definitions of a member function in a class or its bases."""
        out: list[Candidate] = []
        for place in self._lineage(environment, owner):
            for path, function in self._near(name, place):
                if self._outer(path, function, place) is None or (count is not None and not accepts(function, count)):
                    continue
                if self._tools.resolver.is_read(path, function):
                    out.append(Candidate(path, function))
            if out:
                break
        return out

    def members(self, environment: Environment, owner: str) -> list[tuple[Candidate, Home]]:
        """Every member function with a body that a class has itself, with what its parameters are bound to."""
        place = environment.located(owner)
        if place is None:
            raise Unknown(f"`{owner[:80]}` is not defined in the source")
        out: list[tuple[Candidate, Home]] = []
        for candidate in self.named(place.made.name):
            outer = self._outer(candidate.path, candidate.function, place)
            if outer is not None:
                out.append((candidate, Home(place.type, self._renamed(candidate, place, outer), None, outer)))
        return out

    def named(self, name: str) -> list[Candidate]:
        """The functions with a body that stand in a class of a name."""
        key = "standing", self._tools.index.changes
        held = self._tools.memo.get(key)
        if held is None:
            held = self._tools.memo[key] = {}
            for path in sorted(self._tools.index.paths):
                facts = self._tools.index.facts(path)
                for function in facts.functions if facts else ():
                    if function.scope and _is_usable(function):
                        held.setdefault(function.scope[-1], []).append(Candidate(path, function))
        return [c for c in held.get(name, ()) if self._tools.resolver.is_read(c.path, c.function)]

    def _near(self, name: str, place: Place) -> list[tuple[str, Function]]:
        """The definitions of a name that may stand in the class at a place, or be written outside for it: a cheap no
        for most, since there may be thousands (``operator()``)."""
        key = "near", name, self._tools.index.changes
        held = self._tools.memo.get(key)
        if held is None:
            held = self._tools.memo[key] = {}
            for number, (path, function) in enumerate(self._tools.index.functions(name)):
                if _is_usable(function):
                    for group in (("in", path), ("of", function.scope[-1:])):
                        held.setdefault(group, {})[number] = path, function
        found = {**held.get(("in", place.path), {}), **held.get(("of", (place.made.name,)), {})}
        return [found[number] for number in sorted(found)]

    def _lineage(self, environment: Environment, owner: str) -> list[Place]:
        """A class and its bases, nearest first, as far as they are known."""
        out: list[Place] = []
        pending = [owner]
        while pending and len(out) < _MAX_BASES:
            try:
                place = environment.located(pending.pop(0))
            except Unknown:
                continue
            if place is None or place in out:
                continue
            out.append(place)
            inside = environment.standing_in(place)
            for base in place.made.bases:
                try:
                    pending += [scope.type(text).text for text, scope in inside.parts(base)]
                except Unknown:
                    continue
        return out

    def home(self, environment: Environment, candidate: Candidate, owner: str | Unknown | None) -> Home | None:
        """Where a candidate stands for a call that is made on ``owner``; None where another class is meant."""
        function = candidate.function
        around = self.classes(candidate)
        if not around:
            return Home()
        if isinstance(owner, str):
            for place in self._lineage(environment, owner):
                outer = self._outer(candidate.path, function, place)
                if outer is not None:
                    bound = self._renamed(candidate, place, outer)
                    return Home(place.type, bound, None, outer)
        templates = [made for _, made in around if made.template is not None or made.specialisation]
        if not templates:
            # A class that is no template: whoever calls it, nothing has to be bound.
            _, made = around[-1]
            return Home("::".join((*made.scope, made.name)))
        made = templates[-1]
        if isinstance(owner, str) and self._is_of(environment, owner, made):
            return None  # another specialisation of the same template
        why = str(owner) if isinstance(owner, Unknown) else None
        names = [p.name for _, one in around for p in template_parameters(one.template) if p.name]
        outer = 0 if function.class_depth else min(len(names), len(template_parameters(function.template)))
        reason = why or f"the arguments of the class template {made.name} are not known at this call"
        return Home(None, dict.fromkeys(names), reason, outer)

    def _is_of(self, environment: Environment, owner: str, made: ClassDef) -> bool:
        return any(place.made.name == made.name for place in self._lineage(environment, owner))

    def classes(self, candidate: Candidate) -> list[tuple[str, ClassDef]]:
        """The class definitions around a function, the outermost first."""
        key = ("classes", *candidate.key)
        memo = self._tools.memo
        if key not in memo:
            memo[key] = self._classes(candidate)
        return memo[key]

    def _classes(self, candidate: Candidate) -> list[tuple[str, ClassDef]]:
        facts = self._tools.index.declared(candidate.path)
        offset = candidate.function.offset
        found = [(candidate.path, c) for c in (facts.classes if facts else ()) if c.body_start < offset < c.body_end]
        if not found:
            named = self._named_class(candidate)
            found = [named] if named else []
        return sorted(found, key=lambda item: item[1].body_start)

    def _named_class(self, candidate: Candidate) -> tuple[str, ClassDef] | None:
        """The class template that a function defined outside of it is a member of."""
        function = candidate.function
        if not function.scope or function.class_depth:
            return None
        if function.scope[-1] not in self._tools.index.names_of_kind("class"):
            return None
        near = self._tools.index.closure(candidate.path)
        found = [
            (path, made)
            for path, made in self._tools.index.entries(function.scope[-1], ("class",), lambda facts: facts.classes)
            if path in near and (function.owner is None) == (made.template is None and made.specialisation is None)
        ]
        return found[0] if found else None

    def _outer(self, path: str, function: Function, place: Place) -> int | None:
        """How many parameters of class templates stand in a function's own template head, where it is a member of the
        class at a place; None where it is not."""
        made = place.made
        if path == place.path and made.body_start < function.offset < made.body_end:
            return 0 if len(function.scope) == len(made.scope) + 1 else None
        if function.class_depth or function.scope[-1:] != (made.name,):
            return None
        if made.template is None and made.specialisation is None:
            return 0 if function.owner is None else None
        if function.owner is None:
            return None
        return self._fits(path, function, place)

    def _fits(self, path: str, function: Function, place: Place) -> int | None:
        """As ``_outer``, for a definition outside of a class template: its ``A<T, 3>::`` against the class."""
        wanted = [function.owner[a:b].strip() for a, b in split_commas(function.owner)]
        if place.made.specialisation is not None:
            patterns = place.made.specialisation
            listed = [patterns[a:b].strip() for a, b in split_commas(patterns)]
            count = len(template_parameters(place.made.template))
            return count if len(listed) == len(wanted) and _alike(listed, wanted, place, function) else None
        parameters = template_parameters(place.made.template)
        own = {p.name for p in template_parameters(function.template)}
        if any(w.removesuffix("...").strip() not in own for w in wanted):
            # `template <> void A<float>::f()`: a full specialisation of the member alone.
            return 0 if self._spelt_alike(path, function, wanted, place) else None
        return len(parameters)

    def _spelt_alike(self, path: str, function: Function, wanted: list[str], place: Place) -> bool:
        last = components(place.type)[-1][1] if components(place.type) else None
        found: dict[str, Term] = {}
        inside = Environment(self._tools, Context(path, path, function.scope[:-1]))
        try:
            for pattern, text in zip(wanted, last or (), strict=True):
                argument(pattern, text, set(), found)
        except ValueError:
            return False
        except Mismatch:
            with contextlib.suppress(Unknown):
                return inside.spelt(", ".join(wanted)) == ", ".join(last or ()).strip()
            return False
        return True

    @staticmethod
    def _renamed(candidate: Candidate, place: Place, outer: int) -> dict[str, Term | None]:
        """The parameters of the class under the names that a definition outside of it gives them."""
        if not outer:
            return dict(place.bound)
        names = [p.name for p in template_parameters(place.made.template)]
        own = [p.name for p in template_parameters(candidate.function.template)[:outer]]
        bound = dict(place.bound)
        for name, other in zip(names, own, strict=False):
            if name in place.bound:
                bound[other] = place.bound[name]
        return bound


def _is_usable(function: Function) -> bool:
    return bool(function.body_end) and "global" not in function.flags and "deleted" not in function.flags


def _alike(listed: list[str], wanted: list[str], place: Place, function: Function) -> bool:
    """Whether two pattern lists are the same up to the names of parameters."""
    names = {p.name: f"#{n}" for n, p in enumerate(template_parameters(place.made.template)) if p.name}
    others = {p.name: f"#{n}" for n, p in enumerate(template_parameters(function.template)) if p.name}

    def spelt(text: str, renamed: dict[str, str]) -> str:
        return "".join(re.sub(r"[A-Za-z_]\w*", lambda m: renamed.get(m.group(), m.group()), text).split())

    return all(spelt(a, names) == spelt(b, others) for a, b in zip(listed, wanted, strict=True))


def _qualifier(text: str) -> str:
    """What stands before the last ``::`` outside of brackets of a callee, without its own template arguments."""
    at, last = 0, -1
    while at < len(text):
        char = text[at]
        if char == "<":
            close = match_angle(text, at)
            at = close if close > 0 else at + 1
            continue
        if char in "({[":
            break
        if text.startswith("::", at):
            last = at
            at += 2
            continue
        at += 1
    return text[:last].strip() if last > 0 else ""
