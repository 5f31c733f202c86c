"""Seams between stages that the pipeline needs: build files and Python facts, brought to the workbench."""

from __future__ import annotations

from opwalker.expand.workbench import BuildView


def build_view(session) -> BuildView:
    return BuildView(lambda path: None, lambda path: (), lambda build: ())


def python_ops(session):
    from opwalker.views.ops import PythonOps
    return PythonOps()


def python_calls(session):
    return {}
