"""A local web server that misbehaves as told."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Flaky:
    """One file and how it is served.

    Attributes:
        content: the file.
        drop_after: for each request in turn, bytes sent before the connection is cut.
        statuses: for each request in turn, an HTTP status to answer with instead.
        extra_length: added to the Content-Length that is stated.
        ranges: whether Range is honoured.
        html: answer with a web page.
        etags: for each request in turn, the ETag.
        requests: Range headers that were asked for, "" for none.
    """

    content: bytes
    drop_after: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    extra_length: int = 0
    ranges: bool = True
    html: bool = False
    etags: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextlib.contextmanager
def serve(**files: Flaky) -> Iterator[str]:
    """Serves each file under its name; yields the base address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            flaky = files.get(self.path.strip("/"))
            if flaky is None:
                self.send_error(404)
                return
            asked = self.headers.get("Range", "")
            flaky.requests.append(asked)
            if flaky.statuses:
                self.send_response(flaky.statuses.pop(0))
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self._send(flaky, asked)

        def _send(self, flaky: Flaky, asked: str) -> None:
            content, start = flaky.content, 0
            found = re.fullmatch(r"bytes=(\d+)-", asked)
            if found and flaky.ranges:
                start = int(found[1])
                if start >= len(content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(content)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-/{len(content)}")
            else:
                self.send_response(200)
            kind = "text/html" if flaky.html else "application/octet-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content) - start + flaky.extra_length))
            if flaky.etags:
                self.send_header("ETag", flaky.etags.pop(0))
            self.end_headers()
            end = start + flaky.drop_after.pop(0) if flaky.drop_after else len(content)
            self.wfile.write(content[start:end])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
