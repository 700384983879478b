"""The run store: what makes two runs the same, and files that are whole or absent."""

from pathlib import Path

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
            key(weights_sha256="f"),
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


def states(folder: Path, **changes) -> checkpoint.Checkpoint:
    return checkpoint.Checkpoint((folder / "c.pt", folder / "c.previous.pt"), key(**changes))


def test_a_checkpoint_brings_back_everything_to_the_last_bit(tmp_path):
    model, optimizer = network_and_optimizer(0)
    one_step(model, optimizer)
    states(tmp_path).save({"model": model, "optimizer": optimizer}, {"step": 1})
    one_step(model, optimizer)
    expected, numbers = model.weight.clone(), np.random.rand(3)

    again, again_optimizer = network_and_optimizer(1)
    parts = {"model": again, "optimizer": again_optimizer}
    assert states(tmp_path).restore(parts) == {"step": 1}
    one_step(again, again_optimizer)
    assert torch.equal(again.weight, expected)
    assert np.array_equal(np.random.rand(3), numbers)


def test_no_checkpoint_is_a_fresh_start(tmp_path):
    assert states(tmp_path).restore({}) is None


def test_a_checkpoint_of_another_run_is_refused_with_the_keys_that_differ(tmp_path):
    other = CONFIG.with_values({"train.learning_rate": 3e-3, "loss.tcm": {}})
    states(tmp_path, config=other, code_hash="x").save({}, {})
    with pytest.raises(UserError) as caught:
        states(tmp_path).restore({})
    message = str(caught.value)
    assert "train.learning_rate (0.003 there, 0.005 here)" in message
    assert "code_hash (x there, c here)" in message
    assert "loss.tcm" in message
    assert "train.epochs" not in message


def flip_a_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {
    "empty": lambda content: b"",
    "cut by a little": lambda content: content[:-50],
    "cut to almost nothing": lambda content: content[:10],
    "bytes in front": lambda content: b"\x80\x04" + content,
    "a flipped bit": flip_a_bit,
    "of another format": lambda content: content[:-32].replace(b"PK", b"XY") + content[-32:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_checkpoint_is_said_and_the_one_before_it_is_used(tmp_path, damage):
    model, _ = network_and_optimizer(0)
    states(tmp_path).save({"model": model}, {"step": 1})
    first = model.weight.clone()
    torch.nn.init.zeros_(model.weight)
    states(tmp_path).save({"model": model}, {"step": 2})
    path = tmp_path / "c.pt"
    path.write_bytes(damage(path.read_bytes()))
    found = states(tmp_path)
    assert found.restore({"model": model}) == {"step": 1}
    assert torch.equal(model.weight, first)
    assert len(found.remarks) == 1
    assert f"{path} is damaged" in found.remarks[0]
    assert "going on from" in found.remarks[0]
    before = tmp_path / "c.previous.pt"
    before.write_bytes(damage(before.read_bytes()))
    with pytest.raises(UserError, match=r"c\.pt is damaged.*c\.previous\.pt is damaged.*delete"):
        states(tmp_path).restore({"model": model})


def test_a_kill_between_the_two_renames_costs_one_checkpoint(tmp_path):
    states(tmp_path).save({}, {"step": 1})
    states(tmp_path).save({}, {"step": 2})
    (tmp_path / "c.pt").unlink()
    assert states(tmp_path).restore({}) == {"step": 1}


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    folder = RunFolder(key(), tmp_path)
    folder.start()
    (folder.path / ".tmp-abc.pt").write_bytes(b"half")
    folder.tidy()
    assert [path.name for path in folder.path.iterdir()] == ["config.yaml"]


def test_a_finished_run_keeps_no_checkpoint(tmp_path):
    folder = RunFolder(key(), tmp_path)
    for step in range(2):
        checkpoint.Checkpoint(folder.checkpoints, key()).save({}, {"step": step})
    assert all(path.exists() for path in folder.checkpoints)
    folder.finish({"run_hash": key().run_hash})
    assert not any(path.exists() for path in folder.checkpoints)
