"""A site served on this machine, for one reader, until the program is interrupted.

Comes in: a folder. It listens on the loopback address alone, on a port that is free.
"""

from __future__ import annotations

import functools
import webbrowser
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed for a page that is read."""


def make_server(folder: Path) -> ThreadingHTTPServer:
    """A server of the files in ``folder``; its address is ``server_address``."""
    return ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))


def serve_folder(folder: Path, say: Callable[[str], None]) -> None:
    """Serve ``folder`` and open it in the browser; returns when the user interrupts."""
    with make_server(folder) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/index.html"
        say(f"serving {folder} at {address}; stop with Ctrl-C")
        webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
