"""Which names other Python files should look for, worked out from what all files say together.

In: the resolved names of the files that were read. Out: ``Wanted``: the importers of wrappers and of helpers that
register, over some levels, and the definitions that registrations use; and the entries that this makes for each file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from opwalker.link.python_importers import Imports
from opwalker.link.python_resolved import REGISTERING, FlowStep, Place, Resolved, Target

#: Levels of callers above the function that calls an op, and of helpers above the one that registers.
CALLER_LEVELS = 2
HELPER_LEVELS = 3

#: What is asked of a name: ``(kind, what follows the name, whether as an attribute of its module too)``.
_Ask = tuple[str, str, bool]


class Wanted:
    """What is asked of module-level names: their importers should look for them, or their own file for a definition.

    Entries are as ``PyFacts.watched``: ``call:f``, ``call:mod.*``, ``call:Class.method``, ``reg:f``, ``reg:mod.f`` and
    ``def:f``.
    """

    def __init__(self) -> None:
        self._names: dict[str, dict[str, set[_Ask]]] = {}
        self._definitions: set[Place] = set()
        #: Names that what a registration returns is bound to: what they are is not known yet, that they matter is.
        self.results: set[Place] = set()

    def name(self, path: str, name: str, kind: str, tail: str = "") -> None:
        """Ask every file that can see the module-level ``name`` of ``path`` to look for it."""
        self._names.setdefault(path, {}).setdefault(name, set()).add((kind, tail, True))

    def definition(self, path: str, name: str) -> None:
        """Ask ``path`` for the definition of one of its own names."""
        self._definitions.add((path, name))

    def digest(self) -> str:
        """What stands for all that is asked."""
        names = sorted(
            (path, name, *ask) for path, asked in self._names.items() for name, asks in asked.items() for ask in asks
        )
        whole = msgspec.msgpack.encode((names, sorted(self._definitions)))
        return hashlib.blake2b(whole, digest_size=16).hexdigest()

    def names(self) -> dict[str, dict[str, set[_Ask]]]:
        """All asks by file and name."""
        return self._names

    def definitions(self) -> set[Place]:
        """All definitions that are asked for."""
        return self._definitions


class Spread:
    """Turns what is asked into entries of the files that import the names, re-exports followed; and files that mention
    ops have an entry whether anything is asked of them or not, as have those that import compiled modules. What is
    asked only grows on the way."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self.entries: dict[str, set[str]] = {path: set() for path in imports.mentions}
        for path, asked in imports.compiled.items():
            self.entries.setdefault(path, set()).update(asked)
        self._asked = Wanted()
        self._todo: dict[str, dict[str, set[_Ask]]] = {}
        self._done: dict[str, dict[str, set[_Ask]]] = {}

    def of(self, wanted: Wanted) -> Spread:
        """This spread with all that is wanted now; a new one where less is wanted than was."""
        before = self._asked
        if not before.definitions() <= wanted.definitions():
            return Spread(self._imports).of(wanted)
        more: dict[str, dict[str, set[_Ask]]] = {}
        count = 0
        for path, asked in wanted.names().items():
            known = before.names().get(path, {})
            for name, asks in asked.items():
                old = known.get(name, set())
                count += len(old & asks)
                if not asks <= old:
                    more.setdefault(path, {})[name] = asks - old
        if count < sum(len(asks) for asked in before.names().values() for asks in asked.values()):
            return Spread(self._imports).of(wanted)
        self._asked = wanted
        for path, name in wanted.definitions():
            self._enter(path, f"def:{name}")
        self._run(more)
        return self

    def _enter(self, path: str, entry: str) -> None:
        known = self.entries.get(path)
        if known is None:
            known = self.entries[path] = set()
        known.add(entry)

    def _run(self, names: dict[str, dict[str, set[_Ask]]]) -> None:
        """Spread names until nothing new comes of it."""
        self._todo = names
        while self._todo:
            path, asked = self._todo.popitem()
            known = self._done.setdefault(path, {})
            for name, asks in asked.items():
                known.setdefault(name, set()).update(asks)
            for alias, name, files in self._imports.of(path):
                if name is None:
                    self._as_module(alias, files, asked)
                else:
                    self._by_name(alias, name, files, asked)

    def _again(self, path: str, name: str, kind: str, tail: str = "") -> None:
        """Ask for a name that ``path`` only imports. As an attribute of the module it is looked for where the module is
        a package: that is how names are handed on."""
        ask = (kind, tail, path.endswith("__init__.py"))
        if ask not in self._done.get(path, {}).get(name, ()):
            self._todo.setdefault(path, {}).setdefault(name, set()).add(ask)

    def _by_name(self, alias: str, name: str, files: Iterable[str], asked: Mapping[str, set[_Ask]]) -> None:
        names: Iterable[str] = [name]
        if name == "*":
            names = [one for one in asked if not one.startswith("_")]
        for one in names:
            bound = one if name == "*" else alias
            for kind, tail, _ in asked.get(one, ()):
                entry = f"call:{bound}.*" if kind == "module" else f"{kind}:{bound}{tail}"
                for file in files:
                    self._enter(file, entry)
                    self._again(file, bound, kind, tail)

    def _as_module(self, alias: str, files: Iterable[str], asked: Mapping[str, set[_Ask]]) -> None:
        open_asks = [(name, kind) for name, asks in asked.items() for kind, _, through_module in asks if through_module]
        if any(kind in ("call", "module") for _, kind in open_asks):
            for file in files:
                self._enter(file, f"call:{alias}.*")
                if "." not in alias:
                    self._again(file, alias, "module")
        for name in {name for name, kind in open_asks if kind == "reg"}:
            for file in files:
                self._enter(file, f"reg:{alias}.{name}")


def want_callers(files: Mapping[str, Resolved], wanted: Wanted) -> None:
    """Ask for the importers of everything that calls an op, directly or over one step."""
    level: set[Place] = set()
    calls: list[tuple[Place, set[Place]]] = []
    for path, one in files.items():
        level.update((path, use.function) for use in one.uses if use.called and use.function is not None)
        for name, tail in one.aliases:
            wanted.name(path, name, "call", tail)
        for call in one.calls:
            if call.function is None:
                continue
            called = set()
            for target in call.targets:
                if target.kind == "function":
                    called.add((target.path, target.name))
                elif _is_op(target, wanted):
                    level.add((path, call.function))
            if called:
                calls.append(((path, call.function), called))
    names = {(path, function): asks for path, one in files.items() for function, asks in one.callers}
    seen: set[Place] = set()
    for _ in range(CALLER_LEVELS):
        for node in level - seen:
            for name, tail in names.get(node, ()):
                wanted.name(node[0], name, "call", tail)
        seen |= level
        # A call of a class is one of its constructor.
        made = {(path, name.removesuffix(".__init__")) for path, name in level if name.endswith(".__init__")}
        level |= made
        level = {caller for caller, called in calls if not level.isdisjoint(called)}


def _is_op(target: Target, wanted: Wanted) -> bool:
    if target.kind == "slot":
        return not target.rest and (target.path, target.name) in wanted.results
    return target.kind == "op"


def want_registrations(files: Mapping[str, Resolved], wanted: Wanted) -> None:
    """Ask for callers of helpers that register, and for the definitions that registrations use."""
    steps = {path: one.steps for path, one in files.items() if one.steps}
    level = {(path, one.exported) for path, rows in steps.items() for one in rows if one.registers and one.exported}
    helpers: set[Place] = set()
    for _ in range(HELPER_LEVELS):
        for path, name in level - helpers:
            wanted.name(path, name, "reg")
        helpers |= level
        level = {
            (path, one.exported)
            for path, rows in steps.items()
            for one in rows
            if one.exported and not one.decorates and not helpers.isdisjoint(one.origins)
        }
        if level <= helpers:
            break
    for path, rows in steps.items():
        for one in rows:
            through_helper = not helpers.isdisjoint(one.origins)
            if one.known or through_helper:
                _want_definitions(path, one.origins, wanted)
            if one.custom or through_helper:
                _want_result(path, one, wanted)
        _want_definitions(path, files[path].given, wanted)


def _want_result(path: str, step: FlowStep, wanted: Wanted) -> None:
    """What a registration returns is bound to a name: ask for calls of it, they may be calls of the op."""
    if step.result is None:
        return
    owner, name = step.result
    if owner:
        wanted.name(path, owner, "call", f".{name}")
    else:
        wanted.results.add((path, name))
        wanted.name(path, name, "call")


def _want_definitions(path: str, origins: Iterable[Place], wanted: Wanted) -> None:
    """Ask the files that define the names in a registration for them."""
    for origin, name in origins:
        if origin != path and name not in REGISTERING:
            wanted.definition(origin, name)
