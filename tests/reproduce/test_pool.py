"""Runs of several tables as one."""

import pandas as pd

from reproduce.pool import pool


def table(*lines) -> pd.DataFrame:
    columns = ["row", "seed", "config_hash"]
    frame = pd.DataFrame(lines, columns=columns)
    return frame.assign(dataset="d", backbone="b", loss="l", run_hash=frame["config_hash"])


def test_a_run_that_two_tables_share_counts_once_under_its_first_name():
    found = pool(
        {
            "one": table(("A", 0, "x"), ("A", 1, "y")),
            "two": table(("default cell", 0, "x"), ("lambda 1", 0, "x"), ("B", 0, "z")),
        }
    )
    assert found[["row", "config_hash"]].to_numpy().tolist() == [["A", "x"], ["A", "y"], ["B", "z"]]


def test_two_recipes_of_one_name_are_told_apart_and_keep_their_bases():
    frames = {
        "one": table(("A", 0, "x"), ("A+TCM", 0, "y")),
        "faces": table(("A", 0, "p"), ("A+TCM", 0, "q"), ("C+TCM", 0, "r")),
    }
    bases = {"one": {"A+TCM": "A"}, "faces": {"A+TCM": "A", "C+TCM": "A"}}
    found = pool(frames, bases).set_index("config_hash")
    assert found.loc["y", ["row", "base"]].tolist() == ["A+TCM", "A"]
    assert found.loc["q", ["row", "base"]].tolist() == ["A+TCM (faces)", "A (faces)"]
    assert found.loc["r", ["row", "base"]].tolist() == ["C+TCM", "A (faces)"]


def test_more_seeds_of_one_recipe_in_another_table_join_it():
    frames = {"one": table(("A", 0, "x")), "two": table(("A", 0, "x"), ("A", 1, "y"))}
    assert pool(frames)["row"].tolist() == ["A", "A"]


def test_step_times_are_no_runs():
    times = pd.DataFrame({"row": ["A"], "base_ms": [1.0]})
    assert len(pool({"one": table(("A", 0, "x")), "time_complexity": times})) == 1
