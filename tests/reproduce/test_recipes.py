"""The recipes as data: each builds, names its sources, and agrees with what was published."""

import json
import re
from functools import cache

import pytest

import models
from reproduce.build import build_loss
from reproduce.config import CONFIG_FOLDER, load
from reproduce.table import plan
from reproduce.tables import TABLES
from tests.reproduce.stand_ins import BACKBONES, SIDE, reduced

NAMES = sorted(
    str(path.relative_to(CONFIG_FOLDER).with_suffix(""))
    for path in CONFIG_FOLDER.rglob("*.yaml")
    if not path.name.startswith("_")
)
# Recipes that no table's row names: published ones for other backbones, further face losses, and
# fine-tuning on photographs.
BESIDE_TABLES = {
    "photos/cars_half_proxy_anchor",
    "paper/cars_recall_at_k_vit_b32",
    "paper/cub_recall_at_k_vit_b32",
    "paper/inaturalist_recall_at_k_vit_b32",
    "paper/sop_recall_at_k_vit_b32",
    "paper/sop_arcface_resnet50",
    "paper/digiface_curricular_face_iresnet50",
}


@cache
def network_builds(backbone: str, side: int, options: str) -> bool:
    models.build(backbone, 16, image_size=side, **json.loads(options))
    return True


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_builds_its_network_and_loss(name):
    config = reduced(load(name))
    channels = {"in_channels": 1} if config.data.name == "glyphs" else {}
    options = json.dumps({**channels, **config.model.options}, sort_keys=True)
    assert network_builds(config.model.backbone, SIDE, options)
    assert build_loss(config, num_classes=6) is not None


def test_recipes_at_paper_scale_start_from_pinned_weights():
    for name in NAMES:
        config = load(name)
        if name.startswith("paper/") and config.model.backbone in BACKBONES:
            assert config.model.options["pretrained"] is True, name
            assert config.model.backbone in models.PINNED, name


def test_every_recipe_is_a_row_or_is_listed_here_and_every_base_is_used():
    rows = {row.config for table in TABLES.values() for rows in table.rows.values() for row in rows}
    assert set(NAMES) - rows == BESIDE_TABLES
    texts = [path.read_text() for path in CONFIG_FOLDER.rglob("*.yaml")]
    named = {word for text in texts for word in re.findall(r"\b_\w+", text)}
    assert {path.stem for path in CONFIG_FOLDER.rglob("_*.yaml")} <= named


@pytest.mark.parametrize(
    "path", sorted((CONFIG_FOLDER / "paper").glob("*.yaml")), ids=lambda p: p.stem
)
def test_every_recipe_at_paper_scale_begins_with_its_source(path):
    comment = " ".join(
        line.removeprefix("# ")
        for line in path.read_text().partition("base:")[0].splitlines()
        if line.startswith("#")
    )
    assert re.search(r"\b([Cc]ode|README|paper|[Oo]urs?|authors|issue)\b", comment), path.name


# Written apart from the files: batch, optimiser, epochs, rate, milestones as published.
RECALL_AT_K = {
    "inaturalist_recall_at_k_resnet50": (4000, "adam", 90, 1e-4, (40, 70), 200),
    "inaturalist_recall_at_k_vit_b32": (4000, "adamw", 90, 5e-5, (10, 40, 70), 200),
    "inaturalist_recall_at_k_vit_b16": (4000, "adamw", 90, 5e-5, (10, 40, 70), 100),
    "sop_recall_at_k_resnet50": (4000, "adam", 55, 2e-4, (25, 50), 200),
    "sop_recall_at_k_vit_b32": (4000, "adamw", 55, 5e-5, (25, 50), 200),
    "sop_recall_at_k_vit_b16": (4000, "adamw", 55, 5e-5, (25, 50), 100),
    "cars_recall_at_k_resnet50": (392, "adam", 170, 1e-4, (80, 140), 98),
    "cars_recall_at_k_vit_b32": (392, "adamw", 50, 3e-5, (20, 30, 40), 98),
    "cars_recall_at_k_vit_b16": (392, "adamw", 50, 1e-5, (20, 30, 40), 98),
    "cub_recall_at_k_resnet50": (400, "adam", 40, 1e-4, (10, 20, 30), 100),
    "cub_recall_at_k_vit_b32": (400, "adamw", 40, 3e-5, (10, 20, 30), 100),
    "cub_recall_at_k_vit_b16": (400, "adamw", 40, 1e-5, (10, 20, 30), 100),
}


@pytest.mark.parametrize("name", RECALL_AT_K)
def test_recall_at_k_as_published(name):
    config = load(f"paper/{name}")
    train = config.train
    assert (
        train.classes_per_batch * train.images_per_class,
        train.optimiser,
        train.epochs,
        train.learning_rate,
        train.schedule.milestones,
        train.chunk_size,
    ) == RECALL_AT_K[name]
    assert (train.schedule.name, train.schedule.gamma) == ("multi_step", 0.3)
    assert (train.weight_decay, train.images_per_class) == (4e-4, 4)
    assert (config.model.embedding_dim, config.data.image_size, config.data.resize) == (
        512,
        224,
        256,
    )
    pooling = "gem" if "resnet50" in name else "token"
    assert config.model.options["pooling"] == pooling
    assert config.model.options.get("freeze_batch_norm", False) == ("resnet50" in name)
    assert config.data.name == name.split("_")[0]


# batch, rate, epochs with the head alone, step, gamma, frozen BatchNorm.
PROXY_ANCHOR = {
    "cub_proxy_anchor_resnet50": (120, 1e-4, 5, 5, 0.5, True),
    "cars_proxy_anchor_resnet50": (120, 1e-4, 5, 10, 0.5, True),
    "sop_proxy_anchor_resnet50": (180, 6e-4, 1, 20, 0.25, False),
    "inaturalist_proxy_anchor_resnet50": (180, 6e-4, 1, 20, 0.25, False),
}


@pytest.mark.parametrize("name", PROXY_ANCHOR)
def test_proxy_anchor_as_published(name):
    config = load(f"paper/{name}")
    train, options = config.train, config.model.options
    assert (
        train.classes_per_batch * train.images_per_class,
        train.learning_rate,
        train.head_only_epochs,
        train.schedule.step_size,
        train.schedule.gamma,
        options.get("freeze_batch_norm_affine", False),
    ) == PROXY_ANCHOR[name]
    assert (train.epochs, train.weight_decay, train.clip_value) == (60, 1e-4, 10)
    assert (train.proxy_lr_scale, options["pooling"]) == (100, "average_max")
    assert config.loss.options == {"alpha": 32, "margin": 0.1}


@pytest.mark.parametrize("data", ["cars", "cub"])
def test_hier_as_released(data):
    config = load(f"paper/{data}_hier_dino_vits16")
    train, loss = config.train, config.loss.options
    assert (train.learning_rate, train.epochs, train.weight_decay) == (5e-6, 100, 1e-2)
    assert (train.classes_per_batch, train.images_per_class) == (90, 2)
    # Rates of the two kinds of proxies, as numbers: 5e-6 x 1e4 and 5e-6 x 50.
    assert train.learning_rate * train.proxy_lr_scale == pytest.approx(0.05)
    assert train.learning_rate * train.hierarchy_lr_scale == pytest.approx(2.5e-4)
    assert (loss["proxies"], loss["neighbours"], loss["weight"]) == (512, 20, 0.5)
    assert (loss["temperature"], loss["hierarchy_margin"], loss["margin"]) == (0.1, 0.1, 0.1)
    assert loss["curvature"] == config.model.options["curvature"] == config.evaluation.curvature
    assert (config.model.embedding_dim, config.evaluation.distance) == (384, "poincare")
    assert config.data.crop_scale == (0.2, 1.0)
    base = load(f"paper/{data}_hyperbolic_proxy_anchor_dino_vits16")
    assert (base.model, base.data, base.evaluation) == (
        config.model,
        config.data,
        config.evaluation,
    )
    assert base.train == train.model_copy(update={"hierarchy_lr_scale": 1.0})


@pytest.mark.parametrize("scale", ["demo", "paper"])
@pytest.mark.parametrize("table", TABLES)
def test_a_row_with_tcm_differs_from_its_base_by_tcm_alone(table, scale):
    rows = {}
    for run in plan(TABLES[table], scale, seeds=1):
        # A row's name may stand once per data set and backbone.
        key = run.key_columns(table)
        rows[run.row.name, key["dataset"], key["backbone"]] = run
    for (name, *place), run in rows.items():
        if name.endswith("+TCM") and run.row.base is not None:
            base = rows[(run.row.base, *place)].config
            assert base.loss.tcm is None
            assert run.config == base.with_values({"loss.tcm": {}})


def test_tables_of_the_demo_share_their_runs():
    def run_of(table: str, row: str):
        return next(r.config for r in plan(TABLES[table], "demo") if r.row.name == row)

    shared = run_of("table2", "RS@K+TCM")
    assert shared == run_of("indicator_ablation", "RS@K+TCM")
    assert shared == run_of("margin_ablation", "m+ 0.9, m- 0.5")
    assert shared == run_of("margin_ablation", "lambda 1.0")
    assert run_of("table2", "Smooth-AP") == run_of("bases", "Smooth-AP")
    assert run_of("table2", "RS@K") == run_of("margin_ablation", "RS@K")
