"""Fig. 3: every finished run of every table in one accuracy-consistency plane per data set.

    python -m reproduce.pareto --scale demo

Drawn from the results CSVs alone; nothing is trained.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.pareto")

from pathlib import Path

from common.errors import UserError, run_cli
from reproduce import results
from reproduce.figures import plane
from reproduce.pool import pool
from reproduce.results_parser import results_parser
from reproduce.tables import TABLES


def main(argv: list[str]) -> int:
    """Draws ``results/<scale>/figures/pareto``."""
    parser = results_parser("pareto", __doc__)
    options = parser.parse_args(argv)
    print(f"wrote {draw(options.scale, options.results)}")
    return 0


def draw(scale: str, root: Path = results.RESULTS) -> Path:
    """Reads all results of a scale and draws the figure; returns the PNG's path.

    Raises:
        UserError: no results, or a CSV that cannot be trusted.
    """
    paths = {name: results.csv_path(name, scale, root) for name in TABLES}
    frames = {name: results.read(path) for name, path in paths.items() if path.exists()}
    if not frames:
        raise UserError(f"no results under {root / scale}: run python -m reproduce.table2 first")
    bases = {name: {row.name: row.base for row in TABLES[name].rows[scale]} for name in frames}
    return plane.draw(pool(frames, bases), root / scale / "figures" / "pareto")


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
