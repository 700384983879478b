"""Command line of the evaluator: report, compare, verify, neighbours, sensitivity."""

from __future__ import annotations

import argparse
from pathlib import Path

from common.errors import UserError
from eval import commands as run

EMBEDDINGS_HELP = (
    ".npz, .parquet or .safetensors with 'embeddings', 'labels' and, optionally, 'domains'; "
    "or .npy with embeddings alone and --labels"
)


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other error: one sentence, exit code 2."""

    def error(self, message: str):
        raise UserError(f"{' '.join(ascii(message)[1:-1].split())}; see {self.prog} --help")


def main(argv: list[str]) -> int:
    """Runs one command.

    Raises:
        UserError: anything wrong with the command line or the files.
    """
    arguments = build_parser().parse_args(argv)
    return arguments.run(arguments) or 0


def build_parser() -> Parser:
    """The command line's grammar."""
    parser = Parser(
        prog="python -m eval",
        description="Evaluates embeddings: retrieval, threshold consistency (OPIS), error rates.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, function, add, text in (
        ("report", run.report, add_report, "metrics, plots and an interactive page for one model"),
        ("compare", run.compare, add_compare, "several models on the same labels, with intervals"),
        ("verify", run.verify, add_verify, "are two images of one identity: TAR, EER, DET curve"),
        ("neighbours", run.neighbours, add_neighbours, "nearest neighbours as a table"),
        ("sensitivity", run.sensitivity, add_sensitivity, "how OPIS moves with the settings"),
    ):
        command = commands.add_parser(name, help=text, description=f"{text}.".capitalize())
        command.set_defaults(run=function)
        add(command)
    return parser


def add_report(parser: Parser) -> None:
    """Options of ``report``."""
    add_input(parser)
    add_gallery(parser)
    add_out(parser, "report")
    add_settings(parser)
    parser.add_argument("--title", help="of the page (default: the file's name)")
    parser.add_argument(
        "--target-far",
        type=float,
        metavar="F",
        help="recommend the threshold for this FAR over all negatives, such as 1e-3, with its "
        "bootstrap interval, and list the classes that it fails",
    )
    parser.add_argument(
        "--factor",
        type=float,
        default=2.0,
        help="a threshold fails a class whose FAR or FRR is off by more than this (default: 2)",
    )


def add_compare(parser: Parser) -> None:
    """Options of ``compare``."""
    parser.add_argument("embeddings", nargs="+", type=Path, metavar="FILE", help=EMBEDDINGS_HELP)
    add_labels(parser)
    add_out(parser, "compare")
    add_settings(parser)


def add_verify(parser: Parser) -> None:
    """Options of ``verify``."""
    add_input(parser)
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help=".csv with columns first, second and same: two images, by row from 0 or by key where "
        "the embeddings have 'keys', and 1 or 0; only these pairs are looked at, and labels are "
        "not needed",
    )
    parser.add_argument(
        "--fars",
        type=float,
        nargs="+",
        metavar="F",
        help="false-accept rates at which TAR is wanted (default: those of 1e-3 1e-4 1e-5 for "
        "which there are enough pairs)",
    )
    parser.add_argument(
        "--calibration-share",
        type=float,
        metavar="S",
        help="share of the identities that fix the one threshold for all, which is judged on the "
        "others; 0 leaves that out (default: 0.5)",
    )
    add_out(parser, "verify")
    parser.add_argument(
        "--distance",
        choices=["euclidean", "cosine", "poincare"],
        default="euclidean",
        help="of unit vectors, or in the Poincaré ball of embeddings as they are",
    )
    parser.add_argument("--curvature", type=float, default=0.1, help="of that ball (default: 0.1)")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (default: 0)")
    add_resources(parser)


def add_neighbours(parser: Parser) -> None:
    """Options of ``neighbours``."""
    add_input(parser)
    parser.add_argument("--k", type=int, default=10, help="neighbours of each query (default: 10)")
    parser.add_argument("--queries", type=int, metavar="N", help="N queries drawn at random only")
    parser.add_argument("--seed", type=int, default=0, help="of that draw (default: 0)")
    parser.add_argument(
        "--approximate",
        action="store_true",
        help="an inverted-file index, for millions of images; its agreement with the exact one "
        "is measured and printed",
    )
    parser.add_argument("--out", type=Path, metavar="CSV", help="file (default: standard output)")


def add_sensitivity(parser: Parser) -> None:
    """Options of ``sensitivity``."""
    add_input(parser)
    add_gallery(parser)
    add_out(parser, "sensitivity")
    add_settings(parser)


def add_input(parser: Parser) -> None:
    """The embeddings of one model."""
    parser.add_argument("embeddings", type=Path, metavar="EMBEDDINGS", help=EMBEDDINGS_HELP)
    add_labels(parser)


def add_labels(parser: Parser) -> None:
    """Labels beside the embeddings."""
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help=".csv with a column 'label' and, optionally, 'domain', or a .npy array",
    )


def add_gallery(parser: Parser) -> None:
    """Other images to search than those that ask."""
    parser.add_argument(
        "--gallery",
        type=Path,
        metavar="FILE",
        help="compare EMBEDDINGS, the queries, with these images alone",
    )
    parser.add_argument("--gallery-labels", type=Path, metavar="FILE", help="as --labels")


def add_out(parser: Parser, name: str) -> None:
    """The folder written to."""
    parser.add_argument(
        "--out", type=Path, default=Path(name), metavar="DIR", help=f"folder (default: {name}/)"
    )


def add_settings(parser: Parser) -> None:
    """Settings of the metrics, all printed beside the results."""
    group = parser.add_argument_group("settings of the metrics")
    group.add_argument(
        "--ks", type=int, nargs="+", default=[1, 2, 4, 8], metavar="K", help="K of Recall@K"
    )
    group.add_argument(
        "--far-range",
        type=float,
        nargs=2,
        default=[1e-2, 1e-1],
        metavar=("LOW", "HIGH"),
        help="FAR at the ends of the calibration range (default: 1e-2 1e-1)",
    )
    group.add_argument(
        "--epsilon", type=float, default=0.1, help="share of classes in ε-OPIS (default: 0.1)"
    )
    group.add_argument(
        "--c", type=float, default=1.0, help="weight of specificity in utility (default: 1)"
    )
    group.add_argument(
        "--distance", choices=["euclidean", "cosine"], default="euclidean", help="of unit vectors"
    )
    group.add_argument(
        "--grid-points",
        type=int,
        default=1001,
        help="thresholds in the calibration range (default: 1001)",
    )
    group = parser.add_argument_group("resources")
    group.add_argument(
        "--sample-queries",
        type=int,
        metavar="N",
        help="N queries, drawn class by class, against all images: for sets of a million and more; "
        "OPIS and R@K come with intervals",
    )
    group.add_argument("--seed", type=int, default=0, help="of that draw and of the noise floor")
    add_resources(group)


def add_resources(parser: argparse._ActionsContainer) -> None:
    """Where and with how much to compute."""
    parser.add_argument("--device", help="cpu or cuda (default: cpu)")
    parser.add_argument("--threads", type=int, help="threads (default: all)")
    parser.add_argument(
        "--memory-mb", type=float, default=1024, help="for histograms, in MiB (default: 1024)"
    )
