"""Best-threshold accuracy over ten folds, the protocol of Labeled Faces in the Wild.

Huang, Ramesh, Berg and Learned-Miller, Labeled Faces in the Wild, technical report 07-49 of the
University of Massachusetts, Amherst, 2007: ten sets of as many matched as mismatched pairs, no
person in two sets; what is chosen for one set is chosen on the nine others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from common.errors import UserError
from eval.prepared import Prepared

FOLDS = 10
PAIRS_OF_A_KIND = 300  # in each fold of LFW


@dataclass(frozen=True)
class FoldAccuracy:
    """Accuracy of each fold at the threshold that is best on the nine others.

    Attributes:
        mean, std: over folds, in [0, 1]; ``std`` is the sample standard deviation (n - 1).
        accuracies: (10,) in [0, 1].
        thresholds: (10,) distances.
        pairs: number of all pairs.
    """

    mean: float
    std: float
    accuracies: np.ndarray
    thresholds: np.ndarray
    pairs: int


def fold_accuracy(distances: np.ndarray, same: np.ndarray, folds: np.ndarray) -> FoldAccuracy:
    """Chooses and judges thresholds.

    Args:
        distances: (E,).
        same: (E,) whether the pair is of one identity.
        folds: (E,) 0 to 9, none of them empty.
    """
    accuracies, thresholds = np.empty((2, FOLDS))
    for fold in range(FOLDS):
        held_out = folds == fold
        thresholds[fold] = best_threshold(distances[~held_out], same[~held_out])
        accuracies[fold] = np.mean((distances <= thresholds[fold])[held_out] == same[held_out])
    mean, std = float(accuracies.mean()), float(accuracies.std(ddof=1))
    return FoldAccuracy(mean, std, accuracies, thresholds, len(same))


def best_threshold(distances: np.ndarray, same: np.ndarray) -> float:
    """The threshold of highest accuracy on pairs (E,); of several, the smallest.

    It lies halfway between the last distance that it accepts and the next; below all distances
    where rejecting every pair is best.
    """
    order = np.argsort(distances, kind="stable")
    rising, gain = distances[order], np.cumsum(np.where(same[order], 1, -1))
    last = np.flatnonzero(np.append(rising[1:] > rising[:-1], True))  # of pairs that tie
    best = int(np.argmax(np.append(0, gain[last])))
    if best == 0:
        return float(np.nextafter(rising[0], -np.inf))
    at = last[best - 1]
    return float((rising[at] + rising[min(at + 1, len(rising) - 1)]) / 2)


def consecutive_folds(count: int) -> np.ndarray:
    """(count,) tenths of a list in its order, as LFW's list is made.

    Raises:
        UserError: fewer than ten pairs.
    """
    if count < FOLDS:
        raise UserError(f"accuracy over {FOLDS} folds needs {FOLDS} pairs, the list has {count}")
    return np.arange(count) * FOLDS // count


def draw_folds(images: Prepared, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs for ten folds without a common identity: as many same as different in each.

    Drawn in the manner of LFW: an identity uniformly, two of its images; two identities uniformly,
    an image of each; a pair that is there already is drawn again. A fold has 300 pairs of either
    kind, or as many as the poorest of the folds has.

    Returns:
        (E, 2) places of sorted images, (E,) whether they are of one identity, (E,) fold.

    Raises:
        UserError: fewer than 20 identities, or fewer than 10 with two images.
    """
    rng = np.random.default_rng(seed)
    starts, sizes = images.queries.starts, images.queries.sizes
    shuffled = rng.permutation(len(sizes))
    rich = np.concatenate([shuffled[sizes[shuffled] >= 2], shuffled[sizes[shuffled] < 2]])
    if len(rich) < 2 * FOLDS or (sizes >= 2).sum() < FOLDS:
        raise UserError(
            f"accuracy over {FOLDS} folds without a common identity needs {2 * FOLDS} identities, "
            f"{FOLDS} of them with two images or more; there are {len(rich)} and "
            f"{(sizes >= 2).sum()}"
        )
    members = [rich[fold::FOLDS] for fold in range(FOLDS)]
    count = min(PAIRS_OF_A_KIND, *(_fewest(sizes[classes]) for classes in members))
    pairs, same = [], []
    for classes in members:
        several = classes[sizes[classes] >= 2]

        def matched(several=several) -> tuple[int, int]:
            one = rng.choice(several)
            return tuple(starts[one] + rng.choice(sizes[one], size=2, replace=False))

        def mismatched(classes=classes) -> tuple[int, int]:
            return tuple(starts[i] + rng.integers(sizes[i]) for i in rng.choice(classes, 2, False))

        for draw, kind in ((matched, True), (mismatched, False)):
            drawn: set[tuple[int, int]] = set()
            while len(drawn) < count:
                a, b = draw()
                drawn.add((int(min(a, b)), int(max(a, b))))
            pairs += sorted(drawn)
            same += [kind] * count
    return np.array(pairs), np.array(same), np.repeat(np.arange(FOLDS), 2 * count)


def _fewest(sizes: np.ndarray) -> int:
    """The smaller of the numbers of same and of different pairs among classes of these sizes."""
    inside = int((sizes * (sizes - 1) // 2).sum())
    everything = int(sizes.sum()) * (int(sizes.sum()) - 1) // 2
    return min(inside, everything - inside)
