"""The union of iNaturalist, SOP, CUB and Cars, in the manner of UnED (Ypsilantis et al., 2023).

Each image keeps its domain; keys and labels begin with it, so classes cannot collide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from PIL import Image

from common.errors import UserError
from datasets import cars, cub, inaturalist, sop
from datasets.equalise import equalise as equalise_split
from datasets.files import MEAN, STD, FileOptions, FileSource
from datasets.index import Index
from datasets.options import call

LOADERS = {"inaturalist": inaturalist.load, "sop": sop.load, "cub": cub.load, "cars": cars.load}
DOMAINS = tuple(LOADERS)
_OPTIONS = ("domain", "domains", "equalise", "parts", "seed", "test_images_per_class")


class MergedSource:
    """A ``datasets.Source`` over several; keys are ``domain/key``."""

    def __init__(self, index: Index, parts: Mapping[str, FileSource]) -> None:
        self.index = index
        self.mean = MEAN
        self.std = STD
        self.parts = dict(parts)

    def read(self, key: str) -> Image.Image:
        """The image in RGB; see ``datasets.Source``."""
        domain, _, rest = key.partition("/")
        return self.parts[domain].read(rest)


def load(
    root: Path | None,
    *,
    domains: Sequence[str] = DOMAINS,
    domain: str | None = None,
    equalise: bool = True,
    test_images_per_class: int | None = None,
    seed: int = 0,
    parts: Mapping[str, Mapping[str, object]] | None = None,
    **options: object,
) -> MergedSource:
    """Opens the data sets under ``root`` as one.

    Training images are all of each data set's own. Testing is equalised (paper, the merged set:
    equally many test instances per class in all domains): every test class keeps exactly k images,
    by the rule of :func:`datasets.equalise.equalise`.

    Args:
        root: where all the data sets lie; see :func:`datasets.files.locate`.
        domains: which ones, two or more, or one.
        domain: one alone, after everything else (``merged/cub``).
        equalise: False keeps every test image.
        test_images_per_class: k, instead of the rule.
        seed: of the choice of test images.
        parts: options of single data sets, e.g. ``{"inaturalist": {"split": "stand-in"}}``.
        options: for all, see :class:`datasets.files.FileOptions`.

    Raises:
        UserError: a data set is not there or broken, an option is unknown or impossible.
    """
    FileOptions.parse("merged", options, _OPTIONS)
    parts = dict(parts or {})
    unknown = [name for name in (*domains, *parts) if name not in DOMAINS]
    if unknown or not domains:
        raise UserError(
            f"merged: {unknown[0] if unknown else 'nothing'!r} is none of its domains; "
            f"choose from {', '.join(DOMAINS)}"
        )
    k = test_images_per_class
    if k is not None and not (isinstance(k, int) and k >= 2):
        raise UserError(f"merged: test_images_per_class is {k!r}; give 2 or more")
    sources = {
        name: call(LOADERS[name], name, root, {**options, **parts.get(name, {})})
        for name in domains
    }
    index = merge({name: source.index for name, source in sources.items()})
    if equalise:
        index = equalise_split(index, k, seed)
    if domain is not None:
        index = index.subset(domain=domain)
    return MergedSource(index, sources)


def merge(indices: Mapping[str, Index]) -> Index:
    """One index of several; keys and labels get their domain before them."""
    tables, notes, digest = [], [], hashlib.sha256(b"merged")
    for name, index in indices.items():
        table = index.table
        tables.append(
            table.assign(
                key=f"{name}/" + table["key"], label=f"{name}/" + table["label"], domain=name
            )
        )
        notes += [f"{name}: {note}" for note in index.notes]
        digest.update(f"{name} {index.fingerprint}\n".encode())
    # Columns that only one data set has would be half empty.
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    table = pd.concat([table[shared] for table in tables], ignore_index=True)
    return Index("merged", table, digest.hexdigest(), tuple(notes))
