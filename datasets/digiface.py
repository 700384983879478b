"""DigiFace-1M: rendered faces, 112 x 112, 72 images of 10,000 people and 5 of 100,000 others."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from common.errors import UserError
from datasets.class_split import written_split
from datasets.files import FileOptions, FileSource, Layout, make_source, open_layout
from datasets.index import Index
from datasets.index_cache import location
from datasets.scan import find_images

PARTS = ("all", "72", "5")
TEST_FRACTION = 0.1
# Bae et al., WACV 2023, section 3.2. The archives' names span 99,999 people in the second part.
PEOPLE = {"72": (10_000,), "5": (100_000, 99_999)}
IMAGES_EACH = {"72": 72, "5": 5}
_FIRST_OF_SECOND_PART = 100_000


def load(root: Path | None, *, part: str = "all", seed: int = 0, **options: object) -> FileSource:
    """Opens the folders of subjects, in whatever folders the archives were unpacked.

    Identities are split 90/10 at random, the draw is written to a file beside the cached index; see
    :func:`datasets.class_split.written_split`. Labels are subject numbers; the column ``part`` is
    ``72`` or ``5``.

    Args:
        root: where data sets lie; see :func:`datasets.files.locate`.
        part: ``all``, or one part alone: ``"72"`` or ``"5"``.
        seed: of the split.
        options: see :class:`datasets.files.FileOptions`.

    Raises:
        UserError: not there, or files are missing or broken.
    """
    parsed = FileOptions.parse("digiface", options, ("part", "seed"))
    if str(part) not in PARTS:
        raise UserError(f"digiface: part is {part!r}; choose from {', '.join(PARTS)}")
    opened = open_layout(LAYOUT, root, parsed)
    table, notes = opened.table, []
    if str(part) != "all":
        table = table[table["part"] == str(part)]
        notes.append(f"only the part with {part} images a person")
        if table.empty:
            raise UserError(f"digiface: no image of part {part} in {opened.folder}; fetch it")
    # With the number of people: what was drawn for half a download does not bind the whole.
    people = table["label"].nunique()
    place = location(opened.folder) / f"part-{part}-{people}"
    split, note = written_split("digiface", table["label"], TEST_FRACTION, seed, place)
    table = table.assign(domain="digiface", split=split)
    return make_source("digiface", opened, table, parsed, None, [*notes, note])


def list_images(folder: Path) -> pd.DataFrame:
    """Columns ``key``, ``label``, ``part`` of images in folders with a number for a name.

    Raises:
        UserError: one subject lies in two places.
    """
    keys, _ = find_images(folder)
    rows = [(key, *key.rsplit("/", 2)[-3:-1]) for key in keys if key.count("/") >= 1]
    rows = [(key, parents[-1]) for key, *parents in rows if parents[-1].isdecimal()]
    if not rows:
        raise UserError(f"digiface: no folder of a subject (a number) in {folder}; prepare it anew")
    table = pd.DataFrame(rows, columns=["key", "label"], dtype="str")
    place = table["key"].str.rsplit("/", n=1).str[0]
    places = pd.DataFrame({"label": table["label"], "place": place}).drop_duplicates()
    twice = places[places["label"].duplicated(keep=False)].sort_values("label")
    if not twice.empty:
        first, second = twice["place"].iloc[:2]
        raise UserError(
            f"digiface: subject {twice['label'].iloc[0]} lies in {first} and in {second}; "
            "delete one copy"
        )
    second_part = table["label"].astype("int64") >= _FIRST_OF_SECOND_PART
    return table.assign(part=second_part.map({True: "5", False: "72"}))


def check(index: Index) -> list[str]:
    """Problems in the numbers of people and images, for verification."""
    problems = []
    table = index.table
    wanted = [part for part in PARTS[1:] if (table["part"] == part).any()]
    for part in PARTS[1:]:
        if part not in wanted and not any("only the part" in note for note in index.notes):
            there = PARTS[1:][part == PARTS[1]]
            problems.append(
                f"the part with {part} images a person is missing (to use the other one alone: "
                f"--option part={there})"
            )
    for part in wanted:
        sizes = table.loc[table["part"] == part, "label"].value_counts()
        if len(sizes) not in PEOPLE[part]:
            problems.append(
                f"{len(sizes):,} people with {part} images instead of {PEOPLE[part][0]:,}; "
                "an archive is missing or was unpacked in part"
            )
        odd = sizes[sizes != IMAGES_EACH[part]]
        if len(odd):
            problems.append(
                f"{len(odd):,} people do not have {part} images, e.g. subject {odd.index[0]} has "
                f"{odd.iloc[0]}"
            )
    return problems


def _holds(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    for inner in folder.iterdir():
        if inner.is_dir() and (_is_archive_folder(inner.name) or inner.name.isdecimal()):
            return True
    return False


def _is_archive_folder(name: str) -> bool:
    return re.fullmatch(r"subjects_\d+-\d+_\d+_imgs", name) is not None


LAYOUT = Layout(
    name="digiface",
    holds=_holds,
    looks_for="folders subjects_*_imgs, or folders of subjects",
    list_images=list_images,
    depends_on=lambda folder: None,
)
