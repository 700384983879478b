"""Fig. 3: many base losses in one accuracy-consistency plane (demo: the kanji of glyphs).

python -m reproduce.bases --scale demo
python -m reproduce.bases --scale paper --root DATA

The four losses of table 2 are its own runs; the other five have one seed each.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.bases")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Row, Table
from reproduce.table2 import LOSSES

OTHERS = {
    "Contrastive": "contrastive",
    "Triplet": "triplet",
    "MultiSimilarity": "multi_similarity",
    "SoftTriple": "soft_triple",
    "CosFace": "cosface",
}


def _rows(pattern: str) -> tuple[Row, ...]:
    return (
        *(Row(name, pattern.format(loss)) for name, loss in LOSSES.items()),
        *(Row(name, pattern.format(loss), seeds=1) for name, loss in OTHERS.items()),
    )


TABLE = Table(
    name="bases",
    title="Base losses in the accuracy-consistency plane",
    rows={
        "demo": _rows("demo/kanji_{}"),
        "paper": _rows("paper/inaturalist_{}_resnet50"),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
