"""One configuration by itself: a recipe that no table has, or your own images.

    python -m reproduce.run demo/kanji_arcface --tcm --seeds 3
    python -m reproduce.run paper/cub_proxy_anchor_resnet50 --tcm --data folder:PATH

The result is written as a table's, to results/own.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.run")

import argparse
from pathlib import Path

from common.errors import run_cli
from reproduce import output, table_cli
from reproduce.config import load
from reproduce.table import Row, Table, loss_name, plan, with_and_without_tcm

OWN = "own"


def main(argv: list[str]) -> int:
    """Trains, evaluates and writes; UserError for anything that the user can mend."""
    options = parser().parse_args(argv)
    if options.data is not None:
        # Options belong to the data set that is replaced; those of the new one come with --set.
        options.set = [f"data.name={options.data}", "data.options={}", *options.set]
    table = table_of(options.config, options.tcm, options.scale)
    runs = plan(table, options.scale, seeds=options.seeds, overrides=options.set)

    def write(records: table_cli.Records) -> int:
        print(output.write(table, options.scale, runs, records, options.results, options.latex))
        return 0

    return table_cli.fill(table.name, runs, options, write)


def table_of(config: str, tcm: bool, scale: str) -> Table:
    """A table of the configuration's one row, or of two with TCM added in the second."""
    name = loss_name(load(config))
    rows = with_and_without_tcm({name: config}) if tcm else (Row(name, config),)
    stem = Path(config).stem
    return Table(name=stem, title=f"Configuration {stem}", rows={scale: rows}, seeds={scale: 1})


def parser() -> argparse.ArgumentParser:
    """The options: a table's, and which configuration."""
    made = argparse.ArgumentParser(
        prog="python -m reproduce.run", description=__doc__.splitlines()[0]
    )
    made.add_argument("config", help="below reproduce/configs, without .yaml, or a file's path")
    made.add_argument("--tcm", action="store_true", help="a second row with TCM added")
    made.add_argument("--data", metavar="NAME", help="another data set, such as folder:PATH")
    made.add_argument("--seeds", type=int, help="number of seeds (default: 1)")
    table_cli.add_run_options(made)
    made.set_defaults(scale=OWN)
    return made


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
