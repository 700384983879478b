"""Cars-196: 196 models of cars, classes 1-98 for training, 99-196 for testing.

The published archives are split for classification, every class in both halves; here images are
dealt by class, whichever of three layouts they come in:

- ``car_ims/`` and ``cars_annos.mat``;
- ``cars_train/``, ``cars_test/`` and ``devkit/`` with ``cars_test_annos_withlabels.mat``;
- ``car_data/car_data/{train,test}/CLASS/`` with ``anno_train.csv`` and ``anno_test.csv``, as
  distributed on Kaggle.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import UserError
from datasets.annotations import read_names, read_struct, read_text, whole_numbers
from datasets.catalogue import entry
from datasets.files import FileOptions, FileSource, Layout, make_source, open_layout

TRAIN_CLASSES, TEST_CLASSES = (1, 98), (99, 196)
HALVES = ("both", "train", "test")
_ALL = "cars_annos.mat"
_META = "devkit/cars_meta.mat"
_HALF_ANNOTATIONS = {
    "train": ("devkit/cars_train_annos.mat", "cars_train_annos.mat"),
    "test": ("devkit/cars_test_annos_withlabels.mat", "cars_test_annos_withlabels.mat"),
}
_KAGGLE = {"train": "anno_train.csv", "test": "anno_test.csv"}


def load(
    root: Path | None,
    *,
    halves: str = "both",
    train_classes: Sequence[int] = TRAIN_CLASSES,
    test_classes: Sequence[int] = TEST_CLASSES,
    **options: object,
) -> FileSource:
    """Opens one of the three layouts.

    Labels look like ``014 Audi TTS Coupe 2012``; the column ``half`` says which half of the
    classification split an image comes from.

    Args:
        root: where data sets lie; see :func:`datasets.files.locate`.
        halves: ``both``, or ``train`` or ``test`` for one half of the images of every class. With
            less than both, results are not on the published data, and the index's notes say so.
        train_classes: first and last class trained on, in 1..196.
        test_classes: first and last class tested on; ``[1, 49]`` against ``[50, 98]`` makes a small
            problem. Anything but the defaults goes into the notes.
        options: see :class:`datasets.files.FileOptions`.

    Raises:
        UserError: not there, a half or files are missing, or an option is impossible.
    """
    parsed = FileOptions.parse("cars", options, ("halves", "train_classes", "test_classes"))
    train, test = (_class_range(classes) for classes in (train_classes, test_classes))
    if set(train) & set(test):
        raise UserError("cars: train_classes and test_classes overlap; keep them apart")
    if halves not in HALVES:
        raise UserError(f"cars: halves is {halves!r}; choose from {', '.join(HALVES)}")
    opened = open_layout(LAYOUT, root, parsed)
    table, notes = opened.table, []
    if halves == "both":
        _check_halves(opened.folder, table)
    else:
        table = table[table["half"] == halves]
        notes.append(f"only the classification task's {halves} half of the images")
    facts = entry("cars")
    expected = facts.counts if halves == "both" else facts.subsets[halves]
    class_id = table["class_id"].to_numpy()
    split = np.where(np.isin(class_id, train), "train", "test")
    keep = np.isin(class_id, [*train, *test])
    if (train, test) != (_class_range(TRAIN_CLASSES), _class_range(TEST_CLASSES)):
        expected = None
        notes.append(
            f"classes {train[0]}-{train[-1]} against {test[0]}-{test[-1]}, "
            "not the published 1-98 against 99-196"
        )
    table = table.assign(domain="cars", split=split)[keep]
    if table.empty:
        raise UserError(f"cars: no image is left with halves={halves} in these classes")
    return make_source("cars", opened, table, parsed, expected, notes)


def list_images(folder: Path) -> pd.DataFrame:
    """Columns ``key``, ``label``, ``class_id``, ``half``, of whatever halves are there.

    Raises:
        UserError: an annotation file is missing or broken.
    """
    if (folder / _ALL).is_file():
        table, names = _list_all(folder)
    elif _kaggle_files(folder):
        table, names = _list_kaggle(folder)
    else:
        table, names = _list_halves(folder)
    ids = table["class_id"].to_numpy()
    odd = np.flatnonzero((ids < 1) | (ids > TEST_CLASSES[1]))
    if len(odd):
        raise UserError(
            f"{folder}: the annotations give {table['key'].iloc[odd[0]]} the class {ids[odd[0]]}, "
            "outside of 1 to 196; fetch them anew"
        )
    if names is not None and len(names) == TEST_CLASSES[1]:
        table["label"] = [f"{number:03d} {names[number - 1]}" for number in ids]
    else:
        table["label"] = [f"{number:03d}" for number in ids]
    return table[["key", "label", "class_id", "half"]]


def explain(folder: Path) -> str:
    """What a folder without a known layout seems to be."""
    if any((folder / name).is_dir() for name in ("car_ims", "cars_train", "cars_test")):
        return f"there are images, but no annotations ({_ALL}, or devkit and the test labels)"
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        return f"{entry('cars').mistakes[8144, 8041]}, without its annotations"
    return ""


def _list_all(folder: Path) -> tuple[pd.DataFrame, list[str]]:
    path = folder / _ALL
    rows = read_struct(path, "annotations", ("relative_im_path", "class", "test"))
    table = pd.DataFrame(
        {
            "key": rows["relative_im_path"].astype("str"),
            "class_id": whole_numbers(path, rows["class"]),
            "half": np.where(whole_numbers(path, rows["test"]) == 1, "test", "train"),
        }
    )
    return table, read_names(path, "class_names")


def _list_halves(folder: Path) -> tuple[pd.DataFrame, list[str] | None]:
    parts = []
    for half in ("train", "test"):
        path = _half_annotations(folder, half)
        if path is None:
            continue
        rows = read_struct(path, "annotations", ("class", "fname"))
        parts.append(
            pd.DataFrame(
                {
                    "key": f"cars_{half}/" + rows["fname"].astype("str"),
                    "class_id": whole_numbers(path, rows["class"]),
                    "half": half,
                }
            )
        )
    meta = folder / _META
    names = read_names(meta, "class_names") if meta.is_file() else None
    return pd.concat(parts, ignore_index=True), names


def _list_kaggle(folder: Path) -> tuple[pd.DataFrame, None]:
    """Rows are ``file,x1,y1,x2,y2,class``; the file lies in the folder of its class's name."""
    parts = []
    for half, path in _kaggle_files(folder).items():
        rows = [line.split(",") for line in read_text(path).splitlines() if line.strip()]
        places = {
            file.name: file.relative_to(folder).as_posix()
            for file in sorted((folder / "car_data").glob(f"**/{half}/*/*"))
        }
        files = [row[0] for row in rows]
        table = pd.DataFrame(
            {
                "key": [places.get(name, f"car_data/car_data/{half}/{name}") for name in files],
                "class_id": pd.Series([row[-1].strip() for row in rows], name="class"),
                "half": half,
            }
        )
        table["class_id"] = whole_numbers(path, table["class_id"])
        parts.append(table)
    return pd.concat(parts, ignore_index=True), None


def _half_annotations(folder: Path, half: str) -> Path | None:
    """The half's annotations, where its images are there, too."""
    if not (folder / f"cars_{half}").is_dir():
        return None
    found = [folder / name for name in _HALF_ANNOTATIONS[half] if (folder / name).is_file()]
    return found[0] if found else None


def _kaggle_files(folder: Path) -> dict[str, Path]:
    files = {half: folder / name for half, name in _KAGGLE.items()}
    return {half: path for half, path in files.items() if path.is_file()}


def _depends_on(folder: Path) -> list[Path]:
    if (folder / _ALL).is_file():
        return [folder / _ALL]
    found = [*_kaggle_files(folder).values()]
    found += [path for half in ("train", "test") if (path := _half_annotations(folder, half))]
    return [*found, *([folder / _META] if (folder / _META).is_file() else [])]


def _holds(folder: Path) -> bool:
    return bool(_depends_on(folder)) and _depends_on(folder) != [folder / _META]


def _check_halves(folder: Path, table: pd.DataFrame) -> None:
    for half in ("train", "test"):
        if (table["half"] == half).any():
            continue
        if (folder / f"cars_{half}").is_dir():
            missing = f"the labels of cars_{half} ({Path(_HALF_ANNOTATIONS[half][0]).name})"
        else:
            missing = f"cars_{half} with {Path(_HALF_ANNOTATIONS[half][0]).name}"
        other = {"train": "test", "test": "train"}[half]
        raise UserError(
            f"cars: {missing} is missing in {folder}, half of the data set; add it, or use the "
            f"other half alone with halves={other} (--option halves={other})"
        )


def _class_range(classes: Sequence[int]) -> range:
    ends = list(classes)
    whole = len(ends) == 2 and all(isinstance(end, int) for end in ends)
    if not whole or not 1 <= ends[0] <= ends[1] <= TEST_CLASSES[1]:
        raise UserError(
            f"cars: {ends} is no range of classes; give the first and the last, in 1 to 196"
        )
    return range(ends[0], ends[1] + 1)


LAYOUT = Layout(
    name="cars",
    holds=_holds,
    looks_for="cars_annos.mat, or cars_train, cars_test and devkit",
    list_images=list_images,
    depends_on=_depends_on,
    explain=explain,
)
