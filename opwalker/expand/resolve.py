"""Names to functions: which definitions a call or a registration can mean.

In: a name as written, and the context it is written in (file, translation unit, scope). Out: candidates, best first,
and whether the best is the only one. Overloads are told apart by the number of arguments; same-named functions of other
translation units by the include graph; variants for other builds by their conditions and targets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct

from opwalker.expand.arity import Arity
from opwalker.expand.macros import MacroTable
from opwalker.expand.namespaces import Namespaces
from opwalker.expand.qualified import ANONYMOUS, strip_arguments, visible, without_inlined
from opwalker.expand.scopes import FEW, Named, Scope, Scopes, used_here, used_names
from opwalker.link.index import Index
from opwalker.model.cpp import Function
from opwalker.notation.regex import Regex

_HEADER = Regex(r"\.(?:h|hh|hpp|hxx|cuh|inl|inc|ipp|tpp)\Z")
_VIRTUAL = frozenset(("virtual", "pure", "override"))


class Context(Struct, frozen=True):
    """Where a name stands: ``path`` and ``scope`` of the function around it, ``root`` the translation unit's file.

    ``usings`` are namespaces and ``aliases`` are names that the function's body brings in itself.
    """

    path: str
    root: str
    scope: tuple[str, ...] = ()
    usings: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()


class Candidate(Struct, frozen=True):
    """A definition that a name can mean."""

    path: str
    function: Function

    @property
    def key(self) -> tuple[str, int]:
        return self.path, self.function.offset


class Resolution(Struct, frozen=True):
    """``candidates`` are equally good; ``declared`` says that the tree declares the name though no body is in it;
    ``loose`` that they are a guess: their parameters do not fit the call as far as the source shows them; ``apart``
    that only a declaration is seen here: they stand in what other units include."""

    candidates: tuple[Candidate, ...] = ()
    declared: bool = False
    loose: bool = False
    apart: bool = False

    @property
    def certainty(self) -> str:
        return "matched" if len(self.candidates) == 1 else "possible"


class Resolver:
    """Finds definitions for names, in one configuration."""

    def __init__(
        self,
        index: Index,
        macros: MacroTable,
        builds_of: Callable[[str], tuple[str, ...] | None],
        device_macros: MacroTable | None = None,
        modules_of: Callable[[str], Sequence[str]] = lambda path: (),
    ) -> None:
        self._index = index
        #: Gives the expanded text of ``[start, end)`` of a file.
        self.expanded: Callable[[str, int, int], str] = lambda path, start, end: ""
        self._macros = macros
        self._device_macros = device_macros or macros
        self._builds_of = builds_of
        self._modules_of = modules_of
        self._build = macros.configuration.build
        self._memo: dict[tuple, Resolution] = {}
        self._arity = Arity(index)
        self._alias_memo: dict[tuple[str, str], str | None] = {}
        self._namespaces = Namespaces(index)
        self._scopes: dict[str, Scopes] = {}
        self._read_by: dict[str, frozenset[str]] = {}
        self._outers: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}
        self._methods: dict[tuple, Resolution] = {}

    def is_read(self, path: str, function: Function, root: str | None = None) -> bool:
        """Whether the configured build can read a definition at all, in the unit that begins at ``root`` if given."""
        facts = self._index.declared(path)
        terms = facts.conditions[function.condition]
        on_device = "global" in function.flags or "device" in function.flags
        macros = self._device_macros if on_device else self._macros
        if terms:
            unit = root if root is not None and path in self._index.closure(root) else function.unit or path
            if macros.truth(path, terms, function.offset, unit) is False:
                return False
        builds = self._builds_of(path)
        return builds is None or self._build in builds

    def holds(self, path: str, terms: tuple[str, ...], offset: int) -> bool | None:
        """Whether a preprocessor condition holds at a place, for device code."""
        return self._device_macros.truth(path, terms, offset, path)

    def read_by(self, root: str) -> frozenset[str]:
        """The files that a translation unit reads: as its closure, without includes whose condition does not hold."""
        if root not in self._read_by:
            seen, pending = {root}, [root]
            while pending:
                path = pending.pop()
                facts = self._index.declared(path)
                under = {i.offset: facts.conditions[i.condition] for i in facts.includes} if facts else {}
                for at, found in self._index.includes(path):
                    if found not in seen and self.holds(path, under.get(at, ()), at) is not False:
                        seen.add(found)
                        pending.append(found)
            self._read_by[root] = frozenset(seen)
        return self._read_by[root]

    def source(self, path: str, start: int, end: int) -> str:
        """The expanded text of a span of a file."""
        return self.expanded(path, start, end)

    def used_namespaces(self, context: Context) -> tuple[tuple[str, ...], ...]:
        """Namespaces whose names a translation unit sees through using-directives."""
        return self._used_namespaces(context)

    def function(
        self, name: str, context: Context, arguments: int | None = None, kernel: bool | None = None
    ) -> Resolution:
        """Definitions for a non-member name. ``arguments`` is the number passed, None when not known."""
        key = (name, context.path, context.root, context.scope, context.usings, context.aliases, arguments, kernel)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._function(name, context, arguments, kernel)
        return found

    def _function(self, name, context, arguments, kernel) -> Resolution:
        parts = list(strip_arguments(name).split("::"))
        absolute = parts[0] == ""
        parts = [p for p in parts if p]
        if not parts:
            return Resolution()
        simple = parts[-1]
        everything = self._index.functions(simple)
        if not everything:
            return Resolution()
        if len(parts) == 1 and not absolute:
            parts = used_here(context.aliases, simple, everything) or parts
        qualifiers = self.qualifiers(tuple(parts[:-1]), context)
        brought = (
            used_names(self._index, simple, context.scope, self._index.near(context.root, context.path))
            if simple in self._index.names_of_kind("alias")
            else {}
        )
        ranked: dict[int, list[Candidate]] = {}
        # Many definitions share a scope.
        ranks: dict[tuple[tuple[str, ...], bool], int | None] = {}
        closure = self._index.closure(context.root)
        elsewhere: list[Candidate] = []
        longer: list[Candidate] = []
        declared = False
        seen: int | None = None  # the rank of the innermost declaration that this unit sees
        for path, function in self._fitting(simple, everything, qualifiers, brought, absolute, context):
            if "explicit_instantiation" in function.flags or "extern_template" in function.flags:
                continue
            if kernel is not None and kernel != ("global" in function.flags):
                continue
            fits = arguments is None or self._arity.takes(function, arguments)
            if not fits and (kernel is not False or arguments >= len(function.parameters)):
                continue
            near = path in closure
            if (function.scope, near) not in ranks:
                scope = visible(function.scope)
                rank = self._rank(scope, qualifiers, context, absolute, near)
                held = brought.get(scope, brought.get(self.outer(scope, context))) if not qualifiers else None
                ranks[function.scope, near] = min((r for r in (rank, held) if r is not None), default=None)
            rank = ranks[function.scope, near]
            if rank is None:
                continue
            if not function.body_end:
                if fits and (not declared or near) and self.is_read(path, function):
                    declared = True
                    seen = rank if near and (seen is None or rank < seen) else seen
                continue
            if "deleted" in function.flags or not self.is_read(path, function, context.root):
                continue
            if not self._reachable(path, function, context):
                if fits and not is_internal(function):
                    elsewhere.append(Candidate(path, function))
                continue
            (ranked.setdefault(rank, []) if fits else longer).append(Candidate(path, function))
        if seen is not None and ranked and seen < min(ranked):
            # What is declared further in hides the same name further out, in other units at any rate.
            ranked = {rank: held for rank, found in ranked.items() if (held := [c for c in found if c.path in closure])}
        if not ranked:
            if declared and elsewhere:
                # Declared here, defined in a header of another unit: the linker joins them.
                return Resolution(self._nearest(elsewhere, context), declared, apart=True)
            # Default arguments may stand in a header that the source lacks.
            return Resolution(tuple(longer) if not declared else (), declared, loose=True)
        return Resolution(self._nearest(ranked[min(ranked)], context), declared)

    def _fitting(
        self,
        simple: str,
        everything: Sequence[Named],
        qualifiers: Scope,
        brought: Collection[Scope],
        absolute: bool,
        context: Context,
    ) -> Iterable[Named]:
        """The functions of a name without those that ``_rank`` would turn down."""
        if len(everything) <= FEW or self._namespaces.inline(context.root):
            return everything
        held = self._scopes.get(simple)
        if held is None or held.functions is not everything:
            held = self._scopes[simple] = Scopes(everything)
        if qualifiers:
            return held.qualified(qualifiers)
        if absolute:
            return held.near(((), *brought), frozenset())
        around = visible(context.scope)
        within = [around[:depth] for depth in range(len(around) + 1)]
        used = [scope + more for scope in within for more in self._used_namespaces(context)]
        return held.near((*within, *used, *brought), self._index.closure(context.root))

    def method(self, name: str, class_name: str | None, context: Context, arguments: int | None = None) -> Resolution:
        """Definitions of a member function: the class's own, or of its bases; of a virtual one, every override."""
        key = name, class_name, context.path, context.root, arguments
        found = self._methods.get(key)
        if found is None:
            found = self._methods[key] = self._method(name, class_name, context, arguments)
        return found

    def _method(self, name: str, class_name: str | None, context: Context, arguments: int | None) -> Resolution:
        if class_name is None:
            return Resolution()
        simple = strip_arguments(name).split("::")[-1]
        everything = self._index.functions(simple)
        wanted = strip_arguments(class_name).split("::")[-1]

        def of(classes: Callable[[str], bool]) -> list[Candidate]:
            return [
                Candidate(path, f)
                for path, f in everything
                if f.body_end
                and f.scope
                and classes(f.scope[-1])
                and "global" not in f.flags
                and (arguments is None or self._arity.takes(f, arguments))
                and self.is_read(path, f, context.root)
                and self._reachable(path, f, context)
            ]

        own = of(lambda name: name == wanted)
        if any(f.scope[-1:] == (wanted,) and _VIRTUAL.intersection(f.flags) for _, f in everything):
            # Which override runs is decided at run time: each one may.
            own += of(lambda name: name != wanted and wanted in self._family(name))
            if own:
                return Resolution(tuple(own))
        if not own:
            own = of(self._family(wanted).__contains__)
        return Resolution(self._nearest(own, context)) if own else Resolution()

    def derives_from(self, name: str, base: str) -> bool:
        """Whether a class of the tree has a base of a simple name, directly or not, in the tree or outside."""
        return base in self._family(name)

    def _family(self, name: str) -> set[str]:
        """Bases of a class, direct or not, by name."""
        out: set[str] = set()
        pending = [name]
        while pending:
            current = pending.pop()
            for _, made in self._index.entries(current, ("class",), lambda facts: facts.classes):
                for base in made.bases:
                    simple = strip_arguments(base).split("::")[-1]
                    if simple not in out and simple != name:
                        out.add(simple)
                        pending.append(simple)
        return out

    def outer(self, scope: tuple[str, ...], context: Context) -> tuple[str, ...]:
        """A scope, or qualifiers, as names see it: without anonymous and inline namespaces."""
        key = scope, context.root
        found = self._outers.get(key)
        if found is None:
            inlined = self._namespaces.inline(context.root)
            found = self._outers[key] = without_inlined(visible(scope), inlined) if inlined else visible(scope)
        return found

    # -- scopes -----------------------------------------------------------------------------------------------------

    def qualifiers(self, parts: tuple[str, ...], context: Context) -> tuple[str, ...]:
        """Written qualifiers with namespace and class aliases resolved."""
        if not parts:
            return parts
        for alias, target in context.aliases:
            if alias == parts[0]:
                return tuple(p for p in strip_arguments(target).split("::") if p) + parts[1:]
        target = self._alias(parts[0], context)
        if target:
            return tuple(p for p in strip_arguments(target).split("::") if p) + parts[1:]
        return parts

    def _alias(self, name: str, context: Context) -> str | None:
        key = (name, context.root)
        if key not in self._alias_memo:
            found = None
            closure = self._index.near(context.root, context.path)
            for path, alias in self._index.entries(name, ("namespace_alias", "alias"), lambda facts: facts.aliases):
                if path in closure and alias.template is None and alias.kind in ("namespace", "type"):
                    if re.fullmatch(r"(?:typename\s+)?[\w:]+(?:\s*<.*>)?", alias.target):
                        found = alias.target.removeprefix("typename ")
                        break
            self._alias_memo[key] = found
        return self._alias_memo[key]

    def _rank(self, scope, qualifiers, context: Context, absolute: bool, near: bool) -> int | None:
        """How well a definition's scope fits: 0 is the innermost enclosing scope; None when it does not. ``near`` says
        that the unit includes it."""
        enclosing = visible(context.scope)
        found = self._ranked(scope, qualifiers, enclosing, context, absolute, near)
        inlined = self._namespaces.inline(context.root) if found is None and scope else frozenset()
        if inlined and without_inlined(scope, inlined) != scope:
            inner, enclosing = without_inlined(scope, inlined), without_inlined(enclosing, inlined)
            return self._ranked(inner, without_inlined(qualifiers, inlined), enclosing, context, absolute, near)
        return found

    def _ranked(self, scope, qualifiers, enclosing, context: Context, absolute: bool, near: bool) -> int | None:
        if absolute:
            return 0 if scope == qualifiers else None
        for depth in range(len(enclosing), -1, -1):
            if scope == enclosing[:depth] + qualifiers:
                return len(enclosing) - depth
        for number, used in enumerate(self._used_namespaces(context)):
            for depth in range(len(enclosing), -1, -1):
                if scope == enclosing[:depth] + used + qualifiers:
                    return 20 + number
        if qualifiers:
            # An inline namespace, an alias that is out of sight or a macro may stand between.
            if len(scope) >= len(qualifiers) and scope[-len(qualifiers) :] == qualifiers:
                return 100 + len(scope) - len(qualifiers)
            return None
        # Found through the types of its arguments, or brought in by a using declaration: only near at hand.
        if scope and near:
            return 200 + len(scope)
        return None

    def _used_namespaces(self, context: Context) -> tuple[tuple[str, ...], ...]:
        local = tuple(tuple(p for p in used.split("::") if p) for used in context.usings)
        return local + self._namespaces.used(context.root)

    def _reachable(self, path: str, function: Function, context: Context) -> bool:
        """A static or anonymous function, and anything in a header, is only seen by units that include its file."""
        if path in (context.path, context.root) or path in self._index.closure(context.root):
            return True
        return not is_internal(function) and not is_header(path)

    def _nearest(self, candidates: list[Candidate], context: Context) -> tuple[Candidate, ...]:
        """The definitions that the translation unit sees; otherwise those of other units. A specialisation hides no
        template: it is seen beside what it specialises."""
        seen = self._index.near(context.root, context.path)
        special = [c for c in candidates if c.function.specialisation and not c.function.template]
        for near in ({context.path}, seen):
            here = [c for c in candidates if c.path in near and c not in special]
            if here:
                return (*here, *(c for c in special if c.path in seen))
        visible_here = tuple(c for c in special if c.path in seen)
        if visible_here and len(special) == len(candidates):
            return visible_here
        # Extensions that are built apart may define one symbol each: the linker takes the module's own.
        modules = set(self._modules_of(context.root))
        linked = [c for c in candidates if modules.intersection(self._modules_of(c.path))] if modules else []
        return tuple(linked or candidates)


def is_header(path: str) -> bool:
    """Whether a file is there to be included."""
    return _HEADER.search(path) is not None


def is_internal(function: Function) -> bool:
    """Whether a function is seen in its own unit alone."""
    return ANONYMOUS in function.scope or ("static" in function.flags and "member" not in function.flags)
