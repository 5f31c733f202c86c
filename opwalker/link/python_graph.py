"""Names of full facts resolved: which function a call means, which op an alias means.

In: ``Modules`` and the full facts of the files that were read. Out: ``Graph``: from the text of a callee in a function
to the functions, classes or ops that it can mean, and names whose value a step of the flow computes. What is not in the
facts is not guessed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from opwalker.link.python_modules import Modules, Reads
from opwalker.model.python import PyAlias, PyCall, PyClass, PyFacts, PyFunction, PyImport, PyStep

_SELF = ("self", "cls")
#: Bases are followed over at most this many classes.
_MOST_BASES = 24


class Node(Struct, frozen=True):
    """A function, method or class of a file."""

    path: str
    qualname: str


class Slot(Struct, frozen=True):
    """A name that a step binds, ``name`` or ``Class.name`` of a file, and what is asked of its value.

    The value may be an op; whether it is one, the flow of registrations tells.
    """

    path: str
    name: str
    rest: str = ""


#: What a name can mean.
Meaning = Node | PyAlias | Slot


class Graph:
    """Resolves names. ``full`` may hold more files than are ever asked for."""

    def __init__(self, modules: Modules, full: Mapping[str, PyFacts]) -> None:
        self.modules = modules
        self.full = full
        self._targets: dict[str, set[str]] = {}
        self._functions: dict[str, dict[str, list[PyFunction]]] = {}
        self._classes: dict[str, dict[str, PyClass]] = {}
        self._imports: dict[str, dict[str, list[PyImport]]] = {}
        self._aliases: dict[str, dict[str, list[PyAlias]]] = {}
        self._origins: dict[tuple[str, tuple[str, ...]], tuple[tuple[str, str], ...]] = {}

    def take(self, full: Mapping[str, PyFacts], changed: Iterable[str]) -> None:
        """Go on with other full facts, which differ for the changed files alone."""
        self.full = full
        for path in changed:
            for known in (self._functions, self._classes, self._imports, self._aliases, self._targets):
                known.pop(path, None)

    def watch(self) -> Reads:
        """Begin to note what answers lean on; what is given back fills as questions are asked."""
        self.modules.reads = Reads()
        self._origins = {}
        return self.modules.reads

    def _look(self, path: str, name: str) -> None:
        """Note that a name is looked up in a file: what stands under its first word there."""
        self.modules.reads.add(path, name.partition(".")[0])

    def facts(self, path: str) -> PyFacts | None:
        """The full facts of a file, None where it was not read."""
        self.modules.reads.files.add(path)
        return self.full.get(path)

    def functions(self, path: str) -> dict[str, list[PyFunction]]:
        """The known functions of a file by qualname; several where it is defined in several branches."""
        self.modules.reads.files.add(path)
        known = self._functions.get(path)
        if known is None:
            known = self._functions[path] = {}
            facts = self.full.get(path)
            for function in facts.functions if facts is not None else ():
                known.setdefault(function.qualname, []).append(function)
        return known

    def classes(self, path: str) -> dict[str, PyClass]:
        """The known classes of a file by qualname."""
        self.modules.reads.files.add(path)
        known = self._classes.get(path)
        if known is None:
            facts = self.full.get(path)
            known = {one.qualname: one for one in facts.classes} if facts is not None else {}
            self._classes[path] = known
        return known

    def imports(self, path: str) -> dict[str, list[PyImport]]:
        """The imports among a file's full facts, by alias."""
        self.modules.reads.files.add(path)
        known = self._imports.get(path)
        if known is None:
            known = self._imports[path] = {}
            facts = self.full.get(path)
            for one in facts.imports if facts is not None else ():
                known.setdefault(one.alias, []).append(one)
        return known

    def aliases(self, path: str) -> dict[str, list[PyAlias]]:
        """The op aliases of a file by ``name`` or ``Class.name``, functions' own left out."""
        self.modules.reads.files.add(path)
        known = self._aliases.get(path)
        if known is None:
            known = self._aliases[path] = {}
            facts = self.full.get(path)
            for one in facts.aliases if facts is not None else ():
                name = one.name if one.scope is None else f"{one.scope}.{one.name}"
                if one.scope is None or one.scope in self.classes(path):
                    known.setdefault(name, []).append(one)
        return known

    def targets(self, path: str) -> set[str]:
        """The names outside of functions that steps of a file bind: ``name``, ``Class.name``."""
        self.modules.reads.files.add(path)
        known = self._targets.get(path)
        if known is None:
            facts, functions = self.full.get(path), self.functions(path)
            known = {name for step in facts.steps if (name := bound_name(step, functions))} if facts else set()
            self._targets[path] = known
        return known

    def is_autograd(self, path: str, owner: str) -> bool:
        """Whether a class is an autograd function, whose ``forward`` runs through ``apply``."""
        self._look(path, owner)
        known = self.classes(path).get(owner)
        return known is not None and any(base.rpartition(".")[2] == "Function" for base in known.bases)

    def origins(self, path: str, words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """``(file, module-level name)`` that a dotted name in a file begins with, imports followed."""
        key = (path, words[:2])
        known = self._origins.get(key)
        if known is None:
            found: list[tuple[str, str]] = []
            bindings = self.modules.bindings(path)
            for bound in bindings.get(words[0], ()):
                name = bound.name if bound.name is not None else words[1] if len(words) > 1 else None
                if name is not None:
                    found += [(origin, own) for origin, own in self.modules.origins(bound.target, name) if own]
            if words[0] not in bindings:
                found.append((path, words[0]))
            known = self._origins[key] = tuple(found)
        return known

    def meanings(self, path: str, call: PyCall) -> list[Meaning]:
        """What the callee of a call can mean: functions and classes, or op aliases with the rest of the spelling."""
        parts = call.callee.split(".")
        if parts[0] in (*_SELF, "super()"):
            if len(parts) != 2 or call.function is None:
                return []
            owner = self._class_around(path, call.function)
            if owner is None:
                return []
            found = self.method(path, owner, parts[1], skip_own=parts[0] == "super()")
            return [found] if found is not None else list(self.attribute(path, owner, parts[1]))
        return list(self.named(path, parts, call.function, call.line))

    def attribute(self, path: str, owner: str, name: str) -> Iterator[PyAlias | Slot]:
        """What an attribute of a class stands for, in the class itself or the nearest base that has it."""
        for here, qualname in self._lineage(path, owner):
            found: list[PyAlias | Slot] = [*self.aliases(here).get(f"{qualname}.{name}", ())]
            if f"{qualname}.{name}" in self.targets(here):
                found.append(Slot(here, f"{qualname}.{name}"))
            if found:
                yield from found
                return

    def _class_around(self, path: str, function: str) -> str | None:
        """The class whose method ``function`` is, or stands in."""
        qualname = function
        while qualname:
            for known in self.functions(path).get(qualname, ()):
                if known.method_of is not None:
                    return known.method_of
            qualname = qualname.rpartition(".")[0]
        return None

    def method(self, path: str, owner: str, name: str, skip_own: bool = False) -> Node | None:
        """The method that ``self.name`` means in a class: its own, or that of the nearest base that has it."""
        for at, (here, qualname) in enumerate(self._lineage(path, owner)):
            if name in self.classes(here)[qualname].methods and (at or not skip_own):
                return Node(here, f"{qualname}.{name}")
        return None

    def _lineage(self, path: str, owner: str) -> Iterator[tuple[str, str]]:
        """A class and its bases as far as they are known, nearest first."""
        pending = [(path, owner)]
        seen: set[tuple[str, str]] = set()
        while pending and len(seen) < _MOST_BASES:
            here, qualname = pending.pop(0)
            self._look(here, qualname)
            known = self.classes(here).get(qualname)
            if known is None or (here, qualname) in seen:
                continue
            seen.add((here, qualname))
            yield here, qualname
            for base in known.bases:
                for meaning in self.named(here, base.split("[", 1)[0].split("."), None):
                    if isinstance(meaning, Node):
                        pending.append((meaning.path, meaning.qualname))

    def named(self, path: str, parts: list[str], function: str | None, line: int | None = None) -> Iterator[Meaning]:
        """What a dotted name means in a function of a file, on a line of it."""
        self._look(path, parts[0])
        scope = function
        while scope is not None:
            inner = f"{scope}.{parts[0]}"
            if inner in self.functions(path) and scope not in self.classes(path):
                if len(parts) == 1:
                    yield Node(path, inner)
                return
            scope = scope.rpartition(".")[0] or None
        local, outer, hidden = self._imported(path, parts, function, line)
        yield from local
        if not hidden:
            yield from outer
            yield from self._in_file(path, parts)

    def _imported(
        self, path: str, parts: list[str], function: str | None, line: int | None
    ) -> tuple[list[Meaning], list[Meaning], bool]:
        """What imports make of a dotted name: those inside the function, those outside of functions, and whether the
        former hide all else, which they do even where they lead out of the tree."""
        local: list[Meaning] = []
        outer: list[Meaning] = []
        hidden = False
        imports = self.imports(path)
        for size in range(len(parts), 0, -1):
            for one in _in_force(imports.get(".".join(parts[:size]), ()), line):
                if one.scope is None:
                    outer.extend(self._through(path, one, parts[size:]))
                elif function is not None and f"{function}.".startswith(f"{one.scope}."):
                    hidden = True
                    local.extend(self._through(path, one, parts[size:]))
            if size > 1 and (hidden or outer):
                break
        if not hidden and not outer:
            for one in imports.get("*", ()):
                outer.extend(self._through(path, one, parts))
        return local, outer, hidden

    def _through(self, path: str, one: PyImport, rest: list[str]) -> Iterator[Meaning]:
        for bound in self.modules.bound(path, one):
            if bound.name == "*":
                if rest and not rest[0].startswith("_"):
                    yield from self.symbol(bound.target, rest)
            elif bound.name is None:
                yield from self._in_module(bound.target, rest)
            else:
                yield from self.symbol(bound.target, [bound.name, *rest])

    def _in_module(self, target: str, rest: list[str]) -> Iterator[Meaning]:
        while rest:
            self._look(target, rest[0])
            inner = self.modules.below(target, rest[0])
            if inner is None or (len(rest) > 1 and rest[0] in self.modules.bindings(target)):
                break
            target, rest = inner, rest[1:]
        if rest and not target.endswith("/"):
            yield from self.symbol(target, rest)

    def symbol(self, path: str, parts: list[str]) -> Iterator[Meaning]:
        """What ``parts`` means as an attribute of the module ``path``; re-exports are followed."""
        for origin, name in self.modules.origins(path, parts[0]):
            if name is None:
                yield from self._in_module(origin, parts[1:])
            else:
                yield from self._in_file(origin, [name, *parts[1:]])

    def _in_file(self, path: str, parts: list[str]) -> Iterator[Meaning]:
        """What a file itself defines under a dotted name."""
        self._look(path, parts[0])
        whole = ".".join(parts)
        if whole in self.functions(path) or whole in self.classes(path):
            yield Node(path, whole)
        elif len(parts) > 1 and ".".join(parts[:-1]) in self.classes(path):
            owner = ".".join(parts[:-1])
            found = self.method(path, owner, parts[-1])
            if found is None and parts[-1] == "apply" and self.is_autograd(path, owner):
                found = self.method(path, owner, "forward")
            if found is not None:
                yield found
            else:
                yield from self.attribute(path, owner, parts[-1])
                return
        for size in range(len(parts), 0, -1):
            name, rest = ".".join(parts[:size]), parts[size:]
            for alias in self.aliases(path).get(name, ()):
                yield PyAlias(alias.name, ".".join([alias.target, *rest]), alias.scope, alias.line)
            if name in self.targets(path):
                yield Slot(path, name, ".".join(rest))


def bound_name(step: PyStep, functions: Container[str]) -> str | None:
    """The name outside of functions that a step binds; None where it binds none, or one that is a function's own."""
    target, scope = step.target or "", step.scope or ""
    if step.kind == "assign" and target.startswith("self."):
        scope = scope.rpartition(".")[0]
        if not scope:
            return None
    elif step.kind not in ("assign", "decorate") or scope in functions or not target:
        return None
    name = target.rpartition(".")[2]
    return f"{scope}.{name}" if scope else name


def _in_force(imports: Sequence[PyImport], line: int | None) -> Iterator[PyImport]:
    """The imports of one name that can hold on a line. Inside a function, one whose block the line stands in takes the
    place of those of the same function before it; one further down holds nothing yet."""
    for one in imports:
        if line is not None and one.scope is not None and one.until:
            beside = [other for other in imports if other.scope == one.scope]
            if any(one.line < other.line <= line <= other.until for other in beside):
                continue
            if one.line > line >= min(other.line for other in beside):
                continue
        yield one
