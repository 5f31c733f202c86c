"""What a launch passes to its kernel, in the terms of the host function: tensors, sizes, strides, extents.

In: a launch site, the way to it, and the shapes documented at the host. Out: ``Passed`` for
``views/kernel_values``: kernel parameters as polynomials of documented dimensions and of strides, so that a kernel's
``n`` is known for the host's ``hidden_size``. What cannot be followed stays a symbol of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.resolve import Candidate
from opwalker.expand.values import Number, Pointer, combined
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import Function
from opwalker.model.host import ParameterFact, ShapeSource
from opwalker.model.reach import LaunchSite
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import Expr, changed, parse_expression, print_expression, walk
from opwalker.notation.polynomial import Atom, Poly, call, poly, product, symbol
from opwalker.notation.regex import Regex
from opwalker.notation.tensor_expression import asked, dimension_of, stride_of, tensor_of
from opwalker.views.index_compare import Dim
from opwalker.views.kernel_values import Documented, Passed
from opwalker.views.made import is_made
from opwalker.views.shapes import documented
from opwalker.views.value_facts import Found
from opwalker.views.values import Values
from opwalker.views.way import Way

_DATA = frozenset("data_ptr mutable_data_ptr const_data_ptr data untyped_data_ptr get_data_ptr".split())
_SAME = frozenset("contiguous value get to detach".split())
_CHECK = Regex(r"\w*(?:CHECK|ASSERT|ENFORCE)\w*\Z")
#: What asks how a tensor lies, in a check, and such a question wherever it stands.
_LAID_OUT = Regex(r"(?i)stride|contig")
_COMPARING = Regex(
    r"\b\w+(?:\.value\(\))?(?:\.|->)(?:strides?\([^()]*\)\s*[!=]=|is_contiguous\w*\()"
    r"|[!=]=\s*\w+(?:\.value\(\))?(?:\.|->)strides?\([^()]*\)"
)
_ONE_STRIDE = Regex(r"\b(\w+)(?:\.value\(\))?(?:\.|->)stride\(\s*(\d+)\s*\)")
_EXTENTS = ("gridDim", "blockDim")
#: A number that is passed is shown up to so many characters.

_LONG = 130
#: How far one name that is kept leads to others.
_STEPS = 3
_CONSTANTS = frozenset(("true", "false", "nullptr", "NULL"))


def documented_shapes(workbench: Workbench, candidate: Candidate) -> dict[str, Documented]:
    """What a function's parameters are documented to be, by name: the nearest place counts."""
    found = zip(candidate.function.parameters, documented(workbench, candidate), strict=True)
    return {parameter.name: _of_source(parameter.name, sources[0]) for parameter, sources in found if sources}


def _of_source(name: str, source: ShapeSource) -> Documented:
    return Documented(name, source.alternatives, source.text, source.span)


class HostTerms:
    """Host expressions as polynomials. ``shapes`` are documented shapes by the tensor's name at the host. ``by_name``:
    of what they document only names stand for sizes: a size that need not be even is not ``2 * d``."""

    def __init__(self, shapes: dict[str, Documented], by_name: bool = False) -> None:
        self.shapes = shapes
        self._by_name = by_name
        self.names = {
            word
            for one in shapes.values()
            for dims in one.alternatives
            for dim in dims
            for word in re.findall(r"[A-Za-z_]\w*", dim)
        }
        self.strides: dict[Atom, tuple[str, int]] = {}
        #: Strides that are passed only under a condition, in words.
        self.conditions: dict[Atom, str] = {}

    def number(self, expr: Expr, found: Found) -> Poly | None:
        """An integer expression; None where it is none that can be followed."""
        if expr.kind == "number":
            match = re.match(r"(0[xX][0-9a-fA-F]+|\d+)[uUlLzZ]*\Z", expr.text)
            return poly(int(match.group(1), 0 if match.group(1)[:2] in ("0x", "0X") else 10)) if match else None
        if expr.kind == "name":
            held = found.kept.get(expr.text)
            if expr.text in self.names or held is None:
                return symbol(expr.text)
            return self.number(parse_expression(held), Found()) or symbol(expr.text)
        if expr.kind == "cast":
            return self.number(expr.parts[0], found)
        if expr.kind == "unary" and expr.text == "-":
            inner = self.number(expr.parts[0], found)
            return -inner if inner is not None else None
        if expr.kind == "binary":
            left, right = (self.number(part, found) for part in expr.parts)
            made = combined(expr.text, left, right) if left is not None and right is not None else None
            return made.poly if isinstance(made, Number) else None
        if expr.kind == "ternary":
            return self._conditional(expr, found)
        return self._asked(expr, found)

    def _conditional(self, expr: Expr, found: Found) -> Poly | None:
        """A stride that is passed only where there is one (``c ? x.stride(0) : 0``), or a symbol."""
        sides = [self.number(part, found) for part in expr.parts[1:]]
        atoms = [side.atom if side is not None else None for side in sides]
        if atoms[0] in self.strides and sides[1] is not None and sides[1].constant is not None:
            self.conditions[atoms[0]] = said(expr.parts[0])
            return sides[0]
        return symbol(f"({print_expression(expr)})")

    def _asked(self, expr: Expr, found: Found) -> Poly | None:
        """A call: a size, a stride, a count, or the smaller of two."""
        dimension, stride = dimension_of(expr), stride_of(expr)
        if dimension is not None:
            return self.size(*dimension)
        if stride is not None:
            tensor, number = stride
            shape = self.shapes.get(tensor)
            if number < 0 and shape is not None and "..." not in shape.alternatives[0]:
                number += len(shape.alternatives[0])
            atom = Atom("symbol", f"{tensor}.stride({number})")
            self.strides[atom] = (tensor, number)
            return symbol(atom.name)
        question = asked(expr)
        if question is not None and question[1] in ("numel", "sym_numel") and not question[2]:
            return self.count(question[0])
        if expr.kind == "call" and expr.parts[0].simple in ("min", "max") and len(expr.parts) == 3:
            parts = [self.number(part, found) for part in expr.parts[1:]]
            return call(expr.parts[0].simple, *parts) if None not in parts else None
        return symbol(print_expression(expr)) if expr.kind in ("call", "member", "index") else None

    def size(self, tensor: str, number: int) -> Poly:
        """The size of a dimension: what its shape's comment calls it, else a symbol of its own."""
        own = symbol(f"{tensor}.size({number})")
        shape = self.shapes.get(tensor)
        if shape is None or len(shape.alternatives) != 1:
            return own
        dims = shape.alternatives[0]
        if "..." in dims and (number >= 0 or -number >= len(dims) - dims.index("...")):
            return own
        if not -len(dims) <= number < len(dims) or dims[number] == "*":
            return own
        if self._by_name and not dims[number].isidentifier():
            return own
        return self.dim(dims[number])[1] or own

    def count(self, tensor: str) -> Poly:
        """The number of elements of a tensor."""
        shape = self.shapes.get(tensor)
        if shape is None or len(shape.alternatives) != 1 or {"...", "*"} & set(shape.alternatives[0]):
            return symbol(f"{tensor}.numel()")
        return product(self.dim(text)[1] or symbol(text) for text in shape.alternatives[0])

    def dim(self, text: str) -> Dim:
        """A documented dimension in the host's terms."""
        if text in ("...", "*"):
            return text, None
        return text, self.number(parse_expression(text.replace("//", "/")), Found()) or symbol(text)

    def tensor(self, expr: Expr, found: Found) -> str | None:
        """The tensor whose data an expression is the address of; None where it is none."""
        if expr.kind == "cast" or (expr.kind == "unary" and expr.text in ("&", "*")):
            return self.tensor(expr.parts[0], found)
        if expr.kind == "name":
            held = found.kept.get(expr.text)
            return self.tensor(parse_expression(held), Found()) if held and held != expr.text else None
        if expr.kind == "ternary":
            sides = {self.tensor(part, found) for part in expr.parts[1:]} - {None}
            return sides.pop() if len(sides) == 1 else None
        question = asked(expr)
        if question is None or question[1] not in _DATA:
            return None
        return _owner(expr.parts[0].parts[0])


def _is_constant(expr: Expr) -> bool:
    """Whether an argument is a number, a truth value or null as it is written."""
    if expr.kind == "unary" and expr.text == "-":
        return expr.parts[0].kind == "number"
    return expr.kind == "number" or (expr.kind == "name" and expr.text in ("true", "false", "nullptr", "NULL"))


def _is_plain(expr: Expr, found: Found) -> bool:
    """Whether an argument is the same address on every way: nothing in it, or in what it is held in, is chosen."""
    held = found.kept.get(expr.text) if expr.kind == "name" else None
    whole = parse_expression(held) if held else expr
    return all(one.kind not in ("ternary", "raw") for one in walk(whole)) and (held is not None or expr.kind != "name")


def _told(expr: Expr, found: Found, known: Collection[str]) -> str | None:
    """A number that is passed, in the host function's terms, where it can be shown in short; ``known`` are the names of
    its parameters: any other name may mean something else in another launcher."""
    whole = expr
    for _ in range(_STEPS):
        whole = changed(whole, lambda node: _kept(node, found))
    nodes = list(walk(whole))
    called = {id(one.parts[0]) for one in nodes if one.kind == "call"}
    names = {one.text for one in nodes if one.kind == "name" and id(one) not in called} - _CONSTANTS
    if any(one.kind in ("raw", "ternary", "braces") for one in nodes):
        return None
    if not names <= set(known) or any(" or " in found.kept.get(name, "") for name in names):
        return None
    text = print_expression(whole)
    return text if len(text) <= _LONG else None


def _kept(node: Expr, found: Found) -> Expr | None:
    held = found.kept.get(node.text) if node.kind == "name" else None
    return parse_expression(held) if held is not None and " or " not in held else None


def _owner(expr: Expr) -> str:
    """The tensor itself, where what is asked is a copy of it with the same elements."""
    while expr.kind == "call" and expr.parts[0].kind == "member" and expr.parts[0].simple in _SAME:
        expr = expr.parts[0].parts[0]
    return tensor_of(expr)


def _comparing(body: Body) -> list[str]:
    """Where a body asks how tensors lie: the same for each of its launches."""
    if "comparing" not in body.kept:
        body.kept["comparing"] = _COMPARING.findall(body.expanded.text)
    return body.kept["comparing"]


class LaunchJoin:
    """Joins launches of one implementation to its host function, whose documented parameters are ``parameters``."""

    def __init__(self, workbench: Workbench, way: Way, parameters: tuple[ParameterFact, ...] = ()) -> None:
        self._workbench = workbench
        self._way = way
        self._parameters = frozenset(p.name for p in parameters)
        self._host = {p.name: _of_source(p.name, p.sources[0]) for p in parameters if p.sources}

    def best(self, sites: Sequence[LaunchSite], kernel: Function) -> Passed:
        """What is passed by the launch that shows most: several may start a kernel, some with fewer tensors. Extents
        that differ between the launches are left out."""
        found = [self.passed(site, kernel) for site in sites]
        best = max(found, key=lambda p: (-len(p.absent), len(p.tensors)))
        same = {name for name, value in best.extents.items() if all(p.extents.get(name) == value for p in found)}
        common = {name: value for name, value in best.extents.items() if name in same}
        counts = {name: value for name, value in best.counts.items() if name in same}
        always = {name: text for name, text in best.always.items() if all(p.always.get(name) == text for p in found)}
        return replace(best, extents=common, counts=counts, always=always)

    def passed(self, site: LaunchSite, kernel: Function) -> Passed:
        """What one launch passes."""
        values = self._way.at(site.steps)
        if values is None:
            return Passed()
        terms = HostTerms(dict(self._shapes(site)))
        bound: dict[str, Number | Pointer] = {}
        tensors: dict[str, Documented] = {}
        names: dict[str, str] = {}
        absent: set[str] = set()
        always: dict[str, str] = {}
        for parameter, span in zip(kernel.parameters, site.passed or (), strict=False):
            found = Found()
            expr = values.of_span(span, found)
            if _is_constant(expr):
                always[parameter.name] = print_expression(expr)
            if "*" in parameter.type or "[" in parameter.type:
                if expr.kind == "name" and expr.text in ("nullptr", "NULL"):
                    absent.add(parameter.name)
                tensor, origin_known, where, origin = terms.tensor(expr, found), False, None, ""
                if tensor is not None and re.fullmatch(r"\w+", tensor):
                    where, origin, _ = values.origin(tensor, span[0], tensor=True)
                    origin_known = where is self._way.host and origin in self._parameters
                    tensor = origin if origin_known else tensor
                if tensor is not None:
                    names[parameter.name] = tensor
                    if origin_known and _is_plain(expr, found):
                        always[parameter.name] = f"&{tensor}"
                    elif where is self._way.host and _is_plain(expr, found) and origin and is_made(where.body, origin):
                        always[parameter.name] = f"&{origin}"
                    if tensor in terms.shapes:
                        tensors[parameter.name] = terms.shapes[tensor]
                continue
            number = terms.number(expr, found)
            if number is not None:
                bound[parameter.name] = Number(number)
            text = _told(expr, found, self._parameters)
            if text is not None and parameter.name not in always:
                always[parameter.name] = text
        extents: dict[str, Poly] = {}
        counts: dict[str, Poly] = {}
        exact = HostTerms(terms.shapes, by_name=True)
        for which, components in zip(_EXTENTS, self._components(values, site), strict=False):
            for axis, expr, found in components:
                for known, kept in ((terms, extents), (exact, counts)):
                    number = known.number(expr, found)
                    if number is not None:
                        kept[f"{which}.{axis}"] = number
            for axis in "xyz"[len(components) :] if components else "":
                extents[f"{which}.{axis}"] = counts[f"{which}.{axis}"] = poly(1)
        equal = tuple(self._equal(terms))
        shapes = {name: [[terms.dim(d) for d in dims] for dims in one.alternatives] for name, one in tensors.items()}
        return Passed(
            bound,
            extents,
            tensors,
            dict(terms.strides),
            equal,
            names,
            shapes,
            frozenset(absent),
            dict(terms.conditions),
            always,
            self._compared(site, terms, {one.tensor for one in tensors.values()}),
            counts,
        )

    def _shapes(self, site: LaunchSite) -> Iterator[tuple[str, Documented]]:
        """The documented shapes of the host function, and of the functions on the way by what their callers pass."""
        held: dict[str, Documented] = {}
        for count in range(len(site.steps), 1, -1):
            values = self._way.at(site.steps[:count])
            function = values.body.function if values is not None else None
            if values is None or function is None:
                continue
            for name, shape in documented_shapes(self._workbench, Candidate(values.body.path, function)).items():
                where, origin, _ = values.origin(name, 0)
                if where is self._way.host:
                    held[origin] = Documented(origin, shape.alternatives, shape.text, shape.at)
        yield from {**held, **self._host}.items()

    def _components(self, values: Values, site: LaunchSite) -> Iterator[list[tuple[str, Expr, Found]]]:
        """Grid and block, each as its components."""
        from opwalker.views.launch_values import components

        for spans in site.extents[:2]:
            found = Found()
            parts = components(values, spans, found)
            yield [(axis, part, found) for axis, part in zip("xyz", parts or (), strict=False)]

    def _compared(self, site: LaunchSite, terms: HostTerms, tensors: Collection[str]) -> frozenset[str]:
        """The strides that a function on the way may check, ``x.stride(0)``, and the tensors of which it may check any:
        of the others it is said that none is."""
        host = self._way.host
        bodies = [host.body, *(v.body for n in range(1, len(site.steps) + 1) if (v := self._way.at(site.steps[:n])))]
        texts = [text for body in bodies for text in _comparing(body)]
        named: set[str] = set()
        for call_fact in host.body.facts.calls:
            if not call_fact.arguments or not _CHECK.match(call_fact.simple.upper()):
                continue
            text = host.body.text((call_fact.start, call_fact.end))
            texts += [text] if _LAID_OUT.search(text) else []
            found = Found()
            for part in walk(host.of_span(call_fact.arguments[0], found)):
                made = terms.number(part, found) if part.kind in ("name", "call") else None
                atoms = made.all_atoms() if made is not None else ()
                named |= {atom.name for atom in atoms if atom in terms.strides}
        for text in texts:
            named |= {f"{tensor}.stride({number})" for tensor, number in _ONE_STRIDE.findall(text)}
            rest = _ONE_STRIDE.sub("", text)
            named |= set(re.findall(r"\w+", rest)) if _LAID_OUT.search(rest) else set()
        return frozenset(name for name in named if name.partition(".")[0] in tensors)

    def _equal(self, terms: HostTerms) -> Iterator[tuple[Atom, Atom, str]]:
        """Strides of which the host function checks that they are equal."""
        body: Body = self._way.host.body
        for call_fact in body.facts.calls:
            if not _CHECK.match(call_fact.simple) or not call_fact.arguments:
                continue
            expr = self._way.host.of_span(call_fact.arguments[0], Found())
            if expr.kind != "binary" or expr.text != "==":
                continue
            sides = [terms.number(part, Found()) for part in expr.parts]
            atoms = [side.atom if side is not None else None for side in sides]
            if all(atom in terms.strides for atom in atoms):
                line = body.use_line(call_fact.start)
                yield atoms[0], atoms[1], f"{atoms[0].name} == {atoms[1].name} (checked at :{line})"
                yield atoms[1], atoms[0], f"{atoms[0].name} == {atoms[1].name} (checked at :{line})"
