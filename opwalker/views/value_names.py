"""Expressions of the host as values: what is constant, what a name is made from, and which expressions are the same
value wherever they stand.

In: expressions and the environment that they are written in. Out: numbers, initialisers, keys. A name that is ever
assigned, counted or handed out by address is not followed, and neither is a call that may give another answer the next
time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from opwalker.expand.bodies import Body
from opwalker.expand.environment import Environment
from opwalker.expand.expressions import evaluate
from opwalker.expand.terms import ConstTerm, Unknown
from opwalker.link.index import Index
from opwalker.model.body import CallFact, LambdaFact, LocalFact
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression, walk
from opwalker.notation.regex import Regex
from opwalker.views.members import is_kept_member

MAX_STEPS = 24
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
#: What an object answers the same way for as long as it is the same object.
ASKED = frozenset(
    "scalar_type dtype dim ndim size numel stride has_value defined element_size itemsize is_contiguous is_cuda "
    "ndimension".split()
)
_INTEGER_CAST = Regex(
    r"static_cast<\s*(?:const\s+)?(?:std::)?(?:unsigned(?: int| long)?|int|long|u?int(?:32|64)_t|s?size_t)\s*>"
    r"|\((?:unsigned(?: int| long)?|int|long|u?int(?:32|64)_t|size_t)\)"
)
_MADE = frozenset("int unsigned uint32_t int32_t int64_t uint64_t size_t long".split())
#: Types whose values are whole numbers, so that ``x > 0`` is ``x >= 1``.
_WHOLE = Regex(
    r"(?:const |constexpr |static |unsigned |signed |std::)*(?:bool|char|short|int|long|long long|unsigned|size_t|"
    r"ssize_t|u?int(?:8|16|32|64)_t|uint|index_t)(?: const)?(?: &)?\Z"
)
_PLAIN_NAME = Regex(r"\w+")
#: Names that are counted, given a value together with an operator, handed out by address or by reference, read into, or
#: changed by a method that ends in an underscore.
_MOVED = Regex(
    r"(?:\+\+|--)\s*([A-Za-z_]\w*)|(?<![A-Za-z_])([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%&|^]=(?!=)|<<=|>>="
    r"|(?:\.|->)\s*(?:\w+_|reset|emplace|clear|resize|swap|push_back|insert|erase|assign)\s*\()"
    r"|(?<![&\w)\]])&\s*([A-Za-z_]\w*)|&\s*\w+\s*=\s*([A-Za-z_]\w*)\s*;|>>\s*([A-Za-z_]\w*)"
)
#: Functions that change what they are given, and names of those of other libraries that do not: C has no references,
#: and what torch is given stays.
_CHANGING = frozenset("swap exchange tie ref getline from_chars iter_swap".split())
_KEEPING = Regex(
    r"(?:::)?(?:std|at|c10|torch|ATen|thrust|cuda)::|cuda[A-Z]|cu[A-Z]|hip[A-Z]|nccl|[A-Z][A-Z0-9_]+\Z|dim3\Z|sizeof\Z"
    r"|(?:u?int\d*(?:_t)?|size_t|float|double|bool|long|unsigned|char|min|max|abs)\Z|(?:static|reinterpret|const)_cast"
)


def plain(expr: Expr) -> Expr:
    """The expression without casts to integers around it."""
    while True:
        if expr.kind == "cast" and _INTEGER_CAST.fullmatch(expr.text):
            expr = expr.parts[0]
        elif expr.kind == "call" and len(expr.parts) == 2 and expr.parts[0].text in _MADE:
            expr = expr.parts[1]
        else:
            return expr


class ValueNames:
    """The values of one walk: what was found out is kept, by frame and place."""

    def __init__(self) -> None:
        #: Constants and keys, by expression and place; expression and body are held so that they stay the same ones.
        self._constants: dict[tuple, tuple[Expr, Body | None, int | None]] = {}
        self._keys: dict[tuple, tuple[Body, tuple | None]] = {}
        #: What ``Known`` remembers of conditions, by place.
        self.taken: dict[tuple, list[Any]] = {}

    @staticmethod
    def place(expr: Expr, environment: Environment) -> tuple:
        """Where an expression is read; it counts for as long as the expression and the body are held."""
        number = environment.frame.number if environment.frame is not None else 0
        choices = environment.choices
        calls = tuple((start, getattr(choices[start], "start", -1)) for start in sorted(choices)) if choices else ()
        return id(expr), number, id(environment.body), environment.offset, calls

    def constant(self, expr: Expr, environment: Environment) -> int | None:
        """The value of a constant expression of integers or enumerators."""
        if expr.kind in ("string", "raw"):
            return None
        place = self.place(expr, environment)
        held = self._constants.get(place)
        if held is None:
            held = self._constants[place] = (expr, environment.body, _constant(expr, environment))
        return held[2]

    def is_whole(self, expr: Expr, environment: Environment, steps: int = 0) -> bool:
        """Whether an expression is known to be a whole number."""
        if steps > MAX_STEPS:
            return False
        if expr.kind == "number":
            return self.constant(expr, environment) is not None
        if plain(expr) is not expr:
            return True
        if expr.kind == "name":
            kind = _declared(expr.text, environment)
            if kind is None:
                return self.constant(expr, environment) is not None
            if kind.replace("const", "").strip(" &") == "auto":
                found = self.initialiser(expr.text, environment)
                return found is not None and self.is_whole(*found, steps + 1)
            return bool(_WHOLE.match(kind))
        if expr.kind in ("binary", "unary") and expr.text in (*COMPARISONS, "&&", "||", "!"):
            return True
        if expr.kind in ("binary", "ternary"):
            return all(self.is_whole(part, environment, steps + 1) for part in expr.parts[-2:])
        if expr.kind == "call" and expr.parts[0].kind == "member":
            return expr.parts[0].simple in ASKED
        if expr.kind == "call" and expr.parts[0].simple in ("min", "max", "gcd"):
            return all(self.is_whole(part, environment, steps + 1) for part in expr.parts[1:])
        return self.constant(expr, environment) is not None

    def source(self, expr: Expr, environment: Environment) -> tuple[str, int] | None:
        """What the value that an expression names is made from, and on which line."""
        inner = plain(expr)
        found = self.initialiser(inner.text, environment) if inner.kind == "name" else None
        return (print_expression(found[0]), environment.body.use_line(found[1].offset)) if found is not None else None

    def key(self, expr: Expr, environment: Environment, steps: int = 0) -> tuple | None:
        """What tells values apart: the same key is the same value wherever it stands; None for what may change."""
        expr = plain(expr)
        if steps > MAX_STEPS:
            return None
        if expr.kind == "name":
            return self._name_key(expr.text, environment, steps)
        if expr.kind == "unary" and expr.text == "*":
            return self.key(expr.parts[0], environment, steps + 1)
        if expr.kind != "call" or expr.parts[0].kind != "member":
            return None
        asked, owner = expr.parts[0].simple, expr.parts[0].parts[0]
        if asked == "value" and len(expr.parts) == 1:
            return self.key(owner, environment, steps + 1)
        if asked not in ASKED or not (len(expr.parts) > 1 or _is_tensor(owner, environment)):
            return None
        whose = self.key(owner, environment, steps + 1)
        given = tuple(self.constant(argument, environment) for argument in expr.parts[1:])
        return (whose, asked, *given) if whose is not None and None not in given else None

    def keys(self, expr: Expr, environment: Environment) -> frozenset[tuple]:
        """The keys of everything that an expression is about."""
        found = {self.key(node, environment) for node in walk(expr)}
        return frozenset(key for key in found if key is not None)

    def settles(self, expr: Expr, environment: Environment) -> bool:
        """Whether a condition says all at once that it ever says: it compares a name that is made from nothing with a
        constant."""
        if expr.kind != "binary" or expr.text not in COMPARISONS:
            return False
        for one, other in (expr.parts, expr.parts[::-1]):
            if (
                one.kind == "name"
                and self.constant(other, environment) is not None
                and self.constant(one, environment) is None
                and self.initialiser(one.text, environment) is None
                and self.key(one, environment) is not None
                and self.key(other, environment) is None
            ):
                return True
        return False

    def _name_key(self, name: str, environment: Environment, steps: int) -> tuple | None:
        body, frame = environment.body, environment.frame
        if body is None or not _PLAIN_NAME.fullmatch(name):
            return None
        held = environment.holder(name)
        if isinstance(held, LambdaFact):
            return None
        place = (frame.number if frame is not None else 0, id(body), held.start if held is not None else -1, name)
        found = self._keys.get(place)
        if found is None:
            made = self._made_key(name, held, environment, place, steps) if stays(name, environment) else None
            found = self._keys[place] = (body, made)
        return found[1]

    def _made_key(
        self, name: str, held: LocalFact | None, environment: Environment, place: tuple, steps: int
    ) -> tuple | None:
        if held is not None:
            found = self.initialiser(name, environment)
            return (self.key(found[0], found[1], steps + 1) if found is not None else None) or place
        function, frame = environment.body.function, environment.frame
        position = next((n for n, p in enumerate(function.parameters) if p.name == name), -1) if function else -1
        if position < 0:
            return place if function is not None and is_kept_member(name, environment) else None
        if frame is not None and frame.caller is not None:
            outer, around, call = frame.caller
            if position < len(call.arguments):
                passed = parse_expression(around.text(call.arguments[position]))
                caller = Environment(environment.tools, outer.context(around), around, outer, call.start)
                return self.key(passed, caller, steps + 1) or place
        return place

    @staticmethod
    def initialiser(name: str, environment: Environment) -> tuple[Expr, Environment] | None:
        """What a local is made from, and where; None for a parameter, or a name that may be given another value."""
        held = environment.holder(name)
        if held is None or isinstance(held, LambdaFact) or held.value is None or held.type in ("using", "namespace"):
            return None
        if "static" in held.type.split() and "constexpr" not in held.type.split():
            return None  # made once, at the first call
        if environment.body.expanded.full[held.start : held.value[0]].rstrip().endswith(":"):
            return None  # an element of a range
        if not stays(name, environment):
            return None
        text = environment.body.text(held.value).strip()
        if text[:1] in "({" and text[-1:] in ")}":
            text = text[1:-1].strip()
        return parse_expression(text), environment.at(held.start)


def _is_tensor(expr: Expr, environment: Environment) -> bool:
    """Whether an object is a tensor or an optional, whose questions without an argument keep their answer."""
    inner = expr.parts[0].parts[0] if expr.kind == "call" and expr.parts[0].kind == "member" else expr
    kind = _declared(inner.text, environment) if inner.kind == "name" else None
    if kind is not None and kind.replace("const", "").strip(" &") == "auto":
        return expr.kind == "name" and not expr.text.isupper()
    return kind is not None and ("Tensor" in kind or "optional" in kind)


def _constant(expr: Expr, environment: Environment) -> int | None:
    try:
        found = evaluate(print_expression(expr), environment)
    except (Unknown, RecursionError):
        return None
    if not isinstance(found, ConstTerm) or isinstance(found.value, float) or found.type in ("float", "double"):
        return None
    return int(found.value)


def _declared(name: str, environment: Environment) -> str | None:
    """The declared type of a local or parameter."""
    held = environment.holder(name)
    if isinstance(held, LambdaFact):
        return next((kind for kind, parameter in held.parameters if parameter == name), None)
    if held is not None:
        return held.type
    function = environment.body.function
    return next((p.type for p in function.parameters if p.name == name), None) if function is not None else None


def stays(name: str, environment: Environment) -> bool:
    """Whether a name keeps the value that it begins with: nothing in the body assigns it, counts it, hands it to what
    may change it or calls a method on it that does, and no reference to it is kept."""
    body = environment.body
    if body.assigns.get(name):
        return False
    held = environment.holder(name)
    if isinstance(held, LocalFact):
        kind = held.type
        if "const" in kind.split() or kind.startswith(("const ", "constexpr ")):
            return "*" not in kind
        if "&" in kind or held.value is None:
            return False
    moved = _moved(body, environment.tools.index)
    # A lambda may capture something else under the name.
    return name not in moved and not any(
        f"{name}=" in _captures(body, f) for f in body.enclosing_lambdas(environment.offset)
    )


@lru_cache(maxsize=64)
def _moved(body: Body, index: Index) -> frozenset[str]:
    """The names of a body that may come to have another value without an assignment."""
    found = {word for match in _MOVED.finditer(body.expanded.full) for word in match.groups() if word}
    for call in body.facts.calls:
        for position, span in enumerate(call.arguments):
            text = body.expanded.full[slice(*span)].strip()
            if text not in found and _PLAIN_NAME.fullmatch(text) and _may_change(call, position, index):
                found.add(text)
    return frozenset(found)


def _may_change(call: CallFact, position: int, index: Index) -> bool:
    """Whether a call may change a variable that it is given: by the functions of its name in the tree; a function from
    elsewhere only where it is known not to."""
    if call.simple in _CHANGING:
        return True
    types = [f.parameters[position].type for _, f in index.functions(call.simple) if position < len(f.parameters)]
    if types:
        return any(t.rstrip().endswith("&") and not t.endswith("&&") and not re.search(r"\bconst\b", t) for t in types)
    return not (_KEEPING.match(call.name) or call.receiver is not None)


def _captures(body: Body, held: LambdaFact) -> str:
    known: dict[int, str] = body.kept.setdefault("captures", {})
    if held.start not in known:
        text = body.expanded.full[held.start : held.body[0]]
        known[held.start] = "".join(text[: text.find("]")].split())
    return known[held.start]
