"""Fig. 6: R@1 and OPIS over TCM's margins and weight, from the results of margin_ablation.

    python -m reproduce.margins --scale demo

Drawn from the results CSV alone; nothing is trained.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.margins")

from pathlib import Path

from common.errors import UserError, run_cli
from reproduce import results
from reproduce.config import load
from reproduce.figures import margins
from reproduce.results_parser import results_parser
from reproduce.tables import TABLES

TABLE = "margin_ablation"


def main(argv: list[str]) -> int:
    """Draws ``results/<scale>/figures/margin_ablation``."""
    parser = results_parser("margins", __doc__)
    options = parser.parse_args(argv)
    print(f"wrote {draw(options.scale, options.results)}")
    return 0


def draw(scale: str, root: Path = results.RESULTS) -> Path:
    """Reads the table's results and draws the figure; returns the PNG's path.

    Raises:
        UserError: no results, one that cannot be trusted, or a row that the table does not have.
    """
    path = results.csv_path(TABLE, scale, root)
    frame = results.read(path)
    rows = TABLES[TABLE].rows[scale]
    settings = {row.name: load(row.config).with_values(row.values).loss.tcm for row in rows}
    for row in frame["row"]:
        if row not in settings:
            raise UserError(f"{path}: row {row!r} is not among the table's rows; rerun the table")
    return margins.draw(frame, settings, TABLES[TABLE].title, path.parent / "figures" / TABLE)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
