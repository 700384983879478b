"""Figs. 1 and 2: per-class utility curves of base losses beside themselves with TCM; DET curves.

    python -m reproduce.utility --scale demo

Curves, similarity histograms and error rates of finished runs are copied from the run folders into
``results/<scale>/figures/<table>_utility.csv``, ``_similarity.csv`` and ``_det.csv``. The figures
are drawn from those alone, so that they can be drawn again where the runs are not. Beside them,
``_choices.csv`` has the OPIS of the same runs under other choices, for the report.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.utility")

from pathlib import Path

import pandas as pd

from common.atomic import atomic_path
from common.errors import UserError, run_cli
from reproduce import curve_data, results
from reproduce.figures import curves, det
from reproduce.results_parser import results_parser
from reproduce.table import TCM_SUFFIX, Table
from reproduce.tables import TABLES


def main(argv: list[str]) -> int:
    """Draws one table's figure, or those of all tables that have results."""
    parser = results_parser("utility", __doc__)
    parser.add_argument("--table", choices=TABLES, help="default: all that have results")
    parser.add_argument("--seed", type=int, default=0, help="which runs to show")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run store")
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
    """Brings the CSVs of a table up to date and draws its figure; None without a pair.

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
    files = {kind: folder / f"{table.name}_{kind}.csv" for kind in curve_data.KINDS}
    kept = {kind: _kept(file) for kind, file in files.items()}
    parts = [_of_pair(base, other, kept, runs) for base, other in pairs]
    for kind, file in files.items():
        data = pd.concat([part[kind] for part in parts], ignore_index=True)
        with atomic_path(file) as temporary:
            data.to_csv(temporary, index=False, float_format="%.5g", lineterminator="\n")
    # Drawn from what was written, so that it can be drawn again to the same bytes.
    utility, similarity, rates = (_kept(files[kind]) for kind in curve_data.KINDS[:3])
    det.draw(rates, table.title, folder / f"{table.name}_det")
    return curves.draw(utility, similarity, table.title, folder / f"{table.name}_utility")


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


def _of_pair(
    base: dict, other: dict, kept: dict[str, pd.DataFrame], runs: Path
) -> dict[str, pd.DataFrame]:
    """What is drawn of a pair: that which is kept, where it is of these very runs."""
    hashes = {base["run_hash"], other["run_hash"]}
    # Hyperbolic runs have no similarities.
    needed = [kept[kind] for kind in curve_data.KINDS if kind != "similarity"]
    if all(len(frame) and hashes <= set(frame["run_hash"]) for frame in needed):
        return {
            kind: frame[frame["run_hash"].isin(hashes)] if len(frame) else frame
            for kind, frame in kept.items()
        }
    return curve_data.of_pair(base, other, runs)


def _kept(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype={"run_hash": str})
    except (FileNotFoundError, pd.errors.EmptyDataError):
        return pd.DataFrame()


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
