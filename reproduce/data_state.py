"""Whether a configuration's images are there, and how many there are or will be."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from math import floor
from pathlib import Path

from common.errors import UserError
from datasets import cli, digiface
from datasets.catalogue import Counts, entry
from datasets.files import locate
from datasets.merged import DOMAINS
from reproduce.build import build_sampler
from reproduce.config import RunConfig
from reproduce.execute import split
from reproduce.keys import Keys


@dataclass(frozen=True)
class DataState:
    """What is known of a configuration's data.

    Attributes:
        problem: why it cannot be used, and what to do; None if it can.
        training_images, training_classes, test_images: read from it, or the published ones;
            None where neither is known.
        steps_per_epoch: None where the number of images is not known.
        channels: of the images.
    """

    problem: str | None
    training_images: int | None
    training_classes: int | None
    test_images: int | None
    steps_per_epoch: int | None
    channels: int


def look(config: RunConfig, keys: Keys) -> DataState:
    """Opens the data set if it is there; else takes the published numbers.

    Raises:
        UserError: the data cannot fill a batch of this configuration.
    """
    try:
        source = keys.source(config)
    except UserError as error:
        return _absent(config, str(error))
    training, evaluated, _ = split(config, source.index)
    batches = build_sampler(config, training).batches
    return DataState(
        None,
        len(training),
        len(training.classes),
        len(evaluated),
        batches,
        len(source.mean),
    )


def channels(config: RunConfig) -> int:
    """Of the images, where they are not there to be asked: glyphs are grey, photographs not."""
    return 1 if config.data.name.split("/")[0] == "glyphs" else 3


def absent(config: RunConfig, root: Path | None) -> list[str]:
    """A sentence for each published data set that is not under ``root``; opens none of them."""
    said = []
    for name in _parts(config):
        module = import_module(f"datasets.{name}")
        options = config.data.options.get("parts", {}).get(name, config.data.options)
        layout = module.STAND_IN if options.get("split") == "stand-in" else module.LAYOUT
        try:
            locate(layout, root, config.data.options.get("resized"))
        except UserError as error:
            said.append(str(error))
    return said


def what_prepare_would_do(config: RunConfig, root: Path | None) -> list[str]:
    """A sentence for each published data set behind a configuration: files, size, terms."""
    said = []
    for name in _parts(config):
        facts = entry(name)
        files = ", ".join(item.file for item in facts.downloads)
        said.append(
            f"`{cli.PROGRAM} prepare {name} --root {root or 'DIR'}` would fetch {files} "
            f"({facts.size}; from {facts.source}; terms: {facts.terms})"
        )
    return said


def _parts(config: RunConfig) -> list[str]:
    name = config.data.name.split("/")[0]
    if name == "merged":
        return list(config.data.options.get("domains", DOMAINS))
    return [] if name == "glyphs" or ":" in name or name == "csv" else [name]


def _absent(config: RunConfig, problem: str) -> DataState:
    counts = [_published(name, config) for name in _parts(config)]
    if not counts or None in counts:
        images = classes = test = None
    else:
        kept = 1 - config.data.validation_fraction
        images = floor(kept * sum(of.train_images for of in counts))
        classes = floor(kept * sum(of.train_classes for of in counts))
        test = sum(of.test_images for of in counts)
    steps = config.train.steps_per_epoch
    if steps is None and images is not None:
        steps = max(1, images // (config.train.classes_per_batch * config.train.images_per_class))
    return DataState(problem, images, classes, test, steps, channels(config))


def _published(name: str, config: RunConfig) -> Counts | None:
    if name != "digiface":
        return entry(name).counts
    part = str(config.data.options.get("part", "all"))
    people = {key: max(of) for key, of in digiface.PEOPLE.items() if part in ("all", key)}
    images = sum(digiface.IMAGES_EACH[key] * count for key, count in people.items())
    everyone = sum(people.values())
    test, test_people = (floor(digiface.TEST_FRACTION * total) for total in (images, everyone))
    return Counts(images - test, test, everyone - test_people, test_people)
