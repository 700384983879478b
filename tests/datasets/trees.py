"""Generators of data sets in the official layouts, of any size, from a few tiny images.

Files are hard links to a handful of JPEGs, so that trees with the published counts are cheap.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

# A file may have 65,000 links on common file systems.
_TEMPLATES = 8


def picture(seed: int, size: tuple[int, int] = (16, 16)) -> Image.Image:
    """A random smooth picture, RGB, another one for each seed."""
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)


def encode(image: Image.Image, kind: str = "JPEG", **options: object) -> bytes:
    """The bytes of a file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def write(path: Path, content: bytes | str) -> Path:
    """Writes a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def link_images(folder: Path, keys: Sequence[str], size: tuple[int, int] = (16, 16)) -> None:
    """Makes ``folder/key`` for each key; one of a few pictures each."""
    kind = "PNG" if keys[0].endswith(".png") else "JPEG"
    store = folder / ".templates"
    sources = []
    for seed in range(_TEMPLATES):
        path = store / f"{seed}.{kind.lower()}"
        if not path.exists():
            write(path, encode(picture(seed, size), kind))
        sources.append(path)
    for parent in {os.path.dirname(key) for key in keys}:
        (folder / parent).mkdir(parents=True, exist_ok=True)
    for number, key in enumerate(keys):
        os.link(sources[number % _TEMPLATES], os.path.join(folder, key))


def spread(total: int, classes: int) -> list[int]:
    """``total`` images on ``classes`` classes as evenly as can be."""
    least, more = divmod(total, classes)
    return [least + (number < more) for number in range(classes)]


def numbered(sizes: Sequence[int], first: int = 1) -> list[int]:
    """The class of each image, for classes of these sizes."""
    return [first + number for number, size in enumerate(sizes) for _ in range(size)]


def make_cub(folder: Path, train: Sequence[int], test: Sequence[int], newline: str = "\n") -> Path:
    """``CUB_200_2011`` with these class sizes; the test classes are 101, 102, ..."""
    folder = folder / "CUB_200_2011"
    classes = numbered(train) + numbered(test, 101)
    keys = [f"{c:03d}.Bird_{c}/Bird_{c}_{i:05d}.jpg" for i, c in enumerate(classes, 1)]
    link_images(folder / "images", keys)
    images = "".join(f"{i} {key}{newline}" for i, key in enumerate(keys, 1))
    labels = "".join(f"{i} {c}{newline}" for i, c in enumerate(classes, 1))
    write(folder / "images.txt", images)
    write(folder / "image_class_labels.txt", labels)
    names = sorted(set(classes))
    write(folder / "classes.txt", "".join(f"{c} {c:03d}.Bird_{c}{newline}" for c in names))
    split = "".join(f"{i} {i % 2}{newline}" for i in range(1, len(keys) + 1))
    write(folder / "train_test_split.txt", split)
    return folder


def structs(**fields: Sequence) -> np.ndarray:
    """A MATLAB struct array."""
    rows = list(zip(*fields.values(), strict=True))
    made = np.empty((1, len(rows)), dtype=[(name, object) for name in fields])
    for place, row in enumerate(rows):
        made[0, place] = row
    return made


def cells(texts: Sequence[str]) -> np.ndarray:
    """A MATLAB cell array of strings."""
    made = np.empty((1, len(texts)), dtype=object)
    made[0, :] = list(texts)
    return made


CAR_NAMES = [f"Make Model {number} 2012" for number in range(1, 197)]


def make_cars_old(folder: Path, classes: Sequence[int]) -> Path:
    """``car_ims`` and ``cars_annos.mat``; odd images are of the classification test."""
    keys = [f"car_ims/{i:06d}.jpg" for i in range(1, len(classes) + 1)]
    link_images(folder, keys)
    annotations = structs(
        relative_im_path=keys,
        bbox_x1=[1] * len(keys),
        **{"class": list(classes)},
        test=[i % 2 for i in range(len(keys))],
    )
    savemat(
        folder / "cars_annos.mat", {"annotations": annotations, "class_names": cells(CAR_NAMES)}
    )
    return folder


def make_cars_half(folder: Path, half: str, classes: Sequence[int], labelled: bool = True) -> Path:
    """``cars_train`` or ``cars_test`` with its annotations in ``devkit``."""
    files = [f"{i:05d}.jpg" for i in range(1, len(classes) + 1)]
    link_images(folder, [f"cars_{half}/{name}" for name in files])
    (folder / "devkit").mkdir(exist_ok=True)
    fields = {"bbox_x1": [1] * len(files)}
    if labelled:
        fields["class"] = list(classes)
    name = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}[half]
    savemat(folder / "devkit" / name, {"annotations": structs(**fields, fname=files)})
    savemat(folder / "devkit/cars_meta.mat", {"class_names": cells(CAR_NAMES)})
    return folder


def make_cars_kaggle(folder: Path, halves: dict[str, Sequence[int]]) -> Path:
    """``car_data/car_data/{train,test}/CLASS`` with ``anno_train.csv`` and ``anno_test.csv``."""
    for half, classes in halves.items():
        files = [f"{i:05d}.jpg" for i in range(1, len(classes) + 1)]
        keys = [
            f"car_data/car_data/{half}/{CAR_NAMES[c - 1]}/{name}"
            for c, name in zip(classes, files, strict=True)
        ]
        link_images(folder, keys)
        rows = [f"{name},1,2,3,4,{c}\n" for c, name in zip(classes, files, strict=True)]
        write(folder / f"anno_{half}.csv", "".join(rows))
    write(folder / "names.csv", "".join(f"{name}\n" for name in CAR_NAMES))
    return folder


def make_sop(folder: Path, train: Sequence[int], test: Sequence[int], images: bool = True) -> Path:
    """``Stanford_Online_Products`` with these class sizes."""
    folder = folder / "Stanford_Online_Products"
    first = 1
    for split, sizes in (("train", train), ("test", test)):
        classes = numbered(sizes, 1 if split == "train" else 1 + len(train))
        kinds = [("bicycle", "chair", "sofa")[c % 3] for c in classes]
        keys = [f"{kinds[i]}_final/{c}_{i}.JPG" for i, c in enumerate(classes)]
        rows = ["image_id class_id super_class_id path\n"]
        rows += [f"{first + i} {c} {1 + c % 3} {keys[i]}\n" for i, c in enumerate(classes)]
        write(folder / f"Ebay_{split}.txt", "".join(rows))
        if images:
            link_images(folder, keys)
        first += len(keys)
    return folder


def make_inaturalist(
    folder: Path,
    train: Sequence[int],
    test: Sequence[int],
    images: bool = True,
    splits: str | None = "Inat_dataset_splits",
) -> Path:
    """``train_val2018``, both JSON files and, in the folder ``splits``, the two split files."""
    classes = numbered(train, 0) + numbered(test, len(train))
    kinds = ("Aves", "Plantae", "Fungi")
    keys = [f"train_val2018/{kinds[c % 3]}/{c}/{i:032x}.jpg" for i, c in enumerate(classes)]
    if images:
        link_images(folder, keys)
    else:
        (folder / "train_val2018").mkdir(parents=True)
    for part, places in (("train", range(0, len(keys), 2)), ("val", range(1, len(keys), 2))):
        tree = {
            "images": [{"id": i, "file_name": keys[i]} for i in places],
            "annotations": [{"image_id": i, "category_id": classes[i]} for i in places],
            "categories": [{"id": c} for c in sorted(set(classes))],
        }
        write(folder / f"{part}2018.json", json.dumps(tree))
    if splits is not None:
        border = sum(train)
        for split, part in (("train", keys[:border]), ("test", keys[border:])):
            name = f"Inaturalist_{split}_set1.txt"
            write(folder / splits / name, "".join(f"{key}\n" for key in part))
    return folder


def make_digiface(folder: Path, first: int, second: int, archives: bool = True) -> Path:
    """``first`` people with 72 images and ``second`` others with 5."""
    for start, people, images in ((0, first, 72), (100_000, second, 5)):
        outer = f"subjects_{start}-{start + max(people, 1) - 1}_{images}_imgs/" if archives else ""
        keys = [
            f"{outer}{start + person}/{number}.png"
            for person in range(people)
            for number in range(images)
        ]
        if keys:
            link_images(folder, keys, (112, 112))
    return folder
