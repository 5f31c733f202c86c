"""What is documented of an op's tensors, as the contract rules compare it.

In: an op. Out: the parameters of its host functions with documented shapes and those that the host function's own code
shows; and what the contract of its reference kernel says. Functions further down the path are ``walk``'s: a rule that
runs on every op reads the host function alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from opwalker.errors import OpwalkerError
from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.binding import Binding
from opwalker.model.check import ReferenceShapes
from opwalker.model.host import ParameterFact
from opwalker.model.ops import Op
from opwalker.model.reach import Reach
from opwalker.source.changes import Changes
from opwalker.views.ops import build_for, hosts_of
from opwalker.views.parameters import host_parameters, with_code
from opwalker.views.reference import reference_kernel
from opwalker.views.way import Way
from opwalker.views.wrapper_shapes import wrappers_say

#: A rule that runs on every op looks at host functions alone.
_NOTHING = Reach((), (), (), ())

#: Gives what was kept of a contract, by the kernel's name, or what the function reads (which takes numpy).
Kept = Callable[[str, Callable[[], dict[str, str]]], dict[str, str]]


class OpShapes:
    """Reads the shapes of ops of one source. ``kernels`` is the folder of reference kernels."""

    def __init__(self, workbench: Workbench, text: Callable[[str], str], kernels: Path, kept: Kept) -> None:
        self._workbench = workbench
        self._text = text
        self._kernels = kernels
        self._kept = kept
        self._known: dict[str, list[tuple[Unit, Candidate, tuple[ParameterFact, ...]]]] = {}
        #: Why contracts could not be read, where one was asked for.
        self.missing: str | None = None

    def documented(self, op: Op) -> tuple[ParameterFact, ...]:
        """The parameters of every host function of an op that the build compiles, with what is documented of them."""
        return tuple(dict.fromkeys(one for _, _, parameters in self._hosts(op) for one in parameters))

    def of(self, op: Op, changes: Changes | None = None) -> tuple[ParameterFact, ...]:
        """The same with what the functions' code shows, where something is documented: of changes, where one lies in a
        function, or in what is documented of it. Whatever is said of the two lies there."""
        out: dict[ParameterFact, None] = {}
        for unit, host, parameters in self._hosts(op):
            if any(one.sources for one in parameters) and (changes is None or _changed(changes, host, parameters)):
                way = Way(self._workbench, unit, _NOTHING, unit.bodies.of(host, host.path), host.path)
                parameters = with_code(self._workbench, way, _NOTHING, parameters)
            out.update(dict.fromkeys(parameters))
        return tuple(out)

    def _hosts(self, op: Op) -> list[tuple[Unit, Candidate, tuple[ParameterFact, ...]]]:
        """The host functions of an op that the build compiles, each with its unit and its parameters."""
        if op.name not in self._known:
            workbench = self._workbench
            names = tuple(argument.name for argument in op.arguments)
            wrapper = wrappers_say(op, op.python, self._text)
            held = self._known[op.name] = []
            for binding in self._bindings.get(op.name, ()):
                builds = workbench.builds_at(binding.path, binding.condition)
                if binding.function.lambda_span is not None or (builds is not None and workbench.build not in builds):
                    continue
                unit = workbench.unit(build_for(workbench, binding))
                for host in hosts_of(workbench, binding, len(names) if op.schema else None):
                    held.append((unit, host, host_parameters(workbench, host, names, wrapper)))
        return self._known[op.name]

    @cached_property
    def _bindings(self) -> dict[str, list[Binding]]:
        """The implementations that name a function, by op."""
        out: dict[str, list[Binding]] = {}
        for one in self._workbench.bindings().bindings:
            if one.role == "impl" and one.function is not None:
                out.setdefault(one.name, []).append(one)
        return out

    def contract(self, op: Op) -> ReferenceShapes | None:
        """The shapes of the contract that a reference kernel has for an op."""
        kernel = reference_kernel(self._kernels, op)
        if kernel is None:
            return None
        try:
            shapes = self._kept(kernel, lambda: _contract_shapes(self._kernels, kernel))
        except (ImportError, OpwalkerError) as error:
            absent = isinstance(error, ModuleNotFoundError) and error.name == "numpy"
            why = "numpy is missing; pip install numpy" if absent else str(error)
            self.missing = f"documented shapes were not compared with the reference kernels' contracts: {why}"
            return None
        return ReferenceShapes(kernel, shapes)


def _changed(changes: Changes, host: Candidate, parameters: Sequence[ParameterFact]) -> bool:
    """Whether a changed line lies in a function, its head and the comments beside it among it, or in what is documented
    of its parameters elsewhere."""
    function = host.function
    places = [(host.path, function.start_line, function.end_line)]
    places += [(at.file, at.line, at.end_line) for one in parameters for at in (source.span for source in one.sources)]
    return any(
        first <= end and line <= last for file, line, end in places for first, last in changes.get(file, ())
    )  # fmt: skip


def _contract_shapes(folder: Path, kernel: str) -> dict[str, str]:
    from opwalker.views.verify.contract import load

    return {name: one.shape for name, one in load(folder, kernel).arguments.items()}
