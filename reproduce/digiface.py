"""Face verification on DigiFace-1M (demo: kanji as identities, typefaces as hidden domains).

python -m reproduce.digiface --scale demo
python -m reproduce.digiface --scale paper --root DATA

OneFace's formulas are not public: its rows are our reading of it, see losses/oneface.py.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.digiface")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Table, with_and_without_tcm

LOSSES = {"ArcFace": "arcface", "OneFace (our reading)": "oneface"}


def _rows(pattern: str) -> tuple:
    """Rows from a pattern of configuration names."""
    return with_and_without_tcm({row: pattern.format(loss) for row, loss in LOSSES.items()})


TABLE = Table(
    name="digiface",
    title="DigiFace-1M: one threshold for verification",
    rows={
        "demo": _rows("demo/faces_{}"),
        "paper": _rows("paper/digiface_{}_iresnet50"),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
