"""Expressions of a body read as values: locals opened, pointers followed, short helper functions looked through.

In: an expression at a place of a body, the values of the function's parameters, and names to keep as they are. Out:
``Value``. A local that is set once stands for its initialiser; one that is changed stands for itself, as a symbol that
holds between its changes. Nothing is run; what is not arithmetic is ``Unread`` with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from opwalker.expand.bodies import Body
from opwalker.expand.terms import SIZES, builtin
from opwalker.expand.value_changes import Changes
from opwalker.expand.value_words import asserted_sizes, closes, element_of, is_float
from opwalker.expand.values import LambdaCall, Number, Pointer, Several, Unread, Value, World, combined, moved
from opwalker.model.access import LOADS
from opwalker.model.body import LambdaFact, LocalFact, Span2
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression
from opwalker.notation.polynomial import Atom, Poly, call, load, of_atom, poly, quotient, symbol
from opwalker.notation.regex import Regex

_NUMBER = Regex(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*)([uUlLzZ]*)\Z")
_SIZEOF = Regex(r"(?:sizeof|alignof)\((.*)\)\Z", re.DOTALL)
_CAST_TYPE = Regex(r"\w+\s*<(.*)>\Z|\((.*)\)\Z", re.DOTALL)
_TEMPLATE = Regex(r"([\w:~\s]+?)\s*<(.*)>\Z", re.DOTALL)
_FOLDED = {"min": "min", "max": "max", "fmin": "min", "fmax": "max"}
_NO_VALUE = frozenset(("using", "namespace", "using namespace"))
_TRUTH = {"true": 1, "false": 0}
_MAX_DEPTH = 40

#: ``called(callee, template arguments, arguments, reader)`` gives the value of a function of the tree, None if unknown.
Called = Callable[[str, "str | None", "tuple[Value, ...]", "ValueReader"], "Value | None"]
#: ``of_object(expression, offset, reader)``: what a member access or a call of a member is worth, None if unknown.
OfObject = Callable[[Expr, int, "ValueReader"], "Value | None"]


def _nothing(*_: object) -> None:
    return None


class ValueReader:
    """Reads the expressions of one body. ``bound`` are the values of parameters; ``keep`` names that stay symbols;
    ``lambdas`` the calls that the body's lambdas are read for, by where they start."""

    def __init__(
        self,
        body: Body,
        world: World,
        bound: Mapping[str, Value],
        keep: frozenset[str] = frozenset(),
        called: Called = _nothing,
        of_object: OfObject = _nothing,
        depth: int = 0,
        lambdas: Mapping[int, LambdaCall] | None = None,
    ) -> None:
        self.body = body
        self.world = world
        self.bound = bound
        self.keep = keep
        self.depth = depth
        self.changes = Changes(body)
        self.lambdas = lambdas or {}
        calls = tuple((start, call.at, tuple(call.bound.items())) for start, call in self.lambdas.items())
        self._scope = world.scope((body, tuple(bound.items()), calls))
        self._called = called
        self._object = of_object
        self._memo: dict[int, Value] = {}
        self._busy: set[int] = set()

    def within(self, held: LambdaFact, call: LambdaCall) -> ValueReader:
        """A reader of the same body for one call of a lambda of its."""
        lambdas = {**self.lambdas, held.start: call}
        return ValueReader(
            self.body, self.world, self.bound, self.keep, self._called, self._object, self.depth + 1, lambdas
        )

    def span(self, span: Span2) -> Value:
        """The value of a span of the body's text."""
        return self.text(self.body.expanded.text[span[0] : span[1]], span[0])

    def text(self, text: str, at: int) -> Value:
        """The value of a text that stands at an offset of the body."""
        return self.value(parse_expression(text), at)

    def value(self, expr: Expr, at: int) -> Value:
        """The value of an expression that stands at an offset of the body."""
        if len(self._busy) > _MAX_DEPTH:
            return Unread("the expression is too deep")
        reader = getattr(self, f"_{expr.kind}", None)
        if reader is None:
            return Unread(f"`{expr.text[:60] or expr.kind}` is no index arithmetic")
        return reader(expr, at)

    # -- leaves -----------------------------------------------------------------------------------------------------

    def _number(self, expr: Expr, at: int) -> Value:
        match = _NUMBER.match(expr.text)
        if match is None:
            return Unread(f"`{expr.text}` is no integer")
        digits = match.group(1).replace("'", "")
        return Number(poly(int(digits, 0 if digits[:2].lower() in ("0x", "0b") else 10)))

    def _name(self, expr: Expr, at: int) -> Value:
        size = _SIZEOF.match(expr.text)
        return Number(self._size(size.group(1))) if size else self.name(expr.text, at)

    def name(self, text: str, at: int) -> Value:
        """What a name means at an offset."""
        if text in _TRUTH:
            return Number(poly(_TRUTH[text]))
        locals_ = [f for f in self.body.locals_at(text, at) if f.type not in _NO_VALUE and f.start <= at]
        for held in self.body.enclosing_lambdas(at):
            if locals_ and held.start <= locals_[-1].start:
                break
            if any(name == text for _, name in held.parameters):
                call = self.lambdas.get(held.start)
                start = call.bound.get(text) if call else None
                return self._set(text, start, at) if start else Unread(f"`{text}` is a lambda's parameter")
            local = locals_[-1] if locals_ else None
            if self.changes.after(text, local, held.start):
                # The lambda may run before or after the change.
                return Unread(f"`{text}` is changed beside a lambda that uses it")
        if locals_:
            return self._local(locals_[-1], at)
        if text in self.bound:
            return self._set(text, self.bound[text], at)
        return Number(symbol(text)) if text in ("warpSize", "WARP_SIZE") else self._constant(text)

    def _constant(self, name: str) -> Value:
        """A name from outside the function; a constant's value is remembered beside its name."""
        atom = Atom("symbol", name)
        if atom not in self.world.constants:
            self.world.constants[atom] = None
            found = self._called(f"constant {name}", None, (), self)
            self.world.constants[atom] = found.poly.constant if isinstance(found, Number) else None
        return Number(of_atom(atom))

    def _set(self, name: str, start: Value, at: int) -> Value:
        """What a parameter is worth that was given a value."""
        applied = self.changes.applied(self, name, None, start, at)
        return applied if applied is not None else self._unsteady(name, -1, at, start)

    def _local(self, local: LocalFact, at: int) -> Value:
        if local.name in self.keep and "*" not in local.type:
            if local.value is not None:
                text = self.body.text(local.value)
                if text.startswith("gridDim."):
                    self.world.called[text] = symbol(local.name)
            return Number(symbol(local.name))
        if local.value is None and "[" in local.type:
            return Pointer(f"{local.name}@{local.start}", poly(0), poly(1), element_of(local.type))
        if "__shared__" in local.type and "*" not in local.type:
            return Pointer(f"{local.name}@{local.start}", poly(0), poly(1), element_of(local.type))
        if self.changes.of_loop(local.name, local, at):
            return Number(self._loop_symbol(local, at))
        start = self._initial(local)
        if "*" in local.type and local.value is None:
            return self.changes.chosen(self, local, at)
        applied = self.changes.applied(self, local.name, local, start, at)
        return applied if applied is not None else self._unsteady(local.name, local.start, at, start)

    def _loop_symbol(self, local: LocalFact, at: int) -> Poly:
        atom = self.world.atom(local.name, (self._scope, local.start, self.changes.key(local.name, local, at)))
        self.world.moving.add(atom)
        return of_atom(atom)

    def _unsteady(self, name: str, start: int, at: int, first: Value) -> Value:
        """A variable that is changed: a symbol that holds between its changes."""
        if isinstance(first, Pointer):
            return Unread(f"the pointer `{name}` is moved")
        local = next((f for f in self.body.locals_at(name, at) if f.start == start), None)
        atom = self.world.atom(name, (self._scope, start, self.changes.key(name, local, at)))
        self.world.moving.add(atom)
        self.world.unsteady.add(atom)
        if local is not None and atom not in self.world.choices:
            self.world.choices[atom] = ()
            self.world.choices[atom] = self.changes.set_by_branches(self, local, at)
        return Number(of_atom(atom))

    def _initial(self, local: LocalFact) -> Value:
        """What a local is set to where it is declared, kept as a symbol of its name where that reads better."""
        found = self._memo.get(local.start)
        if found is not None:
            return found
        if local.start in self._busy:
            return Unread(f"`{local.name}` is made of itself")
        self._busy.add(local.start)
        found = self._memo[local.start] = self._declared(local)
        self._busy.discard(local.start)
        return found

    def _declared(self, local: LocalFact) -> Value:
        if local.value is None:
            return Unread(f"`{local.name}` has no value where it is declared")
        text = self.body.expanded.text[local.value[0] : local.value[1]]
        start = local.value[0]
        if text[:1] in "({" and text[-1:] in ")}" and closes(text):
            text, start = text[1:-1], start + 1
        made = self.text(text, start)
        if isinstance(made, Pointer) and "*" in local.type:
            return self._cast_pointer(made, local.type)
        if isinstance(made, Several):
            return made.each(lambda one: self._cast_pointer(one, local.type)) if "*" in local.type else made
        if isinstance(made, Pointer) or "&" in local.type:
            return made if isinstance(made, Pointer) else Unread(f"`{local.name}` is a reference")
        if isinstance(made, Unread):
            if "*" in local.type or is_float(local.type):
                return made
            # A whole number of unknown making is as good as any symbol, as long as nothing changes it.
            atom = self.world.atom(local.name, (self._scope, local.start))
            self.world.moving.add(atom)
            self.world.unsteady.add(atom)
            return Number(of_atom(atom))
        single = made.poly.atom
        if single is not None and "?" in single.name:
            return Number(of_atom(self.world.atom(local.name, (self._scope, local.start))))
        held = single is not None and not (single.kind == "symbol" and single in self.world.moving)
        if self.world.moves(made.poly) and (held or self.changes.is_guarded(local.name)):
            atom = self.world.atom(local.name, (self._scope, local.start))
            self.world.definitions[atom] = made.poly
            self.world.moving.add(atom)
            return Number(of_atom(atom))
        return made

    # -- operations -------------------------------------------------------------------------------------------------

    def _member_of(self, expr: Expr, at: int) -> str | None:
        """``params.stride`` as one name, where the object is a plain name that nothing changes."""
        inner = expr.parts[0]
        if inner.kind == "name":
            return f"{inner.text}.{expr.simple}"
        base = self._member_of(inner, at) if inner.kind == "member" else None
        return f"{base}.{expr.simple}" if base else None

    def _member(self, expr: Expr, at: int) -> Value:
        found = self._object(expr, at, self)
        if found is not None:
            return found
        name = self._member_of(expr, at)
        if name is None:
            return Unread("a member of something unknown")
        which, _, axis = name.partition(".")
        if which in ("threadIdx", "blockIdx", "blockDim", "gridDim") and axis in "xyz":
            known = self.world.extents.get(f"gridDim.{axis}") if which in ("gridDim", "blockIdx") else None
            if which == "blockIdx":
                return Number(poly(0) if known == poly(1) else symbol(name))
            return Number(known if known is not None else symbol(name))
        if which in self.body.locals and self.changes.any_of(which):
            return Unread(f"`{name}` is changed")
        return Number(symbol(name))

    def _index(self, expr: Expr, at: int) -> Value:
        place = self.place(expr, at)
        return self._load(place) if isinstance(place, Pointer) else place

    def place(self, expr: Expr, at: int) -> Value:
        """The address of ``a[i]``, ``*p`` or ``p->``."""
        base = self.pointer(self.value(expr.parts[0], at))
        if not isinstance(base, (Pointer, Several)) or expr.kind != "index":
            return base
        index = self.value(expr.parts[1], at)
        if not isinstance(index, Number):
            return index if isinstance(index, Unread) else Unread("an address as an index")
        return moved("+", base, index)

    @staticmethod
    def pointer(value: Value) -> Value:
        """A value where a pointer is asked for: a plain name may be one."""
        if isinstance(value, Number) and (atom := value.poly.atom) is not None and atom.kind == "symbol":
            return Pointer(atom.name, poly(0))
        return value if not isinstance(value, Number) else Unread("a number where a pointer is")

    def _load(self, place: Pointer) -> Value:
        if "@" in place.root or place.step != poly(1):
            return Unread(f"what `{place.root.split('@')[0]}` holds")
        return Number(load(place.root, place.offset))

    def _cast(self, expr: Expr, at: int) -> Value:
        inner = self.value(expr.parts[0], at)
        match = _CAST_TYPE.match(expr.text)
        kind = (match.group(1) or match.group(2) or "") if match else ""
        if "*" in kind:
            inner = self.pointer(inner)
            if isinstance(inner, Several):
                return inner.each(lambda one: self._cast_pointer(one, kind))
            return self._cast_pointer(inner, kind) if isinstance(inner, Pointer) else inner
        if isinstance(inner, (Pointer, Several)):
            if isinstance(inner, Several):
                return Unread("one of several addresses")
            return Number(call("address", symbol(inner.root), inner.offset)) if "ptr" in kind else Unread("a cast")
        return inner

    def _braces(self, expr: Expr, at: int) -> Value:
        if len(expr.parts) == 1 and (not expr.text or expr.text.endswith("_t") or builtin(expr.text) in SIZES):
            return self.value(expr.parts[0], at)
        return Unread(f"`{expr.text}{{}}` is no number")

    def _cast_pointer(self, inner: Pointer, kind: str) -> Value:
        """A pointer seen as one to another type: its step grows with the type."""
        element = element_of(kind)
        if element in ("auto", "", "void", "decltype(auto)") or element == inner.element:
            return inner
        if not inner.element or inner.element == "void":
            return Pointer(inner.root, inner.offset, inner.step, element) if not inner.offset else Unread("a void cast")
        ratio = self.ratio(inner.element, element)
        if ratio is None:
            return Unread(f"how many `{inner.element}` a `{element}` holds")
        return Pointer(inner.root, inner.offset, inner.step * ratio, element)

    def ratio(self, held: str, wanted: str) -> Poly | None:
        """How many values of one type another holds, None where that is not known."""
        one, other = self._size(held), self._size(wanted)
        if one == other:
            return poly(1)
        if one.constant and other.constant:
            return poly(other.constant // one.constant) if other.constant % one.constant == 0 else None
        # A vector type of unknown making holds so many as fit: said with their sizes.
        return quotient(other, one)

    def _size(self, kind: str) -> Poly:
        """The bytes of a type: a number, what the body asserts, the size of an array type's parts, or a symbol."""
        name = builtin(kind)
        if name is not None and name in SIZES:
            return poly(SIZES[name])
        asserted = self._asserted(kind)
        if asserted is not None:
            return asserted
        found = self._called(f"sizeof {kind}", None, (), self)
        return found.poly if isinstance(found, Number) else symbol(f"sizeof({kind})")

    def _asserted(self, kind: str) -> Poly | None:
        """The size of a type that the body states in a ``static_assert``."""
        found = asserted_sizes(self.body.expanded.text).get("".join(kind.split()))
        if found is None or found[1] in self._busy:
            return None
        expr, at = found
        self._busy.add(at)
        size = self.value(expr, at)
        self._busy.discard(at)
        return size.poly if isinstance(size, Number) else None

    def _unary(self, expr: Expr, at: int) -> Value:
        if expr.text == "&":
            inner = expr.parts[0]
            if inner.kind in ("index",) or (inner.kind == "unary" and inner.text == "*"):
                return self.place(inner, at)
            return Unread("an address")
        if expr.text == "*":
            place = self.place(expr, at)
            return self._load(place) if isinstance(place, Pointer) else place
        value = self.value(expr.parts[0], at)
        if not isinstance(value, Number) or expr.text not in ("+", "-"):
            return value if isinstance(value, Unread) else Unread(f"`{expr.text}` of a value")
        return Number(-value.poly) if expr.text == "-" else value

    def _postfix(self, expr: Expr, at: int) -> Value:
        return self.value(expr.parts[0], at)

    def _binary(self, expr: Expr, at: int) -> Value:
        left, right = (self.value(part, at) for part in expr.parts)
        if isinstance(left, Unread) or isinstance(right, Unread):
            return left if isinstance(left, Unread) else right
        if isinstance(left, (Pointer, Several)) or isinstance(right, (Pointer, Several)):
            return moved(expr.text, left, right)
        return combined(expr.text, left.poly, right.poly)

    def _ternary(self, expr: Expr, at: int) -> Value:
        taken, other = self.value(expr.parts[1], at), self.value(expr.parts[2], at)
        if taken == other:
            return taken
        numbers = isinstance(taken, Number) and isinstance(other, Number)
        if numbers and not self.world.moves(taken.poly) and not self.world.moves(other.poly):
            # A choice between extents is an extent: it is the same for all threads.
            return Number(symbol(f"({print_expression(expr)})"))
        return Unread("one of two values, by a condition")

    def _call(self, expr: Expr, at: int) -> Value:
        callee, *rest = expr.parts
        if callee.kind == "member":
            found = self._object(expr, at, self)
            return found if found is not None else Unread(f"what `{callee.simple}` gives")
        if callee.kind != "name":
            return Unread("what an expression called gives")
        arguments = tuple(self.value(part, at) for part in rest)
        match = _TEMPLATE.match(callee.text)
        name, template = (match.group(1), match.group(2)) if match else (callee.text, None)
        simple = callee.simple
        if len(arguments) == 1 and (simple.endswith("_t") or builtin(simple) in SIZES):
            return arguments[0]
        if simple in LOADS and arguments:
            place = self.pointer(arguments[0])
            return self._load(place) if isinstance(place, Pointer) else place
        found = self._called(name, template, arguments, self)
        if found is not None:
            return found
        if all(isinstance(a, Number) for a in arguments) and arguments:
            return Number(call(_FOLDED.get(simple, name), *(a.poly for a in arguments)))
        return Unread(f"what `{name}` gives")
