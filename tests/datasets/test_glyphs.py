"""The committed glyphs: they hold what the card promises, and broken files are told."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import datasets
from common.errors import UserError
from datasets import glyphs
from datasets.build_glyphs import TYPEFACES

SAME = 0.96  # written apart from the builder's own
ALIKE = 0.93


@pytest.fixture(scope="module")
def source():
    return datasets.load("glyphs")


@pytest.fixture(scope="module")
def table(source):
    return source.index.table


@pytest.fixture(scope="module")
def vectors(source):
    flat = source.images.reshape(len(source.images), -1).astype(np.float32)
    return flat / np.linalg.norm(flat, axis=1, keepdims=True)


def test_the_file_is_small():
    assert (glyphs.FOLDER / glyphs.PICTURES).stat().st_size <= 12_000_000


def test_classes_and_images_are_enough(table):
    assert set(table["domain"]) == {"alphabets", "hangul", "kana", "kanji"}
    classes = table.groupby("domain")["label"].nunique()
    assert classes.min() >= 150
    assert classes["kanji"] >= 1000
    sizes = table.groupby(["split", "label"]).size()
    assert sizes["train"].min() >= 8
    assert sizes["test"].min() >= 20


def test_splits_are_disjoint_by_class_in_every_domain(table):
    assert (table.groupby("label")["split"].nunique() == 1).all()
    assert (table.groupby("domain")["split"].nunique() == 2).all()


def test_kanji_have_a_long_tail(table):
    train = table[(table["domain"] == "kanji") & (table["split"] == "train")]
    sizes = train["label"].value_counts().to_numpy()
    assert sizes[0] >= 40
    assert np.median(sizes) < sizes[0] / 2
    # The larger half of the images belongs to well under half of the classes.
    assert np.searchsorted(sizes.cumsum(), len(train) / 2) < 0.35 * len(sizes)


def test_pictures_are_neither_blank_nor_clipped_nor_off_centre(source):
    images = source.images
    assert images.max(axis=(1, 2)).min() >= 3 * 17
    assert not images[:, :2].any()
    assert not images[:, -2:].any()
    assert not images[:, :, :2].any()
    assert not images[:, :, -2:].any()
    for axis in (1, 2):
        ink = images.any(axis=axis)
        first, last = ink.argmax(axis=1), 31 - ink[:, ::-1].argmax(axis=1)
        # Half a pixel is rounding; faint edges may round to nothing on one side.
        assert np.quantile(np.abs(first + last - 31), 0.99) <= 1
        assert np.abs(first + last - 31).max() <= 6


def test_pictures_fill_the_frame(source):
    extents = []
    for axis in (1, 2):
        ink = source.images.any(axis=axis)
        extents.append(32 - ink.argmax(axis=1) - ink[:, ::-1].argmax(axis=1))
    longest = np.maximum(*extents)
    assert longest.max() == 28
    assert np.mean(longest == 28) > 0.98


def test_no_two_classes_have_the_same_picture(source, table):
    pictures = pd.Series([image.tobytes() for image in source.images])
    assert (table.groupby(pictures.to_numpy())["label"].nunique() == 1).all()


def test_no_picture_is_twice_in_a_class(table, vectors):
    assert not table.duplicated(["label", "typeface"]).any()
    for rows in table.groupby("label").indices.values():
        similar = vectors[rows] @ vectors[rows].T
        np.fill_diagonal(similar, 0)
        assert similar.max() < SAME + 1e-5


def test_no_typeface_draws_two_classes_alike(table, vectors):
    """Neither one picture for two classes, nor two classes that are alike typeface by typeface."""
    alike, shared = {}, {}
    characters = table["label"].to_numpy()
    for rows in table.groupby("typeface").indices.values():
        similar = np.triu(vectors[rows] @ vectors[rows].T, 1)
        assert similar.max() < SAME + 1e-5
        for i, j in np.argwhere(similar > ALIKE):
            pair = frozenset((characters[rows[i]], characters[rows[j]]))
            alike[pair] = alike.get(pair, 0) + 1
    typefaces = table.groupby("label")["typeface"].agg(set)
    for pair in alike:
        first, second = pair
        shared[pair] = len(typefaces[first] & typefaces[second])
    assert not [pair for pair, count in alike.items() if count > 5 and count > shared[pair] / 4]


@pytest.mark.soak
def test_no_two_classes_have_nearly_the_same_picture_in_any_typefaces(source, vectors):
    codes = source.index.label_codes
    for start in range(0, len(vectors), 1024):
        rows = slice(start, start + 1024)
        similar = vectors[rows] @ vectors.T
        similar[codes[rows, None] == codes] = 0
        assert similar.max() < SAME + 1e-5


@pytest.mark.parametrize(
    "alike", ["AАΑ", "BВΒ", "oοоOОΟ", "cсCС", "pрρPРΡ", "Жж", "へヘ", "カヵ力", "ロ口ㅁ", "yУ"]
)
def test_of_known_lookalikes_at_most_one_is_a_class(table, alike):
    assert len(set(alike) & set(table["character"])) <= 1


def test_labels_and_keys_name_character_and_typeface(table):
    code = table["character"].map(lambda character: f"U+{ord(character):04X}")
    assert (table["label"] == table["domain"] + "/" + code).all()
    assert (table["key"] == table["label"] + "/" + table["typeface"]).all()
    assert table["key"].is_unique


def test_typefaces_are_listed_with_a_licence_that_allows_this(table):
    listed = pd.read_csv(TYPEFACES).set_index("typeface")
    assert set(table["typeface"]) <= set(listed.index)
    families = listed.loc[table["typeface"], "family"].to_numpy()
    assert (table["family"] == families).all()
    assert listed["licence"].notna().all()
    copyleft = listed["licence"].str.contains(r"^GPL|CC-BY-SA|ARPHIC", case=False)
    assert not copyleft.any()


def test_the_card_tells_the_truth(table):
    card = (glyphs.FOLDER / "glyphs.md").read_text(encoding="utf-8")
    manifest = glyphs.read_manifest(glyphs.FOLDER)
    assert manifest["sha256"] in card
    assert f"{len(table):,} images" in card
    for typeface, count in table["typeface"].value_counts().items():
        row = next(line for line in card.splitlines() if line.startswith(f"| {typeface} |"))
        assert f"| {count:,} |" in row
    for (domain, split), rows in table.groupby(["domain", "split"]):
        start = f"| {domain} | {split} | {rows['label'].nunique():,} | {len(rows):,} |"
        assert start in card


def test_mean_and_std_are_those_of_the_training_images(source, table):
    train = source.images[(table["split"] == "train").to_numpy()] / 255
    assert source.mean == (pytest.approx(train.mean(), abs=6e-4),)
    assert source.std == (pytest.approx(train.std(), abs=6e-4),)


@pytest.mark.parametrize("name", ["glyphs/kana", "glyphs"])
def test_a_domain_is_a_part(source, table, name):
    part = datasets.load(name) if "/" in name else datasets.load(name, domain="kana")
    rows = (table["domain"] == "kana").to_numpy()
    assert np.array_equal(part.images, source.images[rows])
    assert list(part.index.table["key"]) == list(table["key"][rows])
    assert part.index.fingerprint != source.index.fingerprint


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.load("glyphs/runes"), "no image has domain 'runes'; choose from alph"),
        (lambda: datasets.load("glyph"), "no data set 'glyph'; choose from .*glyphs"),
        (lambda: datasets.load("glyphs/"), "no data set 'glyphs/'"),
        (lambda: datasets.load("birds/kana"), "no data set 'birds/kana'"),
    ],
)
def test_unknown_names_are_told(call, message):
    with pytest.raises(UserError, match=message):
        call()


def flip_a_byte(folder):
    path = folder / glyphs.PICTURES
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def change_the_manifest(folder, **changes):
    path = folder / glyphs.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda f: (f / glyphs.PICTURES).unlink(), glyphs.PICTURES),
        (lambda f: (f / glyphs.MANIFEST).unlink(), glyphs.MANIFEST),
        (lambda f: (f / glyphs.MANIFEST).write_text("{"), glyphs.MANIFEST),
        (lambda f: (f / glyphs.PICTURES).write_bytes(b""), glyphs.PICTURES),
        (lambda f: (f / glyphs.PICTURES).write_bytes(b"version https://git-lfs"), glyphs.PICTURES),
        (lambda f: np.savez(f / glyphs.PICTURES, pictures=np.zeros(3)), glyphs.PICTURES),
        (flip_a_byte, glyphs.PICTURES),
        (lambda f: change_the_manifest(f, sha256="0" * 64), "does not hold what"),
        (lambda f: change_the_manifest(f, counts={}), "does not hold what"),
    ],
)
def test_broken_files_are_told_in_one_sentence(tmp_path, damage, named):
    folder = tmp_path / "embedded"
    shutil.copytree(glyphs.FOLDER, folder)
    damage(folder)
    with pytest.raises(UserError, match=named) as error:
        glyphs.load(folder=folder)
    assert "git checkout" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_truncated_file_is_told(tmp_path):
    folder = tmp_path / "embedded"
    shutil.copytree(glyphs.FOLDER, folder)
    path = folder / glyphs.PICTURES
    path.write_bytes(path.read_bytes()[:1_000_000])
    with pytest.raises(UserError, match="cannot read"):
        glyphs.load(folder=folder)
