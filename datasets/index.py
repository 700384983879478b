"""The index of a data set: which image belongs to which class, domain and split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from common.errors import UserError

COLUMNS = ("key", "label", "domain", "split")
SPLITS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Index:
    """A table with a row per image, checked on construction.

    Args:
        name: name of the data set, used in messages.
        table: columns ``key`` (path relative to the root, or an id; unique), ``label``, ``domain``
            and ``split`` (``train`` or ``test``), all of strings; further columns are kept. Row
            labels are replaced by 0..N-1. Do not change the table afterwards.
        fingerprint: hexadecimal SHA-256 over the content that decides results.
        notes: what a reader of results must know (a stand-in split, skipped images).

    Raises:
        UserError: a column is missing, empty or not of strings, a key occurs twice, a class occurs
            in two domains or in both splits (open-world evaluation needs unseen classes).
    """

    name: str
    table: pd.DataFrame
    fingerprint: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self.table.reset_index(drop=True))
        self._check_columns()
        self._check_classes()

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The labels that occur, sorted."""
        return tuple(sorted(self.table["label"].unique()))

    @cached_property
    def label_codes(self) -> np.ndarray:
        """Shape (N,), int64: each row's place in :attr:`classes`."""
        return pd.Categorical(self.table["label"], categories=self.classes).codes.astype(np.int64)

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The domains that occur, sorted."""
        return tuple(sorted(self.table["domain"].unique()))

    def subset(
        self,
        split: str | None = None,
        domain: str | None = None,
        classes: Iterable[str] | None = None,
    ) -> Index:
        """The rows that meet every condition given, in their order.

        The fingerprint is derived from this index's fingerprint and the rows that are left; where
        nothing is dropped, this index itself is returned.

        Raises:
            UserError: a split, domain or class that does not occur here.
        """
        keep = np.ones(len(self), dtype=bool)
        for column, wanted in (("split", split), ("domain", domain)):
            if wanted is not None:
                self._check_known(column, [wanted])
                keep &= (self.table[column] == wanted).to_numpy()
        if classes is not None:
            classes = list(classes)
            self._check_known("label", classes)
            keep &= self.table["label"].isin(classes).to_numpy()
        return self._keep_rows(keep)

    def split_classes(self, fraction: float, seed: int) -> tuple[Index, Index]:
        """Splits the training classes at random into (training, validation), without overlap.

        Model selection happens on the second part, never on the test classes. Both parts keep
        ``split == "train"``; test rows are in neither. The draw depends on the set of training
        classes and the seed only, not on the order of rows.

        Args:
            fraction: share of the training classes that goes to validation, in (0, 1).
            seed: any integer >= 0.

        Raises:
            UserError: one of the two parts would be without a class.
        """
        train = self.subset(split="train")
        held_out = round(fraction * len(train.classes))
        if not 0 < held_out < len(train.classes):
            raise UserError(
                f"{self.name}: a validation share of {fraction} of {len(train.classes)} training "
                "classes leaves one part empty; choose a share between 0 and 1 that suits"
            )
        order = np.random.default_rng(seed).permutation(len(train.classes))
        validation = np.isin(train.label_codes, order[:held_out])
        return train._keep_rows(~validation), train._keep_rows(validation)

    def _keep_rows(self, keep: np.ndarray) -> Index:
        if keep.all():
            return self
        if not keep.any():
            raise UserError(f"{self.name}: no image meets the conditions; ask for fewer at once")
        table = self.table[keep]
        digest = hashlib.sha256(self.fingerprint.encode())
        digest.update(table_digest(table).encode())
        return Index(self.name, table, digest.hexdigest(), self.notes)

    def _check_columns(self) -> None:
        missing = [column for column in COLUMNS if column not in self.table.columns]
        if missing:
            raise UserError(f"{self.name}: the index lacks the column {missing[0]!r}; add it")
        if self.table.empty:
            raise UserError(f"{self.name}: the index has no image; check the path and the split")
        for column in COLUMNS:
            values = self.table[column]
            if values.isna().any() or not pd.api.types.is_string_dtype(values):
                raise UserError(
                    f"{self.name}: column {column!r} of the index must hold strings in every row; "
                    "fill empty cells and turn numbers into text"
                )
        odd = self.table.loc[~self.table["split"].isin(SPLITS), "split"]
        if not odd.empty:
            raise UserError(
                f"{self.name}: row {odd.index[0]} has split {odd.iloc[0]!r}; "
                "write 'train' or 'test'"
            )
        twice = self.table.loc[self.table["key"].duplicated(), "key"]
        if not twice.empty:
            raise UserError(
                f"{self.name}: the image {twice.iloc[0]!r} is listed {len(twice)} time(s) too "
                "often; list each image once"
                if twice.nunique() == 1
                else f"{self.name}: {twice.nunique()} images are listed more than once, the first "
                f"is {twice.iloc[0]!r}; list each image once"
            )

    def _check_classes(self) -> None:
        for column, problem in (
            (
                "split",
                "is in training and in testing; make the splits disjoint by class",
            ),
            ("domain", "occurs in two domains; prefix labels with their domain"),
        ):
            pairs = self.table[["label", column]].drop_duplicates()
            shared = pairs.loc[pairs["label"].duplicated(), "label"]
            if not shared.empty:
                raise UserError(f"{self.name}: class {min(shared)!r} {problem}")

    def _check_known(self, column: str, wanted: list[str]) -> None:
        known = set(self.table[column].unique())
        unknown = [value for value in wanted if value not in known]
        if unknown:
            shown = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
            raise UserError(
                f"{self.name}: no image has {column} {unknown[0]!r}; choose from {shown}"
            )


def table_digest(table: pd.DataFrame) -> str:
    """Hexadecimal SHA-256 over the four index columns, row by row in order."""
    digest = hashlib.sha256()
    for column in COLUMNS:
        digest.update(f"\n{column}\n".encode())
        digest.update("\n".join(table[column]).encode())
    return digest.hexdigest()
