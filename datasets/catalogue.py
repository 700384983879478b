"""Reads ``manifest.yaml``, the facts about the published data sets, into typed records."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path

import yaml

from common.errors import UserError

MANIFEST = Path(__file__).parent / "manifest.yaml"


@dataclass(frozen=True)
class Download:
    """One file to fetch.

    Attributes:
        file: the name it is stored under.
        urls: mirrors in order; empty where it cannot be fetched without a person.
        md5: hexadecimal; None where none is publicly known.
        unpack_to: folder for the archive's content below the data set's own; None: a plain file.
        manual: how a person gets it, said when every mirror failed.
        provides: names of what comes out; fetched for a tree that is there, but lacks all of them.
        optional: the data set can be used without it, with a declared stand-in.
    """

    file: str
    urls: tuple[str, ...] = ()
    md5: str | None = None
    unpack_to: str | None = None
    manual: str = ""
    provides: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Counts:
    """Numbers of images and classes in both splits; None: not known."""

    train_images: int | None
    test_images: int | None
    train_classes: int | None
    test_classes: int | None

    def agrees_with(self, found: Counts) -> bool:
        """Whether all numbers known here are those of ``found``."""
        pairs = zip(astuple(self), astuple(found), strict=True)
        return all(mine is None or mine == theirs for mine, theirs in pairs)

    def __str__(self) -> str:
        shown = ["?" if number is None else f"{number:,}" for number in astuple(self)]
        return f"{shown[0]}/{shown[1]} images of {shown[2]}/{shown[3]} classes"


@dataclass(frozen=True)
class Entry:
    """One data set.

    Attributes:
        name: as in ``datasets.load``.
        title, terms, size, source: for people.
        folders: names of folders under the root in which people keep it, besides its own name.
        counts: the published ones; None where none were published for an open-world split.
        counted: the counts in words, where they depend on choices.
        subsets: counts of parts in which it may be used, by name.
        mistakes: (train images, test images) -> what such wrong counts mean.
        downloads: everything that ``prepare`` fetches, in order.
        alternatives: archives that serve as well, but that no server known here offers.
    """

    name: str
    title: str
    terms: str
    size: str
    source: str
    folders: tuple[str, ...]
    counts: Counts | None
    counted: str
    subsets: dict[str, Counts]
    mistakes: dict[tuple[int, int], str]
    downloads: tuple[Download, ...]
    alternatives: tuple[Download, ...]


def entries(path: Path = MANIFEST) -> dict[str, Entry]:
    """All data sets by name, in the order of the file.

    Raises:
        UserError: the file is missing or is not what this module writes about.
    """
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        return {name: _entry(name, facts) for name, facts in tree.items()}
    except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise UserError(
            f"cannot read {path} ({error}); fetch it anew with `git checkout -- {path.name}`"
        ) from error


def entry(name: str) -> Entry:
    """The facts of one data set.

    Raises:
        UserError: there is none of that name.
    """
    known = entries()
    if name not in known:
        raise UserError(
            f"there is no data set {name!r} to prepare or verify; choose from {', '.join(known)}"
        )
    return known[name]


def _entry(name: str, facts: dict) -> Entry:
    base = facts.get("downloads_from")
    return Entry(
        name=name,
        title=facts["title"],
        terms=facts["terms"],
        size=facts["size"],
        source=facts["source"],
        folders=(name, *facts.get("folders", ())),
        counts=Counts(*facts["counts"]) if "counts" in facts else None,
        counted=facts.get("counted", ""),
        subsets={part: Counts(*counts) for part, counts in facts.get("subsets", {}).items()},
        mistakes={(train, test): text for train, test, text in facts.get("mistakes", ())},
        downloads=tuple(_download(item, base) for item in facts.get("downloads", ())),
        alternatives=tuple(_download(item, None) for item in facts.get("alternatives", ())),
    )


def _download(facts: dict, base: str | None) -> Download:
    fields = {**facts, "urls": tuple(facts.get("urls", ()))}
    fields["provides"] = tuple(facts.get("provides", ()))
    if base is not None and not fields["urls"]:
        fields["urls"] = (base + facts["file"],)
    return Download(**fields)
