"""A package index on the loopback address, for one test: pages and files as given, faults on demand."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Index:
    """``files`` by project and file name. ``faults`` maps a path to answers given before the real one."""

    url: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    faults: dict[str, list[int | bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    authorised: list[tuple[str, str | None]] = field(default_factory=list)
    with_digests: bool = True
    page_type: str = "text/html"

    def add(self, project: str, filename: str, data: bytes) -> None:
        self.files.setdefault(project, {})[filename] = data

    def answer(self, path: str) -> tuple[int, str, bytes]:
        fault = self.faults.get(path, [])
        if fault:
            answer = fault.pop(0)
            return (answer, "text/plain", b"") if isinstance(answer, int) else (200, self.page_type, answer)
        parts = path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in self.files:
            return 200, self.page_type, self._page(parts[1])
        if parts[0] == "files" and len(parts) == 3 and parts[2] in self.files.get(parts[1], {}):
            return 200, "application/octet-stream", self.files[parts[1]][parts[2]]
        return 404, "text/plain", b""

    def _page(self, project: str) -> bytes:
        lines = ["<!DOCTYPE html><html><body>"]
        for filename, data in self.files[project].items():
            digest = f"#sha256={hashlib.sha256(data).hexdigest()}" if self.with_digests else ""
            lines.append(f'<a href="/files/{project}/{filename}{digest}">{filename}</a>')
        return "\n".join(lines).encode()


@contextmanager
def serving() -> Iterator[Index]:
    """Serve an empty ``Index`` that the test fills."""
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            index.authorised.append((self.path, self.headers.get("Authorization")))
            status, kind, body = index.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's output stays its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        index.url = f"http://127.0.0.1:{server.server_address[1]}/simple/"
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
