"""The text of the data card beside the embedded glyphs."""

from __future__ import annotations

import pandas as pd

from datasets.glyph_select import LOOKALIKE, LOOKALIKE_SHARE, SAME_PICTURE

_HEAD = """\
# Data card: glyphs

Class = a character; image = that character drawn in one typeface, {side} x {side} pixels, 16 grey
levels, bright ink on dark ground. Training and test classes are disjoint. {images:,} images,
{classes:,} classes, {typefaces} typefaces. Made by `python -m datasets.build_glyphs` with Pillow
{pillow} and FreeType {freetype}; read by `datasets.load("glyphs")`. This file is written by the
build, do not edit it.

SHA-256 of the decoded content: `{sha256}`.

## What it is for, and what it is not

It lets every table run on a laptop without a download. It stands in for the paper's four data
sets by its shape only: many classes, unseen test classes, large variety within a class (brush,
handwriting, stencil, hairline), a long tail in `kanji`. It is rendered type, not photographs and
not people's handwriting; numbers on it cannot be compared with numbers on a public benchmark.
Images of a class are not independent samples: weights and cuts of one family resemble each other,
and all classes share the same typefaces. It is no collection of artwork and says nothing about
the typefaces' quality; to set type, get the fonts themselves.

## Counts

| domain | split | classes | images | images per class (least, median, most) |
|---|---|---|---|---|
"""

_MAKING = """
- `alphabets`: Latin, Greek and Cyrillic letters with their diacritics.
- `hangul`: syllables of KS X 1001.
- `kana`: hiragana and katakana without the small ones, bopomofo, Hangul jamo.
- `kanji`: JIS X 0208 level 1; training classes follow a Zipf-Mandelbrot law.

Columns besides the usual ones: `character`, `typeface`, and `family`, the kind of typeface:
{families}.

## How it was made

The ink of each character is cropped, scaled until its longer side fills the picture but for a
margin of 2 pixels, and centred: size and position carry no information. Left out are characters
that a font lacks or draws blank or as its fallback box, and one of each two characters that are
known to share a shape but for size (small letters of the form of their capitals, hiragana and
katakana he, the kanji of strength and katakana ka). With the cosine similarity of pictures as
vectors:

- two characters that exceed {lookalike} in {share:.0%} or more of the typefaces they share are not
  two classes; the later one is dropped (Greek and Latin A);
- a picture that exceeds {same} with another class's, in whatever typeface, is dropped;
- a picture that exceeds {same} with an earlier typeface's of the same class is dropped.

Classes, splits and typefaces per class are then drawn by fixed seeds.

## Typefaces

The licences are as stated in the Debian packages' copyright files. Each of them lets anyone use the
font and publish what is drawn with it; no font file is in this repository. Left out for their
licences: fonts under the GPL only, with or without a font exception (`fonts-unfonts-core`,
`fonts-unfonts-extra`, `fonts-cwtex-kai`, `fonts-wqy-zenhei`, `fonts-liberation`,
`fonts-lexi-gulim`, `fonts-lexi-saebom`), under the Arphic Public License (`fonts-arphic-ukai`,
`fonts-arphic-uming`, `fonts-babelstone-han`), whose copyleft covers conversions of the font's
format, and under CC-BY-SA (`fonts-komatuna`). Sawarabi Gothic is by mshio (CC-BY 3.0). Baekmuk
Batang, Dotum, Gulim and Headline are registered trademarks owned by Kim Jeong-Hwan.

| typeface | family | domains | images | package | version | licence |
|---|---|---|---|---|---|---|
"""


def card(manifest: dict, table: pd.DataFrame, typefaces: pd.DataFrame) -> str:
    """The data card in Markdown.

    Args:
        manifest: what :func:`datasets.glyphs.read_manifest` returns.
        table: the index table of the pictures.
        typefaces: the table of typefaces; those without an image are not listed.
    """
    images = table["typeface"].value_counts()
    used = typefaces[typefaces["typeface"].isin(images.index)]
    text = _HEAD.format(
        side=32,
        images=len(table),
        classes=table["label"].nunique(),
        typefaces=len(used),
        **{key: manifest[key] for key in ("pillow", "freetype", "sha256")},
    )
    for (domain, split), rows in table.groupby(["domain", "split"]):
        sizes = rows["label"].value_counts()
        spread = f"{sizes.min()}, {sizes.median():.0f}, {sizes.max()}"
        text += f"| {domain} | {split} | {len(sizes):,} | {len(rows):,} | {spread} |\n"
    text += _MAKING.format(
        families=", ".join(sorted(table["family"].unique())),
        lookalike=LOOKALIKE,
        share=LOOKALIKE_SHARE,
        same=SAME_PICTURE,
    )
    for row in used.itertuples():
        text += (
            f"| {row.typeface} | {row.family} | {row.domains} | {images[row.typeface]:,} "
            f"| {row.package} | {row.version} | {row.licence} |\n"
        )
    return text
