"""Stanford Online Products: base losses with and without TCM (demo: the alphabets of glyphs).

python -m reproduce.sop --scale demo
python -m reproduce.sop --scale paper --root DATA
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.sop")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Table, with_and_without_tcm

LOSSES = {"RS@K": "recall_at_k", "Smooth-AP": "smooth_ap", "ProxyAnchor": "proxy_anchor"}

TABLE = Table(
    name="sop",
    title="Stanford Online Products: base losses with and without TCM",
    rows={
        "demo": with_and_without_tcm(
            {row: f"demo/alphabets_{loss}" for row, loss in LOSSES.items()}
        ),
        "paper": (
            *with_and_without_tcm(
                {row: f"paper/sop_{loss}_resnet50" for row, loss in LOSSES.items()}
            ),
            *with_and_without_tcm({"RS@K": "paper/sop_recall_at_k_vit_b16"}),
        ),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
