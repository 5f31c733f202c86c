"""Which kernels an expression can mean: a name, a variable, a table, a ternary, a parameter, a function that returns
one.

In: a span of a body. Out: ``KernelRef`` values, each with the template arguments written beside the name. Everything
that the span can evaluate to counts, whatever the branch.
"""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.environment import Environment
from opwalker.expand.fitting import member_name
from opwalker.expand.frames import Frame, unit_of
from opwalker.expand.instances import InstanceReader, Instances
from opwalker.expand.lambdas import lambda_calls
from opwalker.expand.mentions import NAME, whole_name, written_arguments
from opwalker.expand.resolve import Candidate, Context, Resolution, Resolver, strip_arguments
from opwalker.expand.returning import Returning
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.link.index import Index
from opwalker.model.body import LambdaFact, Span2
from opwalker.model.reach import KernelRef
from opwalker.notation.regex import Regex

_WORD = Regex(r"[A-Za-z_]\w*")
#: A name alone, as the address of what it means, or as ``(void*)`` of it.
_ONE_NAME = Regex(r"&?\s*\(?(?:void\s*(?:const)?\s*\*\s*\)\s*)?\w+")
_BLANKS = Regex(r"\s*")
_MAX_DEPTH = 24
#: Expressions that are read for one that may mean a kernel.
_MAX_STEPS = 5000
#: Expressions whose kernels are kept in memory.
MAX_MEANT = 20_000
_NOT_VALUES = frozenset(
    "void const auto return if else constexpr static_cast reinterpret_cast const_cast true false nullptr int bool "
    "float "
    "uint32_t int64_t typename decltype sizeof".split()
)


class KernelFinder:
    """Follows expressions to kernels and host functions."""

    def __init__(self, index: Index, resolver: Resolver, bodies: Bodies, instances: InstanceReader) -> None:
        self._instances = instances
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._cut, self._steps, self._open = False, 0, None
        self._returning = Returning(index, resolver, bodies)
        self._alive: list[object] = []  # keeps what is told apart by identity while one expression is read

    def is_compiled(self, body: Body, frame: Frame, offset: int) -> bool:
        """Whether any way of reading a place keeps it."""
        return self._instances.is_compiled(body, frame, offset)

    def is_known(self, name: str) -> bool:
        """Whether the tree defines or declares a function or variable of a simple name."""
        return any(
            name in self._index.names_of_kind(kind) for kind in ("kernel", "function", "declaration", "variable")
        )

    def may_hold(self, name: str, root: str) -> bool:
        """Whether a variable outside of functions that bears a simple name may hold a kernel."""
        return name in self._index.names_of_kind("variable") and self._returning.may_hold(name, root)

    def in_argument(self, body: Body, span: Span2, frame: Frame) -> tuple[KernelRef, ...]:
        """As ``kernels``, for an argument of a call: a cheap no for the many that hold plain values."""
        # A function is read in a frame for each of its instances: what its text says is the same in all of them.
        known = body.kept.setdefault("arguments", {})
        key = span, self._index.changes
        if key not in known:
            words = frozenset(_WORD.findall(body.text(span)))
            known[key] = words, bool(words) and self._may_hold(body, span, words)
        words, may_hold = known[key]
        return self.kernels(body, span, frame) if may_hold or words & frame.functions.keys() else ()

    def _may_hold(self, body: Body, span: Span2, words: frozenset[str]) -> bool:
        """Whether an argument may be a kernel by what its function's text says."""
        names = self._index.names_of_kind("kernel")
        if words & names:
            return True
        if not _ONE_NAME.fullmatch(body.text(span)):
            return False
        if any(name in words for held in body.enclosing_lambdas(span[0]) for _, name in held.parameters):
            return True
        return any(
            "(*" in local.type
            or local.type.startswith("auto")
            or not names.isdisjoint(_WORD.findall(body.text(local.value) if local.value else ""))
            for word in words
            for local in body.locals.get(word, ())
        )

    def kernels(
        self, body: Body, span: Span2, frame: Frame, passed: tuple[Span2, ...] | None = None
    ) -> tuple[KernelRef, ...]:
        """Every kernel that the expression can mean, in source order. ``passed`` spans the arguments of a launch that
        the expression stands in: they may fix template arguments of a kernel named right there."""
        if frame.candidate is None or self._instances.judges:
            return self._found(body, span, frame, passed)
        # Several ops enter the same function with the same bindings: what an expression means there stays.
        known = self._bodies.meant
        origins = tuple(sorted(frame.origins.items(), key=lambda pair: pair[0]))
        functions = tuple(sorted(frame.functions.items(), key=lambda pair: pair[0]))
        key = (body.key, frame.key, frame.unbound, origins, functions, span, passed)
        held = known.get(key)
        if held is None:
            if len(known) >= MAX_MEANT:
                known.clear()
            held = known[key] = self._found(body, span, frame, passed)
        return held

    def _found(self, body: Body, span: Span2, frame: Frame, passed: tuple[Span2, ...] | None) -> tuple[KernelRef, ...]:
        out: dict[tuple, KernelRef] = {}
        self._cut, self._steps, self._open = False, 0, None
        self._alive.clear()
        self._collect(body, span, frame, out, set(), 0, passed)
        bounds = f"{_MAX_DEPTH} steps, or {_MAX_STEPS} expressions"
        why = f"kernels that are handed on through more than {bounds}" if self._cut else body.cut or self._open
        for _, _, reason in self._bodies.unread_includes(body):
            why = why or reason  # what it holds may name further instances
        if why is None:
            return tuple(out.values())
        return tuple(
            reference
            if reference.function.template is None
            else replace(reference, incomplete=body.cut or reference.incomplete or why)
            for reference in out.values()
        )

    def _collect(self, body: Body, span: Span2, frame: Frame, out: dict, seen: set, depth: int, passed=None) -> None:
        key = (id(body), id(frame), span)
        if key in seen:
            return
        self._steps += 1
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            self._cut = True
            return
        seen.add(key)
        text = body.expanded.full
        context = frame.context(body)
        kernel_names = self._index.names_of_kind("kernel")
        at, end = span
        while True:
            match = NAME.search(text, at, end)
            if match is None:
                return
            name, at = whole_name(text, match, end)
            simple = name.split("::")[-1]
            after = _BLANKS.match(text, at, end).end()
            arguments: tuple[str, ...] = ()
            spans: tuple[Span2, ...] = ()
            unread = None
            if after < end and text[after] == "<" and not text.startswith("<<<", after):
                close = match_angle(text[:end], after)
                if close > 0:
                    spans = tuple(split_commas(text, after + 1, close - 1))
                    arguments = tuple(" ".join(text[a:b].split()) for a, b in spans)
                    if simple in kernel_names:
                        at = close
                    after = _BLANKS.match(text, close, end).end()
                else:
                    unread = f"the template arguments of {simple} are not read: a `<` among them may be a comparison"
            called = after < end and text[after] == "("
            if simple in _NOT_VALUES:
                continue
            if simple in kernel_names and not called and not self._is_local(body, name, match.start(), spans):
                meant = self._resolver.function(name, context, None, kernel=True)
                found = meant.candidates
                # A launch site knows the argument count; here every overload counts.
                for reference in self._references(meant, body, frame, match.start(), spans, arguments, passed):
                    if unread is not None and reference.function.template:
                        reference = replace(reference, instances=(), incomplete=unread)
                    self._add(out, reference)
                if found:
                    continue
            if "::" not in name and simple in frame.functions:
                for reference in frame.functions[simple]:
                    self._add(out, reference)
            elif "::" not in name and self._variable(body, simple, match.start(), called, frame, out, seen, depth):
                continue
            elif "::" not in name and simple in frame.parameter_names:
                continue  # what is passed for it is not known here; it hides every variable of its name
            elif called:
                self._returned(body, name, match.start(), frame, out, seen, depth)
            else:
                self._table(name, body, frame, out, match.start(), seen, depth)

    def _references(
        self,
        meant: Resolution,
        body: Body,
        frame: Frame,
        start: int,
        spans: tuple[Span2, ...],
        arguments: tuple[str, ...],
        passed: tuple[Span2, ...] | None,
    ) -> list[KernelRef]:
        """What a kernel's name means at a place. It is kept with the frame: a kernel is met where it is named, and
        where the variable is launched that holds it."""
        known = frame.__dict__.setdefault("_named_kernels", {})
        key = (body.key, start, spans, passed)
        if key not in known:
            found, instances = meant.candidates, self._instances
            made: list[tuple[Candidate, Instances]] = []
            for candidate in found:
                held = instances.of(candidate, body, frame, start, spans, passed, found)
                if meant.apart:
                    made.append((candidate, instances.linked(candidate, held)))
                else:
                    special = instances.special(candidate, body, frame, start, spans, passed, found)
                    made += ((candidate, held), *special)
            known[key] = [
                KernelRef(one.path, one.function, arguments, True, held.texts, held.reason, held.origins, held.never)
                for one, held in made
                if held.texts or held.reason
            ]
        return known[key]

    @staticmethod
    def _is_local(body: Body, name: str, offset: int, given: tuple[Span2, ...]) -> bool:
        """Whether a kernel's name means a variable of the function here, which hides the kernel."""
        if given:
            return False
        if body.function is not None and any(p.name == name for p in body.function.parameters):
            return True
        if any(name == p for held in body.enclosing_lambdas(offset) for _, p in held.parameters):
            return True
        if name not in body.locals:
            return False
        return any(f.end <= offset for f in body.locals_at(name, offset) if f.type not in ("using", "namespace"))

    @staticmethod
    def _add(out: dict, reference: KernelRef) -> None:
        key = (reference.path, reference.function.offset, reference.template_arguments, reference.instances)
        held = out.setdefault(key, reference)
        if held is not reference and (held.origins, held.never) != (reference.origins, reference.never):
            # The same instances once more, from another place: both say where they come from.
            origins = tuple(dict.fromkeys((*held.origins, *reference.origins)))
            also = {text for text, _ in reference.never}
            out[key] = replace(held, origins=origins, never=tuple(pair for pair in held.never if pair[0] in also))

    def _variable(
        self, body: Body, name: str, offset: int, called: bool, frame: Frame, out: dict, seen: set, depth: int
    ) -> bool:
        """A local or a lambda's parameter; true when the name is one, whether or not a kernel was found."""
        for held in body.enclosing_lambdas(offset):
            for position, (_, parameter) in enumerate(held.parameters):
                if parameter == name:
                    key = id(body), id(frame), name, held.start
                    if key in seen:
                        return True  # what is passed for it has been looked at for another mention
                    seen.add(key)
                    for argument in self._lambda_arguments(body, held, position):
                        self._collect(body, argument, frame, out, seen, depth + 1)
                    for handed in self._instances.arguments_behind(body, frame, held, position):
                        if handed is None:
                            self._open = f"not every call that gives a lambda its `{name}` could be followed"
                            continue
                        self._alive += handed[:2]
                        self._collect(handed[0], handed[2], handed[1], out, seen, depth + 1)
                    return True
        locals_ = [f for f in body.locals_at(name, offset) if f.type not in ("using", "namespace")]
        if not locals_:
            return False
        key = id(body), id(frame), name, locals_[0].start
        if key in seen:
            return True
        seen.add(key)
        for local in locals_:
            if local.value is None or local.start <= offset < local.value[0]:
                continue
            # A lambda returns a kernel where it is called; it is none itself.
            held = None if called else body.lambda_at(local.value)
            if held is None or body.text((held.end, local.value[1])).strip():
                self._collect(body, local.value, frame, out, seen, depth + 1)
        for assign in body.assigns_at(name, offset):
            self._collect(body, assign.value, frame, out, seen, depth + 1)
        return True

    @staticmethod
    def _lambda_arguments(body: Body, held: LambdaFact, position: int) -> list[Span2]:
        """What is passed for one parameter of a lambda, wherever it is called in the body."""
        return [c.arguments[position] for c in lambda_calls(body, held) if len(c.arguments) > position]

    def _returned(self, body: Body, name: str, at: int, frame: Frame, out: dict, seen: set, depth: int) -> None:
        """A function that returns a kernel: what its return statements can mean, with what the call binds."""
        simple = strip_arguments(name).split("::")[-1]
        if simple not in self._index.names_of_kind("function"):
            return
        call = next((c for c in body.facts.calls if c.callee[0] == at and c.simple == simple), None)
        found = self._resolver.function(name, frame.context(body), None, kernel=False).candidates
        if call is not None:
            if not found and self._returning.any_may_return(member_name(call), frame.root):
                found = self._instances.members(body, frame, call)
        usable = [c for c in found if self._returning.may_return(c, self._root(c, frame))]
        if call is None or not usable:
            entered = [(c, Frame(c, self._root(c, frame), frame.steps, {}, dict(frame.types))) for c in usable]
        else:
            entered = [
                (
                    fit.candidate,
                    Frame(
                        fit.candidate, self._root(fit.candidate, frame), frame.steps, {}, dict(frame.types), fit.bound,
                        fit.why, frame.certain, owner=fit.owner, given=fit.given, doubt=doubt,
                    ),
                )
                for fit, _, doubt in self._instances.entries(usable, body, frame, call)
            ]  # fmt: skip
        for candidate, held in entered:
            if held.key in seen:
                continue  # the same function with the same bindings gives the same kernels
            seen.add(held.key)
            inner = self._bodies.of(candidate, held.root)
            self._alive += (held, inner)
            made: dict[tuple, KernelRef] = {}
            for span in inner.facts.returns:
                self._collect(inner, span, held, made, seen, depth + 1)
            lacking = inner.cut is not None or bool(self._bodies.unread_includes(inner))
            for reference in made.values():
                self._add(out, replace(reference, certain=False) if lacking else reference)

    def _root(self, candidate: Candidate, frame: Frame) -> str:
        return unit_of(self._index, candidate, frame.root)

    def _table(self, name: str, body: Body, frame: Frame, out: dict, offset: int, seen: set, depth: int) -> None:
        """A variable at namespace or class level whose initialiser names kernels."""
        simple = strip_arguments(name).split("::")[-1]
        if simple not in self._index.names_of_kind("variable"):
            return
        if not self._returning.may_hold(simple, frame.root):
            return
        looked: set[tuple[str | None, Context, str]] = set()
        for environment in self._instances.environments(body, frame, offset):
            doubt = environment.doubt or frame.doubt
            # Without a qualifier, what is bound has no say in what is meant: of thousands of ways one is looked at.
            way = environment.around, environment.context, doubt
            if "::" not in name and way in looked:
                continue
            looked.add(way)
            for value, scope in environment.tables(name):
                apart = scope.context.root != frame.root
                context = scope.context if apart else frame.context(body)
                self._held(value, scope, context, doubt, frame, out, seen, depth)

    def _held(
        self,
        value: str,
        scope: Environment,
        context: Context,
        doubt: str,
        frame: Frame,
        out: dict,
        seen: set,
        depth: int,
    ) -> None:
        """What an initialiser names: kernels, other tables, and functions that return kernels."""
        for candidate, arguments, meant in self._named_kernels(value, context):
            one, made = self._instances.written(candidate, scope, arguments, meant.candidates)
            made = self._instances.linked(one, made) if meant.apart else made
            if made.texts or made.reason:
                held = KernelRef(one.path, one.function, arguments, True, made.texts, made.reason or doubt)
                self._add(out, held)
        if depth > _MAX_DEPTH:
            self._cut = True
            return
        tables, functions = self._index.names_of_kind("variable"), self._index.names_of_kind("function")
        for match in NAME.finditer(value):
            name = "".join(match.group().split())
            simple = name.split("::")[-1]
            if simple in tables and ("table", name, context) not in seen:
                seen.add(("table", name, context))
                for inner, around in scope.tables(name):
                    self._held(inner, around, around.context, doubt, frame, out, seen, depth + 1)
            if simple in functions and value[match.end() :].lstrip().startswith("("):
                for candidate in self._resolver.function(name, context, None, kernel=False).candidates:
                    root = self._root(candidate, frame)
                    if self._returning.may_return(candidate, root):
                        held = Frame(candidate, root, frame.steps, {}, dict(frame.types))
                        body = self._bodies.of(candidate, root)
                        self._alive += (held, body)
                        for span in body.facts.returns:
                            self._collect(body, span, held, out, seen, depth + 1)

    def _named_kernels(self, text: str, context: Context) -> list[tuple[Candidate, tuple[str, ...], Resolution]]:
        """The kernels that an initialiser names, with the template arguments written there and all that is meant."""
        kernel_names = self._index.names_of_kind("kernel")
        out = []
        for match in NAME.finditer(text):
            name = "".join(match.group().split())
            if name.split("::")[-1] in kernel_names:
                meant = self._resolver.function(name, context, None, kernel=True)
                out += [(one, written_arguments(text, match.end()), meant) for one in meant.candidates]
        return out
