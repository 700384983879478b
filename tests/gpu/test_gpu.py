"""A GPU agrees with the CPU, and runs on it can be resumed. Run by ``make gpu-check``."""

import pytest
import torch

from tests.gpu import agreements

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


@pytest.mark.parametrize(("images", "dim"), [(500, 16), (5000, 128)])
def test_evaluation_agrees_with_the_cpu(device, images, dim):
    agreements.evaluation_agrees(device, images, dim)


@pytest.mark.parametrize("name", agreements.LOSSES)
def test_losses_agree_with_the_cpu_in_float32(device, name):
    agreements.loss_agrees(name, device)


@pytest.mark.parametrize("name", agreements.LOSSES)
def test_losses_stay_float32_under_bfloat16_autocast(device, name):
    agreements.loss_is_float32_under_autocast(name, device)


def test_two_passes_give_the_gradients_of_one(device):
    agreements.two_passes_give_the_gradients_of_one(device, 64)


def test_a_stopped_run_resumes_to_the_last_bit(device, tmp_path):
    agreements.a_resumed_run_ends_like_an_undisturbed_one(device, tmp_path)
