"""Several processes decide together: what one of them meets, all of them learn.

A process that raised alone would leave the others waiting in their next collective. All functions
do the plain thing where there is one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from common.errors import UserError
from reproduce.distributed import current, world_size

Item = TypeVar("Item")


def from_main(make: Callable[[], Any]) -> Any:
    """What ``make()`` gives in rank 0, which alone calls it, in every process.

    Only for plain values: they travel pickled.

    Raises:
        UserError: in every process, if ``make()`` raised one.
    """
    if world_size() == 1:
        return make()
    box: list[Any] = [None]
    if current().is_main:
        try:
            box[0] = make()
        except UserError as error:
            box[0] = error
    dist.broadcast_object_list(box, src=0)
    if isinstance(box[0], UserError):
        raise box[0]
    return box[0]


def require_equal(value: Any, what: str) -> None:
    """Raises UserError in every process if ``value`` (plain) is not the same in all of them."""
    if world_size() > 1:
        found: list[Any] = [None] * world_size()
        dist.all_gather_object(found, value)
        if any(other != found[0] for other in found):
            shown = ", ".join(str(each) for each in dict.fromkeys(map(str, found)))
            raise UserError(
                f"{what} differs between the processes ({shown}): give all of them the same code, "
                "data and run folder (on several machines: a shared one)"
            )


def in_any_process(flags: Sequence[bool], device: torch.device) -> list[bool]:
    """For each flag whether it is true in some process: a signal to stop, a checkpoint due."""
    if world_size() == 1:
        return list(flags)
    values = torch.tensor([float(flag) for flag in flags], device=device)
    dist.all_reduce(values, dist.ReduceOp.MAX)
    return [bool(value) for value in values.tolist()]


def raise_together(error: UserError | None, device: torch.device) -> None:
    """Raises, in every process, the error of the first process that has one."""
    if not in_any_process([error is not None], device)[0]:
        return
    if world_size() > 1:
        found: list[UserError | None] = [None] * world_size()
        dist.all_gather_object(found, error)
        error = next(each for each in found if each is not None)
    raise error


def together(items: Iterable[Item], device: torch.device) -> Iterator[Item]:
    """The items of this process, as many as in every other; ends in all if one meets an error.

    Raises:
        UserError: some process's iterator raised one.
    """
    iterator = iter(items)
    while True:
        batch, error = [], None
        try:
            batch = [next(iterator)]
        except StopIteration:
            pass
        except UserError as found:
            error = found
        raise_together(error, device)
        if not batch:
            return
        yield batch[0]
