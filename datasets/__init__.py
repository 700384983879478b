"""Data sets: an index each, images behind it, transforms and the class-balanced sampler.

source = datasets.load("glyphs", domain="kanji")
train = source.index.subset(split="train")
transform = datasets.transforms(source)
dataset = datasets.ImageDataset(source, train, transform.train, seed=0)
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from common.errors import UserError
from datasets.augment import GlyphAugmentation, Transforms, transforms
from datasets.dataset import ArraySource, Batch, GatheringSource, ImageDataset, Source, collate
from datasets.index import Index
from datasets.options import call
from datasets.sampler import ClassBalancedBatchSampler

__all__ = [
    "REGISTRY",
    "ArraySource",
    "Batch",
    "ClassBalancedBatchSampler",
    "GatheringSource",
    "GlyphAugmentation",
    "ImageDataset",
    "Index",
    "Source",
    "Transforms",
    "collate",
    "load",
    "transforms",
]

# Name -> "module:function" with the signature function(root: Path | None, **options) -> Source.
# Modules are imported when their data set is asked for.
REGISTRY = {
    "cars": "datasets.cars:load",
    "csv": "datasets.csv_index:load",
    "cub": "datasets.cub:load",
    "digiface": "datasets.digiface:load",
    "folder": "datasets.folder:load",
    "glyphs": "datasets.glyphs:load",
    "inaturalist": "datasets.inaturalist:load",
    "merged": "datasets.merged:load",
    "sop": "datasets.sop:load",
}


def load(name: str, root: str | Path | None = None, **options: object) -> Source:
    """Opens a data set.

    Args:
        name: a name in :data:`REGISTRY`; ``name/domain`` is short for ``domain=...``, and
            ``name:path`` for ``root=path``.
        root: folder of the data; ``glyphs`` needs none, it comes with the code.
        options: passed on to the data set's own loader, see :mod:`datasets.options`.

    Raises:
        UserError: no such data set or option, or its files are missing or broken.
    """
    base, separator, rest = name, "", ""
    if name not in REGISTRY:
        mark = ":" if ":" in name else "/"
        base, separator, rest = name.partition(mark)
    if base not in REGISTRY or (separator and not rest):
        raise UserError(f"there is no data set {name!r}; choose from {', '.join(sorted(REGISTRY))}")
    if separator == ":":
        root = rest
    elif separator == "/":
        options["domain"] = rest
    module, function = REGISTRY[base].split(":")
    opener = getattr(import_module(module), function)
    return call(opener, base, None if root is None else Path(root), options)
