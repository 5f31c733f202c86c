"""What an evaluation reports: one event for each thing that a build file does to a target, a file or a folder.

Both evaluators write these; ``build_assemble`` makes targets of them. An event says under which undecided conditions
it stands and where it is written.
"""

from __future__ import annotations

from typing import NamedTuple

from opwalker.link.build_guard import Guard
from opwalker.link.build_values import Value


class Event(NamedTuple):
    """``what`` is one of the kinds below; ``name`` is a target's, or the language of folder-wide flags.

    ``target``: made here; ``detail`` is its kind (see TARGET_KINDS), ``items`` its sources.
    ``alias``: ``detail`` is the target meant. ``sources``, ``defines``, ``options``, ``includes``, ``links``: given
    to a target; ``detail`` is the visibility, empty for PRIVATE. ``property``: ``detail`` is the property.
    ``file``: a property (``detail``) of the source file ``name``.
    ``folder-defines``, ``folder-options``, ``folder-includes``: for all targets of a folder and below.
    ``architectures``: the CUDA architectures of a target, as the property has them.
    ``install``: ``detail`` is the folder that the target is installed to.
    """

    what: str
    name: str
    items: Value
    guard: Guard
    directory: str
    file: str
    line: int
    detail: str = ""
