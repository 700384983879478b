"""Headless Chromium, for pages that must work from disk."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--virtual-time-budget=5000",
]  # fmt: skip


def run_chromium(address: str, *flags: str) -> str:
    """What Chromium prints for a page, in a profile of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def screenshot(address: str, path: Path, width: int, height: int, *flags: str) -> None:
    """Writes a PNG of the page at that size."""
    run_chromium(address, f"--screenshot={path}", f"--window-size={width},{height}", *flags)


def final_dom(
    page: str,
    folder: Path,
    driver: str = "",
    *,
    fragment: str = "",
    window: tuple[int, int] = (1100, 900),
) -> str:
    """The document after its scripts, and then ``driver`` (JavaScript), have run.

    ``<body data-errors>`` holds the uncaught errors, empty if there were none.
    """
    catcher = (
        "<script>addEventListener('error', e => { window.faults = "
        "(window.faults || '') + e.message; });</script>"
    )
    end = f"<script>{driver}\ndocument.body.dataset.errors = window.faults || '';</script></body>"
    path = folder / "driven.html"
    page = page.replace("<head>", f"<head>{catcher}", 1)
    path.write_text(end.join(page.rsplit("</body>", 1)), encoding="utf-8")
    size = "--window-size={},{}".format(*window)
    return run_chromium(path.as_uri() + fragment, "--dump-dom", size)
