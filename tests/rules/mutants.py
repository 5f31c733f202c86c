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
from collections.abc import Iterator, Sequence
from pathlib import Path

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.check import CheckedTree, Rule
from opwalker.views.check.check import tree_of
from opwalker.views.check.run import run_rules
from opwalker.views.check.settings import read_settings
from tests.rules.pages import example, sections
from tests.rules.test_kinds import CASES

Found = frozenset[tuple[str, int, str, str]]


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


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
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


def found_by(rule: Rule, tree: CheckedTree) -> Found:
    """What a rule finds, without its order."""
    return frozenset((one.file, one.line, one.rule, one.message) for one in run_rules(tree, [rule]))


def _module(source: str, name: str) -> Rule:
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        exec(compile(source, name, "exec"), module.__dict__)  # a rule of this project, one condition turned
    finally:
        del sys.modules[name]
    return module.RULE


def examples_of(name: str, page: str) -> list[dict[str, str]]:
    """The files of every example of a rule."""
    parts = sections(page)
    pages = [example(parts[part]).files for part in ("Flagged", "Clean")]
    return [*pages, *({"a.cu": source} for rule, source, _ in CASES if rule == name)]


def survivors(name: str, folder: Path, cache: Path) -> tuple[int, list[tuple[int, str]]]:
    """How many mutants a rule has, and those that find the same as the rule in every example."""
    module = importlib.import_module(f"opwalker.rules.{name.replace('-', '_')}")
    page = module.__doc__ or ""
    source = Path(module.__file__).read_text(encoding="utf-8")
    alive = list(mutants(source))
    total = len(alive)
    for number, files in enumerate(examples_of(name, page)):
        root = folder / f"{name}-{number}"
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        alive = _unnoticed(root, cache, module.RULE, alive)
    return total, [(line, text) for line, text, _ in alive]


def _unnoticed(root: Path, cache: Path, rule: Rule, alive: Sequence[tuple[int, str, str]]) -> list:
    def judge(session) -> list:
        tree = tree_of(session, read_settings(session.root.path).names)
        expected = found_by(rule, tree)
        return [one for one in alive if not _differs(one[2], tree, expected)]

    options = pipeline.Options(source=str(root), cache=cache, jobs=1)
    return asked(options, None, None, judge)


def _differs(source: str, tree: CheckedTree, expected: Found) -> bool:
    try:
        return found_by(_module(source, "mutant"), tree) != expected
    except Exception:
        return True  # a rule that breaks is noticed


def main(names: Sequence[str]) -> int:
    """Print what no example notices."""
    left = 0
    with tempfile.TemporaryDirectory() as held:
        for name in names or [rule.id for rule, _ in pipeline.load_rules()]:
            total, alive = survivors(name, Path(held), Path(held) / "cache")
            left += len(alive)
            print(f"{name}: {total - len(alive)} of {total} noticed", flush=True)
            for line, text in alive:
                print(f"    line {line}: not ({text})", flush=True)
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
