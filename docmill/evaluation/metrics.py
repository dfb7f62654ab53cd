"""Measures of agreement between what is known and what was read. Pure functions of texts."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from rapidfuzz.distance import Levenshtein

from docmill.extraction import FieldKind, FieldValue
from docmill.geometry import Box
from docmill.layout.reading_order import rows_of
from docmill.normalisation.booleans import parse_boolean
from docmill.normalisation.dates import DateOrder, parse_date
from docmill.normalisation.money import parse_money
from docmill.normalisation.numbers import parse_number
from docmill.normalisation.text import collapse, is_wide

ANLS_THRESHOLD = 0.5
"""Above this distance an answer counts as another one (Biten et al. 2019, where it is called tau)."""

_EDGES = " .,;:-–—_*#()[]\"'"


def plain_form(text: str) -> str:
    """What texts are compared by: NFKC, case folded, blanks removed, punctuation at the ends removed."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(_EDGES)


def normal_form(
    kind: FieldKind, text: str, value: FieldValue = None, *, date_order: DateOrder = "DMY"
) -> str | Decimal | date | bool:
    """A value as it is compared: the typed value where there is one or the text gives one, else :func:`plain_form`.

    Args:
        kind: of the field.
        text: as printed or read.
        value: the typed value, where it is known already.
        date_order: how 03/04/2018 is to be read.
    """
    typed: FieldValue = None if isinstance(value, str) else value
    if typed is None and kind is FieldKind.DATE:
        typed = parse_date(text, order=date_order)
    elif typed is None and kind is FieldKind.MONEY:
        money = parse_money(text)
        typed = None if money is None else money.amount
    elif typed is None and kind is FieldKind.NUMBER:
        typed = parse_number(text)
    elif typed is None and kind is FieldKind.BOOLEAN:
        typed = parse_boolean(text)
    if typed is not None:
        return typed
    return plain_form(value if isinstance(value, str) else text)


def similarity(truth: str, found: str) -> float:
    """ANLS of one answer, 0 to 1.

    ``1 - NL`` where the normalised Levenshtein distance NL (edits over the length of the longer text, without case,
    runs of blanks as one) is below 0.5, else 0. Source: A. F. Biten et al., "Scene Text Visual Question Answering",
    ICCV 2019, equation 1, with one right answer.
    """
    known, read = collapse(truth).casefold(), collapse(found).casefold()
    if not known and not read:
        return 1.0
    distance = Levenshtein.normalized_distance(known, read)
    return 1 - distance if distance < ANLS_THRESHOLD else 0.0


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None of nothing."""
    return sum(values) / len(values) if values else None


def text_in_rows(lines: Iterable[tuple[str, Box]], aspect: float = 1.0) -> str:
    """The lines' texts in rows from top to bottom, each from left to right, one row a line.

    ``aspect`` is page width over page height.
    """
    held = list(lines)
    return "\n".join(" ".join(held[i][0] for i in row) for row in rows_of([box for _, box in held], aspect))


def character_edits(truth: str, found: str) -> tuple[int, int]:
    """(Levenshtein distance, characters of the truth), both on upper-cased text without blanks.

    Their quotient, summed over pages, is the character error rate (CER); it can exceed 1 where too much was read.
    """
    known, read = _blank_free(truth), _blank_free(found)
    return Levenshtein.distance(known, read), len(known)


def _blank_free(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).upper().split())


def words_found(truth: str, found: str) -> tuple[int, int]:
    """(words of the truth that were read, words of the truth), as multisets, upper-cased; order does not matter.

    Chinese and Japanese characters count as words of their own.
    """
    known, read = Counter(_words(truth)), Counter(_words(found))
    return sum((known & read).values()), sum(known.values())


def _words(text: str) -> list[str]:
    spaced = "".join(f" {c} " if is_wide(c) else c for c in unicodedata.normalize("NFKC", text).upper())
    return [word for word in (part.strip(_EDGES) for part in spaced.split()) if word]
