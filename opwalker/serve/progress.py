"""Comes in: how far a stage has come. Goes out: a bar on stderr, if stderr is a terminal and the work takes a while.

Also the one place that writes lines to stderr while a bar is there, so that neither spoils the other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opwalker.serve import voice

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

#: Seconds before a bar appears: what is quicker than this needs none, and never pays for importing rich.
PATIENCE = 0.4


class Progress:
    """``progress(done, total, label)``: ``total`` None where it is not known. Cheap enough to call for every file."""

    def __init__(self, *, shown: bool, no_color: bool = False) -> None:
        self._shown = shown
        self._no_color = no_color
        self._since = time.monotonic()
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, done: int, total: int | None, label: str = "reading files") -> None:
        """``done`` of ``total`` pieces (files, bytes) of the work called ``label`` are finished."""
        if not self._shown:
            return
        if self._bars is None:
            if time.monotonic() - self._since < PATIENCE:
                return
            self._bars = self._start()
        if label not in self._tasks:
            self._tasks[label] = self._bars.add_task(label, total=total)
        self._bars.update(self._tasks[label], completed=done, total=total)

    def say(self, text: str) -> None:
        """One line on stderr: ``opwalker: note: …``."""
        if self._bars is not None:
            line = f"opwalker: note: {voice.one_line(text)}"
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            voice.say(f"note: {text}")

    def close(self) -> None:
        """Takes the bars away. More progress after this is not shown."""
        self._shown = False
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def _start(self) -> Bars:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(show_speed=False),
            TimeElapsedColumn(),
        )
        bars = Bars(*columns, console=Console(stderr=True, no_color=self._no_color or None), transient=True)
        bars.start()
        return bars
