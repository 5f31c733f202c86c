"""Launch sites of a routine, whatever form they have, with what stands before and around each.

In: a routine. Out: ``Site`` values in source order: ``<<<…>>>`` and launches by a runtime call alike. What stands
before a site are the statements that run before it in the blocks around it: what they declare is alive there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from opwalker.model.check import CheckedTree
from opwalker.model.statements import CallText, LaunchText, MacroUse, Routine, Statement
from opwalker.rules._values import extents, split

#: Runtime calls that launch: which argument is the kernel, and which are grid, block, shared memory and stream (none:
#: they are in a configuration).
_CALLS: dict[str, tuple[int, tuple[int, ...]]] = {
    "LaunchKernel": (0, (1, 2, 4, 5)),
    "LaunchCooperativeKernel": (0, (1, 2, 4, 5)),
    "LaunchKernelEx": (1, ()),
    "LaunchKernelExC": (1, ()),
    "LaunchKernelGGL": (0, (1, 2, 3, 4)),
}
_LAUNCH = re.compile(r"(?:cuda|hip)(Launch(?:Cooperative)?Kernel(?:ExC?|GGL)?)\Z")
#: What asks for the last error of the runtime.
ASKS = re.compile(r"\b(?:cuda|hip)(?:Get|PeekAt)LastError\b")
#: An axis of an extent that is set by itself.
_AXIS = re.compile(r"(\w+)\.([xyz])")
_TENSOR = re.compile(r"(\w+::)?\b((?:Optional)?Tensor(?:View|Base|Ref|List)?|DLTensor|TensorPtr)\b")
_NO_NAME = re.compile(
    r"^[&\s]*(?:\(+\s*(?:const\s+)?void\s*\*\s*\)|reinterpret_cast<(?:const )?void\s*(?:const)?\s*\*>\s*\()?[\s&(]*"
)


class Site(Struct, frozen=True):
    """A launch. An extent is None where it was not found. ``before`` ran before it, ``around`` it stands in (outermost
    first), ``after`` follows it in its own block. ``config`` is the object that holds the extents, where one does."""

    kernel: str
    grid: str | None
    block: str | None
    shared: str | None
    stream: str | None
    arguments: tuple[str, ...]
    line: int
    macro: MacroUse | None
    statement: Statement
    before: tuple[Statement, ...]
    around: tuple[Statement, ...]
    after: tuple[Statement, ...]
    config: str | None = None

    @property
    def name(self) -> str:
        """The kernel without qualifiers and template arguments."""
        return self.kernel.split("<", 1)[0].rsplit("::", 1)[-1].strip("&() ")

    def place(self, tree: CheckedTree, routine: Routine) -> tuple[str, int]:
        """Where a finding about the launch stands: in the macro that wrote it, else where it is."""
        if self.macro is not None and not self.macro.known:
            return tree.place(self.macro)
        return routine.file, self.line


class Point(Struct, frozen=True):
    """A statement with what stands before, around and after it."""

    statement: Statement
    before: tuple[Statement, ...]
    around: tuple[Statement, ...]
    after: tuple[Statement, ...]


def points(statements: Sequence[Statement]) -> Iterator[Point]:
    """Every statement of a body with its surroundings; a lambda's body stands where the lambda does."""
    yield from _points(statements, (), (), ())


def _points(
    statements: Sequence[Statement], before: tuple[Statement, ...], around: tuple[Statement, ...],
    after: tuple[Statement, ...],
) -> Iterator[Point]:  # fmt: skip
    seen = before
    for number, one in enumerate(statements):
        following = tuple(statements[number + 1 :]) or after
        yield Point(one, seen, around, following)
        inner = (*around, one)
        yield from _points(one.head, seen, inner, ())
        yield from _points(one.body, (*seen, *one.head), inner, following)
        yield from _points(one.orelse, seen, inner, following)
        for held in one.lambdas:
            yield from _points(held.body, seen, inner, following)
        seen = (*seen, one)


def sites(routine: Routine) -> Iterator[Site]:
    """The launches of a routine."""
    if routine.on_device or not any(_launches(one) for one in routine.walk()):
        return
    for point in points(routine.statements):
        one = point.statement
        for launch in one.launches:
            yield _chevron(launch, point)
        for call in one.calls:
            made = _runtime(call, point)
            if made is not None:
                yield made


def _launches(one: Statement) -> bool:
    return bool(one.launches) or any(_LAUNCH.match(call.simple) for call in one.calls)


def _chevron(launch: LaunchText, point: Point) -> Site:
    parts = (*launch.configuration, None, None, None, None)
    return Site(
        launch.kernel, parts[0], parts[1], parts[2], parts[3], launch.arguments, launch.line, launch.macro,
        point.statement, point.before, point.around, point.after,
    )  # fmt: skip


def _runtime(call: CallText, point: Point) -> Site | None:
    found = _LAUNCH.match(call.simple)
    if found is None or call.receiver is not None:
        return None
    kernel, places = _CALLS[found[1]]
    if len(call.arguments) <= kernel:
        return None
    config = None
    if not places:
        config = call.arguments[0].strip("&* ")
        grid, block, shared, stream = (_of_config(config, name, point.before) for name in _FIELDS)
        arguments = call.arguments[2:]
    else:
        given = dict(enumerate(call.arguments))
        grid, block, shared, stream = (given.get(place) for place in places)
        arguments = call.arguments[5:] if found[1].endswith("GGL") else ()
    name = _NO_NAME.sub("", call.arguments[kernel]).strip(" )")
    return Site(
        name, grid, block, shared, stream, tuple(arguments), call.line, call.macro, point.statement, point.before,
        point.around, point.after, config,
    )  # fmt: skip


_FIELDS = ("gridDim", "blockDim", "dynamicSmemBytes", "stream")


def _of_config(config: str, name: str, before: Sequence[Statement]) -> str | None:
    """A field of a launch configuration: the last assignment to it, else its place in the initialiser."""
    for one in reversed(before):
        for assigned in reversed(one.assigns):
            if assigned.target.replace("->", ".") == f"{config}.{name}":
                return assigned.value
        for declared in one.declares:
            if declared.name == config and declared.value and declared.value.strip("={ }"):
                inner = declared.value.strip().removeprefix("=").strip()
                if inner[:1] != "{":
                    return None
                items = split(inner[1:-1])
                named = (re.match(r"\s*\.(\w+)\s*=\s*(.*)", item, re.DOTALL) for item in items)
                given = {found[1]: found[2] for found in named if found} or dict(zip(_FIELDS, items, strict=False))
                return given.get(name, "").strip() or None
    return None


def launched_with(tree: CheckedTree, routine: Routine, call: CallText, depth: int = 2) -> Iterator[tuple[int, Site]]:
    """What a called function of the source launches with an argument of the call as it is: which argument, and the
    launch; functions that it hands the argument on to are gone into."""
    for target in tree.targets(routine, call):
        if target.on_device or target is routine:
            continue
        names = {one.name: number for number, one in enumerate(target.parameters[: len(call.arguments)])}
        for site in sites(target):
            for argument in site.arguments:
                if argument.strip() in names:
                    yield names[argument.strip()], site
        for inner in (held for one in target.walk() for held in one.calls) if depth > 1 and names else ():
            handed = {number: names[one.strip()] for number, one in enumerate(inner.arguments) if one.strip() in names}
            for number, site in launched_with(tree, target, inner, depth - 1) if handed else ():
                if number in handed:
                    yield handed[number], site


def locals_of(site: Site) -> dict[str, str]:
    """The initialisers of the locals that are in sight at a site; of two of one name, the nearer."""
    return locals_of_point(site)


def locals_of_point(point: Point | Site) -> dict[str, str]:
    """The same at any statement."""
    out: dict[str, str] = {}
    for one in (*point.before, *point.around):
        for declared in one.declares:
            if declared.value is not None:
                out[declared.name] = declared.value.strip()
        for assigned in one.assigns:
            found = _AXIS.fullmatch(assigned.target.strip())
            if found is not None and assigned.operator == "=":
                axes = [*extents(out.get(found[1], "1"), {}), "1", "1"][:3]
                axes["xyz".index(found[2])] = assigned.value
                out[found[1]] = f"dim3({', '.join(axes)})"
    return out


def extent_line(site: Site, axis: str) -> int | None:
    """The line on which an axis of the grid's variable is set, else that on which the variable is made."""
    grid = (site.grid or "").strip()
    for one in reversed((*site.before, *site.around)):
        if any(a.target.strip() == f"{grid}.{axis}" for a in one.assigns):
            return one.line
        if any(d.name == grid and "dim3" in d.type for d in one.declares):
            return one.line
    return None


def _is_tensor(tree: CheckedTree, kind: str) -> bool:
    """Whether a type holds a framework's tensor: a class ``Tensor`` of the source is its own, whose device is its
    library's affair."""
    found = _TENSOR.search(kind)
    return found is not None and (found[1] is not None or found[2] != "Tensor" or not tree.classes("Tensor"))


def roots_first(tree: CheckedTree, routine: Routine) -> bool:
    """Whether a routine is where work comes in from outside: an entry, or a host function with a tensor parameter that
    nothing in the source calls. An exported function that takes pointers alone and is called in the source is a step
    on the way: whose device they belong to is known to its callers."""
    tensors = any(_is_tensor(tree, parameter.type) for parameter in routine.parameters)
    if tree.is_entry(routine):
        return tensors or not tree.callers(routine)
    # An object that is called like a function has callers that its name does not show.
    return tensors and not tree.callers(routine) and not routine.on_device and "operator()" not in routine.name
