"""What a grammar says of texts: each text read once, in whatever run.

In: a text and the function that reads it. Out: what it read, now or in an earlier run. While every text is known from
an earlier run, neither the parser nor its tables are loaded. Where earlier readings are kept is the caller's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from opwalker.model.cpp import MacroEvent
from opwalker.model.schema import OpSchema

T = TypeVar("T")


class Readings(Generic[T]):
    """The readings of one grammar: a text says the same in every tree. ``recall`` gives those of an earlier run, or
    None."""

    def __init__(self, recall: Callable[[], dict[str, T] | None] = lambda: None) -> None:
        self._recall = recall
        self._known: dict[str, T] | None = None
        #: Whether there are readings that were not recalled.
        self.fresh = False

    def recall_from(self, recall: Callable[[], dict[str, T] | None]) -> None:
        """Take the readings of another run as well, when some are next asked for."""
        held = self._known or {}

        def joined() -> dict[str, T]:
            recalled = recall() or {}
            self.fresh = not held.keys() <= recalled.keys()
            return {**recalled, **held}

        self._recall, self._known = joined, None

    @property
    def known(self) -> dict[str, T]:
        """The readings of every text so far."""
        if self._known is None:
            self._known = self._recall() or {}
        return self._known

    def load(self) -> None:
        """Take the readings of an earlier run now: where they are kept is not looked at again."""
        self._known = self.known

    def reading(self, text: str, read: Callable[[str], T]) -> T:
        """What a text says."""
        known = self.known
        if text not in known:
            known[text] = read(text)
            self.fresh = True
        return known[text]


#: What a shape's text says: alternatives of dimensions, their styles, and what joins them.
Shape = tuple[tuple[tuple[str, ...], ...], tuple[str, ...], tuple[str, ...]]

#: The readings of shapes in comments (``shape_comment``), one for a process.
SHAPES: Readings[Shape | None] = Readings()

#: The readings of op schemas (``op_schema``).
SCHEMAS: Readings[OpSchema] = Readings()

#: The macros of texts that this program brings along (``expand/known.py``).
MACROS: Readings[tuple[MacroEvent, ...]] = Readings()

#: All readings that are worth keeping, by name, with the type of what is kept.
KEPT: tuple[tuple[str, Readings, Any], ...] = (
    ("shapes", SHAPES, dict[str, Shape | None]),
    ("schemas", SCHEMAS, dict[str, OpSchema]),
    ("macros", MACROS, dict[str, tuple[MacroEvent, ...]]),
)
