"""A pipeline that knows the sample results and nothing else, so that the doors can be tried without a source."""

from __future__ import annotations

import dataclasses
import sys
import types
from pathlib import Path

import opwalker
from opwalker.errors import InputError
from tests.serve import samples


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The options, under the names that the real pipeline gives them."""

    source: str | None
    build: str
    defines: tuple[tuple[str, str | None], ...]
    archs: tuple[str, ...]
    jobs: int | None
    cache: Path | None


class FakePipeline(types.ModuleType):
    """Answers with samples and remembers what it was asked: ``calls`` holds (function, options, arguments)."""

    Options = Options

    def __init__(self) -> None:
        super().__init__("opwalker.pipeline")
        self.calls: list[tuple[str, Options, dict[str, object]]] = []
        self.faults: dict[str, BaseException] = {}

    def list_ops(self, options, *, kind=None, namespace=None, progress=None, say=None):
        """Every sample op; none where anything was narrowed."""
        self._asked("list_ops", options, kind=kind, namespace=namespace)
        return samples.NO_OPS if kind or namespace else samples.OPS

    def walk(self, options, name, *, progress=None, say=None, **settings):
        """The sample op by its short name, and one kernel. ``settings`` are there only where they were asked for."""
        self._asked("walk", options, name=name, **settings)
        say("the store is new")
        progress(1, 2, "reading")
        if name == "count_pages_kernel":
            return samples.KERNEL_WALK
        if name != "scatter_rows":
            raise InputError(f"no op is called {name!r}", "did you mean rowkit::scatter_rows?")
        return samples.CLANG_WALK if settings.get("clang") else samples.WALK

    def kernels(self, options, op=None, *, progress=None, say=None):
        """The sample kernels."""
        self._asked("kernels", options, op=op)
        return samples.KERNELS

    def build_index(self, options, *, progress=None, say=None):
        """The sample report."""
        self._asked("build_index", options)
        return samples.REPORT

    def dump(self, options, stage, path, *, progress=None, say=None):
        """The stage and the path."""
        self._asked("dump", options, stage=stage, path=path)
        return {"stage": stage, "path": path}

    def _asked(self, function: str, options: Options, **arguments: object) -> None:
        self.calls.append((function, options, arguments))
        if function in self.faults:
            raise self.faults[function]

    def install(self) -> None:
        """Puts it where the doors look for the pipeline."""
        sys.modules["opwalker.pipeline"] = self
        opwalker.pipeline = self
