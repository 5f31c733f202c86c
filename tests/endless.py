"""A guard for tests of hostile input: what never comes to an end fails its test and does not stop the others."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def must_end(seconds: float = 300.0) -> Iterator[None]:
    """Fails what is still at it after so many ``seconds`` of computing: far more than the slowest machine needs."""

    def stop(*_: object) -> None:
        pytest.fail(f"still at it after {seconds:g} seconds of computing")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
