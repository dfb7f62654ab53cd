"""What a page says of itself without labels: its title, and stamps that end in a date."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from docmill.finding.parts import Pair
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.finding.vocabulary import is_numbered, is_prose
from docmill.normalisation.dates import DateOrder, find_dates
from docmill.normalisation.text import has_wide

_STAMP = re.compile(
    r"^(?:date\s+)?(?:received|filed|printed|entered|paid|approved|accepted|posted|registered|created|issued|signed|stamped|"
    r"modified|updated|expires|recorded|completed|submitted|[\w ]{0,24}\bexpires)\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"^,?\s*(?:at\s+)?\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?")
_TITLE = re.compile(
    r"\b(?:form|report|statement|application|agreement|invoice|receipt|order|contract|certificate|request|registration|amendment|"
    r"exhibit|declaration|questionnaire|verification|license|licence|permit|notice|return|claim|summary|voucher|statement)\b|"
    r"(?:发票|申请表|登记表|简历|证书|合同|收据|报告|清单|订单|申请单|用车单)$",
    re.IGNORECASE,
)
_NO_TITLE = re.compile(r"[:：]|^(?:pursuant|under|for use|as|see|department|in accordance)\b", re.IGNORECASE)
HEAD = 0.2
"""A title stands within this share of the page."""


def stamps(parts: Sequence[Piece], order: DateOrder) -> list[tuple[Piece, Pair]]:
    """``Received by the office 04/05/2018 9:41:00 AM``: the part it is, and label and moment as a pair."""
    found = []
    for part in parts:
        if not _STAMP.match(part.text) or len(part.text) > 90:
            continue
        dates = find_dates(part.text, order=order)
        if len(dates) != 1 or dates[0].start < 5:
            continue
        label, rest = part.part(0, dates[0].start), part.text[dates[0].end :]
        time = _TIME.match(rest)
        end = dates[0].end + (time.end() if time else 0)
        if part.text[end:].strip(" .)") or label.text.endswith((":", "：")) or len(label.text.split()) > 8:
            continue
        found.append((part, Pair(label, part.part(dates[0].start, end), 0.75, "stamp")))
    return found


def title_of(sheet: Sheet, labels: Collection[int] = ()) -> Piece | None:
    """The form's name in its head; None where no line there reads like one.

    The highest print wins; among lines of one height the first. ``labels``: indices of lines that are labels.
    """
    best: Piece | None = None
    for piece in sheet.pieces:
        text = piece.text
        if piece.index in labels or is_numbered(text) or text.endswith("#"):
            continue
        if piece.box.center[1] > HEAD or not _TITLE.search(text) or is_prose(text) or len(text) > 70:
            continue
        if re.search(r"[:：@]|\d{3,}|^\W*\(|^(?:page|omb|expires|see|go to|give)\b", text, re.IGNORECASE):
            continue
        if (
            len(text.split()) > 9
            or text[:1].islower()
            or (len(text.split()) < 2 and not text.isupper() and not has_wide(text))
        ):
            continue
        if best is None or piece.box.height > 1.25 * best.box.height:
            best = piece
    return None if best is None else joined([best, *_second_line(sheet, best)], " ")


def _second_line(sheet: Sheet, title: Piece) -> list[Piece]:
    """The line below a title in large print that goes on with it."""
    if title.box.height < 1.2 * sheet.line_height or title.box.width < 0.2:
        return []
    for piece in sheet.pieces:
        gap = piece.box.y0 - title.box.y1
        alike = 0.85 < piece.box.height / title.box.height < 1.18
        if alike and -0.3 * title.box.height < gap < 0.5 * title.box.height and piece.box.y0 > title.box.center[1]:
            middle = abs(piece.box.center[0] - title.box.center[0]) < 0.1
            other = _NO_TITLE.search(piece.text)
            return [piece] if middle and not other else []
    return []
