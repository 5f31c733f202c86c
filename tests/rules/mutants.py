"""Rules with one condition negated: which of them no example tells from the right one.

``python -m tests.rules.mutants [RULE …] [_HELPER …]`` prints, for each rule and each module that rules share, the
mutants that the examples (the page, and the tables of the tests beside this file) of no rule that uses it notice, and
exits with 1 if there is any. ``--left-out`` leaves one of several conditions out instead: what survives then is there
for speed, or for an input that no example has, or for nothing.
"""

from __future__ import annotations

import ast
import copy
import importlib
import re
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from opwalker import pipeline, rules
from opwalker.asking import asked
from opwalker.model.check import CheckedTree, Finding, Rule
from opwalker.source.changes import Changes
from opwalker.views.check.check import tree_of
from opwalker.views.check.focus import touched
from opwalker.views.check.run import run_rules
from opwalker.views.check.settings import read_settings
from tests.rules.pages import Example, example, more_examples, sections, write_files
from tests.rules.test_kinds import CASES

#: The line of a condition, its text, and the module with it negated.
Mutant = tuple[int, str, str]


class WrongExampleError(Exception):
    """The rule itself is not right on an example, so that nothing can be said of its mutants."""


def conditions(tree: ast.AST) -> list[tuple[ast.AST, str, int | None]]:
    """The places of a module that hold a condition: ``(node, field, number)``."""
    out: list[tuple[ast.AST, str, int | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp)):
            out.append((node, "test", None))
        elif isinstance(node, ast.comprehension):
            out += [(node, "ifs", number) for number in range(len(node.ifs))]
        elif isinstance(node, ast.BoolOp):
            # A constant is what stands in for nothing (`found or ""`), no condition.
            out += [(node, "values", n) for n, one in enumerate(node.values) if not _is_constant(one)]
    return out


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Tuple) and all(map(_is_constant, node.elts)))


def mutants(source: str) -> Iterator[Mutant]:
    """``(line, the condition, the module with it negated)`` for each condition of a rule's module."""
    tree = ast.parse(source)
    for number in range(len(conditions(tree))):
        changed = copy.deepcopy(tree)
        node, field, place = conditions(changed)[number]
        old = getattr(node, field) if place is None else getattr(node, field)[place]
        new = ast.copy_location(ast.UnaryOp(ast.Not(), old), old)
        if place is None:
            setattr(node, field, new)
        else:
            getattr(node, field)[place] = new
        yield old.lineno, f"not ({ast.unparse(old)})", ast.unparse(ast.fix_missing_locations(changed))


def shortened(source: str) -> Iterator[Mutant]:
    """The same with a condition left out of several, or of a comprehension."""
    tree = ast.parse(source)
    for number, (_, _, among) in enumerate(conditions(tree)):
        if among is not None:
            changed = copy.deepcopy(tree)
            node, field, place = conditions(changed)[number]
            old = getattr(node, field).pop(place)
            yield old.lineno, f"without {ast.unparse(old)}", ast.unparse(changed)


@cache
def _path(name: str) -> Path:
    """The file of a rule, or of a module that rules share."""
    return Path(rules.__file__).parent / f"{name.replace('-', '_')}.py"


@cache
def _uses(path: Path) -> frozenset[str]:
    """The shared modules that a file of rules stands on, directly or through others."""
    named = set(re.findall(r"^from opwalker\.rules\.(_\w+) import", path.read_text(encoding="utf-8"), re.MULTILINE))
    return frozenset(named.union(*(_uses(_path(one)) for one in named)))


def _loaded(name: str, source: str, rule: str) -> Rule:
    """A rule as it is where the module ``name``, its own or one that it uses, has another text."""
    inside = "opwalker.rules."
    held = {full: module for full, module in sys.modules.items() if full.startswith(inside)}
    for full in held:
        short = full.removeprefix(inside)
        if short == _path(name).stem or name in _uses(_path(short)):
            del sys.modules[full]
    module = types.ModuleType(inside + _path(name).stem)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, name, "exec"), module.__dict__)  # a module of this project, one condition turned
        return importlib.import_module(inside + _path(rule).stem).RULE
    finally:
        sys.modules.update(held)


def examples_of(name: str, page: str) -> list[Example]:
    """Every example of a rule: its page, the pages beside this file, the table of ``test_kinds``."""
    parts = sections(page)
    cases = [
        Example({"a.cu": source}, dict(Counter(("a.cu", line) for line in lines)))
        for rule, source, lines in CASES
        if rule == name
    ]
    return [example(parts["Flagged"]), example(parts["Clean"]), *more_examples(name).values(), *cases]


def survivors(
    name: str, users: Sequence[str], folder: Path, cache: Path, turn: Callable[[str], Iterator[Mutant]] = mutants
) -> tuple[int, list[tuple[int, str]]]:
    """How many mutants a module has, and those with which the rules that use it are right in every example."""
    alive = list(turn(_path(name).read_text(encoding="utf-8")))
    total = len(alive)
    for user in users:
        module = importlib.import_module(f"opwalker.rules.{_path(user).stem}")
        turned: dict[str, Rule | None] = {}
        for number, shown in enumerate(examples_of(user, module.__doc__ or "")):
            root = folder / f"{user}-{number}"
            write_files(shown.files, root)
            alive = _unnoticed(root, cache, shown, module.RULE, alive, partial(_turned, name, user, turned))
    return total, [(line, text) for line, text, _ in alive]


def _turned(name: str, user: str, known: dict[str, Rule | None], source: str) -> Rule | None:
    """A rule with one condition turned; None where it cannot even be loaded."""
    if source not in known:
        try:
            known[source] = _loaded(name, source, user)
        except Exception:
            known[source] = None
    return known[source]


def _unnoticed(
    root: Path, cache: Path, shown: Example, rule: Rule, alive: Sequence[Mutant], turned: Callable[[str], Rule | None]
) -> list[Mutant]:
    def judge(session) -> list[Mutant]:
        tree = tree_of(session, read_settings(session.root.path).names)
        found = run_rules(tree, [rule])
        wrong = shown.differences(found)
        if wrong:
            raise WrongExampleError(f"{rule.id} is wrong on example {root.name}: {'; '.join(wrong)}")
        left = [one for one in alive if not _noticed(turned(one[2]), tree, shown)]
        if not left:
            return []
        tree = tree_of(session, read_settings(session.root.path).names)  # one of which nothing has been asked yet
        seen = [(change, of_change(tree, rule, change)) for change in each_line(shown.files)]
        return [one for one in left if not any(_noticed_in(turned(one[2]), tree, *asked) for asked in seen)]

    options = pipeline.Options(source=str(root), cache=cache, jobs=1)
    return asked(options, None, None, judge)


def each_line(files: Mapping[str, str]) -> Iterator[Changes]:
    """For each line of some files, a change of it alone."""
    for file, text in sorted(files.items()):
        yield from ({file: ((line, line),)} for line in range(1, text.count("\n") + 1))


def of_change(tree: CheckedTree, rule: Rule, change: Changes) -> tuple[list[Finding], bool]:
    """What a rule finds on changed lines when only what a change can reach is looked at, and whether it has looked at
    every function for that."""
    narrowed = tree.narrowed(change)
    looked = vars(narrowed.within(rule.spread))  # what the rule is given, and what has been asked of the whole before
    looked.pop("every_routine", None)
    found = run_rules(narrowed, [rule], told=partial(touched, change))
    return [one for one in found if touched(change, one)], "every_routine" in looked


def _noticed_in(rule: Rule | None, tree: CheckedTree, change: Changes, right: tuple[list[Finding], bool]) -> bool:
    try:
        return rule is None or of_change(tree, rule, change) != right
    except Exception:
        return True


def _noticed(rule: Rule | None, tree: CheckedTree, shown: Example) -> bool:
    try:
        return rule is None or shown.differences(run_rules(tree, [rule])) != []
    except Exception:
        return True  # a rule that breaks is noticed


def main(arguments: Sequence[str]) -> int:
    """Print what no example notices."""
    names = [one for one in arguments if one != "--left-out"]
    turn = mutants if names == [*arguments] else shortened
    ids = [rule.id for rule, _ in pipeline.load_rules()]
    shared = sorted(path.stem for path in _path("_").parent.glob("_[a-z]*.py"))
    left = 0
    with tempfile.TemporaryDirectory() as held:
        for name in names or [*ids, *shared]:
            users = [name] if name in ids else [one for one in ids if name in _uses(_path(one))]
            try:
                total, alive = survivors(name, users, Path(held), Path(held) / "cache", turn)
            except WrongExampleError as error:
                print(error, flush=True)
                left += 1
                continue
            left += len(alive)
            print(f"{name}: {total - len(alive)} of {total} noticed", flush=True)
            for line, text in alive:
                print(f"    line {line}: {text}", flush=True)
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
