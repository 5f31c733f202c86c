"""Figures of ``make bench`` about single stages, each against what the bare work takes in the same run.

Comes in: an empty folder, and how a figure is reported. The files and extractors are the small ones of the tests, so
that what stands around the work is measured and not the work.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from opwalker.facts import registry
from opwalker.model.source import FileEntry, SourceRoot
from opwalker.source.discover import discover
from opwalker.source.opened import open_source
from opwalker.source.read import read
from tests.facts import test_workers
from tests.test_indexing import Place

DIGESTS_SECONDS = 0.01
OPENED_SECONDS = 0.005
LISTED_PER_BARE = 4
REPEATS = 5

#: ``report(what, measured, bound, unit)``.
Report = Callable[[str, float, float, str], None]


def stage_figures(report: Report, source: str, folder: Path) -> None:
    """One line a figure. ``source`` is one that has been opened before."""
    report("digests of what makes facts", least(_digests), DIGESTS_SECONDS, "s")
    report("source opened again", least(lambda: open_source(source)), OPENED_SECONDS, "s")
    _listing(report, folder / "listing")
    _pool(report, folder / "pool")
    _indexing(report, folder / "indexing")


def least(act: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """The fewest seconds that it takes, of several times."""
    taken = []
    for _ in range(REPEATS):
        before()
        begun = time.perf_counter()
        act()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def _digests() -> None:
    registry.producer.cache_clear()
    registry._contents.cache_clear()
    registry.producers(registry.REGISTRY)


def _listing(report: Report, folder: Path) -> None:
    """7000 files against a bare listing with sizes: a second pass over the files, or opening them, would show."""
    for at in range(70):
        (folder / f"f{at}").mkdir(parents=True)
        for number in range(100):
            (folder / f"f{at}" / f"m{number}.py").touch()
    root = SourceRoot(str(folder), "listing", immutable=True)
    bare = least(lambda: _bare_listing(folder))
    report("7000 files listed", least(lambda: discover(root)), LISTED_PER_BARE * bare, "s")


def _bare_listing(root: Path) -> int:
    return sum(os.stat(os.path.join(at, name)).st_size for at, _, names in os.walk(root) for name in names)


def _pool(report: Report, folder: Path) -> None:
    """Small files by two worker processes against reading them here, and starting the two."""
    folder.mkdir()
    tasks = []
    for number in range(1500):
        (folder / f"{number}.cu").write_text("run")
        tasks.append(FileEntry(f"{number}.cu", 3, 1_000_000_000, "cpp"))
    here = least(lambda: [test_workers.read(str(folder), entry) for entry in tasks])
    pooled = least(lambda: test_workers.run(tasks, test_workers.job(folder), jobs=2))
    report("1500 small files by two workers", pooled, 5 * here + 0.3, "s")


def _indexing(report: Report, folder: Path) -> None:
    """An index with an extractor that does next to nothing, against finding and reading the same files here."""
    folder.mkdir()
    place = Place(folder)
    place.write({f"d{n % 20}/{n}.cu": f"word{n} " * 100 for n in range(1200)})

    def bare() -> None:
        for entry in discover(place.root).entries:
            read(place.root.path, entry)

    bound = least(bare)
    cold = least(place.index, before=lambda: shutil.rmtree(place.cache, ignore_errors=True))
    report("1200 small files, cold index", cold, 8 * bound + 0.3, "s")
    report("1200 small files, index of the same", least(place.index), 2 * bound + 0.05, "s")
