"""Loops that the threads, warps or blocks of a kernel share, in words.

In: a kernel's values. Out: ``WorkFact`` values: who shares a loop, from where to where it goes, and under which
conditions of the kernel and of the functions around it. Helpers are looked into as far as thread indexes are passed to
them or read in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.expand.device_calls import Inside
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Number, World, shown
from opwalker.model.access import Loop
from opwalker.model.body import CallFact, LocalFact
from opwalker.model.kernel import WorkFact
from opwalker.notation.cpp_expression import parse_expression, print_expression, terms
from opwalker.notation.polynomial import Poly, of_atom, poly, symbol
from opwalker.views.kernel_conditions import Conditions, joined
from opwalker.views.kernel_values import KernelValues

AXES = ("x", "y", "z")
WARP = ("32", "warpSize", "WARP_SIZE", "kWarpSize", "WARP_THREADS", "NUM_THREADS_PER_WARP")


#: A bound that is longer is shown by its own name.
_LONG = 60


class LoopReader:
    """Reads the loops of one kernel."""

    def __init__(self, values: KernelValues) -> None:
        self._values = values
        self._reader = values.reader
        self._world: World = values.world
        self._conditions = Conditions()

    def loops(self) -> Iterator[WorkFact]:
        """The loops of the body, those of a lambda at each of its calls."""
        body = self._reader.body
        inside = Inside(self._reader)
        for loop in body.accesses.loops:
            if loop.start in inside:
                yield from self._loop(self._reader, loop, None, None)
        for held, call in inside.lambda_calls():
            inner = self._values.calls.of_lambda(held, call, self._reader)
            under = self._conditions.of(self._reader, call.start)
            for loop in body.accesses.loops:
                if held.body[0] <= loop.start < held.body[1]:
                    yield from self._loop(inner, loop, call.simple, body.use_line(call.start), under)

    def helped(self) -> Iterator[WorkFact]:
        """Loops of functions that thread indexes are passed to, or that read them themselves."""
        inside = Inside(self._reader)
        calls = self._reader.body.facts.calls
        yield from self._helpers(self._reader, [call for call in calls if call.start in inside])
        for held, call in inside.lambda_calls():
            inner = self._values.calls.of_lambda(held, call, self._reader)
            under, line = self._conditions.of(self._reader, call.start), self._reader.body.use_line(call.start)
            within = [one for one in calls if held.body[0] <= one.start < held.body[1]]
            yield from self._helpers(inner, within, line, under)

    def _loop(
        self,
        reader: ValueReader,
        loop: Loop,
        through: str | None,
        line: int | None,
        outer: Sequence[str] = (),
    ) -> Iterator[WorkFact]:
        """A loop that threads, warps or blocks share; ``outer`` are the conditions that lead to its function."""
        if loop.init is None or loop.condition is None or loop.update is None:
            return
        body = reader.body
        local = next((f for f in body.facts.locals if loop.init[0] <= f.start < loop.init[1]), None)
        step = self._step(reader, loop)
        if local is None or local.value is None or step is None:
            return
        start = reader.span(local.value)
        if not isinstance(start, Number):
            return
        begin = self._world.opened(start.poly)
        indexes = _direct(begin)
        who = self._who(reader, begin, indexes, self._world.opened(step)) or self._counted(
            reader, loop, begin, indexes, step
        )
        if who is None:
            return
        of, words = who
        behind = None
        if words == "the threads of a block":
            words += f" from {first} on" if (first := _apart(begin, behind=False)) else ""
            behind = _apart(begin, behind=True)
            if behind is not None and len(behind) > _LONG:
                behind = self._written(reader, local) or behind
            elif behind is None and first is None and not _plain(begin):
                behind = body.written(local.value).strip(" ={}")  # it is said as each thread begins
        elif words.startswith("the threads of all blocks"):
            behind = self._written_first(reader, local, begin)
        stop, others = self._goals(reader, loop, local.name)
        over = f" from {behind}" if behind else ""
        over += f" {'to' if behind else 'over'} {stop}" if stop else ""
        inside = f" in {through}" if through else ""
        going = f", as long as {others}" if others else ""
        under = joined((*outer, *self._conditions.of(reader, loop.start)))
        where = f", if {under}" if under else ""
        says = f"{words} stride{over} ({local.name}){inside}{going}{where}"
        yield WorkFact(of, says, line or body.use_line(loop.start), local.name, shown(begin), stop, through)
        for bound in (behind, stop):
            yield from self._bound(reader, bound, of, through, line)

    @staticmethod
    def _written(reader: ValueReader, local: LocalFact) -> str | None:
        """``first`` where a loop begins at ``first + threadIdx.x``, as it is written."""
        expr = parse_expression(reader.body.text(local.value).strip(" ={}()"))
        parts = expr.parts if expr.kind == "binary" and expr.text == "+" else ()
        texts = [print_expression(part) for part in parts]
        rest = [text for text in texts if not re.fullmatch(r"threadIdx\.[xyz]", text)]
        return rest[0] if len(texts) == 2 and len(rest) == 1 else None

    @staticmethod
    def _written_first(reader: ValueReader, local: LocalFact, begin: Poly) -> str | None:
        """Where a loop over the threads of all blocks begins, where that is not at 0: by its own name if it has one."""
        first = _first(begin)
        if first is None:
            return None
        expr = parse_expression(reader.body.text(local.value).strip(" ={}()"))
        names = [one.text for one in expr.parts if one.kind == "name"] if expr.text == "+" else []
        for name in names:
            found = reader.name(name, local.start)
            if isinstance(found, Number) and bare(shown(found.poly)) == first:
                return name
        return first

    @staticmethod
    def _bound(
        reader: ValueReader, bound: str | None, of: str, through: str | None, line: int | None
    ) -> Iterator[WorkFact]:
        """What a local holds that a loop begins or ends at; ``line`` where its function is called, if it has one."""
        body = reader.body
        held = body.locals.get(bound or "", ())
        if len(held) == 1 and held[0].value is not None and not body.assigns.get(held[0].name):
            text = body.written(held[0].value).strip()
            if len(text) <= 2 * _LONG and not text.startswith(("{", "(")):
                at = line or body.use_line(held[0].start)
                yield WorkFact(of, f"{bound} is {text}", at, bound, text, None, through)

    @staticmethod
    def _goals(reader: ValueReader, loop: Loop, counter: str) -> tuple[str | None, str]:
        """How far a loop goes, the least of several bounds, and what else has to hold for the next pass."""
        whole = parse_expression(reader.body.text(loop.condition))
        bounds, others = [], []
        for part in terms(whole, "&&"):
            if part.kind == "binary" and part.text in ("<", "<=", "!=") and part.parts[0].text == counter:
                text = print_expression(part.parts[1])
                found = reader.text(text, loop.condition[0])
                last = poly(1 if part.text == "<=" else 0)
                made = bare(shown(found.poly + last)) if isinstance(found, Number) else None
                bounds.append(made or (f"{text} + 1" if part.text == "<=" else text))
            else:
                others.append(print_expression(part))
        if not bounds:
            return None, ""  # it goes some other way
        return (bounds[0] if len(bounds) == 1 else f"min({', '.join(bounds)})"), " && ".join(others)

    def _counted(
        self, reader: ValueReader, loop: Loop, begin: Poly, indexes: set[str], step: Poly
    ) -> tuple[str, str] | None:
        """Who shares a loop whose step is all threads of the grid or of a block, however that is written."""
        step = self._world.opened(step)
        threads = {i for i in indexes if i.startswith("threadIdx")}
        blocks = {i for i in indexes if i.startswith("blockIdx")}
        if len(threads) == len(blocks) == 1:
            ((of_thread,), (of_block,)) = threads, blocks
            axes = of_block[-1], of_thread[-1]
            whole = reader.text(f"gridDim.{axes[0]} * blockDim.{axes[1]}", loop.start)
            if isinstance(whole, Number) and self._world.opened(whole.poly) == step:
                return "thread", f"the threads of all blocks{_along(reader, of_block)}"
        bounds = [a for a in self._reader.body.function.attributes if "__launch_bounds__" in a]
        if threads and not blocks and bounds and step.atom is not None:
            # A block has as many threads as the kernel is bound to be launched with.
            if re.search(rf"\(\s*{re.escape(str(step))}\s*[,)]", bounds[0]):
                return "thread", "the threads of a block"
        return None

    @staticmethod
    def _step(reader: ValueReader, loop: Loop) -> Poly | None:
        for change in reader.body.accesses.changes:
            if loop.update[0] <= change.start < loop.update[1] and change.operator == "+=" and change.value is not None:
                found = reader.span(change.value)
                return found.poly if isinstance(found, Number) else None
        return None

    @staticmethod
    def _who(reader: ValueReader, begin: Poly, indexes: set[str], step: Poly) -> tuple[str, str] | None:
        """Who shares a loop that begins at a value and steps by another."""
        steps = {atom.name for atom in step.all_atoms() if atom.kind == "symbol"}
        threads = {i for i in indexes if i.startswith("threadIdx")}
        blocks = {i for i in indexes if i.startswith("blockIdx")}
        if threads and blocks:
            if any(s.startswith("gridDim") for s in steps):
                return "thread", f"the threads of all blocks{_along(reader, min(blocks)) if len(blocks) == 1 else ''}"
            if not all(s.startswith("blockDim") for s in steps) or not steps:
                return None
        if blocks and not threads:
            return ("block", "blocks") if any(s.startswith("gridDim") for s in steps) else None
        if not threads:
            return None
        atoms = [a for a in begin.all_atoms() if a.kind in ("quotient", "remainder") and str(a.parts[1]) in WARP]
        if any(a.kind == "quotient" for a in atoms) and not any(a.kind == "remainder" for a in atoms):
            return "warp", "the warps of a block"
        if any(a.kind == "remainder" for a in atoms) and str(step) in WARP:
            return "thread", "the lanes of a warp"
        if any(s.startswith("blockDim") for s in steps) or (step.constant or 0) >= 32 or _is_block_size(step):
            size = _group(begin)
            return "thread", f"groups of {size} threads of a block" if size else "the threads of a block"
        return None

    def _helpers(
        self, reader: ValueReader, calls: Sequence[CallFact], line: int | None = None, outer: Sequence[str] = ()
    ) -> Iterator[WorkFact]:
        body = reader.body
        for call in calls:
            if call.receiver is not None or call.simple in body.locals or not call.arguments:
                continue
            values = tuple(reader.span(span) for span in call.arguments)
            numbers = [self._world.opened(v.poly) for v in values if isinstance(v, Number)]
            given = any(i.startswith("threadIdx") for n in numbers for i in indexes_of(n))
            template = ", ".join(body.text(s) for s in call.template_arguments) if call.template_arguments else None
            inner = self._values.calls.reader(call.name, template, values, reader)
            if inner is None:
                continue
            at = line or body.use_line(call.start)
            under = (*outer, *self._conditions.of(reader, call.start))
            if given or "threadIdx" in inner.body.expanded.text:
                own = inner.body.accesses.loops
                loops = [fact for loop in own for fact in self._loop(inner, loop, call.simple, at, under)]
                # Several loops over the indexes that a helper is given share one range: the first says it.
                yield from loops[:1] if given else loops
                if given and len(own) > 1 and loops:
                    says = f"further loops in {call.simple} are shared the same way"
                    yield WorkFact(loops[0].of, says, at, None, None, None, call.simple)
            yield from self._helpers(inner, inner.body.facts.calls, at, under)


def _along(reader: ValueReader, index: str) -> str:
    """`` along y`` where blocks are not counted along x alone."""
    axis = index[-1]
    others = any(f"blockIdx.{other}" in reader.body.expanded.text for other in AXES if other != axis)
    return f" along {axis}" if others or axis != "x" else ""


def bare(text: str) -> str:
    """A text without parentheses around all of it."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def indexes_of(value: Poly) -> set[str]:
    """The thread and block indexes that a value is made of."""
    return {a.name for a in value.all_atoms() if a.kind == "symbol" and a.name.startswith(("threadIdx.", "blockIdx."))}


def _direct(value: Poly) -> set[str]:
    """The indexes that a value is counted by: those that it only looks something up with are left out."""
    found: set[str] = set()
    for monomial in value.terms:
        for atom, _ in monomial:
            if atom.kind == "symbol" and atom.name.startswith(("threadIdx.", "blockIdx.")):
                found.add(atom.name)
            elif atom.kind != "load":
                found.update(index for part in atom.parts for index in _direct(part))
    return found


def _plain(begin: Poly) -> bool:
    """Whether a loop begins at a thread's own number, or at a part of it."""
    single = begin.atom
    return single is not None and bool(indexes_of(begin))


def _group(begin: Poly) -> str | None:
    """``n`` where a loop begins at ``threadIdx.x / n``: so many threads take each pass together."""
    sizes = {
        bare(shown(atom.parts[1]))
        for atom in begin.all_atoms()
        if atom.kind == "quotient"
        and any(one.startswith("threadIdx") for one in indexes_of(atom.parts[0]))
        and atom.parts[1] != poly(1)
    }
    return min(sizes, default=None)


def _apart(begin: Poly, behind: bool) -> str | None:
    """``n`` where a loop begins at ``threadIdx.x - n``: the threads before the n-th have something else to do; with
    ``behind``, where it begins at ``threadIdx.x + n``."""
    for axis in AXES:
        rest = (symbol(f"threadIdx.{axis}") - begin) * (-1 if behind else 1)
        blocks = behind and all(one.startswith("blockIdx") for one in indexes_of(rest))
        if rest and (blocks or not indexes_of(rest)) and all(factor > 0 for factor in rest.terms.values()):
            return bare(shown(rest))
    return None


def _first(begin: Poly) -> str | None:
    """``n`` where a loop begins at ``blockIdx.x * blockDim.x + threadIdx.x + n``."""
    rest: dict = {}
    threads = blocks = 0
    for monomial, factor in begin.terms.items():
        names = [name for atom, _ in monomial for name in indexes_of(of_atom(atom))]
        if any(name.startswith("blockIdx") for name in names):
            blocks += 1
        elif names:
            threads += 1
        else:
            rest[monomial] = factor
    if (threads, blocks) != (1, 1) or not rest or any(factor < 0 for factor in rest.values()):
        return None
    return bare(shown(Poly(rest)))


def _is_block_size(step: Poly) -> bool:
    """Whether a step is a constant that blocks are launched with, by its name."""
    atom = step.atom
    return atom is not None and bool(re.search(r"thread|block_?size|BLOCK|THREADS|kNT", atom.name, re.IGNORECASE))
