"""Figs. 1 and 2: per-class utility curves of base losses beside themselves with TCM.

    python -m reproduce.utility --scale demo

Curves and similarity histograms of finished runs are copied from the run folders into
``results/<scale>/figures/<table>_utility.csv`` and ``_similarity.csv``; the figure is drawn from
those alone, so that it can be drawn again where the runs are not.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.utility")

import argparse
from pathlib import Path

import pandas as pd

from common.atomic import atomic_path
from common.errors import UserError, run_cli
from reproduce import curve_data, results
from reproduce.figures import curves
from reproduce.table import TCM_SUFFIX, Table
from reproduce.tables import TABLES


def main(argv: list[str]) -> int:
    """Draws one table's figure, or those of all tables that have results."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.utility", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--table", choices=TABLES, help="default: all that have results")
    parser.add_argument("--scale", choices=("demo", "paper"), default="demo")
    parser.add_argument("--seed", type=int, default=0, help="which runs to show")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run store")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    options = parser.parse_args(argv)
    tables = [TABLES[options.table]] if options.table else list(TABLES.values())
    drawn = 0
    for table in tables:
        path = results.csv_path(table.name, options.scale, options.results)
        if options.table or path.exists():
            figure = draw(table, path, options.seed, options.runs)
            drawn += figure is not None
            print(f"wrote {figure}" if figure else f"{table.name}: no row with TCM beside its base")
    if not drawn:
        raise UserError(
            f"no results with and without TCM under {options.results / options.scale}: run "
            "python -m reproduce.table2 first"
        )
    return 0


def draw(table: Table, path: Path, seed: int, runs: Path) -> Path | None:
    """Brings the two CSVs of a table up to date and draws its figure; None without a pair.

    Args:
        path: of the table's results CSV.
        seed: of the runs to show.
        runs: the run store; needed for the runs that the CSVs do not have yet.

    Raises:
        UserError: a run that is needed is not in the store.
    """
    pairs = _pairs(results.read(path), seed)
    if not pairs:
        return None
    folder = path.parent / "figures"
    kept = [_kept(folder / f"{table.name}_{kind}.csv") for kind in ("utility", "similarity")]
    parts = [_of_pair(base, other, kept, runs) for base, other in pairs]
    frames = []
    for i, kind in enumerate(("utility", "similarity")):
        data = pd.concat([part[i] for part in parts], ignore_index=True)
        file = folder / f"{table.name}_{kind}.csv"
        with atomic_path(file) as temporary:
            data.to_csv(temporary, index=False, float_format="%.5g", lineterminator="\n")
        # Drawn from what was written, so that it can be drawn again to the same bytes.
        frames.append(_kept(file))
    return curves.draw(*frames, table.title, folder / f"{table.name}_utility")


def _pairs(frame: pd.DataFrame, seed: int) -> list[tuple[dict, dict]]:
    """(base, base with TCM) of one seed, on every data set and backbone that has both."""
    rows = {
        (row["row"], row["dataset"], row["backbone"]): row
        for row in frame[frame["seed"] == seed].to_dict("records")
    }
    return [
        (row, rows[with_tcm])
        for (name, *where), row in rows.items()
        if (with_tcm := (name + TCM_SUFFIX, *where)) in rows
    ]


def _of_pair(base: dict, other: dict, kept: list[pd.DataFrame], runs: Path):
    """The pair's curves and histograms: those kept, where they are of these very runs."""
    hashes = [base["run_hash"], other["run_hash"]]
    if len(kept[0]) and set(hashes) <= set(kept[0]["run_hash"]):
        return [frame[frame["run_hash"].isin(hashes)] if len(frame) else frame for frame in kept]
    return curve_data.of_pair(base, other, runs)


def _kept(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype={"run_hash": str})
    except (FileNotFoundError, pd.errors.EmptyDataError):
        return pd.DataFrame()


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
