"""What is kept and shown of a run while it trains."""

from __future__ import annotations

import builtins
import sys
import types
from pathlib import Path

import pytest
import torch

from common.errors import UserError
from reproduce.watch import LOG_EVERY, Watch

TERMS = {"loss": 1.5, "base": 1.0, "tcm": 0.5, "positive_active": 0.25, "gradient_norm": 3.0}


def watch(history: list, folder: Path, **changes) -> Watch:
    options = {"log": folder / "log.txt", "progress": False, "tensorboard": None}
    return Watch(history, "run", **options | {"total": 2 * LOG_EVERY + 3, "done": 0} | changes)


def test_history_has_a_row_now_and_then_and_the_last_step(tmp_path):
    history: list[dict[str, float]] = []
    with watch(history, tmp_path) as watching:
        for number in range(1, watching.total + 1):
            watching.after_step(number, TERMS | {"loss": number / 2}, 0.1, 64.0)
        watching.after_epoch(1)
    assert [row["step"] for row in history] == [LOG_EVERY, 2 * LOG_EVERY, 2 * LOG_EVERY + 3]
    assert history[0] == TERMS | {
        "step": LOG_EVERY, "loss": LOG_EVERY / 2, "learning_rate": 0.1, "images_per_second": 64.0
    }  # fmt: skip
    assert "epoch 1 done: step=23 loss=11.5" in (tmp_path / "log.txt").read_text()


def test_the_bar_shows_terms_speed_and_time_left(tmp_path, capsys):
    with watch([], tmp_path, progress=True) as watching:
        for number in range(1, watching.total + 1):
            watching.after_step(number, TERMS, 0.1, 64.0)
    shown = capsys.readouterr().err.split("\r")[-1]
    for text in ("run", "23/23", "loss=1.5", "tcm=0.5", "gradient_norm=3", "images/s=64", "<00:00"):
        assert text in shown


def test_a_process_that_does_not_write_leaves_no_log(tmp_path, capsys):
    with watch([], tmp_path, log=None) as watching:
        watching.say("damaged", aloud=True)
    assert not list(tmp_path.iterdir())
    assert "damaged" not in capsys.readouterr().out


def test_events_go_to_tensorboard_and_overwrite_those_of_lost_steps(tmp_path, monkeypatch):
    calls = []

    class Writer:
        def __init__(self, folder, purge_step):
            calls.append(("open", folder, purge_step))

        def add_scalar(self, name, value, step):
            calls.append((name, value, step))

        def close(self):
            calls.append(("close",))

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    with watch([], tmp_path, tensorboard=tmp_path / "events", done=9) as watching:
        watching.after_step(LOG_EVERY, TERMS, 0.1, 64.0)
    assert calls[0] == ("open", str(tmp_path / "events"), 10)
    assert ("tcm", 0.5, LOG_EVERY) in calls
    assert ("positive_active", 0.25, LOG_EVERY) in calls
    assert ("learning_rate", 0.1, LOG_EVERY) in calls
    assert calls[-1] == ("close",)


def test_tensorboard_that_is_not_installed_is_said_in_a_sentence(tmp_path, monkeypatch):
    whole = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.startswith(("tensorboard", "torch.utils.tensorboard")):
            raise ImportError(name)
        return whole(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match="TensorBoard is not installed"):
        watch([], tmp_path, tensorboard=tmp_path)


def test_real_events_can_be_read_back(tmp_path):
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="tensorboard is not installed",
    )
    with watch([], tmp_path, tensorboard=tmp_path / "events") as watching:
        watching.after_step(LOG_EVERY, TERMS, 0.1, 64.0)
    events = reader.EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    (event,) = events.Scalars("tcm")
    assert (event.step, event.value) == (LOG_EVERY, torch.tensor(0.5))
