"""What one block and one thread of a kernel handle, in words, from what is made of their indexes.

In: a kernel's values. Out: ``WorkFact`` values in reading order: blocks, threads, loops. A loop is read by where it
starts, how far it goes and how far it steps; helpers are looked into as far as thread indexes are passed to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.expand.bodies import Body
from opwalker.expand.value_bounds import leaving_at, relations_at
from opwalker.expand.values import Number, World, shown
from opwalker.model.access import Leave
from opwalker.model.body import LocalFact
from opwalker.model.kernel import WorkFact
from opwalker.model.layout import LayoutFact
from opwalker.notation.polynomial import Atom, Poly, symbol
from opwalker.views.kernel_conditions import Conditions, joined
from opwalker.views.kernel_loops import AXES, WARP, LoopReader, bare, indexes_of
from opwalker.views.kernel_values import KernelValues
from opwalker.views.ops import shown_condition

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
        self._conditions = Conditions()

    def facts(self) -> tuple[WorkFact, ...]:
        """Blocks first, then threads, then loops, each once."""
        reader = LoopReader(self._values)
        loops, helped = list(reader.loops()), list(reader.helped())
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
                if any(change.target == local.name for change in body.accesses.changes):
                    continue  # what it is made of at first, it need not stay
                if indexes_of(value) and not any(atom.kind == "load" for atom in value.all_atoms()):
                    yield local, value

    # -- blocks and threads -----------------------------------------------------------------------------------------

    def _blocks(self, named: list[tuple[LocalFact, Poly]], loops: list[WorkFact]) -> Iterator[WorkFact]:
        """What each axis of the grid counts, as far as loops do not say it."""
        body = self._reader.body
        for axis in AXES:
            index = f"blockIdx.{axis}"
            at = body.expanded.text.find(index)
            if at < 0:
                continue
            alone = [(f, v) for f, v in named if indexes_of(v) == {index}]
            whole = next((f for f, v in alone if v == symbol(index) and f.block < 0), None)
            shared = [v for f, v in named if index in indexes_of(v)]
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
            elif not shared or any(indexes_of(v) == {index} for v in shared):
                # Where blocks and threads are only counted together, it is said of the threads.
                yield WorkFact("block", f"{index} tells blocks apart{many}", body.use_line(at), None, index, extent)
            for local, value in alone:
                if value != symbol(index) and value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                    text = bare(shown(value))
                    yield WorkFact("block", self._made(local), body.use_line(local.start), local.name, text)

    def _along(self, *indexes: str) -> str:
        """`` along x`` where the kernel counts on another axis too: then several blocks, or threads, share a number."""
        axes = sorted({index.rpartition(".")[2] for index in indexes})
        others = (f"{index[:-1]}{axis}" for index in indexes for axis in AXES if axis not in axes)
        return f" along {axes[0]}" if any(other in self._reader.body.expanded.text for other in others) else ""

    def _made(self, local: LocalFact) -> str:
        """What a local is made of as the kernel writes it, and in which branch."""
        return f"{local.name} is {self._reader.body.written(local.value)}{self._where(local)}"

    def _where(self, local: LocalFact) -> str:
        """In which branch of the kernel a local is made."""
        under = joined(self._conditions.of(self._reader, local.start)) if local.block >= 0 else ""
        return f", if {under}" if under else ""

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
            indexes = indexes_of(value)
            threads = {i for i in indexes if i.startswith("threadIdx")}
            if not threads:
                continue
            line = body.use_line(local.start)
            bound = self._limit(local)
            limit = bare(shown(bound)) if bound is not None else None
            upto = f", while it is below {limit}" if limit else ""
            text = bare(shown(value))
            if any(i.startswith("blockIdx") for i in indexes):
                if _is_global(value):
                    along = self._along(*sorted(indexes))
                    says = f"one thread{along} for each {local.name}, counted over all blocks{upto}"
                    says += self._where(local)
                    yield WorkFact("thread", says, line, local.name, text, limit)
                elif value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                    yield WorkFact("thread", self._made(local), line, local.name, text)
                continue
            thread = next(iter(threads)) if len(threads) == 1 else None
            if thread is None:
                continue
            if value == symbol(thread):
                says = f"one thread{self._along(thread)} for each {local.name} ({thread}){upto}"
                yield WorkFact("thread", says + self._where(local), line, local.name, text, limit)
                cap = self._left_over(thread, bound, local.name) if bound is not None else None
                if cap is not None:
                    says = f"{_CAPPED} {cap} threads, and no loop goes on: where {limit} is more than {cap}"
                    yield WorkFact(
                        "thread", f"{says}, {local.name} from {cap} on is not handled", line, local.name, limit, cap
                    )
            elif value.atom is not None and value.atom.kind in ("quotient", "remainder"):
                left, right = value.atom.parts
                if left == symbol(thread) and str(right) in WARP:
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
                if _compiled(body, leave):
                    continue  # a build without it turns no thread away
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
            compiled = _compiled(body, leave)
            under = f", compiled under #if {compiled}" if compiled else ""
            says = f"nothing more is done where {condition}{made}{under}"
            yield WorkFact("thread", says, line, None, condition, compiled=compiled)

    def _extent(self, name: str) -> str | None:
        found = self._values.passed.counts.get(name)
        return bare(shown(found)) if found is not None else None


def _compiled(body: Body, leave: Leave) -> str | None:
    """The preprocessor condition that the ``return`` or ``continue`` of a branch stands under."""
    return shown_condition(body.conditions_around(leaving_at(body, leave)))


def _is_global(value: Poly) -> bool:
    """Whether a value is ``blockIdx * blockDim + threadIdx`` of one axis, whatever the block's size is called."""
    for axis in AXES:
        rest = value - symbol(f"threadIdx.{axis}")
        single = rest.monomial
        if single is not None and any(a == Atom("symbol", f"blockIdx.{axis}") for a, _ in single[0]):
            return len(single[0]) == 2 or single[1] > 1
    return False
