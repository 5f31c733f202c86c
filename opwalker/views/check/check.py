"""The check of one source, from an opened session to a result.

In: a session, all rules, and what was asked. Out: a ``CheckResult``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from opwalker.errors import UsageError
from opwalker.facts.workers import processors
from opwalker.model.check import CheckOptions, CheckResult, Finding, Rule, Settings
from opwalker.views.check.fakes import Fakes
from opwalker.views.check.routines import Kept, read_routines
from opwalker.views.check.run import rule_info, run_rules
from opwalker.views.check.tree import Tree


def check_source(session, rules: Sequence[tuple[Rule, str]], chosen: CheckOptions) -> CheckResult:
    """Run the chosen rules over a source."""
    selected = select_rules([rule for rule, _ in rules], chosen)
    tree = tree_of(session, Settings())
    findings = run_rules(tree, selected, session.progress)
    kept = tuple(one for one in findings if _within(one, chosen.paths))
    pages = {rule.id: page for rule, page in rules}
    return CheckResult(
        source=session.source,
        findings=kept,
        counts=dict(sorted(Counter(one.rule for one in kept).items())),
        rules=tuple(rule_info(rule, pages[rule.id]) for rule in selected),
    )


def tree_of(session, settings: Settings) -> Tree:
    """The source of a session as rules see it."""
    workbench = session.workbench
    digests = {path: row[3] for path, row in session.known.items()}
    kept = Kept(
        session.store.result, session.store.put_result, lambda path: digests.get(path, ""), session.about()
    )
    routines = read_routines(workbench, kept, session.options.jobs or processors())
    languages: dict[str, list[str]] = {}
    for path, row in session.known.items():
        languages.setdefault(row[2], []).append(path)
    fakes = Fakes(session.text)
    return Tree(
        workbench, session.source, session.ops().ops, routines, settings, session.text,
        lambda language: languages.get(language, ()), fakes.of,
    )  # fmt: skip


def select_rules(rules: Sequence[Rule], chosen: CheckOptions) -> list[Rule]:
    """The rules that run: those that are on by default, or those selected, without those ignored. UsageError for an id
    that no rule has."""
    known = {rule.id for rule in rules}
    for name in (*chosen.select, *chosen.ignore):
        if name != "ALL" and name not in known:
            raise UsageError(f"no rule is called {name!r}", "see 'opwalker check --rules'")
    if "ALL" in chosen.select:
        wanted = known
    elif chosen.select:
        wanted = set(chosen.select)
    else:
        wanted = {rule.id for rule in rules if rule.default}
    return [rule for rule in rules if rule.id in wanted and rule.id not in chosen.ignore]


def _within(one: Finding, paths: Sequence[str]) -> bool:
    return not paths or any(one.file == path or one.file.startswith(path.rstrip("/") + "/") for path in paths)
