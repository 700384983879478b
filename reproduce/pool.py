"""The runs of all tables as one, each run once, for figures and claims that look across tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

PLACE = ("row", "dataset", "backbone", "loss")


def pool(
    frames: Mapping[str, pd.DataFrame],
    bases: Mapping[str, Mapping[str, str | None]] | None = None,
) -> pd.DataFrame:
    """All runs of all tables; two rows of one configuration, whatever their names, count once.

    Two tables may call different recipes by one name (``ArcFace`` with the margin of retrieval and
    with that of faces): the later one then gets its table's name, ``ArcFace (digiface)``.

    Args:
        frames: results by table; step times, which have no configuration of a run, are left out.
        bases: by table and row, the row that it adds something to; becomes the column ``base``.
    """
    seen: dict[tuple, str] = {}
    known: set[str] = set()
    kept = []
    for table, frame in frames.items():
        if "run_hash" not in frame:
            continue
        frame = frame.assign(base=frame["row"].map((bases or {}).get(table, {}).get))
        frame = frame[~frame["config_hash"].isin(known)].drop_duplicates("config_hash")
        known |= set(frame["config_hash"])
        clashing = [line["row"] for line in frame.to_dict("records") if _clashes(line, seen)]
        names = {row: f"{row} ({table})" for row in clashing}
        for line in frame.to_dict("records"):
            seen.setdefault(_key(line), line["config_hash"])
        kept.append(
            frame.assign(row=frame["row"].replace(names), base=frame["base"].replace(names))
        )
    return pd.concat(kept, ignore_index=True)


def _clashes(line: dict, seen: dict[tuple, str]) -> bool:
    """Whether the name and seed stand for another configuration already."""
    return seen.get(_key(line), line["config_hash"]) != line["config_hash"]


def _key(line: dict) -> tuple:
    return (*(line[name] for name in PLACE), line["seed"])
