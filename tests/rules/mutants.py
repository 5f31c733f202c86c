"""Rules with one condition negated: which of them no example tells from the right one.

``python -m tests.rules.mutants [RULE …]`` prints, for each rule, the mutants that the examples (its page, and the
tables of the tests beside this file) do not notice, and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import copy
import importlib
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.check import CheckedTree, Rule
from opwalker.views.check.check import tree_of
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
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Tuple) and not node.elts)


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
        yield old.lineno, ast.unparse(old), ast.unparse(ast.fix_missing_locations(changed))


def _module(source: str, name: str) -> Rule:
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        exec(compile(source, name, "exec"), module.__dict__)  # a rule of this project, one condition turned
    finally:
        del sys.modules[name]
    return module.RULE


def examples_of(name: str, page: str) -> list[Example]:
    """Every example of a rule: its page, the pages beside this file, the table of ``test_kinds``."""
    parts = sections(page)
    cases = [
        Example({"a.cu": source}, dict(Counter(("a.cu", line) for line in lines)))
        for rule, source, lines in CASES
        if rule == name
    ]
    return [example(parts["Flagged"]), example(parts["Clean"]), *more_examples(name).values(), *cases]


def survivors(name: str, folder: Path, cache: Path) -> tuple[int, list[tuple[int, str]]]:
    """How many mutants a rule has, and those that are right in every example, as the rule is."""
    module = importlib.import_module(f"opwalker.rules.{name.replace('-', '_')}")
    alive = list(mutants(Path(module.__file__).read_text(encoding="utf-8")))
    total = len(alive)
    for number, shown in enumerate(examples_of(name, module.__doc__ or "")):
        root = folder / f"{name}-{number}"
        write_files(shown.files, root)
        alive = _unnoticed(root, cache, shown, module.RULE, alive)
    return total, [(line, text) for line, text, _ in alive]


def _unnoticed(root: Path, cache: Path, shown: Example, rule: Rule, alive: Sequence[Mutant]) -> list[Mutant]:
    def judge(session) -> list[Mutant]:
        tree = tree_of(session, read_settings(session.root.path).names)
        wrong = shown.differences(run_rules(tree, [rule]))
        if wrong:
            raise WrongExampleError(f"{rule.id} is wrong on example {root.name}: {'; '.join(wrong)}")
        return [one for one in alive if not _noticed(one[2], tree, shown)]

    options = pipeline.Options(source=str(root), cache=cache, jobs=1)
    return asked(options, None, None, judge)


def _noticed(source: str, tree: CheckedTree, shown: Example) -> bool:
    try:
        return shown.differences(run_rules(tree, [_module(source, "mutant")])) != []
    except Exception:
        return True  # a rule that breaks is noticed


def main(names: Sequence[str]) -> int:
    """Print what no example notices."""
    left = 0
    with tempfile.TemporaryDirectory() as held:
        for name in names or [rule.id for rule, _ in pipeline.load_rules()]:
            try:
                total, alive = survivors(name, Path(held), Path(held) / "cache")
            except WrongExampleError as error:
                print(error, flush=True)
                left += 1
                continue
            left += len(alive)
            print(f"{name}: {total - len(alive)} of {total} noticed", flush=True)
            for line, text in alive:
                print(f"    line {line}: not ({text})", flush=True)
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
