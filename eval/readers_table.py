"""CSV files of labels, parquet tables and safetensors files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.errors import UserError
from eval.parquet_footer import claimed_bytes
from eval.parsing import check_claim, parsing, require_file, shown

PARQUET_BATCH_ROWS = 8192


def read_csv_columns(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those columns of a CSV file (UTF-8, comma, header line) whose names are in ``names``.

    Values stay texts as they are written: ``NA`` and ``null`` are labels like any other.

    Raises:
        UserError: a row with more or fewer cells than the header, a name that is there twice, an
            encoding other than UTF-8.
    """
    size = require_file(path)
    with parsing(path, "the table"), open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        header = next(rows, [])
        wanted = {name: header.index(name) for name in names if name in header}
        for name in wanted:
            if header.count(name) > 1:
                raise UserError(f"{shown(path)} has two columns named {name}; keep one")
        columns = {name: [] for name in wanted}
        for number, row in enumerate(rows):
            if len(row) != len(header):
                raise UserError(
                    f"{shown(path)}: row {number} (line {rows.line_num}) has {len(row)} cells, "
                    f"the header has {len(header)}; mend that line"
                )
            for name, index in wanted.items():
                columns[name].append(row[index])
    return {name: _texts(values, name, path, size) for name, values in columns.items()}


def read_parquet(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those columns of a parquet file whose names are in ``names``; lists become matrices.

    Raises:
        UserError: pyarrow is not installed; nulls, lists of unequal length (with the row number),
            or a column that unpacks to far more than the file holds.
    """
    size = require_file(path)
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(
            f"{shown(path)}: reading parquet needs pyarrow; pip install pyarrow, or save as .npz"
        ) from error
    with parsing(path, "the table"):
        check_claim(path, "the table", claimed_bytes(path), size)
    with parsing(path, "the table"), parquet.ParquetFile(path) as table:
        columns = [name for name in table.schema_arrow.names if name in names]
        if len(set(columns)) < len(columns):
            raise UserError(f"{shown(path)} has two columns of the same name; keep one")
        parts = {name: [] for name in columns}
        first = taken = 0
        for batch in table.iter_batches(PARQUET_BATCH_ROWS, columns=columns):
            for name in columns:
                column = batch.column(name)
                parts[name].append(_column_to_numpy(column, name, first, path, size))
                taken += parts[name][-1].nbytes
            first += batch.num_rows
            check_claim(path, "the table", taken, size)
        _require_equal_widths(parts, path)
        return {name: np.concatenate(blocks) for name, blocks in parts.items() if blocks}


def read_safetensors(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those tensors of a safetensors file whose names are in ``names``; bfloat16 becomes float32.

    The library itself checks the header's claims against the file's size.

    Raises:
        UserError: not such a file, or cut short.
    """
    require_file(path)
    import torch
    from safetensors import safe_open

    arrays = {}
    with parsing(path, "the tensors"), safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 (not a mapping)
            if name in names:
                tensor = file.get_tensor(name)
                whole = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
                arrays[name] = whole.numpy()
    return arrays


def _column_to_numpy(column, name: str, first: int, path: Path, size: int) -> np.ndarray:
    """One batch of an arrow column; ``first`` is the number of its first row in the file."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    _refuse_nulls(column, name, first, path)
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if is_list or pa.types.is_fixed_size_list(column.type):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != lengths[0]).any():
            row = int(np.argmax(lengths != lengths[0]))
            raise UserError(
                f"{shown(path)}: row {first + row} of column {name} has {lengths[row]} values, "
                f"row {first} has {lengths[0]}; all embeddings need the same length"
            )
        values = column.flatten()
        _refuse_nulls(values, name, first, path, int(lengths[0]))
        return values.to_numpy(zero_copy_only=False).reshape(len(column), int(lengths[0]))
    values = column.to_numpy(zero_copy_only=False)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return _texts(values, name, path, size) if is_text else values


def _texts(values: Sequence[str], name: str, path: Path, size: int) -> np.ndarray:
    """An array of texts. It gives each the room of the longest, so one may not be too long."""
    claimed = 4 * max(map(len, values), default=0) * len(values)
    check_claim(path, f"column {name} (as wide as its longest value)", claimed, size)
    return np.array(values, dtype=np.str_)


def _refuse_nulls(column, name: str, first: int, path: Path, width: int = 1) -> None:
    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) // width
        raise UserError(
            f"{shown(path)}: row {row} of column {name} holds a null; fill it in or drop the row"
        )


def _require_equal_widths(parts: dict[str, list[np.ndarray]], path: Path) -> None:
    for name, blocks in parts.items():
        widths = sorted({block.shape[1:] for block in blocks})
        if len(widths) > 1:
            raise UserError(
                f"{shown(path)}: the rows of column {name} have unequal lengths "
                f"{widths[0][0]} and {widths[-1][0]}; all embeddings need the same length"
            )
