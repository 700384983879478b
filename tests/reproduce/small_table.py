"""A table of two rows on the small data, as a script: what torchrun starts in a test."""

from common.errors import run_cli
from reproduce import table_cli
from reproduce.table import Row, Table
from tests.reproduce import small

CONFIG = "demo/kanji_proxy_anchor"
TABLE = Table(
    name="small_table",
    title="Small table",
    rows={
        "demo": (
            Row("ProxyAnchor", CONFIG, small.VALUES),
            Row("ProxyAnchor+TCM", CONFIG, small.VALUES | {"loss.tcm": {}}, base="ProxyAnchor"),
        )
    },
    seeds={"demo": 1},
)


def main(argv: list[str]) -> int:
    """Runs the table."""
    small.register()
    return table_cli.main(TABLE, argv)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
