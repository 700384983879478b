"""``.npy`` and ``.npz`` files, read without pickles and without trusting their size claims."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from common.errors import UserError
from eval.parsing import check_claim, parsing, require_file, shown

HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
BLOCK_BYTES = 2**24


def read_npy(path: Path) -> np.ndarray:
    """The array of a ``.npy`` file.

    Raises:
        UserError: not such a file, a pickle, or its size is not what its header says.
    """
    size = require_file(path)
    with parsing(path, "the array"), open(path, "rb") as file:
        return _read_array(file, size, path, "the array")


def read_npz(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those arrays of a ``.npz`` file whose names are in ``names``; the others are not touched.

    Raises:
        UserError: not such a file, a member that is damaged, encrypted, a pickle, a decompression
            bomb, or there twice.
    """
    size = require_file(path)
    arrays, claimed = {}, 0
    with parsing(path, "the archive"), zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if m.filename.removesuffix(".npy") in names]
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise UserError(f"{shown(path)} holds two arrays named {name}; keep one")
            what = f"the array '{name}'"
            claimed += member.file_size
            check_claim(path, what, claimed, size)
            with parsing(path, what), archive.open(member) as file:
                arrays[name] = _read_array(file, member.file_size, path, what)
    return arrays


def _read_array(file: BinaryIO, size: int, path: Path, what: str) -> np.ndarray:
    version = np.lib.format.read_magic(file)
    if version not in HEADER_READERS:
        raise UserError(
            f"{shown(path)}: {what} has .npy format version {version[0]}.{version[1]}, "
            "which plain arrays do not need; save it again with numpy.save"
        )
    shape, fortran_order, dtype = HEADER_READERS[version](file)
    if dtype.hasobject:
        raise UserError(
            f"{shown(path)}: {what} holds Python objects (a pickle), which are never loaded; "
            "save plain numbers, or texts as numpy.array(labels, dtype=str)"
        )
    if any(length < 0 for length in shape):
        raise UserError(f"{shown(path)}: {what} claims the impossible shape {shape}; save it again")
    if 0 in shape or dtype.itemsize == 0:
        raise UserError(f"{shown(path)}: {what} is empty (shape {shape}, {dtype}); save it again")
    claimed = math.prod(shape) * dtype.itemsize
    found = size - file.tell()
    if claimed != found:
        raise UserError(
            f"{shown(path)}: {what} claims {claimed:,} bytes (shape {shape}, {dtype}) "
            f"but {found:,} follow its header; the file is cut short or damaged, write it again"
        )
    return _fill(file, claimed).view(dtype).reshape(shape, order="F" if fortran_order else "C")


def _fill(file: BinaryIO, size: int) -> np.ndarray:
    buffer = np.empty(size, np.uint8)
    view = memoryview(buffer)
    position = 0
    while position < size:
        count = file.readinto(view[position : position + BLOCK_BYTES])
        if not count:
            raise EOFError(f"ends after {position:,} of {size:,} bytes")
        position += count
    # Asking for one more byte makes an archive check the member's checksum.
    if file.read(1):
        raise ValueError("more bytes than claimed")
    return buffer
