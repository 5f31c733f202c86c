"""Lines that excuse a finding: ``// opwalker: ignore[rule-id] reason``.

In: findings, and the text of their files. Out: the findings that stay, how many were excused, and what is wrong with
excuses: one without a reason, one for a rule that does not exist, one that excuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from opwalker.model.check import Draft, Finding
from opwalker.notation.regex import Regex

_EXCUSE = Regex(r"opwalker:\s*ignore\[([^\]]*)\]\s*(.*?)\s*(?:\*/.*)?$")
#: Where the excuse stands alone on its line, it speaks of the next line.
_ALONE = Regex(r"^\s*(?://|#|/\*)\s*opwalker:")

#: The rule that speaks of excuses themselves.
UNUSED = "unused-ignore"


class Excuse(Struct, frozen=True):
    """An excuse: the line it speaks of, the rules it names, its reason, and the line it stands on."""

    file: str
    line: int
    rules: tuple[str, ...]
    reason: str
    at: int


def excuses_in(file: str, text: str) -> tuple[Excuse, ...]:
    """The excuses of a file."""
    if "opwalker:" not in text:
        return ()
    out = []
    for number, line in enumerate(text.split("\n"), start=1):
        found = _EXCUSE.search(line)
        if found:
            rules = tuple(one.strip() for one in found[1].split(",") if one.strip())
            out.append(Excuse(file, number + bool(_ALONE.match(line)), rules, found[2], number))
    return tuple(out)


def judge(
    findings: Sequence[Finding], files: Iterable[str], text: Callable[[str], str], known: set[str], ran: set[str]
) -> tuple[list[Finding], int, list[Draft]]:
    """``(findings that stay, how many were excused, what is wrong with excuses)``. Of a rule that did not run nobody
    can say that its excuse is not needed."""
    excuses = [one for file in files for one in excuses_in(file, text(file))]
    by_line: dict[tuple[str, int], list[Excuse]] = {}
    for one in excuses:
        by_line.setdefault((one.file, one.line), []).append(one)
    used: set[tuple[Excuse, str]] = set()
    stays: list[Finding] = []
    for finding in findings:
        held = [e for e in by_line.get((finding.file, finding.line), ()) if finding.rule in e.rules and e.reason]
        used.update((one, finding.rule) for one in held)
        if not held:
            stays.append(finding)
    drafts = []
    for one in excuses:
        if not one.rules:
            drafts.append(Draft(one.file, one.at, "an excuse names no rule", symbol="ignore"))
        elif not one.reason:
            drafts.append(
                Draft(one.file, one.at, f"the excuse for {', '.join(one.rules)} gives no reason", symbol="ignore")
            )
        for rule in one.rules:
            if rule not in known:
                drafts.append(Draft(one.file, one.at, f"no rule is called {rule}", symbol=rule))
            elif one.reason and rule in ran and (one, rule) not in used:
                drafts.append(
                    Draft(one.file, one.at, f"{rule} finds nothing here: the excuse is not needed", symbol=rule)
                )
    return stays, len(findings) - len(stays), drafts
