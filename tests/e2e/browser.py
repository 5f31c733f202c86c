"""A real browser for pages that a person opens: headless Chromium, and mermaid's own parser inside it."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.not_run import NotRun

_NAMES = ("chromium", "chromium-browser", "google-chrome")

#: Seconds after which something hangs, on however slow a machine.
_WHATEVER_IT_TAKES = 600


def new_page(opened: Any, **settings: Any) -> Any:
    """A page of its own in the browser; nothing on it is given up because the machine is slow."""
    context = opened.new_context(**settings)
    context.set_default_timeout(_WHATEVER_IT_TAKES * 1000)
    return context.new_page()


@contextmanager
def browser() -> Iterator[Any]:
    """A browser; NotRun where there is none. Nothing that it opens may reach another machine."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise NotRun("no Chromium is installed (Debian's package: chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        patience = _WHATEVER_IT_TAKES * 1000
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"], timeout=patience)
        try:
            yield opened
        finally:
            opened.close()


def mermaid_script(folder: Path) -> str:
    """mermaid, as npm publishes it; NotRun without npm or network."""
    if shutil.which("npm") is None:
        raise NotRun("npm is not installed: mermaid's own parser cannot be fetched")
    command = ["npm", "pack", "--silent", "mermaid@11"]
    packed = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_WHATEVER_IT_TAKES, check=False
    )
    if packed.returncode:
        raise NotRun(f"mermaid could not be fetched: {packed.stderr.strip().splitlines()[-1:]}")
    archive = folder / packed.stdout.strip().splitlines()[-1]
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as bundle:
        script = bundle.extractfile("package/dist/mermaid.min.js")
        assert script is not None
        return script.read().decode("utf-8")
