"""Which Python files must be read in full, and what to look for in them.

In: the light facts of all files and the full facts read so far. Out: for each file that is still to be read (or read
again) the names to look for. Asked again after each round until nothing is left: first the files that mention ops, then
callers of their wrappers and of helpers that register, then callers of those, and the definitions that registrations
use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from opwalker.link.python_graph import Graph, Node
from opwalker.link.python_modules import Bound, Modules
from opwalker.model.python import PyAlias, PyExpr, PyFacts, PyLight, PyStep

#: Levels of callers above the function that calls an op, and of helpers above the one that registers.
CALLER_LEVELS = 2
HELPER_LEVELS = 3

_NAME = re.compile(r"[A-Za-z_]\w*")
#: The last words of calls that register.
REGISTERING = frozenset(
    {"define", "impl", "fallback", "_register_fake", "register_fake", "impl_abstract", "custom_op", "triton_op"}
    | {"register_kernel", "register_autograd", "Library"}
)


def needed(light: Mapping[str, PyLight], full: Mapping[str, PyFacts]) -> dict[str, frozenset[str]]:
    """``{path: names to look for}`` of the files that ``facts.python_full.full`` must still read, empty when done.

    For several rounds over one tree, one ``Scope`` saves work.
    """
    return Scope(light).needed(full)


def needed_in(light: Mapping[str, PyLight], full: Mapping[str, PyFacts], scope: Scope) -> dict[str, frozenset[str]]:
    """As ``needed``, for several rounds over one tree: ``scope`` is its ``Scope``, made once."""
    del light
    return scope.needed(full)


class Scope:
    """The rounds of reading over one tree. ``modules`` may be used for linking afterwards."""

    def __init__(self, light: Mapping[str, PyLight]) -> None:
        self.modules = Modules(light)
        self._wanted = _Wanted(self.modules)
        self._steps: dict[str, _Steps] = {}
        for path, facts in light.items():
            if facts.mentions_ops:
                self._wanted.entries[path] = set()

    def needed(self, full: Mapping[str, PyFacts]) -> dict[str, frozenset[str]]:
        """The files to read next, by path, with all names to look for in each; empty when done.

        A file that was read with fewer names before is listed again. ``full`` are the facts read so far, those of
        earlier rounds among them.
        """
        wanted = self._wanted
        if full:
            graph = Graph(self.modules, full)
            _want_registrations(graph, wanted, self._registering(full))
            _want_callers(graph, wanted)
            wanted.spread()
        found: dict[str, frozenset[str]] = {}
        for path, names in wanted.entries.items():
            known = full.get(path)
            if known is None or not names.issubset(known.watched):
                found[path] = frozenset(names.union(known.watched if known is not None else ()))
        return found

    def _registering(self, full: Mapping[str, PyFacts]) -> dict[str, _Steps]:
        """The files that have steps, by path."""
        for path, facts in full.items():
            if facts.steps and (path not in self._steps or self._steps[path].facts is not facts):
                self._steps[path] = _Steps(facts)
        return self._steps


#: What is asked of a name: ``(kind, what follows the name, whether as an attribute of its module too)``.
_Ask = tuple[str, str, bool]


class _Wanted:
    """Names that other files should look for, and the entries that this makes for each of them.

    ``entries`` are as ``PyFacts.watched``: ``call:f``, ``call:mod.*``, ``call:Class.method``, ``reg:f``, ``reg:mod.f``
    and ``def:f``. ``name`` asks for a module-level name; what is asked is its kind and what follows the name. Both only
    grow from round to round.
    """

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self.entries: dict[str, set[str]] = {}
        self.functions: set[Node] = set()
        self._names: dict[str, dict[str, set[_Ask]]] = {}
        self._done: dict[str, dict[str, set[_Ask]]] = {}

    def name(self, path: str, name: str, kind: str, tail: str = "", again: bool = False) -> None:
        """Ask every file that can see the module-level ``name`` of ``path`` to look for it.

        ``again`` marks a name that ``path`` only imports. As an attribute of the module it is looked for where the
        module is a package: that is how names are handed on.
        """
        through_module = not again or path.endswith("__init__.py")
        ask = (kind, tail, through_module)
        if ask not in self._done.get(path, {}).get(name, ()):
            self._names.setdefault(path, {}).setdefault(name, set()).add(ask)

    def definition(self, path: str, name: str) -> None:
        """Ask ``path`` for the definition of one of its own names."""
        self.entries.setdefault(path, set()).add(f"def:{name}")

    def spread(self) -> None:
        """Turn the asked names into entries of the files that import them, re-exports followed."""
        while self._names:
            path, asked = self._names.popitem()
            known = self._done.setdefault(path, {})
            for name, tails in asked.items():
                known.setdefault(name, set()).update(tails)
            for importer, bound in self._modules.importers(path):
                self._spread_to(importer, bound, asked)

    def _spread_to(self, importer: str, bound: Bound, asked: Mapping[str, set[_Ask]]) -> None:
        if bound.name is None:
            self._spread_to_module(importer, bound, asked)
            return
        names: Iterable[str] = [bound.name]
        if bound.name == "*":
            names = [name for name in asked if not name.startswith("_")]
        for name in names:
            for kind, tail, _ in asked.get(name, ()):
                alias = name if bound.name == "*" else bound.alias
                if kind == "module":
                    self._enter(importer, f"call:{alias}.*")
                else:
                    self._enter(importer, f"{kind}:{alias}{tail}")
                self.name(importer, alias, kind, tail, again=True)

    def _spread_to_module(self, importer: str, bound: Bound, asked: Mapping[str, set[_Ask]]) -> None:
        kinds = {kind for asks in asked.values() for kind, _, through_module in asks if through_module}
        if "call" in kinds or "module" in kinds:
            self._enter(importer, f"call:{bound.alias}.*")
            if "." not in bound.alias:
                self.name(importer, bound.alias, "module", again=True)
        if "reg" in kinds:
            for name, asks in asked.items():
                if any(kind == "reg" and through_module for kind, _, through_module in asks):
                    self._enter(importer, f"reg:{bound.alias}.{name}")

    def _enter(self, path: str, entry: str) -> None:
        self.entries.setdefault(path, set()).add(entry)


# -- callers of ops


def _want_callers(graph: Graph, wanted: _Wanted) -> None:
    """Ask for the importers of everything that calls an op, directly or over one step."""
    level: set[Node] = set()
    for path, facts in graph.full.items():
        level |= {Node(path, use.function) for use in facts.op_calls if use.called and use.function is not None}
        for name, aliases in graph.aliases(path).items():
            for alias in aliases:
                _want_alias(path, name, alias, wanted)
    calls = graph.calls()
    for caller, meanings in calls:
        if any(isinstance(meaning, PyAlias) or meaning in graph.results for meaning in meanings):
            level.add(caller)
    for _ in range(CALLER_LEVELS):
        for node in level - wanted.functions:
            _want_function(graph, node, wanted)
        wanted.functions |= level
        callers: set[Node] = set()
        for caller, meanings in calls:
            for meaning in meanings:
                if isinstance(meaning, Node):
                    if meaning in level or Node(meaning.path, f"{meaning.qualname}.__init__") in level:
                        callers.add(caller)
        level = callers


def _want_function(graph: Graph, node: Node, wanted: _Wanted) -> None:
    known = graph.functions(node.path).get(node.qualname, [])
    owner, _, name = node.qualname.rpartition(".")
    if not owner:
        wanted.name(node.path, name, "call")
    elif "." not in owner and any(function.method_of == owner for function in known):
        if name == "__init__":
            wanted.name(node.path, owner, "call")
        elif not name.startswith("__"):
            wanted.name(node.path, owner, "call", f".{name}")
            if name == "forward" and graph.is_autograd(node.path, owner):
                wanted.name(node.path, owner, "call", ".apply")


def _want_alias(path: str, name: str, alias: PyAlias, wanted: _Wanted) -> None:
    """Ask for the importers of a name that stands for a namespace or an op."""
    owner, _, own = name.rpartition(".")
    if owner:
        wanted.name(path, owner, "call", f".{own}")
        return
    words = alias.target.count(".") + 1
    if words > 3:
        wanted.name(path, own, "call")
    if words < 5:
        wanted.name(path, own, "call", ".*")


# -- registrations


class _Steps:
    """The steps of one file with the names in them, read once for all rounds."""

    def __init__(self, facts: PyFacts) -> None:
        self.facts = facts
        self.rows = [(step, _words(step.value), tuple(dotted_names(step.value))) for step in facts.steps]
        self.registers = [bool(words & REGISTERING) or _hands_out(step.value) for step, words, _ in self.rows]
        given: set[str] = set()
        for function in facts.functions if facts.steps else ():
            for _, note, default, _ in function.parameters:
                given.update(_NAME.findall(f"{note or ''} {default or ''}"))
        self.given = tuple(sorted(given))


def _want_registrations(graph: Graph, wanted: _Wanted, files: Mapping[str, _Steps]) -> None:
    """Ask for callers of helpers that register, and for the definitions that registrations use."""
    level: set[tuple[str, str]] = set()
    for path, steps in files.items():
        for (step, _, _), registers in zip(steps.rows, steps.registers, strict=True):
            if registers:
                level |= _exported(graph, path, step)
    helpers: set[tuple[str, str]] = set()
    for _ in range(HELPER_LEVELS):
        for path, name in level - helpers:
            wanted.name(path, name, "reg")
        helpers |= level
        level = set()
        for path, steps in files.items():
            for step, _, names in steps.rows:
                if step.kind != "decorate" and _mentions(graph, path, names, helpers):
                    level |= _exported(graph, path, step)
        if level <= helpers:
            break
    for path, steps in files.items():
        for step, words, names in steps.rows:
            through_helper = _mentions(graph, path, names, helpers)
            if words & REGISTERING or through_helper:
                _want_definitions(graph, path, names, wanted)
            if words & {"custom_op", "triton_op"} or through_helper:
                _want_result(graph, path, step, wanted)
        _want_definitions(graph, path, [(name,) for name in steps.given], wanted)


def _want_result(graph: Graph, path: str, step: PyStep, wanted: _Wanted) -> None:
    """What a registration returns is bound to a name: ask for calls of it, they may be calls of the op."""
    if step.target is None or step.kind not in ("assign", "decorate"):
        return
    if step.scope is None and "." not in step.target:
        graph.results.add(Node(path, step.target))
        wanted.name(path, step.target, "call")
    elif step.scope is not None and "." not in step.scope and step.kind == "assign":
        wanted.name(path, step.scope, "call", f".{step.target}")


def _hands_out(value: PyExpr) -> bool:
    """Whether an expression looks up an op by a name that is not written there."""
    pending = [value]
    while pending:
        one = pending.pop()
        if one.kind == "call" and dotted(one.items[0]) == ("getattr",) and len(one.items) > 2:
            if one.items[2].kind != "str" and "ops" in _words(one.items[1]):
                return True
        pending.extend(one.items)
    return False


def _words(value: PyExpr) -> set[str]:
    """All names and attributes in an expression."""
    found: set[str] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if one.kind in ("attr", "name"):
            found.add(one.text)
        pending.extend(one.items)
    return found


def _exported(graph: Graph, path: str, step: PyStep) -> set[tuple[str, str]]:
    """The module-level name under which others reach what a step does with what they hand in."""
    if step.scope is not None:
        if step.kind != "decorate" and _is_open(graph, path, step):
            return {(path, step.scope.partition(".")[0])}
        return set()
    if step.kind == "assign" and step.target and "." not in step.target:
        return {(path, step.target)}
    return set()


def _is_open(graph: Graph, path: str, step: PyStep) -> bool:
    """Whether a step inside a function uses what the function was given: a parameter, ``self`` or a local name."""
    scope = step.scope
    bound = {"self", "cls"}
    while scope:
        for function in graph.functions(path).get(scope, ()):
            bound.update(name for name, *_ in function.parameters)
        scope = scope.rpartition(".")[0]
    facts = graph.full[path]
    assigned = [other for other in facts.steps if other.kind == "assign" and other.scope == step.scope]
    bound |= {other.target for other in assigned if other.target}
    arguments = step.value.items[1:] if step.value.kind == "call" else step.value.items
    return any(_words(argument) & bound for argument in arguments)


def _mentions(graph: Graph, path: str, dotted_in: Iterable[tuple[str, ...]], names: set[tuple[str, str]]) -> bool:
    """Whether one of the dotted names begins with one of the module-level names."""
    return any(origin in names for words in dotted_in for origin in graph.origins(path, words))


def dotted_names(value: PyExpr) -> Iterator[tuple[str, ...]]:
    """The dotted names in an expression, each as long as it is written."""
    pending = [value]
    while pending:
        one = pending.pop()
        words = dotted(one)
        if words:
            yield words
        else:
            pending.extend(one.items)


def dotted(value: PyExpr) -> tuple[str, ...]:
    """The words of ``a.b.c``, empty for anything else."""
    words: list[str] = []
    while value.kind == "attr" and value.items:
        words.append(value.text)
        value = value.items[0]
    if value.kind != "name":
        return ()
    return (value.text, *reversed(words))


def _want_definitions(graph: Graph, path: str, names: Iterable[tuple[str, ...]], wanted: _Wanted) -> None:
    """Ask the files that define the names in a registration for them."""
    for words in names:
        for origin, name in graph.origins(path, words):
            if origin != path and name not in REGISTERING:
                wanted.definition(origin, name)
