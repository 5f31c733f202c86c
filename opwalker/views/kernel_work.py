"""What one block and one thread of a kernel handle, in words, from what is made of their indexes.

In: a kernel's values. Out: ``WorkFact`` values in reading order: blocks, threads, loops. A loop is read by where it
starts, how far it goes and how far it steps; helpers are looked into as far as thread indexes are passed to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
from opwalker.views.sync_events import asked_of_threads, under_of

_AXES = ("x", "y", "z")
_WARP = ("32", "warpSize", "WARP_SIZE", "kWarpSize", "WARP_THREADS", "NUM_THREADS_PER_WARP")
_MOST = 24
#: How it begins that a launch has fewer threads than the kernel has units.
_CAPPED = "the launch gives at most"


class WorkReader:
    """Reads what the threads of one kernel handle."""

    def __init__(self, values: KernelValues, layouts: tuple[LayoutFact, ...] = ()) -> None:
        self._values = values
        self._layouts = layouts
        self._reader = values.reader
        self._world: World = values.world

    def facts(self) -> tuple[WorkFact, ...]:
        """Blocks first, then threads, then loops, each once."""
        loops = list(self._loops())
        helped = list(self._helpers(self._reader))
        named = list(self._named())
        striding = any(fact.of in ("thread", "warp") for fact in (*loops, *helped))
        threads = [
            fact
            for fact in self._threads(named)
            # What only begins loops that all threads share is no unit of its own.
            if not striding
            or (not fact.says.startswith(_CAPPED) and (fact.extent or not fact.says.startswith("one thread")))
        ]
        facts = [*self._blocks(named, [*loops, *helped]), *threads, *self._leaves(threads), *loops, *helped]
        out: dict[tuple, WorkFact] = {}
        for fact in facts:
            out.setdefault((fact.says, fact.through), fact)
        return tuple(out.values())[:_MOST]

    def _loops(self) -> Iterator[WorkFact]:
        """The loops of the body, those of a lambda at each of its calls."""
        body = self._reader.body
        inside = Inside(self._reader)
        for loop in body.accesses.loops:
            if loop.start in inside:
                yield from self._loop(self._reader, loop, None, None)
        for held, call in inside.lambda_calls():
            inner = self._values.calls.of_lambda(held, call, self._reader)
            for loop in body.accesses.loops:
                if held.body[0] <= loop.start < held.body[1]:
                    yield from self._loop(inner, loop, call.simple, body.use_line(call.start))

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
                says = f"one block{self._along(index)} for each {whole.name} ({index}{many})"
                yield WorkFact("block", says, body.use_line(whole.start), whole.name, index, extent)
            elif (row := self._row(index)) is not None:
                says = f"one block{self._along(index)} for each {row} ({index}{many})"
                yield WorkFact("block", says, body.use_line(at), None, index, extent)
            elif not extent and any(index in (fact.value or "") for fact in loops):
                continue
            elif not shared or any(_indexes(v) == {index} for v in shared):
                # Where blocks and threads are only counted together, it is said of the threads.
                yield WorkFact("block", f"{index} tells blocks apart{many}", body.use_line(at), None, index, extent)
            for local, value in alone:
                if value != symbol(index) and value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                    text = _bare(shown(value))
                    yield WorkFact("block", self._made(local), body.use_line(local.start), local.name, text)

    def _along(self, *indexes: str) -> str:
        """`` along x`` where the kernel counts on another axis too: then several blocks, or threads, share a number."""
        axes = sorted({index.rpartition(".")[2] for index in indexes})
        others = (f"{index[:-1]}{axis}" for index in indexes for axis in _AXES if axis not in axes)
        return f" along {axes[0]}" if any(other in self._reader.body.expanded.text for other in others) else ""

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
            bound = self._limit(local)
            limit = _bare(shown(bound)) if bound is not None else None
            upto = f", while it is below {limit}" if limit else ""
            text = _bare(shown(value))
            if any(i.startswith("blockIdx") for i in indexes):
                if _is_global(value):
                    along = self._along(*sorted(indexes))
                    says = f"one thread{along} for each {local.name}, counted over all blocks{upto}"
                    yield WorkFact("thread", says, line, local.name, text, limit)
                elif value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                    yield WorkFact("thread", self._made(local), line, local.name, text)
                continue
            thread = next(iter(threads)) if len(threads) == 1 else None
            if thread is None:
                continue
            if value == symbol(thread):
                says = f"one thread{self._along(thread)} for each {local.name} ({thread}){upto}"
                yield WorkFact("thread", says, line, local.name, text, limit)
                cap = self._left_over(thread, bound, local.name) if bound is not None else None
                if cap is not None:
                    says = f"{_CAPPED} {cap} threads, and no loop goes on: where {limit} is more than {cap}"
                    yield WorkFact(
                        "thread", f"{says}, {local.name} from {cap} on is not handled", line, local.name, limit, cap
                    )
            elif value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                left, right = value.atom.parts
                if left == symbol(thread) and str(right) in _WARP:
                    warp = value.atom.kind == "quotient"
                    what = "warp of the block" if warp else "lane of its warp"
                    yield WorkFact("warp", f"{local.name} is the {what}{upto}", line, local.name, text, limit)
                elif left == symbol(thread):
                    yield WorkFact("thread", f"{self._made(local)}{upto}", line, local.name, text, limit)

    def _limit(self, local: LocalFact) -> Poly | None:
        """What threads beyond are turned away by: ``if (unit >= n) return;``."""
        body = self._reader.body
        own = self._reader.name(local.name, local.end)
        if not isinstance(own, Number):
            return None
        for leave in body.accesses.leaves:
            if leave.start > local.start and leave.kind in ("return", "continue"):
                for small, big in relations_at(self._reader, leave.start):
                    if small == own.poly and not self._world.moves(big):
                        return big
        return None

    def _left_over(self, thread: str, limit: Poly, name: str) -> str | None:
        """How many threads the launch gives at most where it caps what the kernel counts, and no loop goes on from
        there: ``min(n, 512)`` threads for ``n`` units."""
        given = self._values.passed.extents.get(thread.replace("threadIdx", "blockDim"))
        atom = given.atom if given is not None else None
        if atom is None or atom.kind != "call" or atom.name.rsplit("::", 1)[-1] != "min":
            return None
        wanted = self._world.opened(limit)
        sides = [self._world.opened(part) for part in atom.parts]
        caps = [side.constant for side in sides if side.constant is not None]
        if wanted not in sides or len(caps) != 1 or any(c.target == name for c in self._reader.body.accesses.changes):
            return None
        return str(caps[0])

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
        indexes = _direct(begin)
        goal = _goal(body.text(loop.condition), local.name)
        stop = None
        if goal is not None:
            found = reader.text(goal, loop.condition[0])
            stop = shown(found.poly) if isinstance(found, Number) else goal
        who = self._who(begin, indexes, self._world.opened(step)) or self._counted(reader, loop, begin, indexes, step)
        if who is None:
            return
        of, words = who
        behind = None
        if words == "the threads of a block":
            words += f" from {first} on" if (first := _apart(begin, behind=False)) else ""
            behind = _apart(begin, behind=True)
        stop = _bare(stop) if stop else None
        over = f" from {behind}" if behind else ""
        over += f" {'to' if behind else 'over'} {stop}" if stop else ""
        inside = f" in {through}" if through else ""
        under = (*under_of(body, loop.start), *asked_of_threads(body, loop.start))
        where = f", if {under[-1]}" if under else ""
        says = f"{words} stride{over} ({local.name}){inside}{where}"
        yield WorkFact(of, says, line or body.use_line(loop.start), local.name, shown(begin), stop, through)

    def _counted(
        self, reader: ValueReader, loop: Loop, begin: Poly, indexes: set[str], step: Poly
    ) -> tuple[str, str] | None:
        """Who shares a loop whose step is all threads of the grid or of a block, however that is written."""
        step = self._world.opened(step)
        threads = {i for i in indexes if i.startswith("threadIdx")}
        blocks = {i for i in indexes if i.startswith("blockIdx")}
        for axis in _AXES:
            whole = reader.text(f"gridDim.{axis} * blockDim.{axis}", loop.start)
            if threads and blocks and isinstance(whole, Number) and self._world.opened(whole.poly) == step:
                return "thread", "the threads of all blocks"
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

    def _helpers(self, reader: ValueReader, line: int | None = None) -> Iterator[WorkFact]:
        """Loops of functions that thread indexes are passed to, or that read them themselves."""
        body = reader.body
        for call in body.facts.calls:
            if call.receiver is not None or call.simple in body.locals or not call.arguments:
                continue
            values = tuple(reader.span(span) for span in call.arguments)
            numbers = [self._world.opened(v.poly) for v in values if isinstance(v, Number)]
            given = any(i.startswith("threadIdx") for n in numbers for i in _indexes(n))
            template = ", ".join(body.text(s) for s in call.template_arguments) if call.template_arguments else None
            inner = self._values.calls.reader(call.name, template, values, reader)
            if inner is None:
                continue
            at = line or body.use_line(call.start)
            if given or "threadIdx" in inner.body.expanded.text:
                own = inner.body.accesses.loops
                loops = [fact for loop in own for fact in self._loop(inner, loop, call.simple, at)]
                # Several loops over the indexes that a helper is given share one range: the first says it.
                yield from loops[:1] if given else loops
            yield from self._helpers(inner, at)


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


def _apart(begin: Poly, behind: bool) -> str | None:
    """``n`` where a loop begins at ``threadIdx.x - n``: the threads before the n-th have something else to do; with
    ``behind``, where it begins at ``threadIdx.x + n``."""
    for axis in _AXES:
        rest = (symbol(f"threadIdx.{axis}") - begin) * (-1 if behind else 1)
        if rest and not _indexes(rest) and all(factor > 0 for factor in rest.terms.values()):
            return _bare(shown(rest))
    return None


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
