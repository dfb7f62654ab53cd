"""Dates as printed, typed and stamped, in several languages, with the digits that OCR mistakes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Literal

from rapidfuzz import fuzz

from docmill.normalisation.numbers import DIGIT_LOOKALIKES, parse_chinese_number
from docmill.normalisation.text import fold_width

DateOrder = Literal["DMY", "MDY", "YMD"]

EARLIEST_YEAR = 1900
LATEST_YEAR = 2099
TWO_DIGIT_PIVOT = 50
"""Two-digit years below it are of this century."""

_MONTHS = (
    "january jan januar janvier janv enero ene januari gennaio gen janeiro",
    "february feb februar fevrier fevr febrero februari febbraio fevereiro fev",
    "march mar marz maerz mars marzo maart mrt mac marco",
    "april apr avril avr abril abr aprile",
    "may mai mayo mei maggio maio",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio julai luglio lug julho",
    "august aug aout agosto ago ogos augustus",
    "september sept sep septembre septiembre settembre set setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro out",
    "november nov novembre noviembre novembro",
    "december dec dezember dez decembre diciembre dic disember dis dicembre dezembro",
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}

_D = r"[0-9OoQDlI|]"
_YEAR4 = rf"(?:1[9g]|[2Zz][0OoQ]){_D}{{2}}"
_SEP = r"\s?[-/.,·—–]\s?|\s"
_TIME_FOLLOWS = r"(?=\d{1,2}:\d{2})"
_EDGE = rf"(?!{_D})"
_NUMERIC_DMY = re.compile(
    rf"(?<![\w.])({_D}{{1,2}})({_SEP})({_D}{{1,2}})({_SEP})"
    rf"({_YEAR4}(?:{_TIME_FOLLOWS}|{_EDGE}(?!/\d))|{_D}{{2}}{_EDGE}(?![-/.]\d(?!\d?[:/])|,\d))"
)
_NUMERIC_YMD = re.compile(
    rf"(?<![\w.])({_YEAR4})\s?([-/.年])\s?({_D}{{1,2}})\s?[-/.月]\s?({_D}{{1,2}})(?:{_TIME_FOLLOWS}|(?!{_D}|[-/]\d))\s?[日号]?"
)
_COMPACT = re.compile(r"(?<![\dA-Za-z])((?:19|20)\d{2})(0[1-9]|1[0-2])([0-2]\d|3[01])(?![\dA-Za-z])")
_CHINESE = re.compile(r"([〇零一二三四五六七八九]{4})年([一二三四五六七八九十]{1,3})月([一二三四五六七八九十]{1,3})日?")
_NAME = r"((?:0(?=[Cc])|[^\W\d_])(?:[^\W\d_]|[01](?=[^\W\d_])){2,9})"
_GAP = r"[\s\-/.,’']{0,3}"
_DAY_FIRST = re.compile(
    rf"(?<!\w)({_D}{{1,2}})\s?(?:st|nd|rd|th|er|º|°|\.)?{_GAP}(?:of\s|de\s|day of\s)?{_NAME}\.?,?{_GAP}(?:de\s)?"
    rf"({_YEAR4}|{_D}{{2}}){_EDGE}",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"(?<!\w){_NAME}\.?{_GAP}({_D}{{1,2}})\s?(?:st|nd|rd|th)?(?:,\s?|\.\s?|\s|-|/)\s?({_YEAR4}|{_D}{{2}}(?!\s?:)){_EDGE}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FoundDate:
    """A date inside a text.

    Attributes:
        start, end: its place.
        certainty: 1 where the text decides which number is what, 0.9 where the document type's order did, less where
            letters had to be taken for digits.
    """

    value: date
    start: int
    end: int
    certainty: float


def _number(text: str) -> int | None:
    plain = text.translate(DIGIT_LOOKALIKES).replace("g", "9").replace("Z", "2").replace("z", "2")
    return int(plain) if plain.isdigit() else None


def _year(text: str) -> int | None:
    number = _number(text)
    if number is None:
        return None
    if number < 100:
        number += 2000 if number < TWO_DIGIT_PIVOT else 1900
    return number if EARLIEST_YEAR <= number <= LATEST_YEAR else None


def _date(year: int | None, month: int | None, day: int | None) -> date | None:
    if year is None or month is None or day is None:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


@cache
def month_number(name: str) -> int | None:
    """1 to 12 for a month's name or short form (en, de, fr, es, nl, it, pt, ms), None for another word."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    plain = plain.replace("0", "o").replace("1", "l").strip(".")
    if plain in _MONTH:
        return _MONTH[plain]
    if len(plain) < 5:
        return None
    best = max(_MONTH, key=lambda known: fuzz.ratio(plain, known))
    return _MONTH[best] if fuzz.ratio(plain, best) >= 80 else None


def _mistaken(text: str) -> bool:
    return any(c in "OoQDlI|gZz" for c in text)


def _numeric(match: re.Match[str], order: DateOrder) -> tuple[date, float] | None:
    first, second = _number(match[1]), _number(match[3])
    if match[2].strip() != match[4].strip() and not (match[2].strip() and match[4].strip()):
        return None
    if not match[2].strip() and len(match[5]) < 4:  # "12 05 18" is rarely a date
        return None
    if (len(match[5]) == 2 and match[2].strip() == ",") or match[2].strip() == "." != match[4].strip():
        return None
    year = _year(match[5])
    as_dmy, as_mdy = _date(year, second, first), _date(year, first, second)
    as_ymd = _date(_year(match[1]), second, _number(match[5])) if len(match[5]) == 2 and len(match[1]) == 2 else None
    readings = {"DMY": as_dmy, "MDY": as_mdy, "YMD": as_ymd}
    wanted = readings.pop(order) or (as_dmy if order == "YMD" else None)
    others = [v for k, v in readings.items() if v is not None and k != "YMD"]
    if wanted is not None:
        return wanted, 0.9 if any(o != wanted for o in others) else 1.0
    if others:
        return others[0], 0.95
    return (as_ymd, 0.85) if as_ymd is not None else None


def _candidates(text: str, order: DateOrder) -> Iterator[FoundDate]:
    for match in _NUMERIC_YMD.finditer(text):
        value = _date(_year(match[1]), _number(match[3]), _number(match[4]))
        if value:
            yield FoundDate(value, match.start(), match.end(), 0.85 if _mistaken(match[0]) else 1.0)
    for match in _DAY_FIRST.finditer(text):
        value = _date(_year(match[3]), month_number(match[2]), _number(match[1]))
        if value:
            yield FoundDate(value, match.start(), match.end(), 1.0)
    for match in _MONTH_FIRST.finditer(text):
        value = _date(_year(match[3]), month_number(match[1]), _number(match[2]))
        if value:
            yield FoundDate(value, match.start(), match.end(), 1.0)
    for match in _NUMERIC_DMY.finditer(text):
        read = _numeric(match, order)
        if read:
            yield FoundDate(read[0], match.start(), match.end(), read[1] * (0.85 if _mistaken(match[0]) else 1.0))
    for match in _COMPACT.finditer(text):
        value = _date(int(match[1]), int(match[2]), int(match[3]))
        if value:
            yield FoundDate(value, match.start(), match.end(), 0.8)
    for match in _CHINESE.finditer(text):
        year = int("".join(str("〇一二三四五六七八九".index(c.replace("零", "〇"))) for c in match[1]))
        month, day = parse_chinese_number(match[2]), parse_chinese_number(match[3])
        value = _date(year, int(month or 0), int(day or 0))
        if value:
            yield FoundDate(value, match.start(), match.end(), 1.0)


def find_dates(text: str, *, order: DateOrder = "DMY") -> list[FoundDate]:
    """All dates in a text from left to right, none inside another.

    Args:
        text: as printed; full-width characters are read as plain ones.
        order: how 03/04/2018 is to be read; a date that can only be read one way is read that way.
    """
    found: list[FoundDate] = []
    for candidate in _candidates(fold_width(text), order):
        if all(candidate.end <= f.start or candidate.start >= f.end for f in found):
            found.append(candidate)
    return sorted(found, key=lambda f: f.start)


def parse_date(text: str, *, order: DateOrder = "DMY") -> date | None:
    """The first date in the text (a time or a weekday may stand beside it), or None."""
    found = find_dates(text, order=order)
    return found[0].value if found else None
