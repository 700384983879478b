"""``python -m datasets list | prepare NAME | verify NAME``."""

from __future__ import annotations

import argparse
import warnings
from importlib import import_module
from pathlib import Path

import yaml

import datasets
from common.errors import UserError
from datasets import glyphs
from datasets import prepare as preparing
from datasets.catalogue import Counts, Entry, entries, entry
from datasets.merged import DOMAINS
from datasets.verify import counts_of, verify

PROGRAM = "python -m datasets"
# Options of the loaders that have a switch of their own here.
SWITCHES = {"resized": "--resize PIXELS", "broken": "--skip-broken"}


def main(arguments: list[str]) -> int:
    """Runs one command; returns 0, or raises.

    Raises:
        UserError: the data set is not there or not verified; says what to do next.
    """
    options = _parser().parse_args(arguments)
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    if options.command == "list":
        _list(options.root)
        return 0
    facts = entry(options.name)
    if options.name != "glyphs" and options.root is None:
        raise UserError(f"{options.name} needs --root, the folder in which your data sets lie")
    chosen = _options(options.option)
    if options.command == "prepare":
        for part in _parts(facts):
            own = chosen.get("parts", {}).get(part.name, {}) if facts.name == "merged" else chosen
            stand_in = part.name == "inaturalist" and own.get("split") == "stand-in"
            preparing.prepare(part, options.root, options.resize, options.skip_broken, stand_in)
    _verify(facts, options, chosen)
    print("verified")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Lists, prepares and verifies the data sets."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="what there is: terms, size, counts, source")
    listing.add_argument("--root", type=Path, help="also say which are found in this folder")
    texts = {
        "prepare": "fetch, check and unpack one data set, then verify it",
        "verify": "compare one data set with what was published, look at every image",
    }
    for name, text in texts.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("name", help=", ".join(entries()))
        command.add_argument("--root", type=Path, help="the folder in which data sets lie")
        command.add_argument(
            "--resize",
            type=int,
            metavar="PIXELS",
            help="the copy NAME-PIXELS with this shorter side (prepare makes it; of iNaturalist "
            "only this copy is stored, the archive streams by)",
        )
        command.add_argument(
            "--sample", type=int, metavar="N", help="decode N images only; all are counted"
        )
        command.add_argument(
            "--skip-broken",
            action="store_true",
            help="missing and damaged images are reported, but no fault",
        )
        command.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="an option of the data set, e.g. halves=train, split=stand-in",
        )
    return parser


def _parts(facts: Entry) -> list[Entry]:
    """The data sets with files of their own that this one is made of."""
    if facts.name == "merged":
        return [entry(name) for name in DOMAINS]
    return [] if facts.name == "glyphs" else [facts]


def _list(root: Path | None) -> None:
    for facts in entries().values():
        print(f"{facts.name}: {facts.title}")
        print(f"  terms:  {facts.terms}")
        print(f"  size:   {facts.size}")
        print(f"  counts: {_counts(facts)}")
        print(f"  from:   {facts.source}")
        if root is not None:
            print(f"  found:  {_found(facts, root)}")


def _counts(facts: Entry) -> str:
    if facts.name != "glyphs":
        return f"{facts.counts} (train/test)" if facts.counts else facts.counted
    domains = glyphs.read_manifest(glyphs.FOLDER)["counts"].values()
    numbers = [
        sum(domain[split][what] for domain in domains)
        for what in ("images", "classes")
        for split in ("train", "test")
    ]
    return f"{Counts(*numbers)} (train/test)"


def _found(facts: Entry, root: Path) -> str:
    if facts.name == "glyphs":
        return "always"
    places = {
        part.name: preparing.find(import_module(f"datasets.{part.name}").LAYOUT, root)
        for part in _parts(facts)
    }
    missing = [name for name, place in places.items() if place is None]
    if not missing:
        return ", ".join(str(place) for place in places.values())
    if facts.name == "merged":
        return f"not complete, missing: {', '.join(missing)}"
    resized = sorted(path.name for path in root.glob(f"{facts.name}-*") if path.is_dir())
    copies = f", but reduced copies: {', '.join(resized)}" if resized else ""
    return f"no{copies}; run `{PROGRAM} prepare {facts.name} --root {root}`"


def _verify(facts: Entry, options: argparse.Namespace, chosen: dict) -> None:
    if facts.name == "glyphs":
        # Opening them compares checksum and counts with the manifest.
        print(f"glyphs: {counts_of(datasets.load('glyphs', **chosen).index)}")
        return
    if facts.name != "merged":
        _verify_one(facts, options, chosen)
        return
    parts = chosen.get("parts", {})
    failures = []
    for part in _parts(facts):
        try:
            _verify_one(part, options, parts.get(part.name, {}))
        except UserError as error:
            failures.append(str(error))
            print(f"problem: {error}")
    if failures:
        raise UserError(
            f"merged is not verified, {len(failures)} of its {len(DOMAINS)} parts are not "
            f"({failures[0]})"
        )
    broken = "skip" if options.skip_broken else "raise"
    index = datasets.load(
        "merged", options.root, broken=broken, resized=options.resize, **chosen
    ).index
    print(f"merged: {counts_of(index)}")
    for note in index.notes:
        print(f"  {note}")


def _verify_one(facts: Entry, options: argparse.Namespace, chosen: dict) -> None:
    source = datasets.load(
        facts.name, options.root, broken="keep", resized=options.resize, **chosen
    )
    print(f"{facts.name} at {source.folder}")
    report = verify(source, facts, options.sample, skip_broken=options.skip_broken)
    check = getattr(import_module(f"datasets.{facts.name}"), "check", None)
    problems = [*report.problems, *(check(source.index) if check else ())]
    for remark in report.remarks:
        print(f"  {remark}")
    for problem in problems:
        print(f"  problem: {problem}")
    if problems:
        resize = "" if options.resize is None else f" --resize {options.resize}"
        raise UserError(
            f"{facts.name} is not verified: {problems[0]}; mend it, or delete {source.folder} and "
            f"run `{PROGRAM} prepare {facts.name} --root {options.root}{resize}`"
        )


def _options(texts: list[str]) -> dict:
    chosen = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UserError(f"--option {text}: write it as KEY=VALUE")
        if key.strip() in SWITCHES:
            raise UserError(f"--option {text}: write {SWITCHES[key.strip()]} instead")
        try:
            chosen[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"--option {text}: {value!r} cannot be read as YAML") from error
    return chosen
