"""The loss benchmark's memory figures: a measured process must not inherit its parent's peak."""

import pytest
import torch

from common.errors import run_cli
from reproduce.benchmark import loss_speed

MEGABYTE = 2**20


def test_the_peak_is_of_the_step_and_not_of_the_parent():
    # A parent of over half a gigabyte, as the benchmark itself is by then.
    ballast = torch.ones(512 * MEGABYTE // 4)
    small = loss_speed._peak("tcm:64", "cpu")
    assert small < 100 * MEGABYTE
    # The matrix has to exist; its sum's gradient is one number, expanded.
    count = 3000
    matrix = loss_speed._peak(f"similarity_matrix:{count}", "cpu")
    assert 4 * count**2 < matrix < 3 * 4 * count**2
    assert float(ballast[-1]) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without CUDA")
def test_a_missing_device_is_said_in_one_line(capsys):
    assert run_cli(loss_speed.main, ["--device", "cuda"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --device cuda: ")
    assert error.count("\n") == 1
