"""What a parquet file claims to hold, read from its footer without unpacking anything.

pyarrow knows these numbers too, but its accessors end the whole process on some damaged footers.
The footer is a Thrift struct in the compact protocol (Apache Parquet format, ``parquet.thrift``).
"""

from __future__ import annotations

import os
from pathlib import Path

MAGIC = b"PAR1"
# Field numbers in FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
ROW_GROUPS, COLUMNS, COLUMN_METADATA, NUM_VALUES, UNCOMPRESSED_SIZE = 4, 1, 3, 5, 6
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
SMALLEST_VALUE = 4  # bytes; run-length codes pack equal values into less, memory does not


def claimed_bytes(path: Path) -> int:
    """Bytes that all columns need when unpacked, by the file's own account.

    Raises:
        ValueError, IndexError, KeyError: the footer is damaged.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > size - 12:
            raise ValueError("no parquet footer at its end")
        file.seek(size - 8 - length)
        footer = _Compact(file.read(length)).struct()
    total = 0
    for group in footer[ROW_GROUPS]:
        for column in group[COLUMNS]:
            metadata = column[COLUMN_METADATA]
            values, unpacked = metadata[NUM_VALUES], metadata[UNCOMPRESSED_SIZE]
            if values < 0 or unpacked < 0:
                raise ValueError("negative sizes in the footer")
            total += max(unpacked, SMALLEST_VALUE * values)
    return total


class _Compact:
    """A reader of Thrift's compact protocol: structs become dicts by field number."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)  # zigzag

    def skip(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.data):
            raise IndexError("the footer ends early")
        return self.data[self.at - count : self.at]

    def struct(self) -> dict:
        fields, number = {}, 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            kind = head & 15
            # In a struct the type of a truth value is the value.
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self.value(kind)
        return fields

    def value(self, kind: int):
        if kind in (TRUE, FALSE, BYTE):
            return self.byte()
        if kind in (I16, I32, I64):
            return self.integer()
        if kind == DOUBLE:
            return self.skip(8)
        if kind == BINARY:
            return self.skip(self.varint())
        if kind in (LIST, SET):
            head = self.byte()
            count = self.varint() if head >> 4 == 15 else head >> 4
            return [self.value(head & 15) for _ in range(count)]
        if kind == MAP:
            count = self.varint()
            kinds = self.byte() if count else 0
            return [(self.value(kinds >> 4), self.value(kinds & 15)) for _ in range(count)]
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"unknown type {kind} in the footer")
