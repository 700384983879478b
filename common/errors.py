"""The one error that users are meant to read, and the guard that turns it into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable


class UserError(Exception):
    """Something that the user can mend.

    The message is one sentence that names the file, row or key and says what to do.
    Command lines print it without a traceback and exit with code 2.
    """


def run_cli(main: Callable[[list[str]], int | None], argv: list[str] | None = None) -> int:
    """Runs ``main(argv)`` and returns its exit code.

    A :class:`UserError` becomes ``error: ...`` on stderr and code 2; Ctrl-C becomes code 130.
    """
    try:
        return main(sys.argv[1:] if argv is None else argv) or 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
