"""A file on a web server as a stream that survives broken connections."""

from __future__ import annotations

import io
import time

import requests
import urllib3

_SKIP = 1 << 20
_BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
# Worth another try; anything else (403, 404, 410) is a mirror's last word.
_PASSING = frozenset((408, 425, 429, 500, 502, 503, 504))
_LONGEST_PAUSE = 60.0


class MirrorError(Exception):
    """One mirror failed; the message says how."""


class ResumingReader(io.RawIOBase):
    """The bytes at a URL, as a stream that reconnects where it broke off.

    Args:
        url: http or https.
        start: the first byte wanted.
        attempts: how often in a row it may fail without a single new byte.
        pause: seconds before the second attempt, doubled each time; a server's ``Retry-After``
            counts, up to a minute.
        timeout: seconds without an answer or a byte.

    Attributes:
        position: the next byte to be read.
        total: the length that the server states, or None.

    Raises:
        MirrorError: on reading, when the attempts are used up or the server says no.
    """

    def __init__(
        self,
        url: str,
        start: int = 0,
        attempts: int = 5,
        pause: float = 1.0,
        timeout: float = 30.0,
    ) -> None:
        super().__init__()
        self.url = url
        self.position = start
        self.total: int | None = None
        self._attempts = attempts
        self._pause = pause
        self._timeout = timeout
        self._failures = 0
        self._response: requests.Response | None = None
        self._etag: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        """Fills at most the buffer; 0 at the end of the file."""
        while True:
            if self.total is not None and self.position >= self.total:
                return 0
            try:
                if self._response is None:
                    self._connect()
                    continue
                data = self._response.raw.read(len(buffer))
            except _BROKEN as error:
                if _is_unknown_name(error):
                    raise MirrorError("its name is not known, is there a network?") from error
                self._fail(_reason(error))
                continue
            if data:
                buffer[: len(data)] = data
                self.position += len(data)
                self._failures = 0
                return len(data)
            if self.total is None:
                # No length was promised: the end of the stream is the end of the file.
                self.total = self.position
            elif self.position < self.total:
                self._fail(f"it sent {self.position:,} of the promised {self.total:,} bytes")

    def close(self) -> None:
        self._disconnect()
        super().close()

    def _connect(self) -> None:
        headers = {"Accept-Encoding": "identity"}
        if self.position:
            headers["Range"] = f"bytes={self.position}-"
        response = requests.get(self.url, headers=headers, stream=True, timeout=self._timeout)
        status = response.status_code
        if status in _PASSING:
            response.close()
            self._fail(f"it answered {status} {response.reason}", response.headers)
            return
        if status == 416 and self.position:
            response.close()
            self._check_end(response.headers.get("Content-Range", ""))
            return
        if status not in (200, 206):
            response.close()
            raise MirrorError(f"it answered {status} {response.reason}")
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.close()
            raise MirrorError("it answered with a web page instead of the file")
        etag = response.headers.get("ETag")
        if self._etag not in (None, etag):
            response.close()
            raise MirrorError("the file changed on the server while it was fetched")
        self._etag = etag
        self._response = response
        length = response.headers.get("Content-Length")
        skip = self.position if status == 200 else 0
        if length is not None:
            self.total = int(length) + (self.position if status == 206 else 0)
        while skip:
            # The server does not resume; what is here already is read over.
            passed = len(response.raw.read(min(skip, _SKIP)))
            if not passed:
                raise MirrorError("the file there is shorter than what is here already")
            skip -= passed

    def _check_end(self, content_range: str) -> None:
        """Nothing begins at our position: are we at the end?"""
        length = content_range.rpartition("/")[2]
        if length.isdecimal():
            self.total = int(length)
        if self.total != self.position:
            raise MirrorError("the file there is shorter than what is here already")

    def _fail(self, reason: str, headers: dict | None = None) -> None:
        self._disconnect()
        self._failures += 1
        if self._failures >= self._attempts:
            raise MirrorError(f"{reason} ({self._failures} attempts)")
        pause = self._pause * 2 ** (self._failures - 1)
        asked = (headers or {}).get("Retry-After", "")
        if asked.isdecimal():
            pause = float(asked)
        time.sleep(min(pause, _LONGEST_PAUSE))

    def _disconnect(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


def _is_unknown_name(error: Exception) -> bool:
    text = str(error)
    return "NameResolutionError" in text or "Failed to resolve" in text


def _reason(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "it does not answer"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return "the connection broke off"
