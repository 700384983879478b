"""``python -m reproduce NAME ...`` is the same as ``python -m reproduce.NAME ...``."""

from __future__ import annotations

import importlib
import sys

from common.errors import UserError, run_cli

COMMANDS = {
    "table2": "Table 2: base losses with and without TCM",
    "check": "verdicts: the claims, and the numbers at paper scale",
    "benchmark": "speed of evaluation and losses against their peers",
}

MODULES = {"benchmark": "reproduce.benchmark.__main__"}


def main(argv: list[str]) -> int:
    """Dispatches to the named script."""
    listing = "\n".join(f"  {name:<18} {text}" for name, text in COMMANDS.items())
    if not argv or argv[0] in ("-h", "--help"):
        print(f"usage: python -m reproduce NAME [options]\n\n{listing}")
        return 0 if argv else 2
    name, *rest = argv
    if name not in COMMANDS:
        raise UserError(f"{name!r} is no script of reproduce; known: {', '.join(COMMANDS)}")
    return importlib.import_module(MODULES.get(name, f"reproduce.{name}")).main(rest)


if __name__ == "__main__":
    sys.exit(run_cli(main))
