"""One threshold for all, worked by hand on a line of angles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from common.errors import UserError
from eval.one_threshold import judge_threshold, one_threshold, split_identities
from tests.eval.awkward import even_set


def on_circle(degrees) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def calibrating(classes: int, share: float, seed: int) -> set[int]:
    """Which identities calibrate, seen from what is counted there."""
    labels = np.repeat(np.arange(classes), 2)
    x = np.random.default_rng(0).normal(size=(2 * classes, 3))
    split = split_identities(x, labels, [0.5], share=share, seed=seed)
    return set(split.calibration.counts.images.classes.tolist())


def test_by_hand():
    """Two identities calibrate, three are judged; distances are chords of angles in degrees.

    Calibration: images at 0 and 10, at 30 and 60. Negative pairs are 30, 60, 20 and 50 degrees
    apart: at FAR 1/4 the threshold is the chord of 20 degrees; of the positives, 10 and 30 apart,
    one is accepted. The others: a at 0, 15; b at 25, 60; c at 95, 110. Positives 15, 35, 15 apart:
    two of three accepted. Negatives: a-b 25, 60, 10, 45; a-c 95 and more: none; b-c 70, 85, 35, 50:
    one of twelve is accepted. Domain x holds a and b, y holds c. Pairs with an end in x: for a 1 of
    8, for b 1 of 8; in y: 0 of 8.
    """
    drawn = sorted(calibrating(5, 0.4, 7))
    judged = [i for i in range(5) if i not in drawn]
    assert len(drawn) == 2
    places = dict(
        zip(drawn + judged, [(0, 10), (30, 60), (0, 15), (25, 60), (95, 110)], strict=True)
    )
    labels = np.repeat(np.arange(5), 2)
    x = on_circle([angle for i in range(5) for angle in places[i]])
    domain = {**dict.fromkeys(drawn, "y"), judged[0]: "x", judged[1]: "x", judged[2]: "y"}
    found = one_threshold(
        x, labels, far=0.25, domains=[domain[i] for i in labels], calibration_share=0.4, seed=7
    )
    assert found.threshold == pytest.approx(2 * math.sin(math.radians(10)))
    assert found.calibration.far == pytest.approx(1 / 4)
    assert found.calibration.tar == pytest.approx(1 / 2)
    assert found.calibration.negatives == 4
    assert found.overall.far == pytest.approx(1 / 12)
    assert found.overall.tar == pytest.approx(2 / 3)
    assert (found.overall.identities, found.overall.positives) == (3, 3)
    assert found.overall.negatives == 12
    x_rates, y_rates = found.domains["x"], found.domains["y"]
    assert (x_rates.far, x_rates.tar) == pytest.approx((2 / 16, 1 / 2))
    assert (y_rates.far, y_rates.tar) == pytest.approx((0, 1))
    assert (x_rates.identities, x_rates.positives, x_rates.negatives) == (2, 2, 16)
    assert (y_rates.identities, y_rates.positives, y_rates.negatives) == (1, 1, 8)


def test_parts_are_seeded_and_share_no_identity():
    assert calibrating(20, 0.5, 1) == calibrating(20, 0.5, 1)
    assert calibrating(20, 0.5, 1) != calibrating(20, 0.5, 2)
    assert len(calibrating(20, 0.3, 0)) == 6
    data = even_set((0.4, 0.9))
    split = split_identities(data.embeddings, data.labels, [0.01], share=0.3)
    parts = [set(p.counts.images.classes.tolist()) for p in (split.calibration, split.others)]
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == set(range(60))


def test_a_domain_of_single_images_has_no_tar():
    data = even_set((0.4, 0.9))
    rows = np.flatnonzero((data.labels < 40) | (np.arange(600) % 10 == 0))
    labels = data.labels[rows]
    domains = np.where(labels < 40, "several", "one")
    found = one_threshold(data.embeddings[rows], labels, far=0.01, domains=domains)
    assert math.isnan(found.domains["one"].tar)
    assert found.domains["one"].positives == 0
    assert 0 <= found.domains["one"].far <= 1
    assert found.domains["several"].tar == pytest.approx(found.overall.tar)


@pytest.mark.parametrize("share", [0, 1, -0.5, math.nan])
def test_wrong_share(share):
    data = even_set((0.4, 0.9))
    with pytest.raises(UserError, match="calibration share is"):
        one_threshold(data.embeddings, data.labels, far=0.01, calibration_share=share)


def test_too_little_is_named():
    data = even_set((0.4, 0.9))
    x, labels = data.embeddings[:40], data.labels[:40]
    with pytest.raises(UserError, match="1,000 negative pairs among the calibration identities"):
        one_threshold(x, labels, far=1e-3)
    with pytest.raises(UserError, match="of the calibration identities 1 have two images"):
        one_threshold(x, labels, far=0.1, calibration_share=0.25)
    with pytest.raises(UserError, match="40 embeddings but 39 labels"):
        one_threshold(x, labels[:-1], far=0.1)
    with pytest.raises(UserError, match="in two domains"):
        one_threshold(x, labels, far=0.1, domains=np.arange(40))
    split = split_identities(x, labels, [0.1])
    with pytest.raises(UserError, match="needs at least 1,000 negative pairs"):
        judge_threshold(split, 1e-3)
