"""Options of every data set: whatever a user writes for one works, or is a sentence."""

import pytest

import datasets
from common.errors import UserError
from tests.datasets.trees import (
    encode,
    make_cars_old,
    make_cub,
    make_digiface,
    make_inaturalist,
    make_sop,
    picture,
    write,
)

OPTIONS = {
    "cub": (),
    "sop": (),
    "cars": ("halves", "train_classes", "test_classes"),
    "inaturalist": ("split",),
    "digiface": ("part", "seed"),
    "merged": ("domains", "domain", "equalise", "test_images_per_class", "seed", "parts"),
    "folder": ("test_fraction", "seed", "domains"),
    "csv": ("test_fraction", "seed"),
    "glyphs": ("domain", "folder"),
}
SHARED = ("broken", "resized", "decode_side", "no_such_option")
VALUES = (None, True, -1, 0, 1.5, "odd", [], ["odd"], [3, 1], {}, {"odd": 1}, {"cub": 3})


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_cub(folder, [3, 3], [3, 4])
    cars = [c for c in (1, 2, 99, 100) for _ in range(3)]
    (folder / "cars").mkdir()
    make_cars_old(folder / "cars", cars)
    make_sop(folder, [3, 2], [3, 3])
    (folder / "inaturalist").mkdir()
    make_inaturalist(folder / "inaturalist", [3, 3], [3, 4])
    (folder / "digiface").mkdir()
    make_digiface(folder / "digiface", 1, 12)
    for place in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
        write(folder / "own" / place, encode(picture(1), "PNG"))
    write(folder / "own.csv", "path,label\nown/a/1.png,a\nown/b/1.png,b\n")
    return folder


@pytest.mark.parametrize("name", OPTIONS)
def test_odd_values_are_sentences(root, name):
    full = {"folder": f"folder:{root / 'own'}", "csv": f"csv:{root / 'own.csv'}"}.get(name, name)
    assert len(datasets.load(full, root).index)
    refused = []
    for option in (*OPTIONS[name], *SHARED):
        for value in VALUES:
            try:
                datasets.load(full, root, **{option: value})
            except UserError as error:
                refused.append(str(error))
    assert len(refused) > len(VALUES)
    assert not any("\n" in text for text in refused)


@pytest.mark.parametrize("name", ["cub", "glyphs", "merged", "digiface"])
def test_an_unknown_option_is_named_with_those_that_are_known(root, name):
    with pytest.raises(UserError, match=f"{name} has no option 'colour'; choose from .*"):
        datasets.load(name, root, colour="red")
