"""One set of several domains: iNaturalist, SOP, CUB and Cars (demo: all scripts of glyphs).

python -m reproduce.cross_domain --scale demo
python -m reproduce.cross_domain --scale paper --root DATA
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.cross_domain")

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Table, with_and_without_tcm

LOSSES = {"ProxyAnchor": "proxy_anchor", "RS@K": "recall_at_k"}

TABLE = Table(
    name="cross_domain",
    title="Merged set: one threshold across domains",
    rows={
        "demo": with_and_without_tcm({row: f"demo/glyphs_{loss}" for row, loss in LOSSES.items()}),
        "paper": with_and_without_tcm(
            {row: f"paper/merged_{loss}_vit_b16" for row, loss in LOSSES.items()}
        ),
    },
    seeds={"demo": 3, "paper": 3},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
