"""Values that hold two: spans of dates, and labels that ask for two things at once (``Name and title``)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docmill.finding.parts import Pair
from docmill.finding.sheet import Piece
from docmill.normalisation.dates import DateOrder, find_dates

_BETWEEN = re.compile(r"\s*(?:-|–|—|~|to|till|until|through|thru|bis|tot|au|至|到)\s*", re.IGNORECASE)
_TWO = re.compile(
    r"^(?P<lead>(?:\(?\w{1,3}[.)]\s*)?(?:print\s+)?)(?P<first>names?|[\w'’]+\s+names?)\s*(?:,|and|&|/)\s*"
    r"(?P<second>(?:street\s+|mailing\s+)?address(?:es)?|title|position|date)\b(?P<rest>.*)$",
    re.IGNORECASE,
)
_SLASH = re.compile(r"^(?P<first>[A-Z][\w .#]{2,24}?)\s*/\s*(?P<second>[A-Z][\w .#]{1,24})$")
SHARE = 0.9
"""What a part's quality is of the whole's: where it was cut may be wrong."""


def parts_of(pair: Pair, order: DateOrder) -> Iterator[Pair]:
    """The pairs that a pair holds; none for most. The whole pair stays beside them."""
    yield from _span(pair, order)
    lines = _lines(pair.value)
    two = _TWO.match(pair.label.text)
    if two is not None:
        cut = _after_name(pair.value, lines, title=two["second"].lower() in ("title", "position"))
        if cut is not None:
            of = f" {two['rest'].strip(' ),:')}" if two["rest"].lower().startswith((" of", " and address of")) else ""
            yield _named(pair, f"{two['first']}{of}", pair.value.part(0, cut))
            yield _named(pair, f"{two['second']}{of}", pair.value.part(cut))
        return
    slash = _SLASH.match(pair.label.text.strip(" :"))
    words = pair.value.text.split(" ")
    if slash is not None and len(words) <= 3 and "/" in pair.value.text:
        at = pair.value.text.index("/")
        if (
            pair.value.text[:at].strip()
            and pair.value.text[at + 1 :].strip()
            and not find_dates(pair.value.text[: at + 6])
        ):
            yield _named(pair, slash["first"], pair.value.part(0, at))
            yield _named(pair, slash["second"], pair.value.part(at + 1))
    elif slash is not None and len(words) == 2 and any(c.isdigit() for c in words[0]):
        yield _named(pair, slash["first"], pair.value.part(0, len(words[0])))
        yield _named(pair, slash["second"], pair.value.part(len(words[0])))


def _span(pair: Pair, order: DateOrder) -> Iterator[Pair]:
    text = pair.value.text
    dates = find_dates(text, order=order)
    if len(dates) != 2 or not _BETWEEN.fullmatch(text[dates[0].end : dates[1].start]):
        return
    if text[: dates[0].start].strip() or text[dates[1].end :].strip():
        return
    label = pair.label.text.strip(" :")
    yield _named(pair, f"{label} from", pair.value.part(dates[0].start, dates[0].end))
    yield _named(pair, f"{label} to", pair.value.part(dates[1].start, dates[1].end))


def _named(pair: Pair, name: str, value: Piece) -> Pair:
    label = Piece(name, pair.label.box, pair.label.place, pair.label.confidence, pair.label.index)
    return Pair(label, Piece(value.text.strip(" ,;"), value.box, value.place, value.confidence, value.index),
                pair.quality * SHARE, f"{pair.rule}_part")  # fmt: skip


def _lines(value: Piece) -> list[int]:
    """Where lines of a value begin, by its words: a word left of the one before it."""
    starts, at = [], 0
    last = None
    for word in value.words:
        found = value.text.find(word.text, at)
        if found < 0:
            return []
        if last is not None and word.box.y0 > last.box.y0 + 0.5 * last.box.height and word.box.x0 < last.box.x1:
            starts.append(found)
        at, last = found + len(word.text), word
    return starts


def _after_name(value: Piece, lines: list[int], *, title: bool) -> int | None:
    """Where the name ends: at its line's end, before a house number, at the comma before a title."""
    if lines and lines[0] < len(value.text):
        return lines[0]
    comma = re.search(r",\s+(?=[A-Z])", value.text)
    if title:
        return comma.end() if comma is not None and value.text.count(",") == 1 else None
    house = re.search(r"[,\s]\s*(?=(?:\d{1,5}[A-Za-z]?\s+[A-Z]|P\.?\s?O\.?\s?Box\b))", value.text)
    return house.end() if house is not None and house.start() >= 3 else None
