"""Range checks of sizes: read by the rules about narrowing.

In: a routine, a value and a line. Out: whether the value derives from a tensor's size, and whether a check before the
line keeps it within 32 bits.
"""

from __future__ import annotations

import re

from opwalker.model.statements import Routine
from opwalker.rules._values import checked, terms_of

_LIMIT = re.compile(
    r"INT_MAX|INT32_MAX|UINT_MAX|UINT32_MAX|numeric_limits|2147483647|0x7fffffff|<=?\s*\(?\s*\d+\b|==\s*\(?\s*\d+\b|\d+\s*>=?",
    re.IGNORECASE,
)

#: Numbers that are chosen, or that a device has, and do not grow with the data.
_SETTING = re.compile(
    r"(?i)\Aranks?\Z|_ranks?\Z|world|window|slot|flag|sm_?count|num_?sms|device|version|seed|(?:\A|_)(?:id|idx|index|mode)\Z"
)


def known_values(routine: Routine) -> dict[str, str]:
    """The initialisers of a routine's locals."""
    return {d.name: d.value for one in routine.walk() for d in one.declares if d.value}


def sized_terms(routine: Routine, text: str) -> set[str]:
    """The sizes and strides of tensors that a value is made of; a 64-bit parameter counts as a size, unless its name
    says that it is a setting."""
    terms = terms_of(text, known_values(routine))
    wide = {
        one.name
        for one in routine.parameters
        if re.search(r"\bint64_t\b|\bsize_t\b", one.type) and not _SETTING.search(one.name)
    }
    return {one for one in terms if re.search(r"(?:\.|->)(?:size|stride|numel)\(", one)} | (terms & wide)


def is_bounded(routine: Routine, text: str, line: int) -> bool:
    """Whether a check before ``line`` compares what the value is made of with a limit."""
    terms = terms_of(text, known_values(routine))
    for one in routine.walk():
        if one.line > line or (one.line == line and one.kind != "if"):
            continue
        conditions = [
            checked(call)
            for call in one.calls
            if re.search(r"CHECK|ASSERT|assert|check", call.simple) and call.arguments
        ]
        if one.kind == "if":
            conditions.append(one.text)
        for condition in conditions:
            if _LIMIT.search(condition) and terms_of(condition, {}) & terms:
                return True
    return False
