"""A kernel's index expressions beside the documented shapes of the tensors that they address.

In: a kernel's values, with its documented parameters and what the launch passes (``views/kernel_values``). Out:
``LayoutFact`` values, in the order of the parameters. Only tensors with a documented shape are looked at; an index that
is not read as arithmetic is not decided, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.device_calls import Inside
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.value_bounds import Bounds, Relation, relations_at
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Number, Pointer, Several, Unread, Value, shown
from opwalker.model.access import LOADS, STORES, Access
from opwalker.model.body import CallFact, Span2
from opwalker.model.layout import Coordinate, LayoutFact, UntoldFact
from opwalker.notation.cpp_expression import Expr, parse_expression
from opwalker.notation.polynomial import Atom, Poly, of_atom, poly, symbol
from opwalker.notation.polynomial import replace as replaced
from opwalker.views.index_compare import Comparison, Dim, Taken, compare
from opwalker.views.index_names import clear_names, names_of
from opwalker.views.kernel_conditions import Conditions, joined
from opwalker.views.kernel_values import KernelValues
from opwalker.views.layout_facts import (
    as_passed,
    choices_of,
    kind_of,
    one_way,
    options_of,
    requirements,
    unplaced,
    untold_of,
    way_of,
)
from opwalker.views.pointed import bare_root, pointed_into

#: Accesses of one kernel that are looked at, and facts that are given for one tensor.
_MAX_ACCESSES = 400
_MAX_FACTS = 12
#: What the host passes is shown up to so many characters in the index of a tensor without a documented shape.
_LONG = 80
#: Said behind a condition of which nothing is asked.
_UNCHECKED = " (the host function does not check it)"
_CASTS = frozenset("reinterpret_cast static_cast const_cast".split()) | LOADS | STORES


class _Found(Struct, frozen=True):
    """An access to a documented tensor."""

    parameter: str
    place: Pointer
    access: Access
    relations: list[Relation]
    through: tuple[str, ...]
    line: int
    under: str | None
    where: tuple[str, ...] = ()


class LayoutReader:
    """Reads the layouts of one kernel."""

    def __init__(self, values: KernelValues) -> None:
        self._passed = values.passed
        self._documented = values.documented
        self._known = {*values.documented, *values.undocumented}
        self._own = values.own
        self._world = values.world
        self._calls = values.calls
        self._passed_how = values.passed_how
        self._reader = values.reader
        self._words = values.words
        self._conditions = Conditions()
        self._count = 0
        self._whole: tuple[tuple[Poly, Poly], ...] | None = None
        self._aliases: tuple[tuple[Atom, Poly, str], ...] | None = None
        #: What ``facts`` leaves out.
        self.untold: tuple[UntoldFact, ...] = ()

    def facts(self) -> tuple[LayoutFact, ...]:
        """One fact for each way in which a documented tensor is addressed, by parameter and line."""
        groups: dict[tuple, list[tuple[LayoutFact, tuple[str, ...]]]] = {}
        made: dict[tuple, LayoutFact] = {}
        asked: Counter[str] = Counter()
        cut: Counter[str] = Counter()
        for found in self._accesses(self._reader, [], (), None):
            key = (found.parameter, found.place.offset, found.place.step, found.through, found.under)
            if key not in made:
                asked[found.parameter] += 1
                if asked[found.parameter] > 2 * _MAX_FACTS:
                    cut[found.parameter] += 1
                    continue
                made[key] = self._fact(found)
            fact = replace(made[key], access=kind_of(found.access), line=found.line)
            groups.setdefault(way_of(fact), []).append((fact, found.where))
        per: Counter[str] = Counter()
        out = []
        for facts in groups.values():
            parameter = facts[0][0].parameter
            per[parameter] += 1
            if per[parameter] <= _MAX_FACTS:
                out += one_way(facts)
            else:
                cut[parameter] += 1
        places = {p.name: number for number, p in enumerate(self._reader.body.function.parameters)}
        self.untold = untold_of(self._reader.body, self._known - set(per), cut, self._count > _MAX_ACCESSES)
        out = clear_names(self._world, out)
        return tuple(sorted(out, key=lambda fact: (places.get(fact.parameter, -1), fact.line)))

    # -- accesses ---------------------------------------------------------------------------------------------------

    def _accesses(
        self, reader: ValueReader, relations: list[Relation], through: tuple[str, ...], line: int | None,
        span: Span2 | None = None,
    ) -> Iterator[_Found]:  # fmt: skip
        """The accesses of a body, or of a lambda's ``span`` in it; what a lambda does is read at its calls."""
        body = reader.body
        inside = Inside(reader, span)
        passed_on = {a: call for call in body.facts.calls if call.simple not in _CASTS for a in call.arguments}
        for access in body.accesses.accesses:
            self._count += 1
            if self._count > _MAX_ACCESSES:
                return
            if not (access.written or access.read) or access.start not in inside:
                continue
            expr = parse_expression(body.expanded.text[access.start : access.end])
            if access.kind == "call" and expr.kind == "call":
                expr = Expr("unary", "*", (expr.parts[1],))
            if expr.kind not in ("index", "unary"):
                continue
            place = reader.place(expr, access.start)
            if isinstance(place, Pointer) and place.root not in self._known:
                place = Unread(f"what `{bare_root(place.root)}` points to")
            if isinstance(place, Unread):
                place = self._unread(reader, expr, access, place)
            options = [(under, one) for under, one in options_of(place) if one.root in self._known]
            if options and access.kind != "call" and (access.start, access.end) in passed_on:
                span = (access.start, access.end)
                access = as_passed(access, *self._passed_how.of(passed_on[span], span, reader))
            known = relations + relations_at(reader, access.start) if options else []
            at = line or body.use_line(access.start)
            cuts = self._conditions.compiled(reader, access.start) if options else ()
            where = self._conditions.at_run_time(reader, access.start) if options else ()
            for under, one in options:
                under = under or self._conditions.chosen(reader, access.start, body.text(access.base))
                under = joined((*cuts, *((under,) if under else ()))) or None
                yield _Found(one.root, one, access, known, through, at, under, where)
        yield from self._into_calls(reader, relations, through, line, inside)
        for held, call in inside.lambda_calls():
            inner = self._calls.of_lambda(held, call, reader)
            own = relations + relations_at(reader, call.start)
            way = (*through, call.simple)
            found = self._accesses(inner, own, way, line or body.use_line(call.start), held.body)
            yield from self._there(reader, call, found)

    def _there(self, reader: ValueReader, call: CallFact, accesses: Iterable[_Found]) -> Iterator[_Found]:
        """Accesses behind a call, with the conditions that the call stands under."""
        cuts = self._conditions.compiled(reader, call.start)
        where = self._conditions.at_run_time(reader, call.start)
        for found in accesses:
            under = joined((*cuts, *((found.under,) if found.under else ())))
            yield replace(found, under=under or None, where=(*where, *found.where)) if cuts or where else found

    def _unread(self, reader: ValueReader, expr: Expr, access: Access, why: Unread) -> Value:
        """An index that is not read, of a tensor that is known: a place with the reason as its offset."""
        base = ValueReader.pointer(reader.value(expr.parts[0], access.start))
        if isinstance(base, Pointer) and base.root in self._known:
            return Pointer(base.root, symbol(f"\0{why.reason}"), base.step, base.element)
        roots = pointed_into(reader, expr.parts[0], access.start)
        return Several(tuple(("", Pointer(root, symbol(f"\0{why.reason}"))) for root in roots)) if roots else why

    def _into_calls(
        self, reader: ValueReader, relations: list[Relation], through: tuple[str, ...], line: int | None,
        inside: Inside,
    ) -> Iterator[_Found]:  # fmt: skip
        body = reader.body
        for call in body.facts.calls:
            method = call.receiver is not None
            if (call.simple in body.locals and not method) or not call.arguments or call.start not in inside:
                continue
            values = tuple(reader.span(span) for span in call.arguments)
            pointers = [ValueReader.pointer(v) for v in values]
            roots = {o.root for p in pointers for _, o in options_of(p)}
            if not method and call.simple not in _CASTS and any(isinstance(one, Unread) for one in pointers):
                yield from self._there(reader, call, self._lost(reader, relations, through, line, call, pointers))
            if not roots & self._known:
                continue
            template = None
            if call.template_arguments:
                template = ", ".join(body.text(span) for span in call.template_arguments)
            for under, chosen in choices_of(values):
                # A method of an object, a vector that loads itself, say, is not looked into.
                inner = self._calls.reader(call.name, template, chosen, reader) if not method else None
                if inner is not None:
                    own = relations + relations_at(reader, call.start)
                    at = line or body.use_line(call.start)
                    accesses = self._accesses(inner, own, (*through, call.simple), at)
                    accesses = (replace(found, under=found.under or under) for found in accesses)
                    yield from self._there(reader, call, accesses)
                elif call.simple not in _CASTS:
                    yield from self._there(reader, call, self._handed(reader, relations, through, line, call, chosen))

    def _lost(
        self, reader: ValueReader, relations: list[Relation], through: tuple[str, ...], line: int | None,
        call: CallFact, values: Iterable[Value],
    ) -> Iterator[_Found]:  # fmt: skip
        """The addresses that a function gets of a tensor that is known, at a place that is not worked out."""
        for span, value in zip(call.arguments, values, strict=True):
            expr = parse_expression(reader.body.expanded.text[slice(*span)])
            roots = pointed_into(reader, expr, span[0]) if isinstance(value, Unread) else ()
            for root in self._known.intersection(roots):
                place, at = Pointer(root, symbol(f"\0{value.reason}")), line or reader.body.use_line(call.start)
                access = Access("call", *span, span, None, False, False, 0)
                yield _Found(root, place, access, relations, through, at, None)

    def _handed(
        self, reader: ValueReader, relations: list[Relation], through: tuple[str, ...], line: int | None,
        call: CallFact, values: tuple[Value, ...],
    ) -> Iterator[_Found]:  # fmt: skip
        """The addresses of elements that a function gets which is not looked into; an atomic changes its first."""
        for number, (span, value) in enumerate(zip(call.arguments, values, strict=True)):
            expr, value = parse_expression(reader.body.expanded.text[slice(*span)]), ValueReader.pointer(value)
            at_element = (expr.kind == "unary" and expr.text == "&") or (expr.kind == "binary" and expr.text == "+")
            if at_element and isinstance(value, Pointer) and value.root in self._known:
                access = Access("call", *span, span, None, *(number == 0 and call.simple.startswith("atomic"),) * 2, 0)
                known = relations + relations_at(reader, call.start)
                at = line or reader.body.use_line(call.start)
                yield _Found(value.root, value, access, known, through, at, None)

    # -- verdicts ---------------------------------------------------------------------------------------------------

    def _fact(self, found: _Found) -> LayoutFact:
        documented = self._documented.get(found.parameter)
        offset = found.place.offset
        common = {
            "tensor": documented.tensor if documented else self._passed.names.get(found.parameter, found.parameter),
            "parameter": found.parameter,
            "documented": documented.text if documented else "",
            "line": found.line,
            "file": self._reader.body.path,
            "access": kind_of(found.access),
            "width": None if found.place.step == poly(1) else f"{shown(found.place.step)} elements",
            "through": " → ".join(dict.fromkeys(found.through)) or None,
            "documented_at": documented.at if documented else None,
            "under": found.under,
            "names": names_of(self._world, offset),
        }
        hidden = next((a.name[1:] for a in offset.all_atoms() if a.name.startswith("\0")), None)
        if documented is None and hidden is not None:
            return LayoutFact(computed="", verdict="undocumented", reason=hidden, **common)
        if documented is None:
            return LayoutFact(computed=shown(self._in_short(offset)), verdict="undocumented", **common)
        if hidden is not None:
            return LayoutFact(computed="", verdict="not_decided", reason=hidden, **common)
        strides, foreign = self._strides(offset, documented.tensor)
        if foreign is not None:
            return LayoutFact(computed=shown(offset), verdict="not_decided", reason=foreign, **common)
        best: Comparison | None = None
        names: tuple[str, ...] = ()
        for number, alternative in enumerate(documented.alternatives):
            dims = self._dims(found.parameter, number, alternative)
            made = self._compared(found, offset, dims, strides)
            if best is None or (best.verdict == "not_decided" and made.verdict != "not_decided"):
                best, names = made, alternative
        parts = [
            Coordinate(", ".join(names[p.first : p.last + 1]), shown(p.value), shown(p.stride), p.passed)
            for p in best.parts
        ]
        if best.verdict == "not_decided" and (unknown := unplaced(offset, documented.tensor, strides)):
            reason = f"it is not known which dimension `{unknown}` is the stride of"
            return LayoutFact(computed=shown(offset), verdict="not_decided", reason=reason, **common)
        requires = requirements(documented.tensor, names, best) if best.parts else ()
        lent = self._lent(strides, documented.tensor) if best.parts else ()
        tensor = documented.tensor
        lent += tuple(
            f"{tensor}.stride({part.first}) == {shown(part.stride)}{self._unchecked(tensor, part.first)}"
            for part in best.parts
            if part.passed and part.stride.atom is None
        )
        return LayoutFact(
            computed=shown(offset), verdict=best.verdict, coordinates=tuple(parts), reason=best.reason,
            given=(*best.given, *lent), requires=requires, **common,
        )  # fmt: skip

    def _in_short(self, offset: Poly) -> Poly:
        """An index with the kernel's names for what the host works out at length."""
        long = {
            v.poly: name for name, v in self._passed.bound.items() if isinstance(v, Number) and len(str(v.poly)) > _LONG
        }

        def short(atom: Atom) -> Poly | None:
            name = long.get(of_atom(atom))
            return symbol(name) if name else None

        return replaced(offset, short) if long else offset

    def _dims(self, parameter: str, number: int, alternative: tuple[str, ...]) -> list[Dim]:
        """The dimensions of a shape: those of a kernel's comment in the kernel's terms, others in the host's."""
        if parameter in self._own:
            return [self._dim(text) for text in alternative]
        return self._passed.shapes[parameter][number]

    def _compared(self, found: _Found, offset: Poly, shape: list[Dim], strides: dict[Atom, int]) -> Comparison:
        """An index against one reading of the shape; of a wide access, the last element has to be inside as well."""
        bounds = Bounds(self._world, found.relations, self._passed.extents)
        made = self._checked(found, offset, shape, strides, bounds)
        if found.place.step == poly(1) or made.verdict not in ("equal", "equal_with_strides"):
            return made
        last = self._checked(found, offset + found.place.step - 1, shape, strides, bounds)
        return made if last.verdict == made.verdict else last

    def _checked(
        self, found: _Found, offset: Poly, shape: list[Dim], strides: dict[Atom, int], bounds: Bounds
    ) -> Comparison:
        named = self._world.opened(offset).all_atoms().union(*(d.all_atoms() for _, d in shape if d is not None))
        constants = tuple((a, n) for a, n in self._world.constants.items() if n is not None and a in named)
        taken = Taken(self._divisible(), self._alias(), constants)
        return compare(offset, shape, strides, self._world, bounds, taken)

    def _alias(self) -> tuple[tuple[Atom, Poly, str], ...]:
        """Documented names for which the kernel has a template parameter of the same name but for its case."""
        if self._aliases is None:
            held = {p.name for p in self._reader.body.function.parameters}
            out = []
            for parameter in template_parameters(self._reader.body.function.template):
                plain = parameter.name.lower()
                known = plain in held or plain == parameter.name
                if parameter.type is not None and plain in self._words and not known:
                    out.append((Atom("symbol", plain), symbol(parameter.name), f"{plain} == {parameter.name}"))
            self._aliases = tuple(out)
        return self._aliases

    def _strides(self, offset: Poly, tensor: str) -> tuple[dict[Atom, int], str | None]:
        """The strides of the tensor that an index is made with; the reason where it holds another tensor's."""
        out: dict[Atom, int] = {}
        for atom in sorted(offset.all_atoms()):
            held = self._passed.strides.get(atom)
            if held is None:
                continue
            if held[0] == tensor:
                out[atom] = held[1]
                continue
            same = next((b for a, b, _ in self._passed.equal if a == atom and self._of(b) == tensor), None)
            if same is not None or self._alike(held[0], tensor):
                out[atom] = held[1]
                continue
            return {}, f"it is made with a stride of `{held[0]}`"
        return out, None

    def _alike(self, one: str, other: str) -> bool:
        """Whether two tensors have the same documented shape: then one's strides may be meant for both."""
        shapes = [d.alternatives for d in self._documented.values() if d.tensor in (one, other)]
        return len(shapes) == 2 and shapes[0] == shapes[1]

    def _lent(self, strides: dict[Atom, int], tensor: str) -> tuple[str, ...]:
        """What is taken for granted where a tensor is addressed with the strides of another."""
        out = []
        for atom, number in strides.items():
            if atom in self._passed.conditions:
                out.append(self._passed.conditions[atom])
            if self._of(atom) != tensor:
                own = f"{tensor}.stride({number})"
                checked = [text for a, b, text in self._passed.equal if a == atom and b.name == own]
                out.append(checked[0] if checked else f"{own} == {atom.name}{self._unchecked(tensor, number)}")
        return tuple(out)

    def _unchecked(self, tensor: str, number: int) -> str:
        """That the host function does not check a stride, where it compares it with nothing."""
        return "" if {tensor, f"{tensor}.stride({number})"} & self._passed.compared else _UNCHECKED

    def _of(self, atom: Atom) -> str:
        """The tensor that a stride is of."""
        return self._passed.strides[atom][0]

    def _dim(self, text: str) -> Dim:
        if text in ("...", "*", "..", "…"):
            return ("..." if text != "*" else "*"), None
        made = self._reader.text(text.replace("//", "/"), 10**9)
        return text, made.poly if isinstance(made, Number) else symbol(text)

    def _divisible(self) -> tuple[tuple[Poly, Poly], ...]:
        """What documented dimensions such as ``head_size/x`` say divides."""
        if self._whole is None:
            out: dict[tuple, None] = {}
            for name, one in self._documented.items():
                for number, alternative in enumerate(one.alternatives):
                    for _, dim in self._dims(name, number, alternative):
                        atoms = sorted((dim or poly(0)).all_atoms())
                        out.update(dict.fromkeys(atom.parts for atom in atoms if atom.kind == "quotient"))
            self._whole = tuple(out)
        return self._whole
