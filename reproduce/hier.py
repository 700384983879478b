"""HIER against TCM on one DINO backbone, Cars and CUB (demo: kana, a small network from scratch).

python -m reproduce.hier --scale demo
python -m reproduce.hier --scale paper --root DATA

The embedding has 384 dimensions, as in HIER's better rows; its released scripts say 128:
add --set model.embedding_dim=128 for those.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.hier")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import TCM_SUFFIX, WITH_TCM, Row, Table, with_and_without_tcm

HIER_BASE = "hyperbolic ProxyAnchor"


def _rows(configs: dict[str, str]) -> tuple[Row, ...]:
    """Rows from the configurations of ``hier``, ``base``, ``proxy_anchor``, ``recall_at_k``."""
    return (
        Row(HIER_BASE, configs["base"]),
        Row("HIER", configs["hier"], base=HIER_BASE),
        *with_and_without_tcm({"ProxyAnchor": configs["proxy_anchor"]}),
        Row("RS@K" + TCM_SUFFIX, configs["recall_at_k"], WITH_TCM),
    )


def _configs(pattern: str) -> dict[str, str]:
    return {
        "base": pattern.format("hyperbolic_proxy_anchor"),
        **{loss: pattern.format(loss) for loss in ("hier", "proxy_anchor", "recall_at_k")},
    }


TABLE = Table(
    name="hier",
    title="HIER against TCM on one backbone",
    rows={
        "demo": _rows(_configs("demo/kana_{}")),
        "paper": (
            *_rows(_configs("paper/cars_{}_dino_vits16")),
            *_rows(_configs("paper/cub_{}_dino_vits16")),
        ),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
