"""Recipes at paper scale train on generated trees in the data sets' official layouts."""

import pytest

from reproduce.config import load
from reproduce.execute import execute
from reproduce.runtime import Runtime
from reproduce.table import plan
from reproduce.tables import TABLES
from tests.datasets.trees import (
    make_cars_old,
    make_cub,
    make_digiface,
    make_inaturalist,
    make_sop,
    numbered,
)
from tests.reproduce.stand_ins import reduced


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Six classes of three images in both splits of each data set; 40 people of five images."""
    folder = tmp_path_factory.mktemp("data")
    sizes = [3] * 6
    make_cub(folder, sizes, sizes)
    make_sop(folder, sizes, sizes)
    for name in ("cars", "inaturalist", "digiface"):
        (folder / name).mkdir()
    make_cars_old(folder / "cars", numbered(sizes) + numbered(sizes, 99))
    make_inaturalist(folder / "inaturalist", sizes, sizes)
    make_digiface(folder / "digiface", 0, 40)
    return folder


def start(config, root, tmp_path) -> dict:
    runtime = Runtime(data_root=root, runs=tmp_path / "runs", progress=False, device="cpu")
    record = execute(reduced(config), runtime)
    assert 0 <= record["metrics"]["recall_at_1"] <= 1
    assert record["training_images"] > 0
    return record


@pytest.mark.parametrize(
    ("name", "tcm"),
    [
        ("inaturalist_smooth_ap_resnet50", True),
        ("cub_hier_dino_vits16", False),
        ("cars_recall_at_k_vit_b16", True),
        ("merged_proxy_anchor_vit_b16", True),
        ("digiface_oneface_iresnet50", True),
    ],
)
def test_a_recipe_starts(root, tmp_path, name, tcm):
    config = load(f"paper/{name}")
    start(config.with_values({"loss.tcm": {}}) if tcm else config, root, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("table", TABLES)
def test_every_row_of_every_table_starts(root, tmp_path, table):
    names = {}
    for planned in plan(TABLES[table], "paper", seeds=1):
        record = start(planned.config, root, tmp_path)
        names.setdefault(planned.row.name, []).append(record["config_hash"])
    hashes = [one for hashes in names.values() for one in hashes]
    # The stand-in of two backbones may be one network; all else tells rows apart.
    assert len(set(hashes)) >= len(names) - 1
