"""What a verification is asked for, and what the program has read of the ops in question.

These are plain values: neither numpy nor torch is needed to make one.
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.walk import KernelEntry, Op, Walk

NAMESPACE = "opwalker_ref"


class Plan(Struct, frozen=True):
    """What is asked for. ``device`` is ``cuda`` or ``cpu``; ``deadline`` in seconds for a case, ``limit`` for all of
    them; ``libraries`` are extensions whose own ops are run as well, those of ``namespace`` where one is given;
    ``wrong``: run the variants that must be refuted, too; ``cases`` is False where only times are asked for."""

    device: str = "cuda"
    ops: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    namespace: str | None = None
    bench: bool = False
    build_only: bool = False
    wrong: bool = True
    cases: bool = True
    seed: int = 0
    deadline: float = 60.0
    limit: float | None = None
    jobs: int = 1


class Known(Struct, frozen=True):
    """What the program read of a reference kernel: its op, its walk, and the kernels predicted; and the walk of the
    same op in the source that is compared, None where that has none."""

    op: Op
    walk: Walk
    kernels: tuple[KernelEntry, ...]
    compared: Walk | None = None
