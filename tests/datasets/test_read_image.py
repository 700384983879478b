"""Every kind of file that data sets really hold."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from common.errors import UserError
from datasets.read_image import format_of, read_image
from tests.datasets.trees import encode, picture, write


def pixels(path, **options):
    image = read_image(path, **options)
    assert image.mode == "RGB"
    return np.asarray(image, dtype=int)


def test_png_with_a_jpeg_suffix(tmp_path):
    image = picture(0)
    path = write(tmp_path / "a.jpg", encode(image, "PNG"))
    assert (pixels(path) == np.asarray(image)).all()
    assert format_of(path) == "PNG"


def test_spaces_and_other_scripts_in_names(tmp_path):
    path = write(tmp_path / "Ünïcode 犬" / "a b\u00e9.png", encode(picture(0), "PNG"))
    assert read_image(path).size == (16, 16)


def test_cmyk(tmp_path):
    ink = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    path = write(tmp_path / "a.jpg", encode(ink, quality=100))
    red, green, blue = pixels(path)[4, 4]
    assert red > 200
    assert green < 40
    assert blue < 40


def test_palette_with_transparency_lies_on_white(tmp_path):
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putdata([0, 1])
    path = write(tmp_path / "a.png", encode(image, "PNG", transparency=1))
    assert pixels(path).tolist() == [[[255, 0, 0], [255, 255, 255]]]


def test_half_transparent_pixels_are_blended_with_white(tmp_path):
    path = write(tmp_path / "a.png", encode(Image.new("RGBA", (1, 1), (0, 0, 0, 128)), "PNG"))
    assert pixels(path)[0, 0, 0] == pytest.approx(127, abs=1)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_scaled_not_clipped(tmp_path, kind):
    values = np.array([[0, 257 * 100, 65535]], dtype=np.uint16)
    path = write(tmp_path / "a.png", encode(Image.fromarray(values), kind))
    assert pixels(path)[0, :, 0].tolist() == [0, 100, 255]


def test_floats_are_scaled_from_their_own_range(tmp_path):
    image = Image.fromarray(np.array([[-1.0, 0.0, 1.0]], dtype=np.float32))
    path = write(tmp_path / "a.tif", encode(image, "TIFF"))
    assert pixels(path)[0, :, 0].tolist() == [0, 128, 255]


def test_black_and_white(tmp_path):
    path = write(tmp_path / "a.png", encode(Image.new("1", (2, 2), 1), "PNG"))
    assert (pixels(path) == 255).all()


def test_first_frame_of_an_animation(tmp_path):
    frames = [Image.new("RGB", (4, 4), color) for color in ("red", "blue")]
    data = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert pixels(write(tmp_path / "a.gif", data))[0, 0].tolist() == [255, 0, 0]


def test_exif_rotation(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees clockwise to view"
    image = Image.new("RGB", (40, 20))
    image.paste((255, 0, 0), (0, 0, 20, 20))
    turned = pixels(write(tmp_path / "a.jpg", encode(image, quality=95, exif=exif)))
    assert turned.shape == (40, 20, 3)
    # The left half of the stored picture is the upper half of the one to be seen.
    assert turned[5, 10, 0] > 200
    assert turned[35, 10, 0] < 50


def test_reduced_decoding_keeps_the_side_asked_for(tmp_path):
    path = write(tmp_path / "a.jpg", encode(picture(0, (400, 300))))
    assert read_image(path).size == (400, 300)
    assert read_image(path, 150).size == (200, 150)
    assert read_image(path, 200).size == (400, 300)
    png = write(tmp_path / "a.png", encode(picture(0, (400, 300)), "PNG"))
    assert read_image(png, 50).size == (400, 300)


def broken_files():
    jpeg = encode(picture(0, (64, 64)))
    png = encode(picture(0, (64, 64)), "PNG")
    huge = b"IHDR" + struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return {
        "truncated_jpeg": (jpeg[: len(jpeg) // 2], "truncated"),
        "truncated_png": (png[: len(png) // 2], ""),
        "changed_png": (png[:60] + b"\0\0\0\0" + png[64:], ""),
        "no_image": (b"<html>404</html>", "not an image"),
        "empty": (b"", "the file is empty"),
        "too_large": (
            png[:12] + huge + struct.pack(">I", zlib.crc32(huge)) + png[33:],
            "exceeds limit",
        ),
    }


@pytest.mark.parametrize("kind", broken_files())
@pytest.mark.parametrize("side", [None, 16])
def test_broken_files_are_named_in_one_line(tmp_path, kind, side):
    data, reason = broken_files()[kind]
    path = write(tmp_path / f"{kind}.jpg", data)
    with pytest.raises(UserError) as caught:
        read_image(path, side)
    message = str(caught.value)
    assert message.startswith(f"{path} cannot be decoded (")
    assert reason in message
    assert "\n" not in message
    assert "skip" in message


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"a\.jpg is missing; verify or prepare"):
        read_image(tmp_path / "a.jpg")
