"""What a claim of the paper is, as data: the comparisons that must all hold for it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from reproduce.config import Section


class Pair(Section):
    """``other`` against ``base`` in one metric of one table, seed by seed.

    It is judged on each data set and backbone on which the table has both rows, apart.
    """

    kind: Literal["pair"] = "pair"
    table: str
    base: str
    other: str
    metric: str
    direction: Literal["up", "down", "not down"]
    smallest: float | None = Field(None, ge=0, description="absolute, in the metric's own unit")
    smallest_relative: float | None = Field(None, ge=0, description="share of the base's mean")
    datasets: tuple[str, ...] = Field((), strict=False, description="only these; empty: all")

    @model_validator(mode="after")
    def _one_smallest(self) -> Pair:
        if (self.smallest is None) == (self.smallest_relative is None):
            raise ValueError("give either smallest or smallest_relative")
        return self


class Spread(Section):
    """How far OPIS spreads among the accurate rows of one data set, whatever their table.

    Two things are claimed of the rows within ``within`` of the best R@1: the largest ``metric`` is
    at least ``ratio`` times the smallest, and the most accurate row does not have the smallest.
    Judged on the data set and backbone of ``table``, whose rows must be there; the rows of all
    other tables on it count as well.
    """

    kind: Literal["spread"]
    table: str
    metric: str = "opis"
    within: float = Field(gt=0, le=1)
    ratio: float = Field(gt=1)
    rows: int = Field(ge=2, description="so many accurate rows are needed for a verdict")


class Limit(Section):
    """A ratio of step times that is claimed to stay below ``limit``, at every batch size."""

    kind: Literal["limit"]
    table: str
    limit: float = Field(gt=0)


def _kind(part: Any) -> str:
    return part.get("kind", "pair") if isinstance(part, dict) else part.kind


Part = Annotated[
    Annotated[Pair, Tag("pair")]
    | Annotated[Spread, Tag("spread")]
    | Annotated[Limit, Tag("limit")],
    Discriminator(_kind),
]


class Claim(Section):
    """A sentence of the paper, and the comparisons that must all hold for it."""

    id: int
    text: str
    source: str
    caveat: str = ""
    parts: Annotated[tuple[Part, ...], Field(min_length=1, strict=False)]


class Paper(Section):
    """Which version the numbers and claims are of."""

    arxiv: str
    venue: str


class Claims(Section):
    """The whole claims file."""

    paper: Paper
    confidence: float = Field(gt=0, lt=1)
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, strict=False)]
