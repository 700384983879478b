r"""LaTeX export of results tables, in booktabs style.

    python -m reproduce.latex --table table2 --scale demo

The file is a whole ``table`` environment: ``\input`` it in a document that loads booktabs and
graphicx. It is made from the results CSV alone.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.latex")


from common.errors import UserError, run_cli
from reproduce import results
from reproduce.latex_table import write
from reproduce.results_parser import results_parser
from reproduce.tables import TABLES


def main(argv: list[str]) -> int:
    """Exports one table, or all that have results."""
    parser = results_parser("latex", __doc__)
    parser.add_argument("--table", choices=TABLES, help="default: all that have results")
    options = parser.parse_args(argv)
    wanted = [options.table] if options.table else list(TABLES)
    paths = {name: results.csv_path(name, options.scale, options.results) for name in wanted}
    there = [name for name in wanted if options.table or paths[name].exists()]
    if not there:
        raise UserError(
            f"no results under {options.results / options.scale}: run python -m reproduce.table2 "
            "first"
        )
    for name in there:
        bases = {row.name: row.base for row in TABLES[name].rows[options.scale]}
        out = paths[name].with_suffix(".tex")
        write(results.read(paths[name]), bases, TABLES[name].title, out)
        print(f"wrote {out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
