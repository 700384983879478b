"""The command line of what is made from results alone: which scale, and where they lie."""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduce import results
from reproduce.table import SCALES


def results_parser(name: str, doc: str) -> argparse.ArgumentParser:
    """``--scale`` and ``--results`` for ``python -m reproduce.<name>``.

    Args:
        doc: the script's docstring, of which the first line is shown.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m reproduce.{name}", description=doc.split("\n")[0]
    )
    parser.add_argument("--scale", choices=SCALES, default="demo")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    return parser
