"""A command that follows the tables, for tests: says what it was given, and may refuse."""

from __future__ import annotations

from common.errors import UserError


def main(argv: list[str]) -> int:
    """Prints its arguments; fails where the results are in a folder called ``refused``."""
    print("given", *argv)
    if any(argument.endswith("refused") for argument in argv):
        raise UserError("refused")
    return 0
