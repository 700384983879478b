"""As many images of every class in all domains, so that no domain decides a result by its size."""

from __future__ import annotations

import hashlib

from common.errors import UserError
from datasets.index import Index


def equalise(index: Index, k: int | None = None, seed: int = 0, split: str = "test") -> Index:
    """Keeps exactly k images of each class of a split, and drops its classes with fewer.

    k is by default the smallest, over the domains, of the (lower) median number of images in a
    class, at least 2: so every domain keeps half of its classes or more. The k images are those
    with the smallest SHA-256 digests of ``seed/key``: the choice depends on nothing else. What was
    left out is in the index's notes. Rows of the other split stay.

    Raises:
        UserError: no class of some domain has k images.
    """
    table = index.table
    chosen_split = (table["split"] == split).to_numpy()
    rows = table[chosen_split]
    sizes = rows.groupby(["domain", "label"], sort=True).size()
    medians = sizes.groupby("domain").quantile(0.5, interpolation="lower")
    chosen = max(2, int(medians.min())) if k is None else k
    kept = sizes[sizes >= chosen]
    bare = sorted(set(medians.index) - set(kept.index.get_level_values("domain")))
    if bare:
        raise UserError(
            f"{index.name}: no {split} class of {bare[0]} has {chosen} images; "
            "lower test_images_per_class"
        )
    digests = [hashlib.sha256(f"{seed}/{key}".encode()).hexdigest() for key in rows["key"]]
    order = rows.assign(digest=digests).sort_values("digest")
    rank = order.groupby("label").cumcount()
    labels = set(kept.index.get_level_values("label"))
    keep = ~chosen_split
    keep[order.index[(rank < chosen) & order["label"].isin(labels)]] = True
    left_out = len(sizes) - len(kept)
    note = (
        f"testing on {chosen} images of each class, {left_out:,} of {len(sizes):,} test classes "
        f"with fewer left out, images chosen by seed {seed}"
    )
    fingerprint = hashlib.sha256(f"{index.fingerprint} {note}".encode()).hexdigest()
    return Index(index.name, table[keep], fingerprint, (*index.notes, note))
