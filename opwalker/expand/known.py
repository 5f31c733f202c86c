"""What is known of library macros that a scanned source uses without holding their headers
(``grammars/macros/known.h``)."""

from __future__ import annotations

from functools import lru_cache

from opwalker import resources
from opwalker.expand.macros import KNOWN
from opwalker.facts.cpp_scan import scan
from opwalker.model.cpp import MacroEvent
from opwalker.model.source import SourceFile
from opwalker.notation.readings import MACROS

_TEXT = "grammars/macros/known.h"


@lru_cache(maxsize=1)
def known_macros() -> dict[str, MacroEvent]:
    """Macro events by name, read from the bundled text the same way as any source."""
    return {event.name: event for event in MACROS.reading(_TEXT, _read)}


def _read(path: str) -> tuple[MacroEvent, ...]:
    return tuple(scan(SourceFile(KNOWN, resources.text(path), "cpp", "")).macros)
