"""The run store: what makes two runs the same, and files that are whole or absent."""

import numpy as np
import pytest
import torch
from torch import nn

from common.errors import UserError
from reproduce import checkpoint, code_hash
from reproduce.config import load
from reproduce.store import RunFolder, RunKey

CONFIG = load("demo/kanji_proxy_anchor")


def key(**changes) -> RunKey:
    return RunKey(
        **{"config": CONFIG, "data_checksum": "d", "code_hash": "c", "device_type": "cpu"} | changes
    )


def test_the_hash_moves_with_each_thing_that_decides_a_run():
    other_config = CONFIG.with_values({"train.learning_rate": 3e-3})
    hashes = [
        k.run_hash
        for k in (
            key(),
            key(config=other_config),
            key(data_checksum="e"),
            key(code_hash="x"),
            key(device_type="cuda"),
        )
    ]
    assert len(set(hashes)) == len(hashes)
    assert key().run_hash == key(config=CONFIG.with_values({})).run_hash


def test_a_run_is_finished_when_its_record_is_there(tmp_path):
    folder = RunFolder(key(), tmp_path)
    folder.start()
    assert folder.record() is None
    folder.finish({"run_hash": key().run_hash, "metrics": {}})
    assert folder.record()["metrics"] == {}
    folder.forget()
    assert folder.record() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_hash": "another"}'])
def test_a_damaged_record_is_named_and_never_taken(tmp_path, text):
    folder = RunFolder(key(), tmp_path)
    folder.start()
    (folder.path / "record.json").write_text(text)
    with pytest.raises(UserError, match=r"record\.json is damaged"):
        folder.record()


def test_code_hash_follows_imports_and_nothing_else(tmp_path, monkeypatch):
    for name, text in {
        "losses/__init__.py": "",
        "losses/a.py": "def f():\n    from common.b import g\n    return g()\n",
        "losses/unrelated.py": "",
        "common/__init__.py": "",
        "common/b.py": "import math\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(code_hash, "ROOT", tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in code_hash.source_files(["losses.a"])]
    assert names == ["common/__init__.py", "common/b.py", "losses/__init__.py", "losses/a.py"]
    before = code_hash.code_hash(["losses.a"])
    (tmp_path / "losses/unrelated.py").write_text("x = 1")
    assert code_hash.code_hash(["losses.a"]) == before
    (tmp_path / "common/b.py").write_text("import math\n\n")
    assert code_hash.code_hash(["losses.a"]) != before


def test_the_training_loop_is_part_of_the_code_that_counts():
    names = {path.name for path in code_hash.source_files(["reproduce.execute"])}
    assert {"execute.py", "train.py", "step.py", "optimise.py", "sampler.py", "errors.py"} <= names
    assert not {"markdown.py", "pareto.py", "check.py"} & names


def network_and_optimizer(seed: int):
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    return model, optimizer


def one_step(model, optimizer):
    optimizer.zero_grad()
    (model(torch.randn(4, 3)) ** 2).sum().backward()
    optimizer.step()


def test_a_checkpoint_brings_back_everything_to_the_last_bit(tmp_path):
    path = tmp_path / "checkpoint.pt"
    model, optimizer = network_and_optimizer(0)
    one_step(model, optimizer)
    checkpoint.save(path, "h", {"model": model, "optimizer": optimizer}, {"step": 1})
    one_step(model, optimizer)
    expected, numbers = model.weight.clone(), np.random.rand(3)

    again, again_optimizer = network_and_optimizer(1)
    parts = {"model": again, "optimizer": again_optimizer}
    assert checkpoint.restore(path, "h", parts) == {"step": 1}
    one_step(again, again_optimizer)
    assert torch.equal(again.weight, expected)
    assert np.array_equal(np.random.rand(3), numbers)


def test_no_checkpoint_is_a_fresh_start(tmp_path):
    assert checkpoint.restore(tmp_path / "none.pt", "h", {}) is None


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    checkpoint.save(tmp_path / "c.pt", "one", {}, {})
    with pytest.raises(UserError, match="belongs to run one"):
        checkpoint.restore(tmp_path / "c.pt", "two", {})


def test_a_broken_checkpoint_is_named(tmp_path):
    path = tmp_path / "c.pt"
    checkpoint.save(path, "h", {}, {})
    whole = path.read_bytes()
    for damaged in (b"", whole[:-50], whole[:10], b"\x80\x04" + whole):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="is damaged"):
            checkpoint.restore(path, "h", {})
