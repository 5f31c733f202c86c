"""What Python says of ops, read out of the store: registrations, fakes, and who calls which op.

In: stored facts of Python files. Out: ``PythonSide``, plain data that is kept with the table of ops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from opwalker.link.store import Store
from opwalker.model.python import PyFacts, PyLight
from opwalker.model.walk import Gap, Op, PythonRef


@dataclass(frozen=True, slots=True)
class PythonSide:
    """``ops`` are what Python registers, or adds to ops registered elsewhere; ``callers`` maps ``namespace::op`` to its
    calls over all levels, by depth."""

    ops: tuple[Op, ...]
    gaps: tuple[Gap, ...]
    callers: Mapping[str, tuple[PythonRef, ...]]


def light_facts(store: Store, producer: str) -> dict[str, PyLight]:
    """The light facts of every Python file."""
    decode = msgspec.msgpack.Decoder(PyLight).decode
    return {path: decode(blob) for path, blob in store.facts_by_path("py-light", producer)}


def read_python(store: Store, producers: Mapping[str, str], light: Mapping[str, PyLight]) -> PythonSide:
    """Everything that Python says of ops."""
    from opwalker.link.python_ops import PythonOps

    decode = msgspec.msgpack.Decoder(PyFacts).decode
    full = {path: decode(blob) for path, blob in store.facts_by_path("py-full", producers["py-full"])}
    python = PythonOps(light, full)
    calls = {}
    for name in python.names():
        namespace, _, op = name.partition("::")
        calls[name] = python.callers(namespace, op)
    return PythonSide(python.registrations.ops, python.registrations.gaps, calls)
