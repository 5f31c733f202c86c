"""Commands with a file of their own. Importing one of them declares it; each imports what it needs when it runs."""

from __future__ import annotations

from types import ModuleType


def declare() -> tuple[ModuleType, ...]:
    """Declares every command of this folder, in the order in which the help lists them."""
    from opwalker.serve.commands import audit, check, diff, notes, patterns, site, verify

    return (audit, check, diff, notes, patterns, site, verify)
