"""The DET curve: false rejects against false accepts, on normal-deviate axes.

Martin et al., The DET curve in assessment of detection task performance, Eurospeech 1997.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

from eval.plots import BLUE, GREY, INK, VERMILION, legend_below, new_figure, styled
from eval.verification import Verification

TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999)
HIGHEST = 0.6  # of FAR: beyond it nobody sets a threshold


@styled
def det_figure(found: Verification) -> Figure:
    """FAR (x) against FRR (y); the lower left is better. Rates of 0 and 1 have no place on it."""
    figure, axes = new_figure(5.8, 5.2)
    far, frr = found.det.far, found.det.frr
    inside = (far > 0) & (far < 1) & (frr > 0) & (frr < 1)
    axes.plot(
        ndtri(far[inside]), ndtri(frr[inside]), color=BLUE, linewidth=1.8, label="every threshold"
    )
    shown = [at for at in found.tar_at if at.tar < 1]
    for i, at in enumerate(shown):
        rates = _seen(1 - np.array([at.interval[1], at.tar, at.interval[0]]))
        low, middle, high = ndtri(rates)
        axes.errorbar(
            ndtri(at.reached_far),
            middle,
            yerr=[[max(0, middle - low)], [max(0, high - middle)]],
            fmt="s",
            markersize=5,
            color=VERMILION,
            capsize=3,
            elinewidth=1.2,
            label=None if i else "FAR asked for, 95 % interval",
        )
    seen = inside & (far <= HIGHEST) if (inside & (far <= HIGHEST)).any() else inside
    ends = [1 - end for at in shown for end in at.interval if end < 1]
    limits = _limits(far[seen]), _limits(np.append(frr[seen], ends))
    equal = ndtri([max(lower for lower, _ in limits), min(upper for _, upper in limits)])
    if equal[1] > equal[0]:
        axes.plot(equal, equal, color=GREY, linewidth=1, linestyle=":", label="FAR = FRR")
    rate = found.equal_error.rate
    if 0 < rate < 1:
        name = f"equal error rate, {100 * rate:.3g} %"
        axes.plot(*[ndtri(rate)] * 2, "o", color=INK, markersize=6, linestyle="", label=name)
    _mark(axes.set_xticks, axes.set_xlim, *limits[0])
    _mark(axes.set_yticks, axes.set_ylim, *limits[1])
    axes.set(
        xlabel="FAR, share of different pairs accepted (left is better)",
        ylabel="FRR, share of same pairs rejected (down is better)",
        title=f"DET curve: {found.positives:,} same, {found.negatives:,} different pairs",
    )
    if not inside.any():
        _say_why(axes)
    axes.grid(True)
    axes.set_axisbelow(True)
    legend_below(figure, axes, 2)
    return figure


def _limits(rates: np.ndarray) -> tuple[float, float]:
    """A little beyond the rates on either side."""
    if not len(rates):
        return 1e-3, 0.5
    return rates.min() / 1.4, min(rates.max() * 1.1, (rates.max() + 1) / 2)


def _mark(set_ticks, set_limits, low: float, high: float) -> None:
    ticks = [tick for tick in TICKS if low <= tick <= high]
    set_ticks(ndtri(ticks), [f"{tick:g}".replace("e-0", "e-") for tick in ticks])
    set_limits(*ndtri([low, high]))


def _seen(rates: np.ndarray) -> np.ndarray:
    """Rates of 0 and 1 stand far outside of the axes."""
    return np.clip(rates, 1e-12, 1 - 1e-12)


def _say_why(axes: Axes) -> None:
    text = "one of both rates is 0 or 1\nat every threshold: no curve to draw"
    axes.text(0.5, 0.8, text, transform=axes.transAxes, ha="center", va="center")
