"""``make bench``: how long a cold index, a warm walk and a walk after an edit take, against what they may take.

Comes in: a source (``vllm==0.30.0``) and one of its ops. Goes out: one line a figure with its ratio to the bound, and
exit code 1 where a bound is broken. Every figure is that of a whole process. The yardstick of the index is what one
thread of the bare tree-sitter CUDA parser needs for the same C++ and CUDA files in the same run. Edited are the files
that the op itself goes through: the one that registers it, its host function's, and its first Python caller's; the
latter also in ways that change what Python says of ops, those of host function and kernel in ways that change code.
Figures of single stages stand in ``tests.bench_stages``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opwalker import pipeline
from opwalker.errors import OpwalkerError
from opwalker.link.store import Store
from opwalker.model.source import SourceRoot
from opwalker.source.discover import discover
from opwalker.source.opened import open_source
from tests.bench_stages import stage_figures

INDEX_PER_PARSER = 5.0
INDEX_MEGABYTES = 400
WARM_WALK_SECONDS = 0.25
EDITED_WALK_SECONDS = 0.5
STORE_OPENED_SECONDS = 0.015
LOOK_UP_MILLISECONDS = 0.2
REPEATS = 7
EDITS = 3


class Bench:
    """One measured tree, with a cache of its own."""

    def __init__(self, tree: Path, cache: Path) -> None:
        self._tree = tree
        self._environment = {**os.environ, "OPWALKER_CACHE": str(cache)}
        self._edits = 0
        self.broken = False

    def run(self, *words: str) -> float:
        """Seconds that one command takes as a whole process; its output is thrown away."""
        begun = time.perf_counter()
        self.ask(*words)
        return time.perf_counter() - begun

    def ask(self, *words: str) -> bytes:
        """What one command prints."""
        return subprocess.run(
            [sys.executable, "-m", "opwalker", *words, "--source", str(self._tree)],
            env=self._environment,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout

    def edit(self, path: str, text: str) -> None:
        """Adds ``text`` at the end of a file, with the number of the edit for each ``{n}`` in it."""
        self._edits += 1
        with (self._tree / path).open("a", encoding="utf-8") as edited:
            edited.write(f"\n{text.replace('{n}', str(self._edits))}\n")

    def move(self, path: str) -> None:
        """Puts a line in front of a file: everything in it stands one line further down."""
        self._edits += 1
        file = self._tree / path
        file.write_bytes(f"// edit {self._edits}\n".encode() + file.read_bytes())

    def begin(self, path: str, line: int, text: str) -> None:
        """Puts a line at the beginning of the body of the function on a line, with the number of the edit."""
        self._edits += 1
        file = self._tree / path
        lines = file.read_text(encoding="utf-8").split("\n")
        opened = next(number for number in range(line - 1, len(lines)) if lines[number].rstrip().endswith("{"))
        lines.insert(opened + 1, text.replace("{n}", str(self._edits)))
        file.write_text("\n".join(lines), encoding="utf-8")

    def edited(self, what: str, edit: Callable[[], None], walk: tuple[str, ...]) -> None:
        """One line about a walk after each of several edits."""
        seconds = []
        for _ in range(EDITS):
            edit()
            seconds.append(self.run(*walk))
        self.report(f"walk after {what}", statistics.median(seconds), EDITED_WALK_SECONDS, "s")

    def report(self, what: str, measured: float, bound: float, unit: str) -> None:
        """One line; remembers a broken bound."""
        ratio = measured / bound
        self.broken |= ratio > 1
        verdict = "ok" if ratio <= 1 else "TOO MUCH"
        print(f"{what:<48} {measured:8.3f} {unit:<3} of {bound:8.3f} {unit:<3} {ratio:6.2f}  {verdict}", flush=True)


def store_figures(bench: Bench, root: SourceRoot, cache: Path) -> None:
    """Lines about the store of an indexed tree: how long opening it takes, and one look-up of a name."""
    opened = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        store = Store.open(root, cache, lambda line: None)
        store.known()
        opened.append(time.perf_counter() - begun)
    names = [name for name, _ in store.names_of_kind("function")[:400]]
    begun = time.perf_counter()
    for name in names:
        store.paths_of(name, ("function", "kernel"))
    looked_up = (time.perf_counter() - begun) / max(len(names), 1)
    store.close()
    bench.report("store opened, its files known", min(opened), STORE_OPENED_SECONDS, "s")
    bench.report("a name looked up", looked_up * 1000, LOOK_UP_MILLISECONDS, "ms")


def parser_seconds(tree: Path, paths: list[str]) -> float:
    """What the bare CUDA parser needs for the files, read beforehand, in one thread."""
    import tree_sitter
    import tree_sitter_cuda

    texts = [(tree / path).read_bytes() for path in paths]
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))
    begun = time.perf_counter()
    for text in texts:
        parser.parse(text)
    return time.perf_counter() - begun


def files_of(walk: dict[str, Any]) -> dict[str, str]:
    """The files that an op goes through, by what stands in them."""
    found = {"registration": walk["op"]["defs"][0]["file"]}
    if walk["implementations"] and walk["implementations"][0]["host"]:
        found["host function"] = walk["implementations"][0]["host"]["file"]
    if walk["python"]:
        found["Python caller"] = walk["python"][0]["file"]
    return found


def bodies_of(walk: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """File and line of the host function that launches an op's kernels, and of the first of these."""
    found = next((one for one in walk["implementations"] if one["host"] and one["kernels"]), None)
    parts = {"host function": found["host"], "kernel": found["kernels"][0]} if found is not None else {}
    return {what: (part["file"], part["line"]) for what, part in parts.items()}


def code_edits(bench: Bench, walk: tuple[str, ...]) -> None:
    """Lines about edits of code in the files of an op's host function and kernel."""

    def parts() -> dict[str, tuple[str, int]]:
        return bodies_of(json.loads(bench.ask(*walk, "--json")))

    for what, (path, _) in parts().items():
        text = "static int edit_{n}() { return {n}; }"
        bench.edited(f"a function more beside its {what}", lambda path=path, text=text: bench.edit(path, text), walk)
    for what in parts():
        place, text = parts()[what], "  const int edit_{n} = {n};"
        bench.edited(f"a line more in its {what}", lambda place=place, text=text: bench.begin(*place, text), walk)


def python_edits(walk: dict[str, Any]) -> dict[str, str]:
    """Texts for the end of a Python file that calls the op, by what they add: each changes what Python says of ops."""
    if not walk["python"]:
        return {}
    call = f"torch.ops.{walk['op']['name'].replace('::', '.')}"
    caller = walk["python"][0]
    module = caller["file"].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return {
        "a function with a call of the op more": f"def edit_{{n}}(x):\n    return {call}(x)",
        "an import and a call of it more": f"import {module} as edit_{{n}}\n\nedit_{{n}}.{caller['function']}()",
        "a registration more": '@torch.library.custom_op("bench::edit_{n}", mutates_args=())\n'
        "def edit_{n}(x: torch.Tensor) -> torch.Tensor:\n    return x",
    }


def main() -> int:
    """Measures and prints; the exit code says whether every bound holds."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("source", nargs="?", default="vllm==0.30.0")
    arguments.add_argument("op", nargs="?", default="reshape_and_cache")
    asked = arguments.parse_args()
    try:
        root = open_source(asked.source)
        pipeline.walk(pipeline.Options(source=asked.source), asked.op)
    except OpwalkerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    entries = discover(root).entries
    sources = [entry.path for entry in entries if entry.language in ("cuda", "cpp")]
    with tempfile.TemporaryDirectory(prefix="opwalker-bench-") as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(root.path, tree, symlinks=True)
        bench = Bench(tree, Path(scratch) / "cache")
        parser = min(parser_seconds(tree, sources) for _ in range(2))
        print(f"{asked.source}: {len(entries)} files, {len(sources)} of them C++ or CUDA, parsed in {parser:.3f} s")
        bench.report("cold index", bench.run("index"), INDEX_PER_PARSER * parser, "s")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        bench.report("largest process of the index", peak, INDEX_MEGABYTES, "MB")
        store_figures(bench, open_source(str(tree)), Path(scratch) / "cache" / "facts")
        (Path(scratch) / "stages").mkdir()
        stage_figures(bench.report, asked.source, Path(scratch) / "stages")
        walk = ("walk", asked.op)
        bench.run(*walk)
        for form in ((), ("--json",)):
            median = statistics.median(bench.run(*walk, *form) for _ in range(REPEATS))
            bench.report(" ".join(["warm", *walk, *form]), median, WARM_WALK_SECONDS, "s")
        answer = json.loads(bench.ask(*walk, "--json"))
        for what, path in files_of(answer).items():
            note = "# edit {n}" if path.endswith(".py") else "// edit {n}"
            bench.edited(f"an edit of its {what}", lambda path=path, note=note: bench.edit(path, note), walk)
            if not path.endswith(".py"):
                bench.edited(f"a line in front of its {what}", lambda path=path: bench.move(path), walk)
        code_edits(bench, walk)
        for what, text in python_edits(answer).items():
            caller = answer["python"][0]["file"]
            bench.edited(what, lambda caller=caller, text=text: bench.edit(caller, text), walk)
    return int(bench.broken)


if __name__ == "__main__":
    sys.exit(main())
