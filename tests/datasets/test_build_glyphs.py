"""How the glyphs are made: rendering, selection, encoding, and the same bytes once more."""

import numpy as np
import pandas as pd
import PIL
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from PIL import features

from datasets import build_glyphs, glyph_select, glyphs
from datasets.glyph_characters import DOMAINS, candidates
from datasets.glyph_render import render
from datasets.glyph_select import GlyphClass, Plan


def outline(*rectangles):
    pen = TTGlyphPen(None)
    for left, bottom, right, top in rectangles:
        pen.moveTo((left, bottom))
        for corner in ((left, top), (right, top), (right, bottom)):
            pen.lineTo(corner)
        pen.closePath()
    return pen.glyph()


@pytest.fixture
def font(tmp_path):
    """A font with a tall bar, a wide bar far off, a blank, five boxes and a fallback glyph."""
    shapes = {
        ".notdef": outline((100, 0, 500, 700)),
        "tall": outline((125, 0, 375, 875)),
        "wide": outline((-375, 875, 1375, 1000)),
        "blank": outline(),
        "box": outline((0, 0, 600, 600)),
    }
    names = {"t": "tall", "w": "wide", "b": "blank", "n": ".notdef"}
    names |= dict.fromkeys("12345", "box")
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(list(shapes))
    builder.setupCharacterMap({ord(character): name for character, name in names.items()})
    builder.setupGlyf(shapes)
    builder.setupHorizontalMetrics(dict.fromkeys(shapes, (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupOS2()
    builder.setupPost()
    builder.setupNameTable({"familyName": "Toy", "styleName": "Regular"})
    path = tmp_path / "toy.ttf"
    builder.save(path)
    return path


def test_rendering_leaves_out_missing_fallback_blank_and_box(font):
    assert set(render(font, 0, "twbn12345x")) == {"t", "w"}
    assert set(render(font, 0, "t1234")) == set("t1234")  # four may share a picture


def test_rendering_fits_and_centres_the_ink(font):
    pictures = render(font, 0, "tw")
    tall = np.zeros((32, 32), dtype=np.uint8)
    tall[2:30, 12:20] = 15  # 250 x 875 units are 8 x 28 pixels
    assert np.array_equal(pictures["t"], tall)
    rows, columns = (np.flatnonzero(pictures["w"].any(axis=axis)) for axis in (1, 0))
    assert (columns[0], columns[-1]) == (2, 29)
    assert (rows[0], rows[-1]) == (15, 16)


@pytest.mark.parametrize("domain", DOMAINS)
def test_candidates_are_distinct_and_sorted(domain):
    characters = candidates(domain)
    assert list(characters) == sorted(set(characters))
    assert all(len(character) == 1 for character in characters)


def test_candidates_are_those_of_the_standards():
    assert len(candidates("kanji")) == 2965 - len("力口二八工卜夕一")
    assert candidates("kanji").count("亜") == candidates("kanji").count("腕") == 1
    assert len(candidates("hangul")) == 2350
    assert {"가", "힝"} <= set(candidates("hangul"))
    assert {"A", "ß", "Ω", "Ж"} <= set(candidates("alphabets"))
    assert not set("×cčжшø") & set(candidates("alphabets"))
    assert {"あ", "ヴ", "ㄅ", "ㅎ"} <= set(candidates("kana"))
    assert not set("ぁっゃァッャ") & set(candidates("kana"))


def noise(seed):
    return np.random.default_rng(seed).integers(0, 16, (32, 32)).astype(np.uint8)


def with_one_domain(monkeypatch, plan):
    monkeypatch.setattr(glyph_select, "PLANS", {"toys": plan})


def toy_pictures(characters, typefaces=24):
    return {
        f"f{face:02}": {c: noise([face, ord(c)]) for c in characters} for face in range(typefaces)
    }


def test_selection_drops_the_later_lookalike(monkeypatch):
    with_one_domain(monkeypatch, Plan(None, None, 2, 24, 24))
    pictures = toy_pictures("abcde")
    for face in list(pictures)[:3]:  # an eighth of the typefaces
        pictures[face]["d"] = pictures[face]["b"]
    for face in list(pictures)[:2]:  # a twelfth
        pictures[face]["e"] = pictures[face]["a"]
    classes = glyph_select.select(pictures, dict.fromkeys("abcde", "toys"))
    found = {one.character: one for one in classes}
    assert set(found) == set("abce")
    # Where two that stay share a picture, neither keeps it.
    assert set(found["a"].typefaces) == set(found["e"].typefaces) == set(list(pictures)[2:])
    assert len(found["b"].typefaces) == len(found["c"].typefaces) == 24


def test_selection_keeps_a_picture_once_per_class_and_by_the_earlier_typeface(monkeypatch):
    with_one_domain(monkeypatch, Plan(None, None, 1, 24, 24))
    pictures = toy_pictures("abc")
    pictures["f07"]["a"] = pictures["f03"]["a"]
    almost = pictures["f05"]["a"].copy()
    almost[0, 0] ^= 1
    pictures["f20"]["a"] = almost
    found = {c.character: c for c in glyph_select.select(pictures, dict.fromkeys("abc", "toys"))}
    assert set(pictures) - set(found["a"].typefaces) == {"f07", "f20"}


def test_selection_drops_what_two_classes_share_across_typefaces(monkeypatch):
    with_one_domain(monkeypatch, Plan(None, None, 1, 24, 24))
    pictures = toy_pictures("abc")
    pictures["f07"]["a"] = pictures["f03"]["b"]
    found = {c.character: c for c in glyph_select.select(pictures, dict.fromkeys("abc", "toys"))}
    assert set(pictures) - set(found["a"].typefaces) == {"f07"}
    assert set(pictures) - set(found["b"].typefaces) == {"f03"}


def test_selection_leaves_out_small_classes_and_tests_on_large_ones(monkeypatch):
    with_one_domain(monkeypatch, Plan(None, None, 9, 24, 24))
    pictures = toy_pictures("abcd")
    for number, face in enumerate(pictures):
        if number >= 7:
            del pictures[face]["a"]
        if number >= 19:
            del pictures[face]["b"]
    splits = {
        c.character: c.split for c in glyph_select.select(pictures, dict.fromkeys("abcd", "toys"))
    }
    assert splits == {"b": "train", "c": "test", "d": "test"}


def test_the_tail_follows_its_law(monkeypatch):
    with_one_domain(monkeypatch, Plan(None, None, 1, 40, 40, tail=2))
    characters = "abcdefghijk"
    classes = glyph_select.select(
        toy_pictures(characters, typefaces=40), dict.fromkeys(characters, "toys")
    )
    sizes = sorted((len(c.typefaces) for c in classes if c.split == "train"), reverse=True)
    assert sizes == [max(8, round(40 / (1 + rank / 2))) for rank in range(10)]


def test_similarities_are_cosines():
    pictures = [noise(i) for i in range(5)]
    expected = [
        [
            (a.astype(float) * b).sum()
            / np.sqrt((a.astype(float) ** 2).sum() * (b * 1.0**2 * b).sum())
            for b in pictures
        ]
        for a in pictures
    ]
    assert np.allclose(glyph_select.similarities(pictures), expected, atol=1e-6)


def test_packing_is_lossless():
    levels = np.stack([noise(i) for i in range(7)])
    packed = glyphs.pack(levels)
    assert packed.nbytes * 2 == levels.nbytes
    assert np.array_equal(glyphs.unpack(packed), levels * 17)


def test_the_encoded_file_is_read_back_and_the_same_each_time(tmp_path):
    pictures = toy_pictures("ab", typefaces=3)
    classes = [
        GlyphClass("kana", "a", "test", ("f00", "f02")),
        GlyphClass("kana", "b", "train", ("f01",)),
    ]
    typefaces = pd.DataFrame({"typeface": list(pictures), "family": ["serif", "sans", "brush"]})
    data = build_glyphs.encode(classes, pictures, typefaces)
    assert data == build_glyphs.encode(classes, pictures, typefaces)
    path = tmp_path / "toy.npz"
    path.write_bytes(data)
    table, images = glyphs.read_pictures(path)
    assert list(table["key"]) == ["kana/U+0061/f00", "kana/U+0062/f01", "kana/U+0061/f02"]
    assert list(table["split"]) == ["test", "train", "test"]
    assert list(table["family"]) == ["serif", "sans", "brush"]
    for row, image in zip(table.itertuples(), images, strict=True):
        assert np.array_equal(image, pictures[row.typeface][row.character] * 17)


@pytest.fixture(scope="module")
def installed():
    """The table of typefaces; skips where fonts or libraries are not those of the build."""
    manifest = glyphs.read_manifest(glyphs.FOLDER)
    if (PIL.__version__, features.version("freetype2")) != (
        manifest["pillow"],
        manifest["freetype"],
    ):
        pytest.skip(f"needs Pillow {manifest['pillow']} with FreeType {manifest['freetype']}")
    typefaces = pd.read_csv(build_glyphs.TYPEFACES)
    missing = [f for f in typefaces["file"] if not (build_glyphs.FONTS / f).exists()]
    if missing:
        pytest.skip(f"{len(missing)} of {len(typefaces)} fonts are not installed: {missing[0]}")
    return build_glyphs.read_typefaces(build_glyphs.FONTS)


@pytest.mark.parametrize("typeface", ["KleeOne-Regular", "BMJUA", "cmunti", "NotoSans-Regular"])
def test_a_typeface_renders_to_the_committed_pictures(installed, typeface):
    table, images = glyphs.read_pictures(glyphs.FOLDER / glyphs.PICTURES)
    rows = np.flatnonzero(table["typeface"] == typeface)
    assert rows.size
    font = installed.set_index("typeface").loc[typeface]
    characters = table["character"].iloc[rows]
    pictures = render(build_glyphs.FONTS / font["file"], font["face"], characters)
    for row, character in zip(rows, characters, strict=True):
        assert np.array_equal(images[row], pictures[character] * 17)


@pytest.mark.soak
def test_a_rebuild_gives_the_same_bytes(installed, tmp_path):
    assert build_glyphs.main(["--out", str(tmp_path)]) == 0
    for name in (glyphs.PICTURES, glyphs.MANIFEST, "glyphs.md"):
        assert (tmp_path / name).read_bytes() == (glyphs.FOLDER / name).read_bytes()


def test_missing_fonts_are_told(tmp_path, capsys):
    assert build_glyphs.run_cli(build_glyphs.main, ["--fonts", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert "install the Debian package fonts-" in error


def test_other_versions_of_fonts_are_told(tmp_path, capsys):
    for file in pd.read_csv(build_glyphs.TYPEFACES)["file"]:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"another version")
    assert build_glyphs.run_cli(build_glyphs.main, ["--fonts", str(tmp_path)]) == 2
    assert "in version" in capsys.readouterr().err
