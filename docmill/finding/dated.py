"""The day of the document among all the dates on its page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from docmill.finding.candidate import Candidate
from docmill.finding.sheet import Piece, Sheet
from docmill.geometry import Box
from docmill.normalisation.dates import DateOrder, FoundDate, find_dates

_LABEL = re.compile(r"date|dated|datum|日期|时间|tarikh|fecha|data\b", re.IGNORECASE)
_OTHER_DAY = re.compile(
    r"due|exp(iry|ires|iration)|valid|until|effective|birth|dob|w\.?e\.?f|from|since|vervaldatum|fällig|到期|出生|return",
    re.IGNORECASE,
)
_TIME = re.compile(r"\d{1,2}[:.]\d{2}([:.]\d{2})?\s?([ap]\.?m\b|$|\D)", re.IGNORECASE)


def page_date_order(sheet: Sheet, default: DateOrder) -> DateOrder:
    """The order of day and month that the page itself shows, where a date can only be read one way."""
    votes = {"DMY": 0, "MDY": 0}
    for piece in sheet.pieces:
        as_dmy = find_dates(piece.text, order="DMY")
        as_mdy = find_dates(piece.text, order="MDY")
        for first, second in zip(as_dmy, as_mdy, strict=False):
            if first.value == second.value and re.match(r"\d{1,2}\s?[-/.]\s?\d{1,2}\D", piece.text[first.start :]):
                if first.certainty == 0.95 and second.certainty == 1.0:
                    votes["MDY"] += 1
                elif first.certainty == 1.0 and second.certainty == 0.95:
                    votes["DMY"] += 1
    if votes["MDY"] and not votes["DMY"]:
        return "MDY"
    if votes["DMY"] and not votes["MDY"]:
        return "DMY"
    return default


def dates_on(sheet: Sheet, order: DateOrder) -> Iterator[tuple[Piece, FoundDate, tuple[Piece, ...]]]:
    """Every date on the page: its piece, what it is, and the row it stands in."""
    for row in sheet.rows:
        for piece in row:
            for found in find_dates(piece.text, order=order):
                yield piece.part(found.start, found.end), found, row


def document_date(sheet: Sheet, order: DateOrder, others: Sequence[Box] = ()) -> Candidate | None:
    """The best candidate for the day of the document: labelled as a date, beside a time.

    ``others``: where the values of other date fields stand (a birthday, a due date); those are not it.
    """
    best: Candidate | None = None
    for part, found, row in dates_on(sheet, order):
        if any(part.place.intersection(o) > 0.5 * part.place.area for o in others):
            continue
        before = " ".join(p.text for p in row if p.box.x0 < part.box.x0 and p.index != part.index)
        own = next(p.text for p in row if p.index == part.index)
        at = own.find(part.text)
        before = f"{before} {own[: max(at, 0)]}"[-40:]
        score = 0.7
        if _LABEL.search(before):
            score += 0.2
        if _OTHER_DAY.search(before):
            score -= 0.4
        elif _TIME.search(own[at + len(part.text) :]) or any(
            _TIME.search(p.text) for p in row if p.index != part.index
        ):
            score += 0.1
        score *= 0.5 + 0.5 * found.certainty
        if best is None or score > best.quality + 0.001:
            best = Candidate(part, score, "document_date")
    return best
