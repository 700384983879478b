"""A paper table as data: its rows at each scale, and the runs that fill them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.errors import UserError
from reproduce.config import RunConfig, load

SCALES = ("demo", "paper")
WITH_TCM = {"loss.tcm": {}}
TCM_SUFFIX = "+TCM"


@dataclass(frozen=True)
class Row:
    """One row: a configuration file and the values in which the row differs from it.

    Attributes:
        name: what the table calls it, for instance ``ProxyAnchor+TCM``.
        config: file under ``configs/``, without ``.yaml``.
        base: name of the row that its deltas refer to, None for a base loss itself.
        seeds: how many seeds, 0 to n-1; None takes the table's.
    """

    name: str
    config: str
    values: Mapping[str, Any] = field(default_factory=dict)
    base: str | None = None
    seeds: int | None = None


@dataclass(frozen=True)
class Table:
    """What a table script states; everything else is shared."""

    name: str
    title: str
    rows: Mapping[str, Sequence[Row]]
    seeds: Mapping[str, int]


@dataclass(frozen=True)
class Planned:
    """One run of one row."""

    row: Row
    config: RunConfig

    @property
    def description(self) -> str:
        """For progress bars and messages."""
        return f"{self.row.name} on {dataset_name(self.config)}, seed {self.config.seed}"

    def key_columns(self, table: str) -> dict[str, Any]:
        """The columns that identify the run in the results."""
        return {
            "table": table,
            "row": self.row.name,
            "dataset": dataset_name(self.config),
            "backbone": self.config.model.backbone,
            "loss": loss_name(self.config),
            "seed": self.config.seed,
        }


def with_and_without_tcm(configs: Mapping[str, str]) -> tuple[Row, ...]:
    """Rows ``{name: config}``, each followed by itself with TCM at its default settings."""
    rows: list[Row] = []
    for name, config in configs.items():
        rows += [Row(name, config), Row(name + TCM_SUFFIX, config, WITH_TCM, base=name)]
    return tuple(rows)


def plan(
    table: Table, scale: str, *, seeds: int | None = None, overrides: Iterable[str] = ()
) -> list[Planned]:
    """All runs of a table, seed by seed, so that an interrupted table has whole comparisons.

    Raises:
        UserError: unknown scale, a configuration that is wrong, fewer than one seed.
    """
    if scale not in table.rows:
        raise UserError(f"{table.name} has no scale {scale!r}; known: {', '.join(table.rows)}")
    if seeds is not None and seeds < 1:
        raise UserError(f"--seeds {seeds}: at least one seed is needed")
    overrides = list(overrides)
    runs = []
    for row in table.rows[scale]:
        config = load(row.config, overrides).with_values(row.values)
        for seed in range(seeds or row.seeds or table.seeds[scale]):
            runs.append(Planned(row, config.with_values({"seed": seed})))
    return sorted(runs, key=lambda run: run.config.seed)


def dataset_name(config: RunConfig) -> str:
    """``glyphs/kanji`` for a domain of a data set, else the data set's name."""
    domain = config.data.options.get("domain")
    return f"{config.data.name}/{domain}" if domain else config.data.name


def loss_name(config: RunConfig) -> str:
    """``proxy_anchor+tcm``: the loss's registry name and whether a regulariser was added."""
    return config.loss.name + ("+tcm" if config.loss.tcm is not None else "")
