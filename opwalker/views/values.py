"""What the names of host code stand for: ``head_div_x`` is ``key.size(2) / key_cache.size(4)``.

In: a body, and the call that leads to it where it is a callee's. Out: expressions with their names followed back to
sizes, parameters and constants. A name is followed only where its value is certain at the place asked for: one that a
loop changes, whose address is passed on, or that a function takes by reference stays as it is. A value that depends on
branches becomes a choice (``c ? a : b``). Names that hold one size read from a tensor are kept, with what they hold.
"""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.expand.template_heads import template_parameters
from opwalker.facts.cpp_body import argument_spans
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.model.body import AssignFact, LocalFact, Span2
from opwalker.model.cpp import Function
from opwalker.notation.cpp_expression import Expr, changed, parse_expression, print_expression, walk
from opwalker.notation.cpp_expression import name as named
from opwalker.notation.regex import Regex
from opwalker.views.branches import Branches, differs
from opwalker.views.value_facts import NOTHING_KNOWN, Call, Found, Known, is_size, made_once, passed_on
from opwalker.views.value_marks import Marks

#: Expressions larger than this stay names: a reader gains nothing.
MAX_NODES = 48
#: Calls larger than this stay names as well: what a function of the project makes of sizes is a size of its own.
MAX_CALL = 8
#: How far one name leads to others, and how many names one body's values may ask for in all.
MAX_STEPS = 24
MAX_LOOKUPS = 3000
_OPERATOR = Regex(r"(<<|>>|[-+*/%&|^])?=\s*\Z")
_INTEGER_CAST = Regex(
    r"static_cast<\s*(?:const\s+)?(?:std::)?(?:unsigned(?: int| long)?|int|long|u?int(?:32|64)_t|s?size_t)\s*>"
    r"|\((?:unsigned(?: int| long)?|int|long|u?int(?:32|64)_t|size_t)\)"
)
#: Methods that give a tensor another shape in place.
_RESHAPING = frozenset("squeeze_ unsqueeze_ transpose_ t_ resize_ swapaxes_ set_ as_strided_".split())
_INTEGER_MADE = frozenset("int unsigned uint32_t int32_t int64_t uint64_t size_t".split())


class Values:
    """The values of one body's names."""

    def __init__(self, body: Body, call: Call | None = None, known: Known = NOTHING_KNOWN) -> None:
        self.body = body
        self.call = call
        self._known = known
        self._branches = Branches(body)
        self._marks = Marks(body, known)
        self._memo: dict[tuple[str, int], tuple[Expr | None, dict[str, str]]] = {}
        self._lookups = 0
        function: Function | None = body.function
        #: Parameters and template parameters by name, each with its default.
        self._parameters: dict[str, str | None] = {}
        if function is not None:
            self._parameters.update((p.name, p.default) for p in template_parameters(function.template) if p.name)
            self._parameters.update((p.name, p.default) for p in function.parameters if p.name)

    def of_span(self, span: Span2, found: Found) -> Expr:
        """The value of a piece of the body."""
        return self.of(parse_expression(self.body.text(span)), span[0], found)

    def of(self, expr: Expr, offset: int, found: Found, steps: int = 0) -> Expr:
        """The value of an expression that stands at an offset."""

        def change(node: Expr) -> Expr | None:
            if node.kind == "name":
                return self._name(node, offset, found, steps)
            if node.kind == "member" and node.text[0] in ".-":
                return self._member(node, offset, found, steps)
            if node.kind == "cast" and _INTEGER_CAST.fullmatch(node.text):
                return self.of(node.parts[0], offset, found, steps)
            if node.kind == "call" and len(node.parts) == 2 and node.parts[0].text in _INTEGER_MADE:
                return self.of(node.parts[1], offset, found, steps)
            if node.kind == "call" and node.parts[0].kind == "name":
                # The callee's name is no value.
                return Expr("call", "", (node.parts[0], *(self.of(a, offset, found, steps) for a in node.parts[1:])))
            if node.kind == "call" and node.parts[0].kind == "member":
                callee = node.parts[0]
                told = self.of(callee.parts[0], offset, Found(), steps)
                # What an object is made from has no place in front of a dot, but another name of it has.
                held = Expr("member", callee.text, (told if told.kind in ("name", "member") else callee.parts[0],))
                return Expr("call", "", (held, *(self.of(a, offset, found, steps) for a in node.parts[1:])))
            return None

        return changed(expr, change)

    def keeps_shape(self, text: str, offset: int) -> bool:
        """Whether a tensor is, at an offset, of the shape that it was declared or passed with."""
        for assign in self.body.assigns.get(text, ()):
            if assign.start < offset and passed_on(parse_expression(self.body.text(assign.value))) != text:
                return False
        return self._reshaped.get(text, offset) >= offset

    @property
    def _reshaped(self) -> dict[str, int]:
        """Where each tensor may first be given another shape."""
        held: dict[str, int] | None = self.body.kept.get("reshaped")
        if held is None:
            held = self.body.kept["reshaped"] = {}
            for call in self.body.facts.calls:
                if call.receiver is not None and call.simple in _RESHAPING:
                    text = self.body.text(call.receiver)
                    held[text] = min(call.start, held.get(text, call.start))
        return held

    def origin(self, text: str, offset: int, tensor: bool = False) -> tuple[Values, str, int]:
        """The outermost body on the way and the name that a parameter has there, followed through plain names.

        For a ``tensor`` the name is empty where its shape may have been changed on the way.
        """
        values, steps = self, 0
        while steps < MAX_STEPS:
            steps += 1
            if tensor and not values.keeps_shape(text, offset):
                return values, "", offset
            call = values.call
            if call is not None and text in values._parameters and text in call.arguments:
                if text in call.differing:
                    return values, text, offset
                given = passed_on(values.call.arguments[text])
                if given is None:
                    return values, text, offset
                values, text, offset = values.call.values, given, values.call.offset
                continue
            held = values._single(text, offset)
            if held is not None and made_once(values.body, held):
                return values, text, offset
            if not tensor and (values.body.assigns.get(text) or not values.certain(text)):
                return values, text, offset
            inner = None
            if held and held.value and values.body.expanded.full[held.value[0]] not in "({":
                inner = passed_on(parse_expression(values.body.text(held.value)))
            if inner is None or inner == text:
                return values, text, offset
            text, offset = inner, held.start
        return values, text, offset

    def _name(self, node: Expr, offset: int, found: Found, steps: int) -> Expr | None:
        text = node.text
        if steps > MAX_STEPS:
            return node
        value = self._value(text, offset, found, steps)
        if value is not None and self._reads_size(text, offset):
            own = self._own(text, offset, found, steps)
            if own is not None and found.keep(text, print_expression(own)):
                return node
        if value is None:
            self._several(text, found, steps)
            held = self.body.locals_at(text, offset) or text in self._parameters
            constant = None if held else self._known.constant(text, self.body)
            if constant is not None and constant != text:
                found.keep(text, constant)
            return node
        return self._kept(text, value, found)

    def _several(self, text: str, found: Found, steps: int) -> None:
        """Keeps a parameter that calls give different values, with all of them."""
        given = self.call.differing.get(text, ()) if self.call else ()
        if given:
            told = [self.call.values.of(expr, at, Found(), steps + 1) for expr, at in given]
            found.keep(text, " or ".join(dict.fromkeys(map(print_expression, told))))

    def _reads_size(self, text: str, offset: int) -> bool:
        """Whether a local that never changes takes a size from a tensor in its own initialiser."""
        held = self._single(text, offset)
        if held is None or held.value is None or self.body.assigns.get(text):
            return False
        return any(is_size(node) for node in walk(parse_expression(self.body.text(held.value))))

    def _own(self, text: str, offset: int, found: Found, steps: int) -> Expr | None:
        held = self._single(text, offset)
        return self._initial(held, found, steps) if held is not None else None

    def _kept(self, text: str, value: Expr, found: Found) -> Expr:
        """The name itself where it holds a size or a value too large to show, otherwise the value."""
        shown = print_expression(value)
        if (
            is_size(value)
            or value.kind == "ternary"
            or _is_long_call(value)
            or sum(1 for _ in walk(value)) > MAX_NODES
            or value.kind == "raw"
        ):
            if found.keep(text, shown):
                return named(text)
        return value

    def _value(self, text: str, offset: int, found: Found, steps: int) -> Expr | None:
        """What a name holds at an offset; None where nothing certain can be said."""
        key = (text, offset)
        if key not in self._memo:
            self._lookups += 1
            if self._lookups > MAX_LOOKUPS:
                return None
            inner = Found()
            self._memo[key] = (None, {})  # a name that leads to itself says nothing
            self._memo[key] = (self._read_value(text, offset, inner, steps), inner.kept)
        value, kept = self._memo[key]
        if value is not None and not all(found.keep(name, held) for name, held in kept.items()):
            return None
        return value

    def _read_value(self, text: str, offset: int, found: Found, steps: int) -> Expr | None:
        body = self.body
        held = self._single(text, offset)
        if held is not None:
            if not self.certain(text):
                return None
            start = self._initial(held, found, steps)
            if start is not None and self._moves_on(start, held.start, offset, held.block):
                start = None
            return self._assigned(text, held.block, held.end, start, offset, found, steps)
        if text in self._parameters and not body.locals_at(text, offset):
            if not self.certain(text):
                return None
            given = self._given(text, found, steps)
            start = given if given is not None else named(text)
            value = self._assigned(text, -1, 0, start, offset, found, steps)
            if value == named(text) and text not in found.kept:
                return None  # a caller's variable of the same name of which nothing is known
            return value
        return None

    def _single(self, text: str, offset: int) -> LocalFact | None:
        """The one local that a name means at an offset; None for a parameter of a lambda, an alias, or several."""
        held = [f for f in self.body.locals_at(text, offset) if f.type not in ("using", "namespace")]
        held = [f for f in held if self._branches.holds(f.block, offset) and f.start <= offset]
        inner = self.body.enclosing_lambdas(offset)
        if len(held) != 1 or any(text == n and f.start > held[0].start for f in inner for _, n in f.parameters):
            return None
        return held[0]

    def _initial(self, held: LocalFact, found: Found, steps: int) -> Expr | None:
        if held.value is None or self._in_loop_head(held) or differs(self.body, held) or made_once(self.body, held):
            return None
        if self.body.lambda_at(held.value) is not None:
            return None
        spans = argument_spans(self.body.expanded.full, held.value)
        if len(spans) != 1 or re.search(r"\bdim3\b", held.type):
            return None
        return self.of(parse_expression(self.body.text(spans[0])), held.start, found, steps + 1)

    def _given(self, text: str, found: Found, steps: int) -> Expr | None:
        if self.call is None or text in self.call.differing:
            return None
        given = self.call.arguments.get(text)
        if given is None:
            default = self._parameters[text]
            return self.of(parse_expression(default), 0, found, steps + 1) if default else None
        return self.call.values.of(given, self.call.offset, found, steps + 1)

    def _member(self, node: Expr, offset: int, found: Found, steps: int) -> Expr | None:
        """A field of a local structure that is set once before the place asked for."""
        text = print_expression(node)
        if steps > MAX_STEPS or not re.fullmatch(r"[A-Za-z_]\w*(?:(?:\.|->)\w+)+", text):
            return None
        base = re.match(r"\w+", text)[0]
        call = self.call
        if call and base in self._parameters and base in call.arguments and base not in call.differing:
            given = call.arguments[base]
            inner = changed(node, lambda one: given if one == named(base) else None)
            told = call.values.of(inner, call.offset, found, steps + 1)
            return told if told != inner else node
        held = self._single(base, offset)
        sets = self.body.assigns.get(text, [])
        if held is None or len(sets) != 1 or sets[0].start > offset or self._operator(sets[0]):
            return node
        if self._branches.loops(sets[0].block, held.block) or sets[0].block not in self._branches.chain(
            self._branches.innermost(offset)
        ) + [-1]:
            return node
        value = self.of(parse_expression(self.body.text(sets[0].value)), sets[0].start, found, steps + 1)
        return self._kept(text, value, found)

    def _assigned(
        self, text: str, block: int, begin: int, start: Expr | None, offset: int, found: Found, steps: int
    ) -> Expr | None:
        """The value behind the assignments between a declaration and a place, branches becoming choices."""
        value = start
        around = self._branches.innermost(offset)
        for assign in self.body.assigns.get(text, ()):
            if assign.start < begin or not self._branches.holds(block, assign.start):
                continue
            if assign.start >= offset:
                if self._repeats(assign.start, offset, block):
                    return None
                continue
            if self._single(text, assign.start) is not self._single(text, offset):
                continue  # another variable of the name
            shared = self._shared(assign.block, around)
            if self._branches.loops(assign.block, shared) or self._branches.loops(shared, block):
                return None
            operator = self._operator(assign)
            new = self.of(parse_expression(self.body.text(assign.value)), assign.start, Found(), steps + 1)
            if any(node == named(text) for node in walk(new)):
                if value is None:
                    return None
                held = value
                new = changed(new, lambda node, held=held: held if node == named(text) else None)
            if operator:
                if value is None:
                    return None
                new = Expr("binary", operator, (value, new))
            if self._moves_on(new, assign.start, offset, block):
                return None
            guards = [guard.condition for guard in self._branches.around(assign.block, shared)]
            if any(guard.kind == "raw" for guard in guards):
                return None
            if not guards:
                value = new
            elif value is None:
                value = self._first_choice(assign, new)
                if value is None:
                    return None
            else:
                test = guards[0]
                for guard in guards[1:]:
                    test = Expr("binary", "&&", (test, guard))
                test = self.of(test, assign.start, found, steps + 1)
                value = Expr("ternary", "", (test, new, value))
            if sum(1 for _ in walk(value)) > 4 * MAX_NODES:
                return None
        return value

    def _first_choice(self, assign: AssignFact, new: Expr) -> Expr | None:
        """A variable without an initial value that one branch sets has the value of none of them before."""
        kind = self.body.facts.blocks[assign.block].kind if assign.block >= 0 else ""
        return new if kind.startswith("if") and self._else_sets(assign) else None

    def _else_sets(self, assign: AssignFact) -> bool:
        """Whether the branch beside an assignment's sets the same variable, so that it always has a value."""
        block = self.body.facts.blocks[assign.block]
        for other in self.body.facts.blocks:
            if other.kind.startswith("else") and other.condition == block.condition:
                return any(other.start <= a.start < other.end for a in self.body.assigns.get(assign.target, ()))
        return False

    def _shared(self, one: int, other: int) -> int:
        """The innermost block around both of two blocks, -1 for the body."""
        held = set(self._branches.chain(other))
        for number in reversed(self._branches.chain(one)):
            if number in held:
                return number
        return -1

    def _repeats(self, at: int, offset: int, outer: int) -> bool:
        """Whether a later assignment comes before the place again, in a loop around both."""
        shared = self._shared(self._branches.innermost(at), self._branches.innermost(offset))
        return self._branches.loops(shared, outer)

    def _moves_on(self, value: Expr, start: int, offset: int, outer: int) -> bool:
        """Whether a name in what was taken at ``start`` may hold something else at ``offset``: ``a = b; ++b; f(a)``."""
        for text in {node.text for node in walk(value) if node.kind == "name"}:
            assigns = self.body.assigns.get(text, ())
            changes = [a.start for a in assigns if passed_on(parse_expression(self.body.text(a.value))) != text]
            changes += self._marks.of(text)
            for at in changes:
                if at > start and (at < offset or self._repeats(at, offset, outer)):
                    return True
        return False

    def _operator(self, assign: AssignFact) -> str:
        found = _OPERATOR.search(self.body.expanded.full, assign.start, assign.value[0])
        return (found[1] or "") if found else ""

    def _in_loop_head(self, held: LocalFact) -> bool:
        """Whether a local is declared in the parentheses of a ``for``."""
        if held.block < 0 or self.body.facts.blocks[held.block].kind != "loop":
            return False
        block, full = self.body.facts.blocks[held.block], self.body.expanded.full
        opening = full.find("(", block.start)
        return full.startswith("for", block.start) and opening <= held.start < match_bracket(full, opening)

    def certain(self, text: str) -> bool:
        """Whether nothing but plain assignments changes a variable of the body."""
        return not self._marks.of(text)


def _is_long_call(expr: Expr) -> bool:
    """Whether a value is what a function of the project makes of much."""
    if expr.kind != "call" or expr.parts[0].simple in ("min", "max"):
        return False
    return sum(1 for _ in walk(expr)) > MAX_CALL
