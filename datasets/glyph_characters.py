"""Which characters may become classes, domain by domain."""

from __future__ import annotations

import unicodedata

DOMAINS = ("alphabets", "hangul", "kana", "kanji")


def candidates(domain: str) -> tuple[str, ...]:
    """The characters of a domain in the order of their code points.

    - ``kanji``: the 2,965 of JIS X 0208 level 1.
    - ``hangul``: the 2,350 syllables of KS X 1001.
    - ``alphabets``: Latin, Greek and Cyrillic letters, upper and lower case, with their
      diacritics.
    - ``kana``: hiragana and katakana, and, because these are too few, the other phonetic letters
      of East Asian fonts: bopomofo and Hangul jamo.

    Raises:
        KeyError: no such domain.
    """
    return {
        "alphabets": _alphabets,
        "hangul": lambda: _double_byte("euc_kr", 0xB0, 0xC8),
        "kana": _kana,
        "kanji": lambda: _double_byte("euc_jp", 0xB0, 0xCF),
    }[domain]()


def _double_byte(codec: str, first_row: int, last_row: int) -> tuple[str, ...]:
    # Level 1 of JIS X 0208 ends with a row that is not full; empty cells decode to nothing.
    cells = (
        bytes([row, cell]).decode(codec, errors="ignore")
        for row in range(first_row, last_row + 1)
        for cell in range(0xA1, 0xFF)
    )
    return tuple(sorted(filter(None, cells)))


def _alphabets() -> tuple[str, ...]:
    ranges = (
        (0x0041, 0x005A),  # basic Latin
        (0x0061, 0x007A),
        (0x00C0, 0x017F),  # Latin-1 and Latin Extended-A
        (0x0386, 0x03CE),  # Greek with tonos and dialytika
        (0x0400, 0x045F),  # Cyrillic with its Slavic extensions
        (0x0490, 0x0491),
    )
    return tuple(c for c in _characters(ranges) if c.isalpha())


def _kana() -> tuple[str, ...]:
    ranges = (
        (0x3041, 0x3096),  # hiragana
        (0x30A1, 0x30FA),  # katakana
        (0x3105, 0x3129),  # bopomofo
        (0x3131, 0x3163),  # Hangul compatibility jamo
    )
    # The small kana differ from the plain ones in size only, which rendering does away with.
    return tuple(c for c in _characters(ranges) if "SMALL" not in unicodedata.name(c))


def _characters(ranges: tuple[tuple[int, int], ...]) -> tuple[str, ...]:
    return tuple(chr(code) for first, last in ranges for code in range(first, last + 1))
