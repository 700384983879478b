"""Fig. 6: margins and weight of TCM (demo: kanji; paper scale: iNaturalist, ViT-B/16).

python -m reproduce.margin_ablation --scale demo
python -m reproduce.margin_ablation --scale paper --root DATA

Base loss, network and grids are our choice. The default cell and the most restrictive one, which
claim 9 compares, have three seeds at either scale, the others one.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.margin_ablation")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Row, Table

BASE = "RS@K"
# margin_plus, margin_minus of paper.md; the most restrictive cell wants positives at similarity 1
# and negatives at 0 or below.
DEFAULT, RESTRICTIVE = (0.9, 0.5), (1.0, 0.0)
GRIDS = {
    "demo": ((0.8, 0.9, 1.0), (0.0, 0.5, 0.75)),
    "paper": ((0.8, 0.85, 0.9, 0.95, 1.0), (0.0, 0.25, 0.5, 0.75, 0.9)),
}
WEIGHTS = (0.3, 1.0, 3.0)


def _rows(config: str, scale: str) -> tuple[Row, ...]:
    above, below = GRIDS[scale]
    cells = [(plus, minus) for plus in above for minus in below]
    return (
        Row(BASE, config, seeds=3),
        *(
            Row(
                f"m+ {plus}, m- {minus}",
                config,
                {"loss.tcm": {"margin_plus": plus, "margin_minus": minus}},
                base=BASE,
                seeds=3 if (plus, minus) in (DEFAULT, RESTRICTIVE) else 1,
            )
            for plus, minus in cells
        ),
        *(
            Row(
                f"lambda {weight}",
                config,
                {"loss.tcm": {"lambda_plus": weight, "lambda_minus": weight}},
                base=BASE,
                seeds=1,
            )
            for weight in WEIGHTS
        ),
    )


TABLE = Table(
    name="margin_ablation",
    title="Margins and weight of TCM",
    rows={
        "demo": _rows("demo/kanji_recall_at_k", "demo"),
        "paper": _rows("paper/inaturalist_recall_at_k_vit_b16", "paper"),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
