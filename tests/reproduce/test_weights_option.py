"""Weights files for single backbones of a table, and where they end up."""

from pathlib import Path

import torch

from common.errors import run_cli
from reproduce import table_cli
from reproduce.build import build_model
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.table import Row, Table
from reproduce.weights_option import TableRuntime, of_backbone, parse
from tests.reproduce import tiny

BACKBONES = {"resnet50", "vit_base_patch16_224"}


def test_a_text_is_for_one_backbone_or_for_all_others():
    assert parse([], BACKBONES) == (None, {})
    assert parse(["a.pt"], BACKBONES) == (Path("a.pt"), {})
    texts = ["resnet50=r=1.pt", "rest.pt"]
    assert parse(texts, BACKBONES) == (Path("rest.pt"), {"resnet50": Path("r=1.pt")})
    # Nothing of this name here: a path, which is then said to be missing.
    assert parse(["resnet5=r.pt"], BACKBONES) == (Path("resnet5=r.pt"), {})


def test_runs_get_the_file_of_their_backbone():
    runtime = TableRuntime(weights=Path("rest.pt"), weights_of={"resnet50": Path("r.pt")})
    assert of_backbone(runtime, "resnet50") == Runtime(weights=Path("r.pt"))
    assert of_backbone(runtime, "glyph_cnn") == Runtime(weights=Path("rest.pt"))
    assert of_backbone(Runtime(), "glyph_cnn") == Runtime()
    absolute = runtime.absolute()
    assert absolute.weights_of == {"resnet50": Path.cwd() / "r.pt"}
    assert absolute.runs.is_absolute()
    assert absolute.data_root is None


def test_a_table_of_two_backbones_takes_a_file_for_each(tmp_path, capsys):
    small, large = tiny.config(), tiny.config(**{"model.options": {"width": 8}})
    vit = {"model.backbone": "glyph_vit", "model.options": {"pooling": "token"}}
    rows = (
        Row("CNN", "demo/kanji_proxy_anchor", tiny.VALUES),
        Row("ViT", "demo/kanji_proxy_anchor", tiny.VALUES | vit),
    )
    made = Table("two", "Two backbones", {"demo": rows}, {"demo": 1})
    source = Keys(Runtime()).source(small)
    files = {}
    for name, config in (("glyph_cnn", small), ("glyph_vit", tiny.config(**vit)), ("no", large)):
        files[name] = tmp_path / f"{name}.pt"
        model = build_model(config, source, Runtime()).network.backbone
        torch.save(model.state_dict(), files[name])

    def dry_run(*weights: str) -> int:
        options = [*tiny.arguments(tmp_path), "--dry-run", *(f"--weights={w}" for w in weights)]
        return run_cli(lambda argv: table_cli.main(made, argv), options)

    of_each = [f"{name}={files[name]}" for name in ("glyph_cnn", "glyph_vit")]
    assert dry_run(*of_each) == 0
    assert dry_run(of_each[0], str(files["glyph_vit"])) == 0
    assert dry_run(f"glyph_cnn={files['no']}", of_each[1]) == 1
    assert "does not fit this network" in capsys.readouterr().out
    # The content of a file is part of what decides the run.
    keys = Keys(TableRuntime(weights_of={"glyph_cnn": files["glyph_cnn"]}))
    assert keys.of(small).run_hash != Keys(Runtime()).of(small).run_hash
    vit_config = tiny.config(**vit)
    assert keys.of(vit_config).run_hash == Keys(Runtime()).of(vit_config).run_hash
