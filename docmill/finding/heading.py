"""Who issued the document: the name at the head of the page and the address below it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from docmill.finding.candidate import Candidate
from docmill.finding.head_words import (
    ADDRESS,
    COMPANY,
    CONTACT,
    FIELD,
    FORMER,
    HOUSE,
    OTHER,
    PHONE,
    REGISTRATION,
    RUNNING,
    STARTS_NUMBERED,
    STOP,
    STRONG,
    SUFFIX_ONLY,
    TRADE_ONLY,
)
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.normalisation.dates import find_dates
from docmill.normalisation.text import comparison_form, has_wide

HEAD_ROWS = 14
"""Rows from the first text on within which a heading stands."""


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
    if letters < 3 or OTHER.search(text) or PHONE.match(text):
        return (
            letters == 2
            and not digits
            and comparison_form(text).isalpha()
            and text.isupper()
            and not OTHER.search(text)
        )
    return digits <= letters and not find_dates(text)


def _is_address(text: str) -> bool:
    if PHONE.match(text) or STOP.search(text) or _is_registration(text) or FORMER.search(text):
        return False
    if has_wide(text):
        return len(text) >= 6 and len(re.findall(r"[省市区县路街道号楼室]", text)) >= 2
    return bool(ADDRESS.search(text) or STARTS_NUMBERED.match(text) or HOUSE.match(text))


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
            if apart or (run and OTHER.search(piece.text)):
                found.append(joined(run, " "))
                run = []
            run.append(piece)
        found.append(joined(run, " "))
    return found


def _name_candidates(lines: list[Piece], sheet: Sheet) -> dict[int, float]:
    """Index of a line → how far it can be the issuer's name."""
    names: dict[int, float] = {}
    for at, line in enumerate(lines[: HEAD_ROWS + 2]):
        if STOP.search(line.text) and names:
            break
        if not _is_name(line.text):
            continue
        strong = bool(STRONG.search(line.text))
        if _is_address(line.text) and not strong and (names or not COMPANY.search(line.text)):
            if any(STRONG.search(r.text) and _is_name(r.text) for r in lines[at + 1 : at + 3]):
                continue
            break
        first = all(score < 0.5 for score in names.values())
        names[at] = _name_score(line, at, sheet, first=first, strong=strong)
    if not names and lines and _is_name(lines[0].text) and not re.search(r"[\d,]", lines[0].text):
        names[0] = 0.6  # a name made of the words of addresses (``PLAZA CAR PARK``)
    return names


def _name_score(line: Piece, at: int, sheet: Sheet, *, first: bool, strong: bool) -> float:
    score = 0.68 if first else 0.5
    if strong:
        score += 0.3
    elif COMPANY.search(line.text):
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
    running = RUNNING.search(piece.text)
    if running and running.start() >= 3:
        piece = piece.part(0, running.start())
    cut = REGISTRATION.search(piece.text)
    if cut and cut.start() >= 3:
        piece = piece.part(0, cut.start())
        if not SUFFIX_ONLY.match(piece.text.strip()):
            return _stripped(piece)
    if (
        at + 1 < len(lines)
        and piece.text.rstrip().lower().endswith(("&", " and", " dan"))
        and _is_name(lines[at + 1].text)
    ):
        piece = joined([piece, _without_number(lines[at + 1])], " ")
        return _stripped(piece)
    if at and STRONG.search(piece.text) and lines[at - 1].text.rstrip().endswith("&") and _is_name(lines[at - 1].text):
        return _stripped(joined([lines[at - 1], piece], " "))
    if at + 1 < len(lines) and SUFFIX_ONLY.match(REGISTRATION.sub("", lines[at + 1].text).strip()):
        following = lines[at + 1]
        cut = REGISTRATION.search(following.text)
        short = following.part(0, cut.start()) if cut and cut.start() >= 2 else following
        return _stripped(joined([piece, short], " "))
    if at and TRADE_ONLY.match(REGISTRATION.sub("", piece.text)) and _heads(lines[at - 1], piece):
        return _stripped(joined([lines[at - 1], piece], " "))
    if at and SUFFIX_ONLY.match(piece.text.strip()) and _is_name(lines[at - 1].text):
        return _stripped(joined([lines[at - 1], piece], " "))
    return _stripped(piece)


def _heads(line: Piece, following: Piece) -> bool:
    """Whether a line is the first part of the name that goes on below it."""
    near = following.box.y0 - line.box.y1 < line.box.height
    alike = 0.6 < line.box.height / max(following.box.height, 1e-6) < 1.6
    return near and alike and _is_name(line.text) and line.text.isupper() and not STRONG.search(line.text)


def _without_number(piece: Piece) -> Piece:
    cut = REGISTRATION.search(piece.text)
    return piece.part(0, cut.start()) if cut and cut.start() >= 3 else piece


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
    skipped = 0.0
    for at, line in enumerate(below[start + 1 :], start + 1):
        far = line.box.y0 - held[-1].box.y1 - skipped > 1.6 * sheet.line_height
        if far or len(held) >= 7 or line.index in labels:
            break
        if _is_registration(line.text) or _goes_on_below(below, at):
            skipped = line.box.y1 - held[-1].box.y1
            continue
        if FIELD.match(line.text) and _letters(line.text.split(":")[0]) >= 2:
            break
        if STOP.search(line.text) or PHONE.match(line.text) or find_dates(line.text) or not _continues(line.text):
            break
        held.append(line)
        skipped = 0.0
    quality = 0.6 + 0.08 * min(sum(bool(ADDRESS.search(line.text)) for line in held), 3)
    if any(re.search(r"\b\d{5}\b", line.text) for line in held):
        quality += 0.08
    return Candidate(_trimmed(joined(held)), quality, "below_heading")


def _goes_on_below(lines: list[Piece], at: int) -> bool:
    """Whether a line of telephone, fax or tax number only interrupts the address."""
    if not CONTACT.search(lines[at].text) and not PHONE.match(lines[at].text):
        return False
    following = next(
        (n.text for n in lines[at + 1 : at + 3] if not CONTACT.search(n.text) and not PHONE.match(n.text)), ""
    )
    return _is_address(following) and not FIELD.match(following) and not find_dates(following)


def _trimmed(piece: Piece) -> Piece:
    return piece.part(0, len(piece.text.rstrip(" ,;-")))


def _is_registration(text: str) -> bool:
    """Whether a line is a registration number alone: ``(81109-A)``, ``002065464-X``."""
    return (
        _letters(text) <= 3
        and not re.match(r"\d{5} \w", text)
        and sum(c.isdigit() for c in text) >= 4
        and not re.search(r"[,/]", text)
    )


def _continues(text: str) -> bool:
    """Whether a line can go on with an address: it has letters or a postcode and no sign of a list."""
    enough = _letters(text) >= 3 or bool(re.search(r"\b\d{5}\b", text)) or (has_wide(text) and _letters(text) >= 2)
    return enough and "=" not in text and not re.match(r"^\(.*\)$", text.strip())
