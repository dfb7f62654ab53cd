"""Forms of text for comparing and for showing."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("il1|!tj", "i"),
        **dict.fromkeys("o0uqd", "o"),
        **dict.fromkeys("s5", "s"),
        **dict.fromkeys("b8g6", "b"),
        **dict.fromkeys("z2", "z"),
        **dict.fromkeys("ec", "e"),
        **dict.fromkeys("nrh", "n"),
    }
)


def _narrow(char: str) -> str:
    folded = unicodedata.normalize("NFKC", char)
    return folded if len(folded) == 1 else char


def fold_width(text: str) -> str:
    """Full-width forms as plain ones, character by character: the length never changes, so positions stay true."""
    return text if text.isascii() else "".join(_narrow(c) for c in text)


def collapse(text: str) -> str:
    """Runs of blanks as one, none at the ends."""
    return " ".join(text.split())


@lru_cache(maxsize=16384)
def comparison_form(text: str) -> str:
    """What labels are compared by: NFKC, case folded, only letters and digits (of any script) kept."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


@lru_cache(maxsize=16384)
def lookalike_form(text: str) -> str:
    """The comparison form with characters that OCR confuses made the same (``IUIAL`` and ``TOTAL`` are equal)."""
    return comparison_form(text).translate(_LOOKALIKES)


def is_wide(char: str) -> bool:
    """Whether the character is written without blanks between words (Chinese, Japanese)."""
    return "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff"


def has_wide(text: str) -> bool:
    """Whether any character is Chinese or Japanese."""
    return not text.isascii() and any(is_wide(c) for c in text)


def join_lines(parts: list[str]) -> str:
    """Lines of one value as one text: a blank between them, none between two Chinese characters."""
    joined = ""
    for part in (collapse(p) for p in parts):
        if not part:
            continue
        if joined and not (is_wide(joined[-1]) and is_wide(part[0])):
            joined += " "
        joined += part
    return joined
