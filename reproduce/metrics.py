"""How each metric is shown: heading, factor, decimals, which way is better."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Shown:
    """A metric as a reader sees it: raw value times ``factor``, then ``unit``."""

    heading: str
    factor: float = 1.0
    decimals: int = 3
    unit: str = ""
    better: str = ""

    @property
    def name(self) -> str:
        """The heading without its unit, for sentences."""
        return re.sub(r",? (%|e-3|s|MiB)$", "", self.heading)

    def __call__(self, value: float) -> str:
        """A difference of this metric, scaled and with its sign."""
        return f"{self.factor * value:+.{self.decimals}f}"

    def plain(self, value: float) -> str:
        """A value of this metric, scaled."""
        return f"{self.factor * value:.{self.decimals}f}"


def percent(heading: str) -> Shown:
    """A share, shown in per cent; its differences are points."""
    return Shown(heading, 100, 2, " points", "up")


def thousandths(heading: str, decimals: int = 3) -> Shown:
    """OPIS and its relatives, as the paper prints them."""
    return Shown(heading, 1e3, decimals, "e-3", "down")


METRICS = {
    "recall_at_1": percent("R@1 %"),
    "recall_at_2": percent("R@2 %"),
    "recall_at_4": percent("R@4 %"),
    "recall_at_8": percent("R@8 %"),
    "map_at_r": percent("MAP@R %"),
    "opis": thousandths("OPIS e-3"),
    "epsilon_opis": thousandths("ε-OPIS e-3", 2),
    "opis_floor": thousandths("noise floor e-3"),
    "opis_corrected": thousandths("OPIS - floor e-3"),
    "opis_far": thousandths("OPIS (log FAR) e-3"),
    "opis_across_domains": thousandths("OPIS across domains e-3"),
    "train_seconds": Shown("training time, s", 1, 1, " s", "down"),
    "epoch_seconds": Shown("s per epoch", 1, 2, " s", "down"),
    "peak_memory_mb": Shown("peak memory, MiB", 1, 0, " MiB", "down"),
}


# What is measured in each domain of a set that has several.
OF_DOMAIN = ("recall_at_1", "opis")


def of_domain(metric: str) -> tuple[str, str]:
    """("kana", "opis") of ``kana_opis``; the first is empty where it is no domain's metric."""
    for family in OF_DOMAIN:
        if metric not in METRICS and metric.endswith(f"_{family}"):
            return metric.removesuffix(f"_{family}"), family
    return "", metric


def scaled(metric: str) -> Shown:
    """How a metric is shown; one of a domain or of a FAR takes its family's form."""
    if metric in METRICS:
        return METRICS[metric]
    domain, family = of_domain(metric)
    if domain:
        return replace(METRICS[family], heading=f"{domain} {METRICS[family].heading}")
    if metric.startswith("tar_at_far_"):
        return percent(f"TAR@FAR={metric.removeprefix('tar_at_far_')} %")
    return Shown(metric)
