"""Checks the options that a user wrote against the signature of a data set's loader."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError, validate_call

from common.errors import UserError

# Not for users: where the embedded data lies, and what the command line passes itself.
HIDDEN = ("root", "folder", "options")


def call(opener: Callable[..., Any], name: str, root: Path | None, options: Mapping) -> Any:
    """``opener(root, **options)``, after a look at each option's name and type.

    Numbers stand for text (``part=72``) and text for numbers, and lists for tuples: YAML has none.

    Raises:
        UserError: an option that the loader does not have, or a value of another type.
    """
    parameters = inspect.signature(opener).parameters
    takes_others = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = [key for key in parameters if key not in HIDDEN]
    for key in options:
        if key not in parameters and not takes_others:
            raise UserError(f"{name} has no option {key!r}; choose from {', '.join(known)}")
    try:
        return validate_call(opener, config={"coerce_numbers_to_str": True})(root, **options)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = first["msg"][:1].lower() + first["msg"][1:]
        raise UserError(f"{name}: option {key} is {first['input']!r}; {reason}") from None
