"""What is known of library macros that a scanned source uses without holding their headers
(``grammars/macros/known.h``)."""

from __future__ import annotations

from functools import lru_cache

from opwalker import resources
from opwalker.expand.macros import KNOWN
from opwalker.facts.cpp_scan import scan
from opwalker.model.cpp import MacroEvent
from opwalker.model.source import SourceFile


@lru_cache(maxsize=1)
def known_macros() -> dict[str, MacroEvent]:
    """Macro events by name, read from the bundled text the same way as any source."""
    text = resources.text("grammars/macros/known.h")
    facts = scan(SourceFile(KNOWN, text, "cpp", ""))
    return {event.name: event for event in facts.macros}
