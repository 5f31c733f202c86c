"""What is documented of an op's tensors, as the contract rules compare it.

In: an op. Out: the parameters of its host functions with documented shapes and those that the host function's own code
shows; and what the contract of its reference kernel says. Functions further down the path are ``walk``'s: a rule that
runs on every op reads the host function alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from opwalker.errors import OpwalkerError
from opwalker.expand.workbench import Workbench
from opwalker.model.binding import Binding
from opwalker.model.check import ReferenceShapes
from opwalker.model.host import ParameterFact
from opwalker.model.ops import Op
from opwalker.model.reach import Reach
from opwalker.views.ops import build_for, hosts_of
from opwalker.views.parameters import host_parameters, with_code
from opwalker.views.reference import reference_kernel
from opwalker.views.way import Way
from opwalker.views.wrapper_shapes import wrappers_say

#: Gives what was kept of a contract, by the kernel's name, or what the function reads (which takes numpy).
Kept = Callable[[str, Callable[[], dict[str, str]]], dict[str, str]]


class OpShapes:
    """Reads the shapes of ops of one source. ``kernels`` is the folder of reference kernels."""

    def __init__(self, workbench: Workbench, text: Callable[[str], str], kernels: Path, kept: Kept) -> None:
        self._workbench = workbench
        self._text = text
        self._kernels = kernels
        self._kept = kept
        self._known: dict[str, tuple[ParameterFact, ...]] = {}
        #: Why contracts could not be read, where one was asked for.
        self.missing: str | None = None

    def of(self, op: Op) -> tuple[ParameterFact, ...]:
        """The parameters of every host function of an op that the build compiles."""
        if op.name not in self._known:
            self._known[op.name] = self._read(op)
        return self._known[op.name]

    def _read(self, op: Op) -> tuple[ParameterFact, ...]:
        workbench = self._workbench
        names = tuple(argument.name for argument in op.arguments)
        wrapper = wrappers_say(op, op.python, self._text)
        out: dict[ParameterFact, None] = {}
        for binding in self._bindings.get(op.name, ()):
            builds = workbench.builds_at(binding.path, binding.condition)
            if binding.function.lambda_span is not None or (builds is not None and workbench.build not in builds):
                continue
            unit = workbench.unit(build_for(workbench, binding))
            for host in hosts_of(workbench, binding, len(names) if op.schema else None):
                body, reach = unit.bodies.of(host, host.path), Reach((), (), (), ())
                parameters = host_parameters(workbench, host, names, wrapper)
                way = Way(workbench, unit, reach, body, host.path)
                out.update(dict.fromkeys(with_code(workbench, way, reach, parameters)))
        return tuple(out)

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


def _contract_shapes(folder: Path, kernel: str) -> dict[str, str]:
    from opwalker.views.verify.contract import load

    return {name: one.shape for name, one in load(folder, kernel).arguments.items()}
