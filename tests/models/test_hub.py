"""One quick question to the hub before a download: who is asked, how often, and what is said."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub.constants
import pytest
import timm

import models
from common.errors import UserError
from models import hub

TAG = "resnet18.tv_in1k"


class Session:
    """Stands for the hub client's session, and counts requests; ``answer`` may be an exception."""

    def __init__(self, answer: object) -> None:
        self.answer, self.timeouts = answer, []

    def head(self, url: str, timeout: float) -> object:
        self.timeouts.append(timeout)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def cache(monkeypatch, tmp_path: Path) -> Path:
    """An empty cache of the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def ask_through(monkeypatch, answer: object) -> Session:
    session = Session(answer)
    monkeypatch.setattr(hub, "get_session", lambda: session)
    return session


def test_without_network_there_is_one_short_request_and_no_download(monkeypatch, cache) -> None:
    session = ask_through(monkeypatch, OSError("Name or service not known\nand more"))
    monkeypatch.setattr(timm, "create_model", lambda *a, **k: pytest.fail("tried to download"))
    with pytest.raises(UserError) as caught:
        models.build(TAG, 8, pretrained=True)
    assert session.timeouts == [hub.SECONDS]
    assert hub.SECONDS <= 10
    assert str(caught.value) == (
        f"the weights of {TAG} could not be had (Name or service not known): fetch them elsewhere "
        "and pass --weights FILE, or set model.options.pretrained=random"
    )


def test_any_answer_lets_timm_try(monkeypatch, cache) -> None:
    session = ask_through(monkeypatch, "403, whatever that means")
    asked = []

    def download(tag: str, pretrained: bool, **options):
        asked.append((tag, pretrained))
        raise RuntimeError("refused")

    monkeypatch.setattr(timm, "create_model", download)
    with pytest.raises(UserError, match=r"could not be had \(refused\)"):
        models.build(TAG, 8, pretrained=True)
    assert asked == [(TAG, True)]
    assert len(session.timeouts) == 1


@pytest.mark.parametrize("name", hub.FILES)
def test_cached_weights_need_no_answer(monkeypatch, cache, name: str) -> None:
    session = ask_through(monkeypatch, OSError("no network"))
    config = timm.get_pretrained_cfg(TAG)
    folder = cache / f"models--{config.hf_hub_id.replace('/', '--')}"
    for path, text in ((folder / "refs/main", "c0ffee"), (folder / "snapshots/c0ffee" / name, "")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    hub.check_hub(TAG, config)
    assert session.timeouts == []
    (folder / "snapshots/c0ffee" / name).unlink()
    with pytest.raises(UserError, match="no network"):
        hub.check_hub(TAG, config)


@pytest.mark.parametrize("options", [{"pretrained": "random"}, {"pretrained": False}])
def test_random_weights_ask_nobody(monkeypatch, cache, options: dict) -> None:
    session = ask_through(monkeypatch, OSError("no network"))
    models.build(TAG, 8, **options)
    assert session.timeouts == []
