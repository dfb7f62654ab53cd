"""Where the labels of a document type stand on a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from docmill.document_types import FieldSpec
from docmill.finding.sheet import Piece, Sheet
from docmill.normalisation.text import comparison_form, has_wide, lookalike_form

FUZZY_RATIO = 84.0
MAX_LABEL = 48
"""Characters before a colon that can still be a label."""

_COLON = re.compile(r"\s*(?:[:：]|#:|;(?=\s))\s*")
_UNIT = re.compile(r"^\s*(?:\([^()\d]{0,12}\)|\[[^\[\]\d]{0,12}\]|(?:in\s)?(?:RM|MYR|USD|EUR|\$|€)(?=\s*:|\s*$))")
_LEAD = re.compile(r"^\s*(?:[:：#.=\-–_*·]+\s*|(?:no|nr|num|number)\b\.?\s*[:：#.]?\s*)+", re.IGNORECASE)
_NUMBERING = re.compile(
    r"^\s*(?:\(?\d{1,2}[a-zA-Z]?[.)、]|\(?[a-zA-Z][.)]|[(（][一二三四五六七八九十]+[)）]|[一二三四五六七八九十]+、|[*•·\-])\s*"
)


@dataclass(frozen=True, slots=True)
class LabelMatch:
    """A label of a field on the page.

    Attributes:
        label: the label's own text and box.
        value: the rest of its line behind it; None where nothing follows.
        quality: 1 for an exact label down to 0.6 for a guess through OCR errors.
        length: of the alias, in compared characters: the longest wins.
    """

    field: str
    label: Piece
    value: Piece | None
    quality: float
    length: int


@lru_cache(maxsize=4096)
def _forms(alias: str) -> tuple[str, str]:
    return comparison_form(alias), lookalike_form(alias)


def label_end(text: str) -> int:
    """Where the label of a line such as ``Label: value`` ends; 0 where no colon shows it."""
    colon = _COLON.search(text)
    if colon is None or colon.start() > MAX_LABEL or re.match(r"\d{1,2}$", text[: colon.start()][-2:].strip() or "x"):
        return 0
    return colon.start()


def without_numbering(text: str) -> int:
    """How many characters of item numbering (``5.``, ``(a)``, ``一、``) the text starts with."""
    match = _NUMBERING.match(text)
    return match.end() if match and match.end() < len(text) else 0


def _prefix_end(text: str, form: str, form_of: Callable[[str], str] = comparison_form) -> int | None:
    """The position in ``text`` behind a prefix whose comparison form is ``form``, at a word's end."""
    compared = ""
    for position, char in enumerate(text):
        compared += form_of(char)
        if compared == form:
            rest = text[position + 1 : position + 2]
            if rest == "_":
                return None
            if rest and rest.isalnum() and not (has_wide(char) or has_wide(rest) or rest.isdigit() != char.isdigit()):
                return None
            return position + 1
        if not form.startswith(compared):
            return None
    return None


def _value_start(text: str, end: int) -> int:
    """Skip what stands between a label and its value: units in brackets, colons, ``No.``."""
    unit = _UNIT.match(text[end:])
    if unit:
        end += unit.end()
    lead = _LEAD.match(text[end:])
    return end + lead.end() if lead else end


def _matches_in(piece: Piece, start: int, spec: FieldSpec) -> tuple[float, int, int] | None:
    """(quality, alias length, end of the label in the text) of the best alias at ``start`` of a piece."""
    text = piece.text[start:]
    colon = label_end(text)
    head = text[:colon] if colon else text
    head_form = comparison_form(re.sub(r"\([^()]*\)\s*$", "", head) or head)
    whole_form = comparison_form(head)
    head_like = lookalike_form(head)
    best: tuple[float, int, int] | None = None
    for alias in spec.aliases:
        form, like = _forms(alias)
        if not form:
            continue
        found: tuple[float, int, int] | None = None
        end = _prefix_end(text, form)
        if head_form == form or whole_form == form:
            found = 1.0, len(form), start + (colon or len(text))
        elif end is not None and not _runs_on(text, end, colon):
            found = 0.92, len(form), start + end
        elif len(form) >= 5 and not has_wide(form):
            ratio = fuzz.ratio(head_form, form)
            if ratio >= FUZZY_RATIO and abs(len(head_form) - len(form)) <= 2 and not head_form[-1].isdigit():
                found = 0.85 * ratio / 100, len(form) - 1, start + (colon or len(text))
            elif head_like == like:
                found = 0.6, len(form) - 1, start + (colon or len(text))
            elif (
                len(form) >= 7
                and (end := _prefix_end(text, like, lookalike_form)) is not None
                and not _runs_on(text, end, colon)
            ):
                found = 0.8, len(form) - 1, start + end
        elif has_wide(form) and len(form) >= 4 and fuzz.ratio(head_form, form) >= 75:
            found = 0.75, len(form) - 1, start + (colon or len(text))
        if found and (best is None or (found[0] >= 0.9, found[1], found[0]) > (best[0] >= 0.9, best[1], best[0])):
            best = found
    return best


def _runs_on(text: str, end: int, colon: int) -> bool:
    """Whether the label goes on behind the alias (``Total Qty : 5`` for ``Total``): then it is another label."""
    rest = text[end:colon] if colon and colon > end else ""
    rest = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", rest)
    rest = re.sub(r"^\s*(no|nr|num|number|rm|myr|usd|eur|in|id)\b\.?", "", rest.strip(), flags=re.IGNORECASE)
    if colon and colon > end:
        return any(c.isalpha() for c in rest)
    behind = text[end:].lstrip()
    # Without a colon a label is short and its value starts with a digit, a capital or a sign
    return bool(behind) and behind[0].islower() and not has_wide(behind[0])


def find_labels(sheet: Sheet, fields: Sequence[FieldSpec]) -> list[LabelMatch]:
    """All labels of the fields on the page. Where several fit one stretch of text the longest alias wins."""
    found: list[LabelMatch] = []
    for piece in sheet.pieces:
        for start, end in _segments(piece.text):
            part = piece.part(start, end)
            matches = list(_of_piece(part, fields))
            best = max(map(_rank, matches), default=None)
            # one word may be the label of two fields (``VAT 18.13``, ``VAT XV6139``): the value decides
            found.extend({m.field: m for m in matches if _rank(m) == best}.values())
    return found


def _rank(match: LabelMatch) -> tuple[bool, int, float]:
    """A label that is printed as it should be before one that takes OCR errors to see; then the longest."""
    return match.quality >= 0.9, match.length, match.quality


def _segments(text: str) -> list[tuple[int, int]]:
    """Cut a line at labels inside it: ``Receipt #: R117 Date: 05/11/2019`` holds two."""
    starts = [0]
    for match in re.finditer(
        r"(?<=[\w)\]])\s+(?=([A-Z][A-Za-z./']*(?:\s(?:[A-Z][a-z.]*|No\.?|of))?\s?[:：])(?!\d\d))", text
    ):
        before = text[starts[-1] : match.start()]
        if label_end(before) and len(before) > label_end(before) + 2:
            starts.append(match.end())
    # ``9 items. Served by Ann``: a sentence's end parts two texts
    starts.extend(m.end() for m in re.finditer(r"(?<=[a-z]{3})[.;|]\s+(?=[A-Z][a-z])", text) if m.end() < 40)
    starts = sorted(set(starts))
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _of_piece(piece: Piece, fields: Iterable[FieldSpec]) -> Iterable[LabelMatch]:
    if piece.text.startswith((":", "：")):
        return
    offset = without_numbering(piece.text)
    for spec in fields:
        for start in {0, offset}:
            best = _matches_in(piece, start, spec)
            if best is None:
                continue
            quality, length, end = best
            behind = _value_start(piece.text, end)
            value = piece.part(behind) if piece.text[behind:].strip() else None
            yield LabelMatch(spec.name, piece.part(0, end), value, quality, length)
