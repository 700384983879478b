"""Table 2: base losses with and without TCM on iNaturalist-2018 (demo: the kanji of glyphs).

python -m reproduce.table2 --scale demo
python -m reproduce.table2 --scale paper --root DATA
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.table2")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Table, with_and_without_tcm

LOSSES = {
    "ProxyAnchor": "proxy_anchor",
    "ArcFace": "arcface",
    "RS@K": "recall_at_k",
    "Smooth-AP": "smooth_ap",
}

TABLE = Table(
    name="table2",
    title="Table 2: base losses with and without TCM",
    rows={
        "demo": with_and_without_tcm(
            {row: f"demo/kanji_{loss}" for row, loss in LOSSES.items()},
        ),
        "paper": tuple(
            row
            for backbone in ("resnet50", "vit_b16")
            for row in with_and_without_tcm(
                {row: f"paper/inaturalist_{loss}_{backbone}" for row, loss in LOSSES.items()}
            )
        ),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
