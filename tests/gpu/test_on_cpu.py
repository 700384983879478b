"""The GPU check's own code, at tiny sizes on a CPU: what it would say, and that it can fail."""

import json

import pytest
import torch

import losses
from common.errors import run_cli
from reproduce import gpu_benchmark, gpu_check
from tests.gpu import agreements

CPU = agreements.CPU


@pytest.mark.parametrize("name", agreements.LOSSES)
def test_losses_agree_with_themselves(name):
    agreements.loss_agrees(name, CPU)
    agreements.loss_is_float32_under_autocast(name, CPU)


def test_a_loss_that_is_off_by_a_thousandth_is_caught(monkeypatch):
    build = losses.build

    class Off(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.loss = build("tcm", 0, agreements.DIM)

        def forward(self, embeddings, labels):
            value = self.loss(embeddings, labels)
            return value if embeddings.dtype == torch.float64 else 1.001 * value

    monkeypatch.setattr(losses, "build", lambda *_: Off())
    with pytest.raises(AssertionError):
        agreements.loss_agrees("tcm", CPU)


def test_evaluation_two_passes_and_resuming(tmp_path):
    agreements.evaluation_agrees(CPU, 300, 8)
    agreements.two_passes_give_the_gradients_of_one(CPU, 16)
    agreements.a_resumed_run_ends_like_an_undisturbed_one(CPU, tmp_path)


def test_the_benchmark_measures_what_it_says():
    found = gpu_benchmark.evaluation(CPU, images=200, dimensions=8)
    assert found["images"] == 200
    assert found["seconds"] > 0
    steps = gpu_benchmark.loss_steps(CPU, count=32, dimensions=8)
    assert set(steps) == {"tcm", "recall_at_k"}
    assert all(step["ms"] > 0 and step["batch"] == 32 for step in steps.values())
    changes = {
        "model.backbone": "glyph_cnn",
        "model.options": {"width": 8},
        "data.image_size": 32,
        "data.mean_std": "source",
        "train.sync_batch_norm": False,
    }
    training = gpu_benchmark.training_steps(CPU, batch=8, changes=changes)
    assert set(training) == {"ResNet-50", "ViT-B/16"}
    assert all(of["images_per_second"] > 0 and of["amp"] == "off" for of in training.values())


def test_without_cuda_it_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run_cli(gpu_check.main, []) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: gpu-check needs a CUDA device")
    assert len(error.splitlines()) == 1


@pytest.fixture
def some_tests(tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
    )
    return str(file)


def test_the_check_counts_tests_and_writes_one_file(tmp_path, some_tests, capsys):
    def lacks_memory():
        raise RuntimeError("CUDA out of memory\nmuch more")

    output = tmp_path / "out" / "check.json"
    benchmarks = {"fine": lambda: {"ms": 1.0}, "large": lacks_memory}
    assert gpu_check.check([some_tests], benchmarks, output) == 1
    report = json.loads(output.read_text())
    assert report["tests"] | {"names_of_failed": []} == {
        "passed": 1,
        "failed": 1,
        "skipped": 1,
        "names_of_failed": [],
    }
    assert report["tests"]["names_of_failed"][0].endswith("test_bad")
    assert report["benchmark"] == {"fine": {"ms": 1.0}, "large": {"failed": "CUDA out of memory"}}
    assert "torch==" in report["machine"]["versions"]
    passing = [some_tests, "-k", "good"]
    assert gpu_check.check(passing, {}, output) == 0
    assert gpu_check.check([some_tests, "-k", "nothing"], {}, output) == 1
