"""``python -m eval``: see ``python -m eval --help``."""

import sys

from common.errors import run_cli
from eval.cli import main

if __name__ == "__main__":
    sys.exit(run_cli(main))
