"""Who issued the document: the name at the head of the page and the address below it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from docmill.finding.candidate import Candidate
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.normalisation.dates import find_dates
from docmill.normalisation.text import comparison_form, has_wide

HEAD_ROWS = 14
"""Rows from the first text on within which a heading stands."""

_COMPANY = re.compile(
    r"\b(sdn\.?\s*b[hn]d|bhd|s/b|5/b|ltd|limited|llc|llp|inc|corp|corporation|company|co\.|gmbh|ag|kg|b\.?v\.?|n\.?v\.?|s\.?a\.?r?\.?l?|"
    r"s\.?r\.?l|plc|pte|pty|oy|ab|aps|as|enterprise|enterprises|trading|holdings?|industries|restaurant|restoran|"
    r"kedai|syarikat|perniagaan|store|stores|mart|minimarket|supermarket|hypermarket|bakery|cafe|coffee|hardware|"
    r"pharmacy|farmasi|clinic|klinik|hotel|services?|stationery|group|international|resources|marketing|"
    r"confectionery|retail|furniture|motor|auto|books?|shop)\b|公司|酒店|饭店|餐厅|超市|商店|商场|集团|药房|药店",
    re.IGNORECASE,
)  # fmt: skip
_STRONG = re.compile(
    r"\b(sdn\.?\s*b[hn]d|bhd|s/b|5/b|ltd|limited|llc|llp|inc|corp|gmbh|b\.v|plc|pte|pty)\b|公司", re.IGNORECASE
)
_SUFFIX_ONLY = re.compile(
    r"^\(?(m\)?\s*)?(sdn\.?\s*b[hn]d|bhd|ltd|limited|llc|inc|gmbh|co\.?,?\s*ltd)\.?$", re.IGNORECASE
)
_OTHER = re.compile(
    r"^\W*(tax\s*invoice|payment\s*receipt|simplified|invoice|receipt|cash\s*(bill|sale)|bill\b|welcome|thank|tel\b|telephone|phone|fax|gst|sst|"
    r"vat|roc\b|reg\b|co\.?\s*reg|company\s*(reg|no)|(business|co)\s*reg|email|e-mail|website|http|www\.|date|time|cashier|"
    r"table|order|inv\b|no\s*of|shopping\s*hours|member|valued|customer|bill\s*to|page\b|original|copy|duplicate|"
    r"mon\s*-|sun\s*-|operating|business\s*hour|hotline|mobile|h/p|hp\b|licen|formerly|"
    r"收据|发票|小票|欢迎|电话|日期|单号)|taxinvoice|thank\s*you|@\w+\.\w|\.com\b",
    re.IGNORECASE,
)  # fmt: skip
_STOP = re.compile(
    r"^\W*(tel\b|te1|1e1|telephone|phone|fax|gst|6st|sst|vat\b|roc\b|tax|invoice|receipt|cash|bill\b|date|e-?mail|website|http|www|"
    r"company|co\.?\s*reg|reg\b|shopping|order|cashier|table|inv\b|doc|slip|hotline|mobile|member|valued|h/p|"
    r"mon\s*-|sun\s*-|operating|business|item|description|qty|customer|bill to|iban|bic|kvk|btw|电话|税号|日期|单号)|"
    r"taxinvoice|@\w+\.\w|\.com\b",
    re.IGNORECASE,
)  # fmt: skip
_ADDRESS = re.compile(
    r"\b(no\.?\s*\d|lot\b|jalan|jln|ja1an|lorong|lrg|taman|tmn|bandar|kampung|kg\.|persiaran|lebuh|kawasan|seksyen|section|"
    r"floor|flr|level|ground|block|blk|unit|suite|building|bangunan|wisma|plaza|mall|complex|kompleks|"
    r"street|st\.|road|rd\b|avenue|ave\b|lane|drive|dr\.|boulevard|blvd|highway|way\b|square|court|"
    r"straat|weg\b|laan|plein|strasse|straße|platz|rue|via\b|calle|p\.?o\.?\s*box|"
    r"km\s*\d+|selangor|johor|kuala|penang|perak|melaka|malaysia|singapore)|\b\d{5}\b|\b\d{4}\s?[A-Z]{2}\b",
    re.IGNORECASE,
)  # fmt: skip
_HOUSE = re.compile(r"^\d{1,5}[A-Za-z]?\s+[A-Z][a-z][\w']*(?:\s[A-Z][\w']+){0,3},?(?:\s\d{4,6}\s.*)?$")
_STARTS_NUMBERED = re.compile(r"^\s*(no\.?\s*)?[A-Z]{0,3}-?\d+[A-Z]?(?:[-/&]\w+)*\s*,", re.IGNORECASE)
_REGISTRATION = re.compile(
    r"\s*[\[(]\s*(?:(?:co\.?|reg\.?|company|roc)[^()\[\]]*|"
    r"[A-Z]{0,3}\s?[-\d]?[\d\- ]{4,}[-\s]?[A-Z0-9]{0,2})\s*[\])].*$|"
    r"\s+(?:co\.?\s*no|reg\.?\s*no|roc)\b.*$|\s+\d{5,}-?\s?[A-Z]\b.*$",
    re.IGNORECASE,
)
_FORMER = re.compile(r"formerly|known as|licensee|owned by|trading as|operated by", re.IGNORECASE)
_RUNNING = re.compile(
    r"[\s,;–-]+(?:(?:tax\s*)?invoice|receipt|statement|order|contract|page)\b.*(?:continued|cont'?d|page|\d{3}).*$|"
    r"[\s,;(–-]+(?:continued|cont'?d|page\s*\d+)\b.*$",
    re.IGNORECASE,
)
"""What a running head prints behind the name: the document's number, ``continued``, the page."""
_PHONE = re.compile(r"^[+()\d\s\-/.]{7,}$")


@dataclass(frozen=True, slots=True)
class Heading:
    """The issuer and its address, each None where there is none."""

    issuer: Candidate | None
    address: Candidate | None


def _letters(text: str) -> int:
    return sum(c.isalpha() for c in text)


def _is_name(text: str) -> bool:
    """Whether a head line can be a name: letters prevail and it is nothing else that stands at the head."""
    letters, digits = _letters(text), sum(c.isdigit() for c in text)
    if letters < 3 or _OTHER.search(text) or _PHONE.match(text):
        return (
            letters == 2
            and not digits
            and comparison_form(text).isalpha()
            and text.isupper()
            and not _OTHER.search(text)
        )
    return digits <= letters and not find_dates(text)


def _is_address(text: str) -> bool:
    if _PHONE.match(text) or _STOP.search(text) or _is_registration(text) or _FORMER.search(text):
        return False
    if has_wide(text):
        return len(text) >= 6 and len(re.findall(r"[省市区县路街道号楼室]", text)) >= 2
    return bool(_ADDRESS.search(text) or _STARTS_NUMBERED.match(text) or _HOUSE.match(text))


def find_heading(sheet: Sheet, labels: Collection[int] = ()) -> Heading:
    """The name at the head of the page (not a logo's scrap, a registration number or a title) and its address.

    ``labels``: indices of lines that are labels of other fields; an address ends before them.
    """
    lines = _stretches(sheet)
    names = _name_candidates(lines, sheet)
    if not names:
        return Heading(None, _address(lines, -1, None, sheet, labels))
    best = max(names, key=lambda at: names[at])
    piece = _name_piece(lines, best)
    issuer = Candidate(piece, min(names[best], 0.95), "heading")
    return Heading(issuer, _address(lines, best, piece, sheet, labels))


def _stretches(sheet: Sheet) -> list[Piece]:
    """The head's rows, each cut where a wide gap parts two columns, from top to bottom."""
    found = []
    for row in sheet.rows[: HEAD_ROWS + 6]:
        run: list[Piece] = []
        for piece in row:
            apart = run and piece.box.x0 - run[-1].box.x1 > 5 * sheet.char_width
            if apart or (run and _OTHER.search(piece.text)):
                found.append(joined(run, " "))
                run = []
            run.append(piece)
        found.append(joined(run, " "))
    return found


def _name_candidates(lines: list[Piece], sheet: Sheet) -> dict[int, float]:
    """Index of a line → how far it can be the issuer's name."""
    names: dict[int, float] = {}
    for at, line in enumerate(lines[: HEAD_ROWS + 2]):
        if _STOP.search(line.text) and names:
            break
        if not _is_name(line.text):
            continue
        strong = bool(_STRONG.search(line.text))
        if _is_address(line.text) and not strong and (names or not _COMPANY.search(line.text)):
            if any(_STRONG.search(r.text) and _is_name(r.text) for r in lines[at + 1 : at + 3]):
                continue
            break
        first = all(score < 0.5 for score in names.values())
        names[at] = _name_score(line, at, sheet, first=first, strong=strong)
    return names


def _name_score(line: Piece, at: int, sheet: Sheet, *, first: bool, strong: bool) -> float:
    score = 0.68 if first else 0.5
    if strong:
        score += 0.3
    elif _COMPANY.search(line.text):
        score += 0.2
    if line.box.height > 1.35 * sheet.line_height:
        score += 0.1
    if line.text == line.text.lower() and not has_wide(line.text):
        score -= 0.35  # a note by hand, a slogan
    if _letters(line.text) < 5 and not has_wide(line.text):
        score -= 0.15
    return score - 0.01 * at


def _name_piece(lines: list[Piece], at: int) -> Piece:
    """The name's line, joined with the next where a name runs on, without registration numbers."""
    piece = lines[at]
    running = _RUNNING.search(piece.text)
    if running and running.start() >= 3:
        piece = piece.part(0, running.start())
    cut = _REGISTRATION.search(piece.text)
    if cut and cut.start() >= 3:
        piece = piece.part(0, cut.start())
        if not _SUFFIX_ONLY.match(piece.text.strip()):
            return _stripped(piece)
    if at + 1 < len(lines) and _SUFFIX_ONLY.match(_REGISTRATION.sub("", lines[at + 1].text).strip()):
        following = lines[at + 1]
        cut = _REGISTRATION.search(following.text)
        short = following.part(0, cut.start()) if cut and cut.start() >= 2 else following
        return _stripped(joined([piece, short], " "))
    if at and _SUFFIX_ONLY.match(piece.text.strip()) and _is_name(lines[at - 1].text):
        return _stripped(joined([lines[at - 1], piece], " "))
    return _stripped(piece)


def _stripped(piece: Piece) -> Piece:
    text = piece.text
    start = len(text) - len(text.lstrip(" *-=:.,_~"))
    end = len(text.rstrip(" *-=:,_~"))
    return piece.part(start, end) if end > start else piece


def _address(
    lines: list[Piece], name_at: int, name: Piece | None, sheet: Sheet, labels: Collection[int]
) -> Candidate | None:
    """The address lines below the name: from the first that looks like one to the first that is something else."""
    below = [
        line
        for line in lines[name_at + 1 :]
        if name is None or line.box.horizontal_overlap(name.box) > 0.2 or abs(line.box.x0 - name.box.x0) < 0.03
    ]
    start = next((at for at, line in enumerate(below[:9]) if _is_address(line.text)), None)
    if start is None:
        return None
    while start and below[start - 1].text.rstrip().endswith(",") and _continues(below[start - 1].text):
        start -= 1
    held = [below[start]]
    for line in below[start + 1 :]:
        far = line.box.y0 - held[-1].box.y1 > 1.6 * sheet.line_height
        if far or len(held) >= 7 or line.index in labels:
            break
        if _is_registration(line.text):
            continue
        if _STOP.search(line.text) or _PHONE.match(line.text) or find_dates(line.text) or not _continues(line.text):
            break
        held.append(line)
    quality = 0.6 + 0.08 * min(sum(bool(_ADDRESS.search(line.text)) for line in held), 3)
    if any(re.search(r"\b\d{5}\b", line.text) for line in held):
        quality += 0.08
    return Candidate(_trimmed(joined(held)), quality, "below_heading")


def _trimmed(piece: Piece) -> Piece:
    return piece.part(0, len(piece.text.rstrip(" ,;-")))


def _is_registration(text: str) -> bool:
    """Whether a line is a registration number alone: ``(81109-A)``, ``002065464-X``."""
    return _letters(text) <= 3 and sum(c.isdigit() for c in text) >= 4 and not re.search(r"[,/]", text)


def _continues(text: str) -> bool:
    """Whether a line can go on with an address: it has letters or a postcode and no sign of a list."""
    enough = _letters(text) >= 3 or (has_wide(text) and _letters(text) >= 2)
    return enough and "=" not in text and not re.match(r"^\(.*\)$", text.strip())
