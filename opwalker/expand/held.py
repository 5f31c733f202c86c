"""Host functions that objects hold: in members, in rows of tables, in maps, and what a call through them can mean.

In: a call whose callee is no function by name: ``row.fn(a)``, ``table[n](a)``, ``it->second(a)``, ``fn_(a)``. Out: the
functions that are stored there, read off initialisers, assignments and insertions. Which of them is there at run time
is not judged; a member that nothing in sight fills gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.frames import Frame, Named
from opwalker.expand.mentions import written_arguments
from opwalker.expand.resolve import Context, Resolver, strip_arguments
from opwalker.expand.types import TypeReader
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.link.index import Index
from opwalker.model.body import CallFact
from opwalker.model.cpp import Variable
from opwalker.notation.regex import Regex

_CALLABLE = Regex(r"\(\s*(?:[\w:]+\s*::\s*)?\*\s*\)|\b(?:\w+_)?function(?:_ref)?\s*<")
_ROOT = Regex(r"[(*&\s]*(?:this\s*->\s*)?([A-Za-z_]\w*)\s*(\(\s*\))?")
_STORED = Regex(
    r"\s*(?:\.\s*\w+\s*=\s*)?(?:\(\s*[\w:<>*&,\s()]*\)\s*|std::move\s*\(\s*)?&?\s*"
    r"((?:::)?[A-Za-z_][\w:]*)\s*(?:<.*>)?\s*\)?\s*\Z",
    re.DOTALL,
)
_NAMES = Regex(r"(?<![\w.>\"])(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*(?!\s*\()")
_INSERTS = "emplace|insert|insert_or_assign|try_emplace|push_back|emplace_back|emplace_front|push_front|add|assign"
_DEEPEST = 3


class Holding(Struct, frozen=True):
    """``named`` are the functions that are stored; ``sure`` that they are those of the very object that is called
    through, and not of any object of its class."""

    named: tuple[Named, ...]
    sure: bool = True


class _Held(Struct, frozen=True):
    """The text that an object is made from, where names in it are looked up, and the type that it is declared with."""

    text: str
    context: Context
    type: str


class HeldFunctions:
    """Finds what objects hold."""

    def __init__(self, index: Index, resolver: Resolver, bodies: Bodies, types: TypeReader) -> None:
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._types = types

    def member(self, frame: Frame, body: Body, call: CallFact, receiver: str | None = None) -> Holding | None:
        """What a data member that is called can hold; None where no class in sight has a callable one of that name.

        ``receiver`` stands in for the one that the call names.
        """
        text = receiver if receiver is not None else body.text(call.receiver or call.callee)
        if call.simple in ("second", "first"):
            found = self.element(frame, body, call, text)
            return Holding(found) if found else None
        context = frame.context(body)
        fields = list(self._fields(call.simple, frame, body))
        objects = list(self._objects(text, call.start, body, frame, 0)) if fields else []
        type_text = self._types.of_expression(text, body, frame) if fields else None
        holder = self._types.class_name(type_text, context) if type_text else None
        words = {holder} if holder else {word for one in objects for word in re.findall(r"\w+", one.type)}
        meant = [f for f in fields if f[1].scope[-1] in words or (f[1].scope[-1] == "" and "struct" in words)]
        if not meant and (holder or not objects):
            meant = fields if holder is None and len({f[1].scope for f in fields}) == 1 else []
        if not meant:
            return None
        out: dict[tuple, Named] = {}
        count = len(call.arguments)
        for path, field in meant:
            own = Context(path, frame.root, field.scope[:-1])
            self._stored(field.value or "", own, count, out)
            self._constructed(path, field, frame, objects, count, out)
            position = self._position(path, field)
            for one in objects:
                self._rows(one, field.name, position, count, out)
        self._assigned(text, call, body, context, out)
        if out:
            return Holding(tuple(out.values()))
        for path, field in meant:
            for one in self._of_class(field.scope[-1], frame, body):
                self._rows(one, field.name, self._position(path, field), count, out)
            self._assigned_anywhere(field.name, path, frame, body, count, out)
        return Holding(tuple(out.values()), sure=False)

    def element(self, frame: Frame, body: Body, call: CallFact, text: str | None = None) -> tuple[Named, ...]:
        """The functions that a container holds, of which one is called: ``table[n](…)``, ``it->second(…)``."""
        text = text if text is not None else body.text(call.callee)
        out: dict[tuple, Named] = {}
        count = len(call.arguments)
        for one in self._objects(text, call.start, body, frame, 0):
            self._named(one.text, one.context, count, out)
        return tuple(out.values())

    # -- objects ----------------------------------------------------------------------------------------------------

    def _near(self, frame: Frame, body: Body) -> frozenset[str]:
        return frozenset(self._index.closure(frame.root)) | {body.path, frame.root}

    def _objects(self, text: str, offset: int, body: Body, frame: Frame, depth: int) -> Iterator[_Held]:
        """The texts that the object an expression begins with is made from, and filled with."""
        root = _ROOT.match(text)
        if root is None or depth > _DEEPEST:
            return
        name, context = root.group(1), frame.context(body)
        if root.group(2) or text[root.end() : root.end() + 1] == "(":
            yield from self._returned(name, frame, body, depth)
            yield from self._inserted(rf"\b{name}\s*\(\s*\)", (body.path, frame.root), context)
            return
        locals_ = [f for f in body.locals_at(name, offset) if f.type not in ("using", "namespace")]
        for local in locals_:
            value = body.text(local.value) if local.value else ""
            yield _Held(value, context, local.type)
            if not value.lstrip("= ").startswith("{") or local.type.startswith("auto"):
                for inner in _roots(value):
                    if inner != name:
                        yield from self._objects(inner, local.start, body, frame, depth + 1)
        if locals_:
            for assign in body.assigns_at(name, offset):
                if assign.target.rstrip().endswith("]"):
                    yield _Held(body.text(assign.value), context, "")
            for call in body.facts.calls:
                if call.receiver and body.text(call.receiver) == name and re.fullmatch(_INSERTS, call.simple):
                    yield from (_Held(body.text(a), context, "") for a in call.arguments)
            return
        near = self._near(frame, body)
        for path, variable in self._index.entries(name, ("variable",), lambda facts: facts.variables):
            if path in near and (not variable.scope or self._in_sight(variable.scope, context)):
                yield _Held(variable.value or "", Context(path, frame.root, variable.scope), variable.type)
                yield from self._inserted(rf"\b{name}", (path, body.path, frame.root), context)

    def _in_sight(self, scope: tuple[str, ...], context: Context) -> bool:
        """Whether a namespace's or class's own name is seen in a context: it stands around it, or is a namespace."""
        return scope == context.scope[: len(scope)] or scope[-1] not in self._index.names_of_kind("class")

    def _returned(self, name: str, frame: Frame, body: Body, depth: int) -> Iterator[_Held]:
        """What a function returns a reference to: as a rule a static table of its own."""
        for candidate in self._resolver.function(name, frame.context(body), 0, kernel=False).candidates:
            inner = self._bodies.of(candidate, frame.root)
            held = Frame(candidate, frame.root, frame.steps)
            for span in inner.facts.returns:
                yield from self._objects(inner.text(span), span[0], inner, held, depth + 1)

    def _inserted(self, begins: str, paths: tuple[str, ...], context: Context) -> Iterator[_Held]:
        """What is put into a table anywhere in some files: ``table[n] = f``, ``table.emplace(n, f)``."""
        pattern = re.compile(rf"{begins}\s*(?:\[[^\]]*\]\s*=(?!=)|(?:\.|->)\s*(?:{_INSERTS})\s*(?=\())\s*")
        for path in dict.fromkeys(paths):
            code = self._bodies.files.view(path).blanked.code
            for match in pattern.finditer(code):
                end = code.find(";", match.end())
                if end > 0:
                    yield _Held(code[match.end() : end], Context(path, context.root, context.scope), "")

    # -- members ----------------------------------------------------------------------------------------------------

    def _fields(self, name: str, frame: Frame, body: Body) -> Iterator[tuple[str, Variable]]:
        """The data members of a name whose type can be called."""
        if name not in self._index.names_of_kind("variable"):
            return
        near = self._near(frame, body)
        for path, variable in self._index.entries(name, ("variable",), lambda facts: facts.variables):
            if path in near and variable.scope and self._is_callable(variable.type, Context(path, frame.root)):
                yield path, variable

    def _is_callable(self, type_text: str, context: Context) -> bool:
        if _CALLABLE.search(type_text):
            return True
        simple = strip_arguments(re.sub(r"\b(?:const|static|struct)\b|[*&]", " ", type_text)).split("::")[-1]
        target = self._types.expanded_name(simple, context) if simple.isidentifier() else ""
        return bool(_CALLABLE.search(target)) or bool(re.search(r"[\w>*&]\s*\([^()]*\)\Z", target))

    def _position(self, path: str, field: Variable) -> int:
        """Which of its class's data members a field is."""
        facts = self._index.declared(path)
        own = sorted((v.offset, v.name) for v in facts.variables if v.scope == field.scope and "static" not in v.type)
        return [name for _, name in own].index(field.name)

    def _constructed(
        self, path: str, field: Variable, frame: Frame, objects: Sequence[_Held], count: int, out: dict
    ) -> None:
        """What constructors and methods of a field's own class put into it; of what an object's constructor is given,
        what the object is made with."""
        view, owner = self._bodies.files.view(path), field.scope[-1]
        own = rf"(?<![\w.>])(?:this\s*->\s*)?{field.name}\s*"
        pattern = re.compile(own + r"(?:=(?!=)\s*([^;]*);|[({]((?:[^(){};]|\([^(){};]*\))*)[)}])")
        for function in self._index.facts(path).functions:
            if not function.body_end or function.scope[-1:] != (owner,):
                continue
            parameters = [p.name for p in function.parameters] if function.name == owner else []
            for match in pattern.finditer(view.blanked.code, function.offset, function.body_end):
                value = match.group(1) or match.group(2) or ""
                self._stored(value, Context(path, frame.root, function.scope), count, out)
                given = _STORED.match(value)
                if given is not None and given.group(1) in parameters:
                    for one in objects:
                        part = _argument(one.text, owner, parameters.index(given.group(1)))
                        self._stored(part, one.context, count, out)

    def _of_class(self, name: str, frame: Frame, body: Body) -> Iterator[_Held]:
        """Every object of a class that is declared in sight outside of functions."""
        if not name:
            return
        near = self._near(frame, body)
        for path in sorted(near):
            facts = self._index.declared(path)
            for variable in facts.variables if facts else ():
                if variable.value and re.search(rf"\b{name}\b", variable.type):
                    yield _Held(variable.value, Context(path, frame.root, variable.scope), variable.type)

    def _assigned(self, receiver: str, call: CallFact, body: Body, context: Context, out: dict) -> None:
        """What this body assigns to the member of the object."""
        root = _ROOT.match(receiver)
        for assign in body.assigns_at(root.group(1), call.start) if root else ():
            if re.search(rf"(?:\.|->)\s*{call.simple}\Z", assign.target.strip()):
                self._stored(body.text(assign.value), context, len(call.arguments), out)

    def _assigned_anywhere(self, name: str, path: str, frame: Frame, body: Body, count: int, out: dict) -> None:
        """What is assigned to a member of that name in the files at hand."""
        pattern = re.compile(rf"(?:\.|->)\s*{name}\s*=(?!=)\s*([^;,}}]*)[;,}}]")
        for other in dict.fromkeys((path, body.path, frame.root)):
            code = self._bodies.files.view(other).blanked.code
            for match in pattern.finditer(code):
                self._stored(match.group(1), Context(other, frame.root, body.context.scope), count, out)

    # -- texts ------------------------------------------------------------------------------------------------------

    def _rows(self, held: _Held, name: str, position: int, count: int, out: dict) -> None:
        """What an initialiser gives to a member: by name, or by its place among the members of a row."""
        text = held.text
        at = text.find("{")
        while at >= 0:
            close = match_bracket(text, at)
            if close < 0:
                return
            parts = [text[a:b] for a, b in split_commas(text, at + 1, close - 1)]
            named = [part for part in parts if re.match(rf"\s*\.\s*{name}\b", part)]
            if named:
                self._stored(named[0], held.context, count, out)
            elif position < len(parts) and not any(part.lstrip().startswith(".") for part in parts):
                self._stored(parts[position], held.context, count, out)
            at = text.find("{", at + 1)

    def _stored(self, text: str, context: Context, count: int, out: dict) -> None:
        """The function that a stored value names, if it is nothing but that."""
        match = _STORED.match(text)
        if match is not None and match.group(1).split("::")[-1] in self._index.names_of_kind("function"):
            self._take(match.group(1), written_arguments(text, match.end(1)), context, count, out)

    def _named(self, text: str, context: Context, count: int, out: dict) -> None:
        """The functions that a text names without calling them."""
        names = self._index.names_of_kind("function")
        for match in _NAMES.finditer(text):
            name = "".join(match.group().split())
            if name.split("::")[-1] in names:
                self._take(name, written_arguments(text, match.end()), context, count, out)

    def _take(self, name: str, written: tuple[str, ...], context: Context, count: int, out: dict) -> None:
        for candidate in self._resolver.function(name, context, count, kernel=False).candidates:
            out[(*candidate.key, written)] = Named(candidate, context=context, written=written)


def _argument(text: str, owner: str, number: int) -> str:
    """What a constructor is given as one of its parameters, in the text that an object is made from; or nothing."""
    made = re.search(rf"\b{re.escape(owner)}\b[^(){{}}]*?[({{]", text)
    opened = len(text) - len(text.lstrip()) if text.lstrip()[:1] in ("(", "{") else made.end() - 1 if made else -1
    close = match_bracket(text, opened) if opened >= 0 else -1
    parts = split_commas(text, opened + 1, close - 1) if close > 0 else []
    return text[slice(*parts[number])] if number < len(parts) else ""


def _roots(text: str) -> Iterator[str]:
    """The names that the objects in an expression begin with, each once."""
    found = re.finditer(r"(?<![\w.>:])([A-Za-z_]\w*)(?!\s*(?:\(|::|<))", text)
    return iter(dict.fromkeys(match.group(1) for match in found))
