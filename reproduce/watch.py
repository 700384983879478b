"""Watching a run: progress bar, history, the log in its folder, TensorBoard on request."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from common.errors import UserError

LOG_EVERY = 10


class Watch:
    """Shows and keeps what training says; use it in a ``with`` statement.

    Args:
        history: rows of earlier steps, to which this adds one every :data:`LOG_EVERY` steps.
        description: in front of the bar.
        log: file to which lines are appended; None where another process writes.
        progress: show the bar, with the loss terms, images per second and the time left.
        tensorboard: folder for TensorBoard's events, or None.
        total, done: steps in all, and before this start.

    Raises:
        UserError: TensorBoard is wanted but not installed.
    """

    def __init__(
        self,
        history: list[dict[str, float]],
        description: str,
        *,
        log: Path | None,
        progress: bool,
        tensorboard: Path | None,
        total: int,
        done: int,
    ) -> None:
        self.history = history
        self.total = total
        self._log = log
        self._writer = None if tensorboard is None else _event_writer(tensorboard, done)
        self._bar = tqdm(
            total=total,
            initial=done,
            desc=description,
            disable=not progress,
            mininterval=1,
            dynamic_ncols=True,
        )

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
        if self._writer is not None:
            self._writer.close()

    def after_step(
        self, number: int, terms: dict[str, float], learning_rate: float, images_per_second: float
    ) -> None:
        """To be called after each step; ``number`` counts from 1 over the whole run."""
        self._bar.update()
        if number % LOG_EVERY != 0 and number != self.total:
            return
        row = {"step": number, **terms, "learning_rate": learning_rate}
        row["images_per_second"] = images_per_second
        self.history.append(row)
        shown = {name: f"{value:.4g}" for name, value in terms.items()}
        self._bar.set_postfix(shown | {"images/s": f"{images_per_second:.0f}"}, refresh=False)
        if self._writer is not None:
            for name, value in row.items():
                self._writer.add_scalar(name, value, number)

    def after_epoch(self, epoch: int) -> None:
        """Writes the last history row into the log."""
        last = self.history[-1] if self.history else {}
        values = " ".join(f"{name}={value:.6g}" for name, value in last.items())
        self.say(f"epoch {epoch} done: {values}")

    def say(self, text: str, *, aloud: bool = False) -> None:
        """A line into the log and, ``aloud``, on the screen too."""
        if self._log is not None:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            with open(self._log, "a", encoding="utf-8") as file:
                file.write(f"{stamp} {text}\n")
            if aloud:
                tqdm.write(text)


def _event_writer(folder: Path, done: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError(
            "TensorBoard is not installed: pip install it, or leave --tensorboard out"
        ) from None
    # Steps that a stopped run had logged beyond its checkpoint are logged again.
    return SummaryWriter(str(folder), purge_step=done + 1)
