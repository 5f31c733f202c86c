"""Constants of namespaces and classes that a file can name, as written: what rules work numbers out with.

In: the index and a file. Out: ``name → initialiser`` for the file and what it includes. A name with two values (in two
classes, or under two conditions) is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def constants_of(index: Any, files: Iterable[str]) -> Mapping[str, str]:
    """The constants that some files declare, each by its unqualified name."""
    found: dict[str, str | None] = {}
    for path in sorted(files):
        facts = index.facts(path)
        for one in facts.variables if facts is not None else ():
            if one.constant and one.value and one.template is None and len(one.value) < 200:
                value = one.value.strip()
                found[one.name] = value if found.get(one.name, value) == value else None
    return {name: value for name, value in found.items() if value is not None}
