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


@contextmanager
def browser() -> Iterator[Any]:
    """A browser; NotRun where there is none. Nothing that it opens may reach another machine."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise NotRun("no Chromium is installed (Debian's package: chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


def mermaid_script(folder: Path) -> str:
    """mermaid, as npm publishes it; NotRun without npm or network."""
    if shutil.which("npm") is None:
        raise NotRun("npm is not installed: mermaid's own parser cannot be fetched")
    packed = subprocess.run(
        ["npm", "pack", "--silent", "mermaid@11"], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    if packed.returncode:
        raise NotRun(f"mermaid could not be fetched: {packed.stderr.strip().splitlines()[-1:]}")
    archive = folder / packed.stdout.strip().splitlines()[-1]
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as bundle:
        script = bundle.extractfile("package/dist/mermaid.min.js")
        assert script is not None
        return script.read().decode("utf-8")
