"""The rules of the house, read off the source: who may import whom, how long a file may be, what must be documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "opwalker"
LONGEST_FILE = 400

#: What each part may import besides itself. ``errors`` and ``resources`` are open to all.
ALLOWED = {
    "model": (),
    "notation": ("model",),
    "facts": ("model", "notation"),
    "source": ("model", "notation"),
    "link": ("model", "notation"),
    "adapters": ("model", "notation"),
    "rules": ("model", "notation"),
    "binary": ("model", "notation"),
    "expand": ("model", "notation", "facts", "link"),
    "views": ("model", "notation", "facts", "source", "link", "binary", "expand"),
    "indexing": ("model", "notation", "facts", "source", "link", "expand"),
    "unchanged": ("model", "notation", "facts", "link"),
    "answers": ("model", "facts", "link", "expand", "unchanged"),
    "asking": ("model", "notation", "facts", "source", "link", "expand", "views", "indexing", "answers"),
    "ahead": ("facts", "asking"),
    "auditing": ("model", "notation", "facts", "source", "link", "binary", "expand", "views", "asking"),
    "pipeline": (
        "model", "notation", "facts", "source", "link", "adapters", "rules", "expand", "views", "indexing", "asking",
        "ahead", "auditing",
    ),
    "serve": (
        "model", "notation", "facts", "source", "link", "adapters", "rules", "expand", "views", "indexing", "asking",
        "pipeline",
    ),
    "errors": (),
    "resources": (),
    "__init__": (),
    "__main__": ("serve",),
}  # fmt: skip
OPEN_TO_ALL = ("errors", "resources")

#: Packages that one part alone may import.
FENCED = {
    "tree_sitter": "facts",
    "clang": "facts",
    "torch": "views.verify",
    "numpy": "views.verify",
    "elftools": "binary",
}

#: What a start of the program must not import: each costs as much as a warm walk has to spare.
LAZY = (
    "clang",
    "elftools",
    "jinja2",
    "lark",
    "networkx",
    "pydantic",
    "pypi_simple",
    "requests",
    "rich",
    "torch",
    "tree_sitter",
)

#: Hosts that an address may have: this machine's own, those that can never exist, and publishers of texts and formats.
HOSTS = r"(?:127\.0\.0\.1|me:|[\w.-]+\.invalid\b|json-schema\.org/|www\.apache\.org/|www\.w3\.org/)"

#: A path of one machine, or an address with any other host: a package index is the user's choice, never ours.
MACHINE = re.compile(rf"(?<![\w.])/(?:work|farm|root|tmp/c)/|https?://(?=[\w])(?!{HOSTS})")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """``facts.cpp_text`` for opwalker/facts/cpp_text.py, ``facts`` for its __init__, ``__init__`` for the package's."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Dotted names of all that a file imports, wherever it does so, also inside functions; with their lines."""
    package = ["opwalker", *name_of(path).split(".")]
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            named = node.args[0] if node.args else None
            yield (named.value if isinstance(named, ast.Constant) else "a name made at run time"), node.lineno


def part_of(dotted: str) -> str:
    """The part of the package that a dotted name lies in: ``facts`` of ``opwalker.facts.cpp_text.f``."""
    below = dotted.split(".")[1:]
    if below and ((PACKAGE / below[0]).is_dir() or (PACKAGE / f"{below[0]}.py").is_file()):
        return below[0]
    return "__init__"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    here = name_of(path).split(".")[0]
    assert here in ALLOWED, f"opwalker/{here} is no part of the design"
    may = {here, "__init__", *ALLOWED[here], *(OPEN_TO_ALL if here != "errors" else ())}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {dotted}"
        for dotted, line in imports(path)
        if dotted.split(".")[0] == "opwalker" and part_of(dotted) not in may
    ]
    assert wrong == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_fenced_packages_stay_behind_their_fence(path: Path) -> None:
    here = name_of(path)
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {dotted}"
        for dotted, line in imports(path)
        for package, part in FENCED.items()
        if re.match(rf"{package}(_\w+)?(\.|$)", dotted) and not f"{here}.".startswith(f"{part}.")
    ]
    assert wrong == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_nothing_but_the_pipeline_knows_a_particular_adapter_or_rule(path: Path) -> None:
    here = name_of(path)
    if here == "pipeline":
        return
    particular = {f"opwalker.{name_of(one)}" for part in ("adapters", "rules") for one in (PACKAGE / part).glob("*.py")}
    # What several rules share stands in files whose names begin with a stroke.
    particular = {one for one in particular if one.count(".") > 1 and not one.rsplit(".", 1)[-1].startswith("_")}
    named = [dotted for dotted, _ in imports(path) if any(f"{dotted}.".startswith(f"{one}.") for one in particular)]
    assert named == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_what_is_public_is_documented(path: Path) -> None:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [node for node in tree_of(path).body if isinstance(node, definitions) and not node.name.startswith("_")]
    silent = [node.name for node in public if not ast.get_docstring(node)]
    assert ast.get_docstring(tree_of(path)), "the module has no docstring"
    assert silent == []


def tracked_files() -> list[Path]:
    """What git tracks; outside a checkout (an unpacked release) what lies there, without environments and caches."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not re.search(r"/(\.|__pycache__)", str(path))]


def test_nothing_that_is_kept_names_a_machine_or_a_package_host() -> None:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(text.splitlines(), start=1)
            if MACHINE.search(line)
        ]
    assert found == []


def test_the_search_for_machine_paths_finds_them() -> None:
    for text in (
        "/".join(("", "work", "x")),
        "https" + "://packages.example.org/simple",
        "https" + "://json-schema.org.example.com/",
        '"' + "/".join(("", "root", "y")),
    ):
        assert MACHINE.search(text), text
    for text in ("a/b/work/c", "https://index.invalid/simple", "http://127.0.0.1:80/"):
        assert not MACHINE.search(text), text


def test_every_grammar_is_used() -> None:
    named = {
        node.value
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    entries = [path.relative_to(ROOT) for path in (ROOT / "grammars").rglob("*") if path.is_file()]
    unused = [
        entry.as_posix()
        for entry in entries
        if entry.suffix != ".md" or "patterns" in entry.parts
        if not {entry.as_posix(), *(f"{folder.as_posix()}" for folder in entry.parents)} & named
    ]
    assert entries
    assert unused == []


def test_a_start_of_the_program_imports_nothing_heavy() -> None:
    said = "import sys, opwalker.serve.cli; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "typer" in loaded
    assert sorted(loaded & set(LAZY)) == []


def test_the_pipeline_imports_only_what_every_command_needs() -> None:
    """A warm walk has a quarter of a second: what one command alone needs, it imports when it runs."""
    said = "import sys, opwalker.pipeline; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("opwalker.")}
    own = ("audit", "check", "diff", "notes", "verify")
    assert sorted(loaded & {f"opwalker.model.{name}" for name in own}) == []
    parts = {name.split(".")[1] for name in loaded}
    assert sorted(parts & {"adapters", "expand", "facts", "link", "rules", "serve", "views"}) == []


def test_parsing_a_command_line_imports_nothing_heavy_either() -> None:
    said = (
        "import sys; from opwalker.serve.cli import main; sys.stdout = sys.stderr\n"
        "from tests.serve.fake_pipeline import FakePipeline; FakePipeline().install()\n"
        "main(['walk', 'scatter_rows', '-j', '2', '--json'])\n"
        "print(*sys.modules, sep='\\n', file=sys.__stdout__)"
    )
    done = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "msgspec" in loaded
    assert sorted(loaded & set(LAZY)) == []
