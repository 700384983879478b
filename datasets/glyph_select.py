"""From rendered characters to classes: lookalikes and duplicates out, splits and sizes decided."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

# Cosine similarity of two pictures as vectors of grey levels.
SAME_PICTURE = 0.96  # above it, two pictures count as one
LOOKALIKE = 0.93  # above it, two characters of one typeface are hard to tell apart
LOOKALIKE_SHARE = 0.1  # of the typefaces that have both; then the two are not two classes

LEAST_TRAIN = 8  # images of a training class
LEAST_TEST = 20  # images of a test class: OPIS of smaller classes is mostly noise

_BLOCK = 1024  # images compared with all others at once

Pictures = dict[str, dict[str, np.ndarray]]  # typeface -> character -> (32, 32) levels


@dataclass(frozen=True)
class Plan:
    """How many classes a domain gets and how many images each.

    Attributes:
        candidates: characters drawn at random from the domain to begin with; None takes all.
        train_classes, test_classes: classes of each split; None takes what is left.
        most_train, most_test: images of the largest classes.
        tail: None gives every training class ``most_train`` images if it has them; else the class
            of rank r = 0, 1, ... gets most_train / (1 + r / tail), at least :data:`LEAST_TRAIN`
            (the Zipf-Mandelbrot law with exponent 1), a long tail like iNaturalist's.
    """

    candidates: int | None
    train_classes: int | None
    test_classes: int
    most_train: int
    most_test: int
    tail: float | None = None


PLANS = {
    "alphabets": Plan(None, None, 85, 32, 32),
    "hangul": Plan(520, 170, 150, 30, 32),
    "kana": Plan(None, None, 85, 32, 32),
    "kanji": Plan(1300, 650, 500, 44, 32, tail=150),
}


@dataclass(frozen=True)
class GlyphClass:
    """One class: a character and the typefaces that draw it in the data set."""

    domain: str
    character: str
    split: str
    typefaces: tuple[str, ...]


def draw_candidates(domain: str, characters: tuple[str, ...]) -> tuple[str, ...]:
    """The characters of a domain that are worth rendering, by the domain's plan, sorted."""
    count = PLANS[domain].candidates
    if count is None:
        return characters
    chosen = _generator(domain, "candidates").permutation(len(characters))[:count]
    return tuple(characters[i] for i in sorted(chosen))


def select(pictures: Pictures, domain_of: dict[str, str]) -> list[GlyphClass]:
    """Decides on classes, splits and images; a function of its arguments alone.

    Args:
        pictures: in the order in which typefaces take precedence over their near copies.
        domain_of: character -> domain; earlier characters take precedence over lookalikes.

    Returns:
        Classes sorted by domain and character.
    """
    pictures = _without_lookalikes(pictures, list(domain_of))
    available = _without_duplicates(pictures)
    classes = []
    for domain, plan in sorted(PLANS.items()):
        faces = {c: available[c] for c in domain_of if domain_of[c] == domain and c in available}
        classes += _plan_domain(domain, plan, faces)
    return _without_strangers(classes, pictures)


def similarities(pictures: list[np.ndarray], others: list[np.ndarray] | None = None) -> np.ndarray:
    """Cosine similarities of ``pictures`` with ``others`` (or each other), shape (N, M) float32.

    The same on every machine: dot products of levels are whole numbers below 2^24, which float32
    adds without rounding in any order, and the rest is rounded element by element. No picture may
    be all zero.
    """
    left = _vectors(pictures)
    right = left if others is None else _vectors(others)
    return (left @ right.T) / _norms(left)[:, None] / _norms(right)


def _vectors(pictures: list[np.ndarray]) -> np.ndarray:
    return np.stack(pictures).reshape(len(pictures), -1).astype(np.float32)


def _norms(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(vectors).sum(axis=1))


def _without_lookalikes(pictures: Pictures, order: list[str]) -> Pictures:
    both: dict[tuple[str, str], int] = defaultdict(int)
    alike: dict[tuple[str, str], int] = defaultdict(int)
    suspects: dict[str, set[str]] = defaultdict(set)
    place = {character: i for i, character in enumerate(order)}
    for drawn in pictures.values():
        characters = sorted(drawn, key=place.__getitem__)
        close = np.argwhere(np.triu(similarities([drawn[c] for c in characters]), 1) > LOOKALIKE)
        for i, j in close:
            alike[characters[i], characters[j]] += 1
            suspects[characters[j]].add(characters[i])
    for pair in alike:
        both[pair] = sum(pair[0] in drawn and pair[1] in drawn for drawn in pictures.values())
    kept: set[str] = set()
    for character in order:
        if not any(
            earlier in kept
            and alike[earlier, character] >= LOOKALIKE_SHARE * both[earlier, character]
            for earlier in suspects[character]
        ):
            kept.add(character)
    return {f: {c: p for c, p in drawn.items() if c in kept} for f, drawn in pictures.items()}


def _without_duplicates(pictures: Pictures) -> dict[str, list[str]]:
    """Character -> typefaces whose pictures of it are unlike each other and unlike other classes'.

    Where two characters of a typeface still share a picture, which is the class is anyone's guess:
    both go. Where two typefaces share a picture of one character, the earlier typeface keeps it.
    """
    faces: dict[str, list[str]] = defaultdict(list)
    for typeface, drawn in pictures.items():
        characters = list(drawn)
        similar = similarities([drawn[c] for c in characters])
        np.fill_diagonal(similar, 0)
        for character, closest in zip(characters, similar.max(axis=1), strict=True):
            if closest <= SAME_PICTURE:
                faces[character].append(typeface)
    return {c: _unlike(c, typefaces, pictures) for c, typefaces in faces.items()}


def _unlike(character: str, typefaces: list[str], pictures: Pictures) -> list[str]:
    similar = similarities([pictures[f][character] for f in typefaces])
    kept: list[int] = []
    for i in range(len(typefaces)):
        if all(similar[i, j] <= SAME_PICTURE for j in kept):
            kept.append(i)
    return [typefaces[i] for i in kept]


def _plan_domain(domain: str, plan: Plan, faces: dict[str, list[str]]) -> list[GlyphClass]:
    rng = _generator(domain, "splits")
    order = [c for c in faces if len(faces[c]) >= LEAST_TRAIN]
    order = [order[i] for i in rng.permutation(len(order))]
    test = [c for c in order if len(faces[c]) >= LEAST_TEST][: plan.test_classes]
    train = [c for c in order if c not in set(test)][: plan.train_classes]
    if plan.tail is not None:
        # The head of the tail needs the characters with the most typefaces.
        train.sort(key=lambda c: -len(faces[c]))
    sizes = dict.fromkeys(test, plan.most_test)
    for rank, character in enumerate(train):
        size = plan.most_train / (1 + rank / plan.tail) if plan.tail else plan.most_train
        sizes[character] = max(LEAST_TRAIN, round(size))
    classes = []
    for character in sorted(sizes):
        chosen = rng.permutation(len(faces[character]))[: sizes[character]]
        typefaces = tuple(faces[character][i] for i in sorted(chosen))
        split = "test" if character in set(test) else "train"
        classes.append(GlyphClass(domain, character, split, typefaces))
    return classes


def _without_strangers(classes: list[GlyphClass], pictures: Pictures) -> list[GlyphClass]:
    """Drops every image that another class shows, too, in whatever typeface.

    Done last, because all pairs of all images are many. A class that is left with too few images
    is dropped.
    """
    images = [(n, f) for n, one in enumerate(classes) for f in one.typefaces]
    drawn = [pictures[f][classes[n].character] for n, f in images]
    owner = np.array([n for n, _ in images])
    shared = np.zeros(len(images), dtype=bool)
    for start in range(0, len(images), _BLOCK):
        rows = slice(start, start + _BLOCK)
        similar = similarities(drawn[rows], drawn)
        similar[owner[rows, None] == owner] = 0
        shared[rows] = (similar > SAME_PICTURE).any(axis=1)
    kept: dict[int, list[str]] = defaultdict(list)
    for (n, typeface), drop in zip(images, shared, strict=True):
        if not drop:
            kept[n].append(typeface)
    least = {"train": LEAST_TRAIN, "test": LEAST_TEST}
    return [
        replace(one, typefaces=tuple(kept[n]))
        for n, one in enumerate(classes)
        if len(kept[n]) >= least[one.split]
    ]


def _generator(domain: str, purpose: str) -> np.random.Generator:
    return np.random.default_rng(list(f"{domain} {purpose}".encode()))
