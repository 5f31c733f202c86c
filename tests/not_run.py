"""Tests that need what this machine may not have (network, device) are reported as not run, each by name with a reason.

A test or fixture raises ``NotRun``. It then counts as skipped, stands in a list of its own at the end of the run, and
counts as failed where ``CI`` is set: there everything must run. What needs a GPU raises ``NoDevice``: no machine of CI
has one, and the same kernels run there by emulation.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

_FOUND = pytest.StashKey[list[tuple[str, str]]]()


class NotRun(Exception):
    """The test cannot run here; the text says what is missing."""


class NoDevice(NotRun):
    """The test needs a GPU, or more of them."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a raised ``NotRun`` into a report that says so."""
    report = yield
    if call.excinfo is None or not call.excinfo.errisinstance(NotRun):
        return report
    reason = str(call.excinfo.value)
    item.config.stash.setdefault(_FOUND, []).append((item.nodeid, reason))
    if must_run() and not call.excinfo.errisinstance(NoDevice):
        report.longrepr = f"not run, and CI is set: {reason}"
    else:
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = (path, (line or 0) + 1, f"not run: {reason}")
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Lists what was not run."""
    found = config.stash.get(_FOUND, [])
    if found:
        terminalreporter.section("not run")
        for name, reason in found:
            terminalreporter.write_line(f"{name}: {reason}")


def must_run() -> bool:
    """Whether a test that is not run counts as failed."""
    return bool(os.environ.get("CI"))
