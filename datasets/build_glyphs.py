"""Makes the embedded glyphs from installed typefaces: same fonts, same bytes.

python -m datasets.build_glyphs [--fonts DIR] [--out DIR]

Needs the Debian packages of ``glyph_typefaces.csv`` in the versions named there, and the versions
of Pillow and FreeType named in the manifest for the same bytes. Takes some minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import PIL
from PIL import features
from tqdm import tqdm

from common.atomic import write_bytes, write_text
from common.errors import UserError, run_cli
from datasets import glyph_card, glyph_select, glyphs
from datasets.glyph_characters import DOMAINS, candidates
from datasets.glyph_render import render

TYPEFACES = Path(__file__).parent / "glyph_typefaces.csv"
FONTS = Path("/usr/share/fonts")  # where Debian's font packages install
# Zip entries carry a time; a fixed one keeps the bytes the same.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def main(argv: list[str]) -> int:
    """Draws the glyphs and writes pictures, manifest and data card; UserError without the fonts."""
    parser = argparse.ArgumentParser(prog="python -m datasets.build_glyphs", description=__doc__)
    parser.add_argument("--fonts", type=Path, default=FONTS, help="folder of installed fonts")
    parser.add_argument("--out", type=Path, default=glyphs.FOLDER, help="where to write")
    arguments = parser.parse_args(argv)
    typefaces = read_typefaces(arguments.fonts)
    domain_of = {
        character: domain
        for domain in DOMAINS
        for character in glyph_select.draw_candidates(domain, candidates(domain))
    }
    pictures = render_all(typefaces, arguments.fonts, domain_of)
    classes = glyph_select.select(pictures, domain_of)
    write(arguments.out, classes, pictures, typefaces)
    print(f"wrote {arguments.out / glyphs.PICTURES} and its manifest and data card")
    return 0


def read_typefaces(fonts: Path) -> pd.DataFrame:
    """The table of typefaces, after checking that each font file is installed and the same.

    Raises:
        UserError: names the package to install.
    """
    table = pd.read_csv(TYPEFACES)
    for row in table.itertuples():
        path = fonts / row.file
        if not path.exists():
            raise UserError(f"{path} is missing; install the Debian package {row.package}")
        if hashlib.sha256(path.read_bytes()).hexdigest() != row.sha256:
            raise UserError(
                f"{path} is not the file that the glyphs were made from; "
                f"install {row.package} in version {row.version}"
            )
    return table


def render_all(
    typefaces: pd.DataFrame, fonts: Path, domain_of: dict[str, str]
) -> glyph_select.Pictures:
    """Every candidate in every typeface that serves its domain, in the table's order."""
    jobs = []
    for row in typefaces.itertuples():
        domains = row.domains.split()
        jobs.append((fonts / row.file, row.face, [c for c, d in domain_of.items() if d in domains]))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        drawn = pool.map(render, *zip(*jobs, strict=True))
        drawn = list(tqdm(drawn, total=len(jobs), desc="typefaces"))
    return dict(zip(typefaces["typeface"], drawn, strict=True))


def write(
    folder: Path,
    classes: list[glyph_select.GlyphClass],
    pictures: glyph_select.Pictures,
    typefaces: pd.DataFrame,
) -> None:
    """Writes pictures, manifest and data card, each atomically."""
    write_bytes(folder / glyphs.PICTURES, encode(classes, pictures, typefaces))
    table, images = glyphs.read_pictures(folder / glyphs.PICTURES)
    train = images[(table["split"] == "train").to_numpy()] / np.float32(255)
    manifest = {
        "sha256": glyphs.content_digest(table, images),
        "counts": glyphs.counts(table),
        "mean": [round(float(train.mean(dtype=np.float64)), 3)],
        "std": [round(float(train.std(dtype=np.float64)), 3)],
        "pillow": PIL.__version__,
        "freetype": features.version("freetype2"),
    }
    write_text(folder / glyphs.MANIFEST, json.dumps(manifest, indent=2) + "\n")
    write_text(folder / "glyphs.md", glyph_card.card(manifest, table, typefaces))


def encode(
    classes: list[glyph_select.GlyphClass],
    pictures: glyph_select.Pictures,
    typefaces: pd.DataFrame,
) -> bytes:
    """A .npz file, compressed with LZMA, as :func:`datasets.glyphs.read_pictures` reads it."""
    names = list(typefaces["typeface"])
    # Typeface by typeface: like strokes lie close together, which saves a few per cent.
    rows = sorted((names.index(f), c) for c, one in enumerate(classes) for f in one.typefaces)
    drawn = np.stack([pictures[names[f]][classes[c].character] for f, c in rows])
    arrays = {
        "class": np.array([c for _, c in rows], dtype="<u2"),
        "class_character": np.array([ord(one.character) for one in classes], dtype="<u4"),
        "class_domain": np.array([one.domain for one in classes]),
        "class_split": np.array([one.split for one in classes]),
        "pictures": glyphs.pack(drawn),
        "typeface": np.array([f for f, _ in rows], dtype="<u2"),
        "typeface_family": np.array(typefaces["family"], dtype=str),
        "typeface_name": np.array(names),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            archive.writestr(info, entry.getvalue(), zipfile.ZIP_LZMA)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(run_cli(main))
