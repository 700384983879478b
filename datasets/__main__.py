"""Entry point of ``python -m datasets``."""

import sys

from common.errors import run_cli
from datasets.cli import main

if __name__ == "__main__":
    sys.exit(run_cli(main))
