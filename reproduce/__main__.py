"""``python -m reproduce NAME ...`` is the same as ``python -m reproduce.NAME ...``."""

from __future__ import annotations

import importlib
import sys

from common.errors import UserError, run_cli
from reproduce.commands import commands


def main(argv: list[str]) -> int:
    """Dispatches to the named script."""
    known = commands()
    if not argv or argv[0] in ("-h", "--help"):
        listing = "\n".join(f"  {name:<20} {command.help}" for name, command in known.items())
        print(f"usage: python -m reproduce NAME [options]\n\n{listing}")
        return 0 if argv else 2
    name, *rest = argv
    if name not in known:
        raise UserError(f"{name!r} is no script of reproduce; known: {', '.join(known)}")
    return importlib.import_module(known[name].module).main(rest)


if __name__ == "__main__":
    sys.exit(run_cli(main))
