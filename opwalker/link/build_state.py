"""The state of a CMake evaluation: scopes, variables, what conditions ask for, and what is reported.

In: the seeds of one kind of build and the paths of the tree. Out: values, answers, events and problems. It runs
nothing: that is ``build_run``.
"""

from __future__ import annotations

from opwalker.link.build_events import Event
from opwalker.link.build_guard import (
    Branches,
    Guard,
    LimitReached,
    Literal,
    either_text,
    excludes,
    implied,
    merge_sequences,
    resolved,
    without,
)
from opwalker.link.build_regex import MAX_TEXT
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_tree import BINARY, ROOT, Tree, resolve
from opwalker.link.build_values import MARK, Argument, Item, Value, expand, unknown
from opwalker.model.build import BuildCommand


class Scope:
    """Variables of a function or folder; what is not set here is looked up in ``parent``."""

    __slots__ = ("vars", "parent")

    def __init__(self, parent: Scope | None) -> None:
        self.vars: dict[str, Value] = {}
        self.parent = parent


class State:
    """Everything that commands read and write. ``events`` and ``problems`` are the outcome.

    A problem is (file, line, kind, message).
    """

    def __init__(self, tree: Tree, seeds: Seeds) -> None:
        self.tree = tree
        self.seeds = seeds
        self.events: list[Event] = []
        self.problems: list[tuple[str, int, str, str]] = []
        self.branches = Branches(self._merge, absent=(), lazy=True)
        self.branches.logs.extend((self.events, self.problems))
        self.scope = Scope(None)
        self.cache: dict[str, Value] = {}
        self.properties: dict[str, Value] = {
            f"ENV{{{name}}}": tuple(Item(part) for part in text.split(";")) for name, text in seeds.environment.items()
        }
        self.commands: dict[str, tuple[BuildCommand, str]] = {}
        self.directory = ROOT
        self.file = ""
        self.line = 0
        self._unknowns = 0
        self._work = 0
        #: The arguments of the macro that runs, which stand in its text; None in functions and files.
        self.bound: dict[str, Value] | None = None
        #: Where the outermost function of the project was called from.
        self.site: tuple[str, int] | None = None
        #: While a condition is evaluated: the variables that it has read.
        self.reads: list[tuple[str, Value | None]] | None = None

    def _merge(self, ways: list[tuple[Guard, Value]], key: str) -> Value:
        """One value of several: what differs between the ways is guarded."""
        merged = merge_sequences(ways)
        self._spend(len(merged))
        if all(item.guard for item in merged) and len({item.guard for item in merged}) > _MAX_CASES:
            # A variable that is used again and again for something else: what it is now depends on too much.
            return (self.unknown(key),)
        return simpler(merged, self.branches)

    # --- variables ---------------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Value | None:
        """The value of a variable here; None if nothing in the files or seeds gives it one."""
        scope: Scope | None = self.scope
        value: Value | None
        while scope is not None:
            if name in scope.vars:
                value = self.branches.get(scope.vars, name)
                break
            scope = scope.parent
        else:
            value = self.branches.get(self.cache, name)
            if value is None:
                seeded = self.seeds.variable(name)
                value = None if seeded is None else tuple(Item(part) for part in seeded.split(";") if part)
        if value and self.branches.guard and any(item.guard for item in value):
            value = self._here(value)
        if self.reads is not None:
            self.reads.append((name, value))
        return value

    def _here(self, value: Value) -> Value:
        """A value as it is under the conditions that hold here."""
        context = self.branches.guard
        return tuple(
            item if not item.guard else item._replace(guard=without(item.guard, context))
            for item in value
            if not excludes(item.guard, context)
        )

    def put(self, name: str, value: Value, parent: bool = False) -> None:
        """Set a variable in this scope or the one outside; ``()`` is empty or unset."""
        scope = self.scope
        if parent:
            scope = scope.parent or scope
        if len(value) > MAX_LIST:
            self.problem("limit", f"the list {name} was cut off after {MAX_LIST} elements")
            value = value[:MAX_LIST]
        self.branches.put(scope.vars, name, value)

    def put_cache(self, name: str, value: Value, force: bool) -> None:
        """Give a cache entry its value, unless it has one. A normal variable of the name stays in front of it."""
        if force or (self.cache.get(name) is None and self.seeds.variable(name) is None):
            self.branches.put(self.cache, name, value)

    def _reference(self, kind: str, name: str) -> Value:
        if kind == "env":
            return self.branches.get(self.properties, f"ENV{{{name}}}", ())
        if kind == "cache":
            value = self.branches.get(self.cache, name)
            return (unknown(f"CACHE{{{name}}}"),) if value is None else value
        if self.bound is not None and name in self.bound:
            return self.bound[name]
        value = self.lookup(name)
        return (unknown(name),) if value is None else value

    def arguments(self, command: BuildCommand) -> list[Argument]:
        """The command's arguments with everything expanded."""
        result: list[Argument] = []
        for argument in command.arguments:
            result.extend(expand(argument.text, argument.style, self.file, argument.line, self._reference))
        self._spend(sum(len(argument.items) for argument in result))
        return result

    def _spend(self, elements: int) -> None:
        self._work += elements
        if self._work > MAX_WORK:
            raise LimitReached

    # --- conditions: the protocol that build_condition asks for -------------------------------------------------

    def variable(self, name: str) -> Value | None:
        return self.lookup(name)

    def switch(self, name: str) -> bool | None:
        return self.seeds.switch(name)

    def defined(self, name: str) -> bool | None:
        if name.startswith("ENV{"):
            value = self.branches.get(self.properties, name, ())
            return None if any(item.guard for item in value) else bool(value)
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.vars:
                value = self.branches.get(scope.vars, name)
                return None if any(item.guard for item in value) else bool(value)
            scope = scope.parent
        return True if self.cache.get(name) is not None or self.seeds.variable(name) is not None else None

    def exists(self, path: str) -> bool | None:
        if path.startswith(BINARY):
            return False
        return self.tree.exists(resolve(path, self.directory))

    def has_target(self, name: str) -> bool | None:
        truth: bool | None = False
        for event in self.events:
            if event.what in ("target", "alias") and event.name == name:
                if implied(event.guard, self.branches.guard):
                    return True
                truth = truth if excludes(event.guard, self.branches.guard) else None
        return None if truth is False and "::" in name else truth

    def has_command(self, name: str) -> bool | None:
        return True if name.lower() in self.commands or name.lower() else None

    def matched(self, groups: tuple[str, ...]) -> None:
        for index, group in enumerate(groups[:10]):
            self.put(f"CMAKE_MATCH_{index}", (Item(group),) if group else ())

    # --- outcome -----------------------------------------------------------------------------------------------

    def report(self, what: str, name: str, items: Value = (), detail: str = "") -> None:
        """Write an event at the place of the current command, or where a project's function was called."""
        file, line = self.site or (self.file, self.line)
        self.events.append(Event(what, name, items, self.branches.guard, self.directory, file, line, detail))

    def problem(self, kind: str, message: str) -> None:
        self.problems.append((self.file, self.line, kind, message))

    def unknown(self, name: str) -> Item:
        """What a variable is given that cannot be computed: nothing else is known to be equal to it."""
        self._unknowns += 1
        return unknown(name, self._unknowns)

    def answer(self, output: list[Argument], text: str | None) -> None:
        """Set output variables to a computed text, or to an unknown of their own name."""
        for argument in output:
            name = argument.word
            if MARK in name:
                continue
            if text is None or len(text) > MAX_TEXT:
                self.put(name, (self.unknown(name),))
            else:
                self.put(name, (Item(text, (), self.file, self.line),) if text else ())

    def positional(self, index: int) -> Value | None:
        """``ARGV<index>`` of the function or macro that runs."""
        name = f"ARGV{index}"
        if self.bound is not None and name in self.bound:
            return self.bound[name]
        return self.branches.get(self.scope.vars, name)


#: Lists are cut off here, and an evaluation that has handled more elements than MAX_WORK in all.
MAX_LIST = 20_000
MAX_WORK = 1_000_000

#: A value with more guarded elements than this is made simpler: equal texts become one element.
_MAX_GUARDED = 12
#: A variable that has nothing in all cases, and more cases than this, is not followed further.
_MAX_CASES = 8
#: A guard with more conditions than this becomes one condition that says no more than that there are several.
_MAX_CONDITIONS = 6


def simpler(items: Value, branches: Branches) -> Value:
    """The same elements with fewer guards: what all ways have in common, and no more cases than can be followed."""
    guarded = [item for item in items if item.guard]
    if len(guarded) < 2:
        return items
    groups: dict[str, list[Item]] = {}
    for item in guarded:
        groups.setdefault(item.text, []).append(item)
    if len(groups) == len(guarded) and all(len(item.guard) <= _MAX_CONDITIONS for item in guarded):
        return items
    replaced: dict[str, list[Item]] = {}
    for text, group in groups.items():
        if len(group) == 1 and len(group[0].guard) <= _MAX_CONDITIONS:
            replaced[text] = group
            continue
        guards = resolved([item.guard for item in group])
        if len(guarded) > _MAX_GUARDED and len(guards) > 1:
            guards = [(_summary(guards, branches),)]
        guards = [g if len(g) <= _MAX_CONDITIONS else (_summary([g], branches),) for g in guards]
        replaced[text] = [group[0]._replace(guard=guard) for guard in guards]
    result: list[Item] = []
    for item in items:
        if not item.guard:
            result.append(item)
        else:
            result.extend(replaced.pop(item.text, ()))
    return tuple(result)


def _summary(guards: list[Guard], branches: Branches) -> Literal:
    text = either_text(guards[:3]) or ""
    if len(guards) > 3 or len(text) > 200:
        text = "several conditions of the build files"
    return branches.literal(("summary", tuple(guards)), text)
