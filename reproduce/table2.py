"""Table 2: base losses with and without TCM on iNaturalist-2018 (demo: the kanji of glyphs).

python -m reproduce.table2 --scale demo
python -m reproduce.table2 --scale paper --root DATA
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.table2")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Table, with_and_without_tcm

TABLE = Table(
    name="table2",
    title="Table 2: base losses with and without TCM",
    rows={
        "demo": with_and_without_tcm(
            {
                "ProxyAnchor": "demo/kanji_proxy_anchor",
                "ArcFace": "demo/kanji_arcface",
                "RS@K": "demo/kanji_recall_at_k",
            }
        ),
        "paper": (
            *with_and_without_tcm(
                {
                    "ProxyAnchor": "paper/inaturalist_proxy_anchor_resnet50",
                    "ArcFace": "paper/inaturalist_arcface_resnet50",
                    "RS@K": "paper/inaturalist_recall_at_k_resnet50",
                }
            ),
            *with_and_without_tcm({"RS@K": "paper/inaturalist_recall_at_k_vit_b16"}),
        ),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
