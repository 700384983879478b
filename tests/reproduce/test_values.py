"""The file of the paper's numbers has a cell for every row that the paper has, filled or empty."""

import pytest

from reproduce import reference
from reproduce.table import plan
from reproduce.tables import TABLES

# Grids and further bases are our choice: the paper has no cells for them.
OURS = {"margin_ablation", "bases"}
COLUMNS = ["table", "row", "dataset", "backbone"]


def cells() -> set[tuple[str, ...]]:
    frame = reference.values()
    return set(frame[[*COLUMNS, "metric"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("table", sorted(set(TABLES) - OURS))
def test_every_row_at_paper_scale_has_its_cells(table):
    known = cells()
    for run in plan(TABLES[table], "paper", seeds=1):
        key = run.key_columns(table)
        if table == "indicator_ablation":  # its setting in the paper is not known
            key |= {"dataset": "", "backbone": ""}
        metrics = ["recall_at_1", "opis"] + ["tar_at_far_0.0001"] * (table == "digiface")
        for metric in metrics:
            assert (*(key[name] for name in COLUMNS), metric) in known


def test_each_cell_stands_once_and_says_how_sure_it_is():
    frame = reference.values()
    assert not frame.duplicated([*COLUMNS, "metric"]).any()
    known = frame["value"].notna()
    assert set(frame.loc[known, "confidence"]) == {"read", "secondary"}
    assert set(frame.loc[~known, "confidence"]) == {"unknown"}
    assert (frame["note"] != "").all()
    assert ((frame["value"] > 0) & (frame["value"] < 1))[known].all()


def test_no_number_of_the_paper_with_tcm_has_a_setting():
    """Of TCM's own rows only the six of the appendix are known, and those without their setting."""
    frame = reference.values()
    tcm = frame[frame["row"].str.contains("TCM") & frame["value"].notna()]
    assert len(tcm) == 6
    assert (tcm["dataset"] == "").all()
    assert (tcm["backbone"] == "").all()
