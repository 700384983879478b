"""Table 5: TCM beside the state of the art on CUB and Cars (demo: the hangul and kana of glyphs).

python -m reproduce.table5 --scale demo
python -m reproduce.table5 --scale paper --root DATA
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.table5")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Row, Table, with_and_without_tcm

BACKBONES = ("resnet50", "vit_b16")


def _paper_rows(data: str) -> tuple[Row, ...]:
    recall_at_k = [
        row
        for backbone in BACKBONES
        for row in with_and_without_tcm({"RS@K": f"paper/{data}_recall_at_k_{backbone}"})
    ]
    return (
        *with_and_without_tcm({"ProxyAnchor": f"paper/{data}_proxy_anchor_resnet50"}),
        *recall_at_k,
        Row("HIER", f"paper/{data}_hier_dino_vits16"),
        *with_and_without_tcm({"ProxyAnchor": f"paper/{data}_proxy_anchor_dino_vits16"}),
    )


def _demo_rows(data: str) -> tuple[Row, ...]:
    return (
        *with_and_without_tcm(
            {"ProxyAnchor": f"demo/{data}_proxy_anchor", "RS@K": f"demo/{data}_recall_at_k"}
        ),
        Row("HIER", f"demo/{data}_hier"),
    )


TABLE = Table(
    name="table5",
    title="Table 5: CUB and Cars, with and without TCM, beside HIER",
    rows={
        "demo": (*_demo_rows("hangul"), *_demo_rows("kana")),
        "paper": (*_paper_rows("cub"), *_paper_rows("cars")),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
