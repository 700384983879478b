"""Labels come from strangers, and spreadsheets run what looks like a formula."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_safe(label: str) -> str:
    """``label`` so that no spreadsheet takes it for a formula; numbers stay numbers."""
    text = str(label)
    if not text.startswith(FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text
