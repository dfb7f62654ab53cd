"""Lines made ready for pairing: cut before inner labels, joined where the OCR or the form took them apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from docmill.finding.labels import label_end
from docmill.finding.sheet import Piece, Sheet, joined, rows_of
from docmill.finding.vocabulary import is_label_word, is_numbered, is_prose
from docmill.normalisation.text import has_wide, is_wide

BLANKS = re.compile(r"_{2,}|\.{4,}|…{2,}")
NOTHING = re.compile(r"^[\W_]*$")
_COLON = re.compile(r"\s?[:：](?!\d\d\b|//)")
_ITEM_NUMBER = re.compile(r"^\d{1,2}[A-Za-z]?[.)]?$")
_SIGN = re.compile(r"^(?:[$€£¥]|RM|[sS])$")
_COMB = re.compile(r"^[\dIlOo一\-–—|]{1,2}$")
COMB_LENGTH = 4
"""From so many single characters at even distances on they are one value written into boxes."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A label and its value; ``quality`` says how clear the layout is, 0 to 1."""

    label: Piece
    value: Piece
    quality: float
    rule: str


def prepared(sheet: Sheet, used: set[int]) -> list[Piece]:
    """The page's free text as parts, in rows from top to bottom."""
    free = [part for piece in sheet.pieces if piece.index not in used for part in segments(piece)]
    return [part for row in rows_of(free) for part in _joined_row(row)]


def _joined_row(row: list[Piece]) -> list[Piece]:
    parts: list[Piece] = []
    at = 0
    while at < len(row):
        comb = _comb(row, at)
        if len(comb) >= COMB_LENGTH:
            whole = joined(comb, "")
            text = re.sub("[一–—]", "-", whole.text)
            parts.append(Piece(text, whole.box, whole.place, whole.confidence, whole.index))
            at += len(comb)
            continue
        piece, following = row[at], row[at + 1] if at + 1 < len(row) else None
        third = row[at + 2] if at + 2 < len(row) else None
        own = third is not None and len(third.text) > 2 and len(following.text if following else "") == 1
        if own and third is not None and following is not None and _belongs(following, third):
            parts.append(piece)  # a heading written downwards beside ``名   称: ...``
            at += 1
            continue
        if following is not None and _belongs(piece, following):
            separator = "" if is_wide(piece.text[-1]) else " "
            row = [*row[: at + 1], joined([piece, following], separator), *row[at + 2 :]]
            at += 1
            continue
        parts.append(piece)
        at += 1
    return parts


def _comb(row: list[Piece], at: int) -> list[Piece]:
    run: list[Piece] = []
    for piece in row[at:]:
        if not _COMB.match(piece.text) or (run and piece.box.x0 - run[-1].box.x1 > 0.04):
            break
        run.append(piece)
    return run


def _belongs(piece: Piece, following: Piece) -> bool:
    """Whether two neighbours are one text: an item's number, a currency sign, two spaced Chinese characters."""
    gap = following.box.x0 - piece.box.x1
    if _ITEM_NUMBER.match(piece.text) and following.text[:1].isalpha():
        return gap < 0.035 and len(following.text) > 3
    if is_numbered(piece.text) and re.match(r"[a-z]{2}", following.text) and not BLANKS.search(piece.text):
        return gap < 0.03
    if _SIGN.match(piece.text):
        return gap < 0.14 and bool(re.match(r"[\d.,]+", following.text))
    if len(piece.text) == 1 and is_wide(piece.text):
        return gap < 0.11 and bool(re.match(r"[^\d:：](?:[:：]|$)", following.text)) and has_wide(following.text[:1])
    return False


def segments(piece: Piece) -> Iterator[Piece]:
    """A line cut before each ``Label:`` inside it (``CA Zip Code: 12345 Phone: 555``)."""
    text = piece.text
    starts = [0]
    if not has_wide(text):
        for colon in _COLON.finditer(text):
            start = _label_start(text, starts[-1], colon.start())
            before = text[starts[-1] : start]
            if starts == [0] and _leads(before):
                continue
            if start > starts[-1] and not is_prose(before) and any(c.isalnum() for c in before):
                starts.append(start)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield piece.part(start, end)


def _leads(text: str) -> bool:
    """Whether the words before a line's first known label word are the label's own (``Full`` of ``Full Name:``)."""
    words = text.split()
    return 0 < len(words) <= 2 and all(w[:1].isupper() and w[1:].islower() for w in words)


def _label_start(text: str, start: int, colon: int) -> int:
    """Where the label that ends at a colon begins: as far back as words of labels go, else its last capital word."""
    words = [(m.start(), m[0]) for m in re.finditer(r"\S+", text[start:colon])]
    begin: int | None = None
    for position, word in reversed(words):
        if is_label_word(word) or (begin is not None and re.fullmatch(r"[#/&]|of|to|and|the", word)):
            begin = position
        elif begin is None and word in "#.":
            continue
        else:
            break
    if begin is None:
        if not words or not words[-1][1][:1].isupper() or label_end(text[start : colon + 1]) == colon - start:
            return start
        begin = words[-1][0]
    elif start == 0 and text[:1].islower() and text[begin].islower():
        return start  # the last line of a label that began above
    while begin is not None and re.match(r"(?:of|to|and|the)\s", text[start + begin :]):
        begin += len(text[start + begin :].split(" ", 1)[0]) + 1
    return start + begin


def split_label(piece: Piece) -> tuple[Piece, Piece | None] | None:
    """(label, value or None) of a text such as ``Label: value`` or ``Label ____ value``; None where it is neither."""
    text = piece.text
    end = label_end(text)
    if end and any(c.isalpha() for c in text[:end]) and not re.search(r"https?$|www", text[:end]):
        value = BLANKS.sub(" ", text[end:].lstrip(" :：#;"))
        start = len(text) - len(text[end:].lstrip(" :：#;"))
        return piece.part(0, end), None if NOTHING.match(value) else without_blanks(piece.part(start))
    blank = BLANKS.search(text)
    if blank and blank.start() >= 2 and any(c.isalpha() for c in text[: blank.start()]):
        value = BLANKS.sub(" ", text[blank.start() :])
        rest = piece.part(blank.start())
        return piece.part(0, blank.start()), None if NOTHING.match(value) else without_blanks(rest)
    return None


def without_blanks(piece: Piece) -> Piece:
    """The piece without the line drawn for it to be written on."""
    start = len(piece.text) - len(piece.text.lstrip("_ .…"))
    end = len(piece.text.rstrip("_ …"))
    return piece.part(start, end) if start < end else piece
