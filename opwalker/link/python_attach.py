"""What Python registers, and how it joins what other languages register.

In: ops as read from C++, and ``PythonRegistrations``. Out: the ops with what Python adds to them. How the latter are
found is ``python_register``'s business; a start that only joins need not load that.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from opwalker.model.walk import Gap, Op


class PythonRegistrations(Struct, frozen=True):
    """``ops`` by name: those with ``defs`` are defined in Python, the others only get something attached.

    ``functions`` tells which function stands behind an op: ``((file, qualname), op name)``.
    """

    ops: tuple[Op, ...] = ()
    gaps: tuple[Gap, ...] = ()
    functions: tuple[tuple[tuple[str, str], str], ...] = ()


def attach(ops: Iterable[Op], python: PythonRegistrations) -> tuple[Op, ...]:
    """``ops`` with what Python adds to them, and the ops that only Python defines, by name.

    An op of the dispatcher is the same whichever language registers it; other kinds of binding are left alone.
    """
    known = {op.name: op for op in python.ops}
    merged: list[Op] = []
    for op in ops:
        other = known.get(op.name) if op.kind in ("torch_library", "aten") else None
        if other is None:
            merged.append(op)
            continue
        known.pop(op.name)
        merged.append(
            replace(
                op,
                schema=op.schema or other.schema,
                defs=op.defs + other.defs,
                impls=op.impls + other.impls,
                fake=op.fake + other.fake,
            )
        )
    merged += [op for op in known.values() if op.defs or op.impls]
    return tuple(sorted(merged, key=lambda op: (op.name, op.kind)))
