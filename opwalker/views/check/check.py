"""The check of one source, from an opened session to a result.

In: a session, all rules, and what was asked. Out: a ``CheckResult``.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from opwalker import resources
from opwalker.errors import InputError, UsageError
from opwalker.facts.workers import processors
from opwalker.model.check import CheckOptions, CheckResult, Finding, Rule, Settings
from opwalker.source.changes import Asked, Changed, lines_of_python
from opwalker.views.check.baseline import read_baseline, without, write_baseline
from opwalker.views.check.excuses import UNUSED, judge
from opwalker.views.check.fakes import Fakes
from opwalker.views.check.focus import touched
from opwalker.views.check.routines import Kept, read_routines
from opwalker.views.check.run import findings_of, rule_info, run_rules
from opwalker.views.check.settings import ProjectSettings, known_only, read_settings
from opwalker.views.check.shapes import OpShapes
from opwalker.views.check.tree import Tree
from opwalker.views.check.vendored import left_out, vendored
from opwalker.views.named_paths import lies_below, named_paths


def check_source(session, rules: Sequence[tuple[Rule, str]], chosen: CheckOptions) -> CheckResult:
    """Run the chosen rules over a source, and judge what they find by what the project and the user asked for."""
    chosen = replace(chosen, paths=named_paths(session.root.path, session.known, chosen.paths))
    if chosen.changed_since is None:
        return _checked(session, rules, chosen, None)
    if session.root.immutable:
        raise InputError("what was unpacked is no git checkout, so nothing is known to have changed")
    with Asked(session.root.path, chosen.changed_since) as asked:
        # What both ways of asking begin with, while git looks.
        session.ops()
        changed = asked.answer()
    python = [path for path in changed.lines if session.known.get(path, _UNKNOWN)[2] == "python"]
    counted = {path: lines_of_python(session.text_in_key(path), changed.lines[path]) for path in python}
    return _checked(session, rules, chosen, replace(changed, lines=changed.lines | counted))


#: The row of a file that was not read.
_UNKNOWN = (0, 0, "", "")


def _checked(
    session, rules: Sequence[tuple[Rule, str]], chosen: CheckOptions, changed: Changed | None
) -> CheckResult:  # fmt: skip
    """What the rules find in a source; of what has changed in it, where that is known."""
    changes = None if changed is None else changed.lines
    known = {rule.id for rule, _ in rules} | {UNUSED}
    project = read_settings(session.root.path)
    for where, names in (("the settings", (*project.select, *project.extend_select, *project.ignore)),):
        known_only(names, known, where)
    selected = select_rules([rule for rule, _ in rules], chosen, project)
    others = vendored(session.known, project.own, chosen.paths)
    foreign = frozenset(path for files in others.values() for path in files)
    tree = tree_of(session, project.names, foreign)
    if changes is not None:
        tree = tree.narrowed(changes)
    told = None if changes is None else partial(touched, changes)
    found = [one for one in run_rules(tree, selected, session.progress, told) if one.file not in foreign]
    wanted = [one for one in found if lies_below(one.file, chosen.paths) and not project.ignores(one.rule, one.file)]
    hidden = {"settings": sum(lies_below(one.file, chosen.paths) for one in found) - len(wanted)}
    once = list(_once(wanted, lambda path: session.known[path][3]))
    hidden["the same text in another file"], wanted = len(wanted) - len(once), once
    # Of a change, the excuses count that stand beside findings or in what was changed.
    told = {one.file for one in wanted} | set(changes or ())
    files = [
        path
        for path in tree.files("cuda", "cpp", "python")
        if lies_below(path, chosen.paths) and (changes is None or path in told) and path not in foreign
    ]
    stays, hidden["excuses"], drafts = judge(wanted, files, session.text, known, {rule.id for rule in selected})
    stays = sorted([*stays, *findings_of(tree, _EXCUSES, drafts)], key=lambda one: (one.file, one.line, one.rule))
    if chosen.write_baseline:
        write_baseline(chosen.write_baseline, stays)
    if chosen.baseline:
        left = without(stays, read_baseline(chosen.baseline))
        hidden["the baseline"], stays = len(stays) - len(left), left
    if changes is not None:
        left = [one for one in stays if touched(changes, one)]
        hidden["no change there"], stays = len(stays) - len(left), left
    pages = {rule.id: page for rule, page in rules}
    return CheckResult(
        source=session.source,
        findings=tuple(stays),
        counts=dict(sorted(Counter(one.rule for one in stays).items())),
        hidden={reason: number for reason, number in hidden.items() if number},
        rules=(*(rule_info(rule, pages[rule.id]) for rule in selected), rule_info(_EXCUSES, _EXCUSES_PAGE)),
        notes=(*((tree.missing,) if tree.missing else ()), *left_out(others), *_unseen(session.known, changed)),
    )


def _unseen(paths: Iterable[str], changed: Changed | None) -> tuple[str, ...]:
    """A note on the repositories within a source whose changes are not known."""
    held = [] if changed is None else [one for one in changed.apart if any(lies_below(path, (one,)) for path in paths)]
    if not held:
        return ()
    what = "a repository" if len(held) == 1 else "repositories"
    return (f"{', '.join(held)}: {what} within this one; what changed there was not looked into",)


#: Excuses are judged after all rules have run, so that what is not needed is known.
_EXCUSES = Rule(UNUSED, "warning", lambda tree: ())
_EXCUSES_PAGE = """An excuse that excuses nothing, gives no reason, or names no rule.

*Why.* A line `opwalker: ignore[rule-id] reason` holds a finding back. Once the code is mended it only hides the next
one.

*Use instead.* Remove it, or say why it is there.
"""


def _once(found: Sequence[Finding], digest: Callable[[str], str]) -> Iterator[Finding]:
    """Findings in a file that a source holds twice are told of the first."""
    first: dict[tuple, str] = {}
    for one in found:
        if first.setdefault((digest(one.file), one.rule, one.line, one.column), one.file) == one.file:
            yield one


def tree_of(session, settings: Settings, without: Collection[str] = frozenset()) -> Tree:
    """The source of a session as rules see it; the functions of some files left out."""
    workbench = session.workbench
    # Before anything else is read: registrations are kept with the files that they were read from.
    ops = session.ops().ops
    kept = Kept(session.store.result, session.store.put_result, session.said, session.about())
    routines = read_routines(workbench, kept, session.options.jobs or processors(), without)
    languages: dict[str, list[str]] = {}
    for path, row in session.known.items():
        languages.setdefault(row[2], []).append(path)
    fakes = Fakes(session.text)
    kernels = resources.folder("reference_kernels")
    state = _contents(kernels)
    shapes = OpShapes(
        workbench, session.text_in_key, kernels,
        lambda name, read: session.kept(f"contract:{name}", dict[str, str], read, state=state),
    )  # fmt: skip
    return Tree(
        workbench, session.source, ops, routines, settings, session.text,
        lambda language: languages.get(language, ()), fakes.of, shapes, without,
    )  # fmt: skip


def _contents(folder: Path) -> str:
    """What a folder of contracts holds, as far as their times tell."""
    files = ((path.name, path.stat()) for path in sorted(folder.glob("*.py")))
    return ";".join(f"{name}:{found.st_size}:{found.st_mtime_ns}" for name, found in files)


def select_rules(rules: Sequence[Rule], chosen: CheckOptions, project: ProjectSettings) -> list[Rule]:
    """The rules that run: those selected (by the user, else by the project, else those on by default), without those
    ignored. UsageError for an id that no rule has."""
    known = {rule.id for rule in rules}
    for name in (*chosen.select, *chosen.ignore):
        if name != "ALL" and name not in known:
            near = difflib.get_close_matches(name, known, n=2)
            hint = f"nearest: {', '.join(near)}" if near else "see 'opwalker check --rules'"
            raise UsageError(f"no rule is called {name!r}", hint)
    select = chosen.select or project.select
    wanted = set(select) if select else {rule.id for rule in rules if rule.default} | set(project.extend_select)
    if "ALL" in wanted:
        wanted = known
    ignored = {*chosen.ignore, *(() if chosen.select else project.ignore)}
    return [rule for rule in rules if rule.id in wanted and rule.id not in ignored]
