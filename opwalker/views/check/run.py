"""Rules run over a tree: their drafts made into findings.

In: a tree and rules. Out: findings in file, line and rule order, each once. A fingerprint says what is found and around
which text, not on which line, so that it stays when lines move.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence

from opwalker.model.check import CheckedTree, Draft, Finding, Rule, RuleInfo


def run_rules(
    tree: CheckedTree, rules: Sequence[Rule], progress: Callable[[int, int | None, str], None] | None = None,
    told: Callable[[Draft], bool] | None = None,
) -> tuple[Finding, ...]:  # fmt: skip
    """All findings of ``rules``. Those that ``told`` is false of name no op: nobody will be told of them."""
    drafts: dict[tuple[str, str, int, str, str], tuple[Rule, Draft]] = {}
    for number, rule in enumerate(rules):
        if progress:
            progress(number, len(rules), rule.id)
        for draft in _drafts(tree, rule):
            key = (draft.file, rule.id, draft.line, draft.symbol, draft.message)
            drafts.setdefault(key, (rule, draft))
    return tuple(_findings(tree, drafts.values(), told))


def _drafts(tree: CheckedTree, rule: Rule) -> Iterable[Draft]:
    """What a rule finds; of a change, what may be about it."""
    found = list(rule.run(tree.within(rule.spread)))
    # What stands in a macro is told once, with the steps of the first of all its uses.
    return rule.run(tree.whole) if any(tree.is_shared(one) for one in found) else found


def findings_of(tree: CheckedTree, rule: Rule, drafts: Iterable[Draft]) -> tuple[Finding, ...]:
    """Drafts of one rule as findings."""
    return tuple(_findings(tree, ((rule, draft) for draft in drafts)))


def _findings(
    tree: CheckedTree, drafts: Iterable[tuple[Rule, Draft]], told: Callable[[Draft], bool] | None = None
) -> Iterable[Finding]:
    lines: dict[str, list[str]] = {}
    seen: dict[tuple[str, int], int] = {}
    ordered = sorted(drafts, key=lambda pair: (pair[1].file, pair[1].line, pair[0].id, pair[1].symbol, pair[1].message))
    for rule, draft in ordered:
        if draft.file not in lines:
            lines[draft.file] = tree.text(draft.file).split("\n")
        held = lines[draft.file]
        text = held[draft.line - 1] if 0 < draft.line <= len(held) else ""
        routine = tree.routine_around(draft.file, draft.line)
        ops = tree.ops_of(routine) if routine is not None and (told is None or told(draft)) else ()
        # In a macro, the message says whose finding it is. What else is found has no part in a fingerprint: it is the
        # same when only a change is looked at.
        around = (draft.message, 1) if routine is None else (routine.name, routine.line)
        base = "\0".join((rule.id, draft.file, around[0], draft.symbol, " ".join(text.split())))
        number = _alike(held, around[1], draft.line)
        again = seen[base, draft.line] = seen.get((base, draft.line), -1) + 1
        yield Finding(
            rule=rule.id,
            severity=draft.severity or rule.severity,
            message=draft.message,
            file=draft.file,
            line=draft.line,
            end_line=draft.end_line or draft.line,
            column=_column(text, draft.symbol),
            op=draft.op or (ops[0] if ops else None),
            related=draft.related,
            fingerprint=_digest(f"{base}\0{number}" + f".{again}" * (again > 0)),
        )


def _alike(lines: Sequence[str], first: int, line: int) -> int:
    """How many lines of the same text stand above a line, from a first one on."""
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return sum(other.strip() == text for other in lines[first - 1 : line - 1])


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def _column(text: str, symbol: str) -> int:
    """Where on the line the symbol stands, else where the line's text begins; 1-based."""
    found = re.search(rf"\b{re.escape(symbol)}\b", text) if symbol else None
    return (found.start() if found else len(text) - len(text.lstrip())) + 1


def rule_info(rule: Rule, page: str) -> RuleInfo:
    """A rule with its documentation; the page's first paragraph is its summary."""
    summary = " ".join(page.strip().split("\n\n", 1)[0].split())
    return RuleInfo(rule.id, summary, rule.severity, rule.default, page.strip())
