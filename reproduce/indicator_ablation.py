"""App. A.2.3: the parts of TCM (demo: the kanji of glyphs; paper scale: iNaturalist, ViT-B/16).

python -m reproduce.indicator_ablation --scale demo
python -m reproduce.indicator_ablation --scale paper --root DATA

Base loss, data and network are our choice: the appendix's are not stated where we read it.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.indicator_ablation")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import TCM_SUFFIX, WITH_TCM, Row, Table

BASE = "RS@K"
# TCM' is TCM without its two indicators: all pairs, no clamp.
PARTS = {
    "": WITH_TCM,
    "'": {"loss.tcm": {"indicator": False}},
    " (positive term)": {"loss.tcm": {"lambda_minus": 0.0}},
    " (negative term)": {"loss.tcm": {"lambda_plus": 0.0}},
}


def _rows(config: str) -> tuple[Row, ...]:
    return (
        Row(BASE, config),
        *(Row(BASE + TCM_SUFFIX + part, config, values, BASE) for part, values in PARTS.items()),
    )


TABLE = Table(
    name="indicator_ablation",
    title="The parts of TCM",
    rows={
        "demo": _rows("demo/kanji_recall_at_k"),
        "paper": _rows("paper/inaturalist_recall_at_k_vit_b16"),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
