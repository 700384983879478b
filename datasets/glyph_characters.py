"""Which characters may become classes, domain by domain."""

from __future__ import annotations

import unicodedata

DOMAINS = ("alphabets", "hangul", "kana", "kanji")

# Rendering does away with size, so small letters of the form of their capitals are left out: those
# with these bases, whatever their diacritics.
_SMALL_CAPITALS = (
    frozenset("copsuvwxzøœ") | frozenset("вгджзиклмнопстуфхцчшщъыьэюяєѕіџґљњ") | frozenset("κνουψ")
)
# With a diacritic instead of the dot, these are too near their capitals as well.
_DOTTED = frozenset("ij")

# One shape in two scripts, or as good as one; the other one stays. Found by asking for each picture
# which class has the nearest picture in another typeface, and by eye.
_TWINS = frozenset(
    "УЎĸρр"  # y, K, P, P
    "リヘベペぺ"  # り, へ, べ
    "ㄑㄡㄈㄖㄒㄚㄝㄏㄨㄙㄘ"  # く, ヌ, ㄷ, 日, T, Y, せ, 厂, X, ム, ち
    "ㅁㅇㅡㅣ"  # ロ, O, 一, I
    "力口二八工卜夕一"  # カ, ロ, ニ, ハ, エ, ト, タ
)


def candidates(domain: str) -> tuple[str, ...]:
    """The characters of a domain in the order of their code points, without known twins.

    - ``kanji``: those of JIS X 0208 level 1.
    - ``hangul``: the syllables of KS X 1001.
    - ``alphabets``: Latin, Greek and Cyrillic letters with their diacritics, capitals and the
      small letters that have a form of their own.
    - ``kana``: hiragana and katakana, and, because these are too few, the other phonetic letters
      of East Asian fonts: bopomofo and Hangul jamo.

    Raises:
        KeyError: no such domain.
    """
    characters = {
        "alphabets": _alphabets,
        "hangul": lambda: _double_byte("euc_kr", 0xB0, 0xC8),
        "kana": _kana,
        "kanji": lambda: _double_byte("euc_jp", 0xB0, 0xCF),
    }[domain]()
    return tuple(c for c in characters if c not in _TWINS)


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
    return tuple(c for c in _characters(ranges) if c.isalpha() and not _is_small_capital(c))


def _is_small_capital(character: str) -> bool:
    base, *diacritics = unicodedata.normalize("NFD", character)
    return base in _SMALL_CAPITALS or (base in _DOTTED and bool(diacritics))


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
