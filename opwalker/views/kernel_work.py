"""What one block and one thread of a kernel handle, in words, from what is made of their indexes.

In: a kernel's values. Out: ``WorkFact`` values in reading order: blocks, threads, loops. A loop is read by where it
starts, how far it goes and how far it steps; helpers are looked into as far as thread indexes are passed to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from opwalker.expand.device_calls import Inside
from opwalker.expand.value_bounds import relations_at
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Number, World, shown
from opwalker.model.access import Loop
from opwalker.model.body import LocalFact
from opwalker.model.kernel import WorkFact
from opwalker.model.layout import LayoutFact
from opwalker.notation.cpp_expression import parse_expression, print_expression
from opwalker.notation.polynomial import Atom, Poly, symbol
from opwalker.views.kernel_values import KernelValues
from opwalker.views.sync_events import under_of

_AXES = ("x", "y", "z")
_WARP = ("32", "warpSize", "WARP_SIZE", "kWarpSize", "WARP_THREADS", "NUM_THREADS_PER_WARP")
_MOST = 24


class WorkReader:
    """Reads what the threads of one kernel handle."""

    def __init__(self, values: KernelValues, layouts: tuple[LayoutFact, ...] = ()) -> None:
        self._values = values
        self._layouts = layouts
        self._reader = values.reader
        self._world: World = values.world

    def facts(self) -> tuple[WorkFact, ...]:
        """Blocks first, then threads, then loops, each once."""
        body = self._reader.body
        named = list(self._named())
        inside = Inside(self._reader)
        loops = [
            fact
            for loop in body.accesses.loops
            if loop.start in inside
            for fact in self._loop(self._reader, loop, None, None)
        ]
        for held, call in inside.lambda_calls():
            inner = self._values.calls.of_lambda(held, call, self._reader)
            own = [loop for loop in body.accesses.loops if held.body[0] <= loop.start < held.body[1]]
            loops += [f for loop in own for f in self._loop(inner, loop, call.simple, body.use_line(call.start))]
        threads = list(self._threads(named))
        facts = [*self._blocks(named, loops), *threads, *self._leaves(threads), *loops]
        facts += self._helpers(self._reader, None, None)
        out: dict[tuple, WorkFact] = {}
        for fact in facts:
            out.setdefault((fact.says, fact.through), fact)
        return tuple(out.values())[:_MOST]

    def _named(self) -> Iterator[tuple[LocalFact, Poly]]:
        """Locals that hold a block's or a thread's index, opened down to it."""
        body = self._reader.body
        for local in body.facts.locals:
            if local.value is None or not local.name or "*" in local.type or local.type in ("using", "namespace"):
                continue
            if any(loop.init and loop.init[0] <= local.start < loop.init[1] for loop in body.accesses.loops):
                continue
            found = self._reader.name(local.name, local.end)
            if isinstance(found, Number):
                value = self._world.opened(found.poly)
                if _indexes(value) and not any(atom.kind == "load" for atom in value.all_atoms()):
                    yield local, value

    # -- blocks and threads -----------------------------------------------------------------------------------------

    def _blocks(self, named: list[tuple[LocalFact, Poly]], loops: list[WorkFact]) -> Iterator[WorkFact]:
        """What each axis of the grid counts, as far as loops do not say it."""
        body = self._reader.body
        for axis in _AXES:
            index = f"blockIdx.{axis}"
            at = body.expanded.text.find(index)
            if at < 0:
                continue
            alone = [(f, v) for f, v in named if _indexes(v) == {index}]
            whole = next((f for f, v in alone if v == symbol(index) and f.block < 0), None)
            shared = [v for f, v in named if index in _indexes(v)]
            extent = self._extent(f"gridDim.{axis}")
            many = f", {extent} in all" if extent else ""
            if whole is not None:
                says = f"one block for each {whole.name} ({index}{many})"
                yield WorkFact("block", says, body.use_line(whole.start), whole.name, index, extent)
            elif (row := self._row(index)) is not None:
                yield WorkFact(
                    "block", f"one block for each {row} ({index}{many})", body.use_line(at), None, index, extent
                )
            elif not extent and any(index in (fact.value or "") for fact in loops):
                continue
            elif not shared or any(_indexes(v) == {index} for v in shared):
                # Where blocks and threads are only counted together, it is said of the threads.
                yield WorkFact("block", f"{index} tells blocks apart{many}", body.use_line(at), None, index, extent)
            for local, value in alone:
                if value != symbol(index) and value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                    text = _bare(shown(value))
                    yield WorkFact("block", self._made(local), body.use_line(local.start), local.name, text)

    def _made(self, local: LocalFact) -> str:
        """What a local is made of as the kernel writes it, and in which branch."""
        body = self._reader.body
        under = under_of(body, local.start)
        return f"{local.name} is {body.written(local.value)}" + (f", if {under[-1]}" if under else "")

    def _row(self, index: str) -> str | None:
        """What a block index counts by where a documented tensor is addressed with it."""
        for fact in self._layouts:
            for part in fact.coordinates:
                if part.value == index and not fact.through:
                    return f"row of {fact.tensor}" if part.dim == "..." else f"step along {part.dim} of {fact.tensor}"
        return None

    def _threads(self, named: list[tuple[LocalFact, Poly]]) -> Iterator[WorkFact]:
        body = self._reader.body
        for local, value in named:
            indexes = _indexes(value)
            threads = {i for i in indexes if i.startswith("threadIdx")}
            if not threads:
                continue
            line = body.use_line(local.start)
            limit = self._limit(local)
            upto = f", while it is below {limit}" if limit else ""
            text = _bare(shown(value))
            if any(i.startswith("blockIdx") for i in indexes):
                if _is_global(value):
                    says = f"one thread for each {local.name}, counted over all blocks{upto}"
                    yield WorkFact("thread", says, line, local.name, text, limit)
                continue
            thread = next(iter(threads)) if len(threads) == 1 else None
            if thread is None:
                continue
            if value == symbol(thread):
                yield WorkFact(
                    "thread", f"one thread for each {local.name} ({thread}){upto}", line, local.name, text, limit
                )
            elif value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                left, right = value.atom.parts
                if left == symbol(thread) and str(right) in _WARP:
                    warp = value.atom.kind == "quotient"
                    what = "warp of the block" if warp else "lane of its warp"
                    yield WorkFact("warp", f"{local.name} is the {what}{upto}", line, local.name, text, limit)
                elif left == symbol(thread):
                    yield WorkFact("thread", f"{self._made(local)}{upto}", line, local.name, text, limit)

    def _limit(self, local: LocalFact) -> str | None:
        """What threads beyond are turned away by: ``if (unit >= n) return;``."""
        body = self._reader.body
        own = self._reader.name(local.name, local.end)
        if not isinstance(own, Number):
            return None
        for leave in body.accesses.leaves:
            if leave.start > local.start and leave.kind in ("return", "continue"):
                for small, big in relations_at(self._reader, leave.start):
                    if small == own.poly and not self._world.moves(big):
                        return _bare(shown(big))
        return None

    def _leaves(self, threads: list[WorkFact]) -> Iterator[WorkFact]:
        """``if (slot < 0) return;`` of the kernel's own scope, where no range of threads says it already."""
        body = self._reader.body
        text = body.expanded.text
        told = {fact.index for fact in threads if fact.extent}
        for leave in body.accesses.leaves:
            taken = re.sub(r"\s", "", text[leave.condition[1] + 1 : leave.start])
            if leave.kind != "return" or taken not in ("return;", "{return;}") or "{" in text[: leave.until[0]]:
                continue
            condition = body.written(leave.condition)
            names = re.findall(r"[A-Za-z_]\w*", condition)
            if told.intersection(names):
                continue
            local = next((f for f in body.facts.locals if f.name in names and f.value and f.end <= leave.start), None)
            made = f", with {local.name} = {body.written(local.value)}" if local and local.value else ""
            line = body.use_line(leave.condition[0])
            yield WorkFact("thread", f"nothing more is done where {condition}{made}", line, None, condition)

    def _extent(self, name: str) -> str | None:
        found = self._values.passed.extents.get(name)
        return _bare(shown(found)) if found is not None else None

    # -- loops ------------------------------------------------------------------------------------------------------

    def _loop(self, reader: ValueReader, loop: Loop, through: str | None, line: int | None) -> Iterator[WorkFact]:
        """A loop that threads, warps or blocks share."""
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
        indexes = _indexes(begin)
        goal = _goal(body.text(loop.condition), local.name)
        stop = None
        if goal is not None:
            found = reader.text(goal, loop.condition[0])
            stop = shown(found.poly) if isinstance(found, Number) else goal
        who = self._who(begin, indexes, self._world.opened(step))
        if who is None:
            return
        of, words = who
        stop = _bare(stop) if stop else None
        over = f" over {stop}" if stop else ""
        inside = f" in {through}" if through else ""
        says = f"{words} stride{over} ({local.name}){inside}"
        yield WorkFact(of, says, line or body.use_line(loop.start), local.name, shown(begin), stop, through)

    @staticmethod
    def _step(reader: ValueReader, loop: Loop) -> Poly | None:
        for change in reader.body.accesses.changes:
            if loop.update[0] <= change.start < loop.update[1] and change.operator == "+=" and change.value is not None:
                found = reader.span(change.value)
                return found.poly if isinstance(found, Number) else None
        return None

    @staticmethod
    def _who(begin: Poly, indexes: set[str], step: Poly) -> tuple[str, str] | None:
        """Who shares a loop that begins at a value and steps by another."""
        steps = {atom.name for atom in step.all_atoms() if atom.kind == "symbol"}
        threads = {i for i in indexes if i.startswith("threadIdx")}
        blocks = {i for i in indexes if i.startswith("blockIdx")}
        if threads and blocks:
            return ("thread", "the threads of all blocks") if any(s.startswith("gridDim") for s in steps) else None
        if blocks:
            return ("block", "blocks") if any(s.startswith("gridDim") for s in steps) else None
        if not threads:
            return None
        atoms = [a for a in begin.all_atoms() if a.kind in ("quotient", "remainder") and str(a.parts[1]) in _WARP]
        if any(a.kind == "quotient" for a in atoms) and not any(a.kind == "remainder" for a in atoms):
            return "warp", "the warps of a block"
        if any(a.kind == "remainder" for a in atoms) and str(step) in _WARP:
            return "thread", "the lanes of a warp"
        if any(s.startswith("blockDim") for s in steps) or (step.constant or 0) >= 32 or _is_block_size(step):
            return "thread", "the threads of a block"
        return None

    def _helpers(self, reader: ValueReader, through: str | None, line: int | None) -> Iterator[WorkFact]:
        """Loops of functions that thread indexes are passed to."""
        body = reader.body
        for call in body.facts.calls:
            if call.receiver is not None or call.simple in body.locals or not call.arguments:
                continue
            if not any("threadIdx" in body.text(s) or re.fullmatch(r"\w+", body.text(s)) for s in call.arguments):
                continue
            values = tuple(reader.span(span) for span in call.arguments)
            numbers = [self._world.opened(v.poly) for v in values if isinstance(v, Number)]
            if not any(i.startswith("threadIdx") for n in numbers for i in _indexes(n)):
                continue
            template = ", ".join(body.text(s) for s in call.template_arguments) if call.template_arguments else None
            inner = self._values.calls.reader(call.name, template, values, reader)
            if inner is None:
                continue
            at = line or body.use_line(call.start)
            name = through or call.simple
            loops = [fact for loop in inner.body.accesses.loops for fact in self._loop(inner, loop, name, at)]
            # Several loops of a helper share one range: the first says it.
            yield from loops[:1]
            yield from (replace(fact, through=name) for fact in self._helpers(inner, name, at))


def _bare(text: str) -> str:
    """A text without parentheses around all of it."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def _indexes(value: Poly) -> set[str]:
    """The thread and block indexes that a value is made of."""
    return {a.name for a in value.all_atoms() if a.kind == "symbol" and a.name.startswith(("threadIdx.", "blockIdx."))}


def _is_global(value: Poly) -> bool:
    """Whether a value is ``blockIdx * blockDim + threadIdx`` of one axis, whatever the block's size is called."""
    for axis in _AXES:
        rest = value - symbol(f"threadIdx.{axis}")
        single = rest.monomial
        if single is not None and any(a == Atom("symbol", f"blockIdx.{axis}") for a, _ in single[0]):
            return len(single[0]) == 2 or single[1] > 1
    return False


def _is_block_size(step: Poly) -> bool:
    """Whether a step is a constant that blocks are launched with, by its name."""
    atom = step.atom
    return atom is not None and bool(re.search(r"thread|block_?size|BLOCK|THREADS|kNT", atom.name, re.IGNORECASE))


def _goal(condition: str, name: str) -> str | None:
    """What a loop's counter is compared with."""
    expr = parse_expression(condition)
    if expr.kind == "binary" and expr.text in ("<", "<=", "!=") and expr.parts[0].text == name:
        return print_expression(expr.parts[1])
    return None
