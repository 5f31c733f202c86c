"""What Python says of ops, read out of the store: registrations, fakes, and who calls which op.

In: stored facts of Python files. Out: ``PythonSide``, plain data that is kept with the table of ops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from opwalker.link.stamped import FactsInStore, Stamped
from opwalker.link.store import Store
from opwalker.model.python import PyFacts, PyLight
from opwalker.model.walk import Gap, Op, PythonRef

#: The part that is kept from one state of the tree to the next.
REGISTERED = "python registrations"
Keep = Callable[[str, bytes], None]


class PythonSide(Struct, frozen=True):
    """``ops`` are what Python registers, or adds to ops registered elsewhere; ``callers`` maps ``namespace::op`` to its
    calls over all levels, by depth."""

    ops: tuple[Op, ...]
    gaps: tuple[Gap, ...]
    callers: Mapping[str, tuple[PythonRef, ...]]


def light_facts(store: Store, producers: Mapping[str, str]) -> FactsInStore[PyLight]:
    """The light facts of every Python file."""
    return FactsInStore(store, "py-light", producers["py-light"], "python", PyLight)


def full_facts(store: Store, producers: Mapping[str, str]) -> FactsInStore[PyFacts]:
    """The full facts of those Python files that matter."""
    return FactsInStore(store, "py-full", producers["py-full"], "python", PyFacts)


def read_python(
    light: Stamped[PyLight], full: Stamped[PyFacts], kept: Callable[[str], bytes | None], keep: Keep
) -> PythonSide:
    """Everything that Python says of ops. ``kept`` gives what was kept of an earlier state of the tree, by part, and
    ``keep`` keeps what is worth it now."""
    from opwalker.link.python_modules import Modules
    from opwalker.link.python_ops import PythonOps
    from opwalker.link.python_register import FileRegistrations, file_registrations
    from opwalker.link.python_scope import COMPILED_IMPORTS, Scope, resolved_of
    from opwalker.link.python_units import Kept, Units, decoded, flow_face

    modules = functools.cache(lambda: Modules(light))
    resolved = resolved_of(light, full, kept, modules)
    paths = resolved.paths
    units = Units(file_registrations, flow_face, decoded(kept(REGISTERED), Kept[FileRegistrations]), paths)
    units.renew(light, full, modules)
    if units.changed:
        keep(REGISTERED, msgspec.msgpack.encode(units.kept))
    compiled = decoded(kept(COMPILED_IMPORTS), dict[str, list[str]])
    if compiled is None:
        # What was kept goes when there is too much of it.
        compiled = Scope(light, kept).imports().compiled
        keep(COMPILED_IMPORTS, msgspec.msgpack.encode(compiled))
    python = PythonOps(resolved.units, units.kept.units, compiled)
    calls = {}
    for name in python.names():
        namespace, _, op = name.partition("::")
        calls[name] = python.callers(namespace, op)
    return PythonSide(python.registrations.ops, python.registrations.gaps, calls)
