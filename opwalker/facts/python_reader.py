"""One Python text read by parsing it: registrations, ops that are stored or handed on, and calls.

In: a layout and its needles. Out: ``PyFacts`` without the facts that need no parsing. Only the functions of interest
are parsed with their bodies. Names are not resolved across files here.
"""

from __future__ import annotations

from bisect import bisect_right

from msgspec.structs import replace

from opwalker.facts import python_steps
from opwalker.facts.python_layout import Head, Layout
from opwalker.facts.python_light import block_end, located_imports
from opwalker.facts.python_needles import Needles, getters
from opwalker.facts.python_ops import OpReader
from opwalker.facts.python_tree import (
    Node,
    Tree,
    chain_from,
    class_of,
    function_of,
    is_called,
    line_of,
    place_of,
    plain,
    text_of,
)
from opwalker.facts.python_words import occurrences
from opwalker.model.python import PyCall, PyClass, PyExpr, PyFacts, PyFunction, PyImport, PyStep
from opwalker.model.source import Problem
from opwalker.notation.python_imports import parse_import
from opwalker.notation.regex import Regex

_WORDS = Regex(r"[A-Za-z_]\w*")
_WIDE = Regex(r"[^\x00-\x7f]+")
_ASSIGNMENT = Regex(r"(?:\A|\n)[ \t]*(\w+)[ \t]*(?::[^=\n]+)?=(?!=)")
_SELF = ("self", "cls", "super()")


class Reader:
    """Reads one file. ``read`` fills the lists, ``facts`` freezes them."""

    def __init__(self, layout: Layout, needles: Needles) -> None:
        self.layout = layout
        self.needles = needles
        self.text = self._skeleton()
        self.tree = Tree(self.text)
        if self.tree.faulty and self.text != layout.text:
            self.text = layout.text
            self.tree = Tree(self.text)
        self._wide: list[int] | None = None
        self._extra: list[int] = []
        self._assignments: dict[str, list[int]] | None = None
        self.calls: dict[tuple[int, int], PyCall] = {}
        self.steps: dict[PyStep, None] = {}
        self.functions: dict[tuple[str, int], PyFunction] = {}
        self.classes: dict[tuple[str, int], PyClass] = {}
        self.imports: list[PyImport] = []
        self.ops = OpReader(self.tree, self.byte_of, self.text)
        self._bodies: set[int] = set()
        self._class_nodes: set[int] = set()

    def _skeleton(self) -> str:
        layout, needles = self.layout, self.needles
        return layout.skeleton(lambda head: self._inside(head, needles.kept), lambda head: head.start in needles.signed)

    def _inside(self, head: Head, starts: set[int]) -> bool:
        return head.start in starts

    def byte_of(self, place: int) -> int:
        """The byte offset of a character of the text that was parsed."""
        if len(self.tree.data) == len(self.text):
            return place
        if self._wide is None:
            self._wide, self._extra, extra = [], [0], 0
            for found in _WIDE.finditer(self.text):
                extra += len(found.group().encode("utf-8", "surrogatepass")) - len(found.group())
                self._wide.append(found.end())
                self._extra.append(extra)
        return place + self._extra[bisect_right(self._wide, place)]

    def node_at(self, place: int) -> Node | None:
        return self.tree.node_at(self.byte_of(place))

    def read(self) -> None:
        """Everything, in the order in which one thing needs another."""
        needles = self.needles
        self.ops.read(needles.roots)
        for definition in self.ops.functions.values():
            self._add_function(definition)
        for head in needles.heads:
            self._calls_of(head, set())
        for owner, methods in needles.dotted.items():
            self._calls_of(owner, methods)
        for name in needles.names:
            self._calls_of(name, None)
        for name in needles.methods:
            self._method_calls(name)
        self._read_registrations()
        self._read_wanted()
        self._read_imports()

    def _calls_of(self, word: str, attributes: set[str] | None) -> None:
        """The calls of ``word`` itself; with ``attributes``, of those of its attributes, any where it is empty."""
        for place in occurrences(self.text, word):
            node = self.node_at(place)
            if node is None or node.type != "identifier":
                continue
            chain = chain_from(node)
            callee = plain(chain)
            if not is_called(chain) or (attributes is None) != (callee == word):
                continue
            if not attributes or callee[len(word) + 1 :].split(".", 1)[0] in attributes:
                self._add_call(chain, callee, text_of(node))

    def _method_calls(self, name: str) -> None:
        """The calls of ``name`` through ``self``, ``cls``, ``super()`` or a name."""
        for place in occurrences(self.text, name, True):
            node = self.node_at(place)
            parent = node.parent if node is not None else None
            if node is None or parent is None or parent.type != "attribute" or not is_called(parent):
                continue
            owner = parent.child_by_field_name("object")
            if owner is None or owner == node:
                continue
            text = plain(owner)
            if text in _SELF or owner.type == "identifier":
                self._add_call(parent, f"{text}.{name}", text)

    def _add_call(self, chain: Node, callee: str, head: str) -> None:
        place = place_of(chain)
        if head not in _SELF and any(head in self.tree.bound_in(function) for function in place.functions):
            return
        self.calls[chain.start_byte, chain.end_byte] = PyCall(callee, line_of(chain), place.function)
        for function in place.functions:
            self._add_function(function)
            if "." not in callee:
                for nested in self.tree.nested_in(function, head):
                    self._add_function(nested)

    def _add_function(self, definition: Node, signed: bool = False) -> PyFunction:
        found = function_of(definition, signed)
        key = (found.qualname, found.line)
        known = self.functions.get(key)
        if known is None or (signed and not known.signed):
            self.functions[key] = found
        if found.method_of is not None:
            self._add_class_around(definition)
        return found

    def _add_class_around(self, definition: Node) -> None:
        parent = definition.parent
        while parent is not None and parent.type != "class_definition":
            parent = parent.parent
        if parent is not None and parent.id not in self._class_nodes:
            self._class_nodes.add(parent.id)
            found = class_of(parent)
            self.classes[found.qualname, found.line] = found

    # -- registrations

    def _read_registrations(self) -> None:
        places = [at for word in self.needles.registrars for at in occurrences(self.text, word)]
        if self.needles.library_use is not None:
            places += [found.start() + 1 for found in self.needles.library_use.finditer(self.text)]
        if self.needles.roots:
            places += getters(self.text)
        if not places:
            return
        for place in sorted(places):
            node = self.node_at(place)
            if node is None or node.type != "identifier":
                continue
            surroundings = place_of(node)
            if surroundings.functions:
                self._read_body(surroundings.functions[-1])
            else:
                self._read_statement(node)
        self._close_over_names()

    def _read_statement(self, node: Node) -> None:
        for step in python_steps.steps_at(node):
            self.steps[step] = None
        statement = python_steps.statement_around(node)
        if statement.type == "decorator" and statement.parent is not None:
            definition = statement.parent.child_by_field_name("definition")
            if definition is not None and definition.type == "function_definition":
                for step in python_steps.decorate_steps(definition):
                    self.steps[step] = None
                self._add_function(definition, True)

    def _read_body(self, definition: Node) -> None:
        """All steps of an outermost function, and of what it relies on in its class."""
        if definition.id in self._bodies:
            return
        self._bodies.add(definition.id)
        steps, nested = python_steps.steps_in(definition)
        for step in [*python_steps.decorate_steps(definition), *steps]:
            self.steps[step] = None
        found = self._add_function(definition, True)
        for inner in nested:
            self._add_function(inner, True)
        if found.method_of is None:
            return
        wanted = {"__init__"} | {name for step in steps for name in _self_names(step.value)}
        owner = definition.parent
        while owner is not None and owner.type != "class_definition":
            owner = owner.parent
        body = owner.child_by_field_name("body") if owner is not None else None
        for child in body.named_children if body is not None else []:
            inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
            if inner is not None and inner.type == "function_definition":
                named = inner.child_by_field_name("name")
                if named is not None and text_of(named) in wanted:
                    self._read_body(inner)

    def _close_over_names(self) -> None:
        """The definitions of names that the steps use: assignments, functions and classes of this file."""
        pending = {name for step in self.steps for name in _names(step.value)}
        pending |= {name for step in self.steps for guard in step.guards for name in _names(guard.test)}
        pending |= self._signature_words()
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending |= self._define(name)
            if not pending:
                # Names defined meanwhile may have brought signatures with words of their own.
                pending = self._signature_words() - seen

    def _signature_words(self) -> set[str]:
        """The words in the annotations and defaults of the functions whose signature is read."""
        found: set[str] = set()
        for function in self.functions.values():
            if function.signed:
                for _, note, default, _ in function.parameters:
                    found.update(_WORDS.findall(f"{note or ''} {default or ''}"))
                found.update(_WORDS.findall(function.returns or ""))
        return found

    def _define(self, name: str) -> set[str]:
        """Record the definitions of a module-level name; the names that they use in turn."""
        used: set[str] = set()
        for place in self._assigned().get(name, ()):
            node = self.node_at(place)
            if node is not None and node.type == "identifier" and not place_of(node).functions:
                for step in python_steps.steps_at(node):
                    self.steps[step] = None
                    used.update(_names(step.value))
        for head in self.layout.named(name):
            around = self.layout.around(head.start)[1:]
            if head.is_class:
                self._define_class(head)
            elif not any(not other.is_class for other in around):
                self._add_signature(head, around)
        return used

    def _assigned(self) -> dict[str, list[int]]:
        """Where each name is assigned at the start of a line, inside functions or not."""
        if self._assignments is None:
            self._assignments = {}
            for found in _ASSIGNMENT.finditer(self.text):
                self._assignments.setdefault(found.group(1), []).append(found.start(1))
        return self._assignments

    def _define_class(self, head: Head) -> None:
        place = self._place_in_text(head)
        node = self.node_at(place) if place is not None else None
        while node is not None and node.type != "class_definition":
            node = node.parent
        if node is not None:
            found = class_of(node)
            self.classes[found.qualname, found.line] = found

    def _place_in_text(self, head: Head) -> int | None:
        """Where a head of the file stands in the text that was parsed: lines agree, offsets do not."""
        line = self.layout.line_of(head.start) - 1
        start = 0
        for _ in range(line):
            start = self.text.find("\n", start) + 1
        return start + head.indent

    def _add_signature(self, head: Head, around: list[Head]) -> None:
        line = self.layout.line_of(head.start)
        qualname = ".".join([*(other.name for other in reversed(around)), head.name])
        known = self.functions.get((qualname, line))
        if known is not None and known.signed:
            return
        end = self.layout.end_of(head)
        text = self.layout.text
        start = head.start + head.indent
        colon = self.layout.signature_end(head)
        tree = Tree(f"{text[start : colon + 1]} pass\n") if colon >= 0 else Tree(text[start:end])
        if tree.faulty:
            tree = Tree(text[start:end])
        definition = next((node for node in tree.root.named_children if node.type == "function_definition"), None)
        if definition is None:
            return
        found = function_of(definition, True)
        last = line + text.count("\n", head.start, head.start + len(text[head.start : end].rstrip()))
        owner = ".".join(other.name for other in reversed(around)) or None
        decorators = known.decorators if known is not None else ()
        self.functions[qualname, line] = PyFunction(
            qualname, line, last, found.parameters, found.returns, decorators, owner, True
        )

    def _read_wanted(self) -> None:
        for name in self.needles.wanted:
            pending, seen = {name}, set()
            while pending:
                current = pending.pop()
                if current not in seen:
                    seen.add(current)
                    pending |= self._define(current)

    # -- the rest

    def _read_imports(self) -> None:
        used = {call.callee.split(".", 1)[0] for call in self.calls.values()}
        used |= {call.callee for call in self.calls.values()}
        used |= {name for step in self.steps for name in _names(step.value)}
        used |= self.needles.wanted | self._signature_words()
        used |= {name for step in self.steps for guard in step.guards for name in _names(guard.test)}
        for found in self.classes.values():
            used |= {base.split(".", 1)[0].split("[", 1)[0] for base in found.bases}
        used |= {use.text.split(".", 1)[0] for use in self.ops.uses.values()}
        for place, written in located_imports(self.text):
            bound = [one for one in parse_import(written) if one.name == "*" or one.alias.split(".", 1)[0] in used]
            if not bound:
                continue
            line = self.text[place : place + 200]
            node = self.node_at(place + len(line) - len(line.lstrip()))
            if node is None or node.type not in ("import", "from"):
                continue
            scope = place_of(node).function
            until = block_end(self.text, place) if scope is not None else 0
            self.imports += [replace(one, line=line_of(node), scope=scope, until=until) for one in bound]

    def facts(self, problems: tuple[Problem, ...]) -> PyFacts:
        """What was read, frozen and in source order."""
        if self.tree.faulty:
            problems = (*problems, self._syntax_problem())
        return PyFacts(
            imports=tuple(self.imports),
            functions=tuple(self.functions.values()),
            classes=tuple(self.classes.values()),
            op_calls=tuple(self.ops.uses.values()),
            calls=tuple(self.calls.values()),
            aliases=tuple(self.ops.aliases),
            steps=tuple(self.steps),
            problems=problems,
        )

    def _syntax_problem(self) -> Problem:
        node = self.tree.root
        while True:
            inner = next((child for child in node.children if child.has_error or child.is_missing), None)
            if inner is None or node.type == "ERROR":
                break
            node = inner
        return Problem("syntax", "part of this file does not parse as Python", line_of(node), node.start_point[1] + 1)


def _names(value: PyExpr) -> set[str]:
    """The bare names in an expression."""
    found: set[str] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if one.kind == "name":
            found.add(one.text)
        pending.extend(one.items)
    return found


def _self_names(value: PyExpr) -> set[str]:
    """The ``x`` of every ``self.x`` in an expression."""
    found: set[str] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if one.kind == "attr" and one.items and one.items[0].kind == "name" and one.items[0].text in _SELF:
            found.add(one.text)
        pending.extend(one.items)
    return found
