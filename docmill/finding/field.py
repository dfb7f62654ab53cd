"""A candidate as a field: normalised, checked, with its confidence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from rapidfuzz import fuzz

from docmill.document_types import DocumentType, FieldSpec, Validators
from docmill.extraction import Field, FieldKind, FieldValue
from docmill.finding.candidate import Candidate
from docmill.geometry import Box
from docmill.normalisation.booleans import parse_boolean
from docmill.normalisation.dates import DateOrder, find_dates
from docmill.normalisation.money import currency_of, find_amounts, parse_money
from docmill.normalisation.numbers import parse_number
from docmill.normalisation.text import collapse, comparison_form

FAILED_FACTOR = 0.6
"""What a failed validator leaves of the confidence."""

CUT_CERTAINTY = 0.6
"""Of a value that matches its pattern only without the word before it."""

_NOT = {
    FieldKind.DATE: "not_a_date",
    FieldKind.MONEY: "not_an_amount",
    FieldKind.NUMBER: "not_a_number",
    FieldKind.BOOLEAN: "not_a_boolean",
    FieldKind.ENUM: "not_an_option",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How values of a page are read: date order (the page may decide it) and currency."""

    date_order: DateOrder
    currency: str | None


@dataclass(frozen=True, slots=True)
class Normalised:
    """A value, its currency, and how sure the normalisation is (1 for most)."""

    value: FieldValue
    currency: str | None = None
    certainty: float = 1.0


def normalise(spec: FieldSpec, raw: str, reading: Reading) -> Normalised:
    """The typed value of a text for a field; value None where the text is none of its kind."""
    text = collapse(raw)
    if spec.kind is FieldKind.DATE:
        found = find_dates(text, order=reading.date_order)
        return Normalised(found[0].value, certainty=found[0].certainty) if found else Normalised(None)
    if spec.kind is FieldKind.MONEY:
        return _money(text, reading.currency)
    if spec.kind is FieldKind.NUMBER:
        number = parse_number(text)
        if number is None and (match := re.search(r"\d[\d.,]*", text)):
            return Normalised(parse_number(match[0]), certainty=0.9)
        return Normalised(number)
    if spec.kind is FieldKind.BOOLEAN:
        return Normalised(parse_boolean(text))
    if spec.kind is FieldKind.ENUM:
        return Normalised(_option(spec.options, text))
    if spec.name == "currency":
        return Normalised(currency_of(text) or text or None)
    value = _by_pattern(spec.validators.pattern, text)
    return Normalised(value or None, certainty=CUT_CERTAINTY if _cut_from_a_word(text, value) else 1.0)


def _cut_from_a_word(text: str, value: str) -> bool:
    """Whether a value was cut out behind something that may be its own beginning (``orla.fe n@example.com``)."""
    at = text.find(value)
    before = text[:at].split()[-1:] if value and at > 0 else []
    return "@" in value and bool(before) and bool(re.fullmatch(r"[a-z0-9][\w.-]*", before[0]))


def _money(text: str, currency: str | None) -> Normalised:
    money = parse_money(text, default_currency=currency)
    if money is not None:
        return Normalised(money.amount, money.currency)
    amounts = find_amounts(text, default_currency=currency)
    if not amounts:
        return Normalised(None)
    best = [a for a in amounts if a.decimals] or amounts
    return Normalised(best[-1].money.amount, best[-1].money.currency, 0.9)


def _option(options: tuple[str, ...], text: str) -> str | None:
    form = comparison_form(text)
    if not form:
        return None
    for option in options:
        known = comparison_form(option)
        if form == known or (len(form) == 1 and known.startswith(form) and form.isascii()):
            return option
    best = max(options, key=lambda o: fuzz.ratio(form, comparison_form(o)))
    if fuzz.ratio(form, comparison_form(best)) >= 80:
        return best
    known_in_other_words = {"女": "female", "男": "male", "未婚": "single", "已婚": "married", "离异": "divorced"}
    other = known_in_other_words.get(form)
    return other if other in options else None


def _by_pattern(pattern: str | None, text: str) -> str:
    """The text; where it must match a pattern and only a part of it does, that part."""
    text = text.lstrip("#").strip() or text
    if pattern is None or re.fullmatch(pattern, text):
        return text
    match = re.search(pattern, text)
    return match[0].strip() if match else text


def failed_validators(checks: Validators, value: FieldValue, raw: str) -> tuple[str, ...]:
    """Codes of the validators that a value does not satisfy (those that look at one value alone)."""
    failed = []
    if checks.pattern is not None and not re.fullmatch(checks.pattern, value if isinstance(value, str) else raw):
        failed.append("invalid_pattern")
    if isinstance(value, Decimal):
        if checks.minimum is not None and value < Decimal(str(checks.minimum)):
            failed.append("below_minimum")
        if checks.maximum is not None and value > Decimal(str(checks.maximum)):
            failed.append("above_maximum")
    if checks.max_length is not None and isinstance(value, str) and len(value) > checks.max_length:
        failed.append("too_long")
    return tuple(failed)


def build_field(
    spec: FieldSpec,
    candidate: Candidate,
    document_type: DocumentType,
    reading: Reading,
    *,
    name: str | None = None,
    row: int | None = None,
) -> Field:
    """The field of a candidate.

    Confidence = the words' OCR confidence x the rule's quality x the certainty of the normalisation, lowered where a
    validator fails. Below the type's review threshold, or with a note that something is wrong, it needs review.
    """
    raw = collapse(candidate.piece.text)
    normal = normalise(spec, raw, reading)
    notes = list(candidate.notes)
    if normal.value is None and spec.kind in _NOT:
        notes.append(_NOT[spec.kind])
    elif normal.value is not None:
        notes.extend(failed_validators(spec.validators, normal.value, raw))
    confidence = candidate.piece.confidence * candidate.quality * normal.certainty
    wrong = [n for n in notes if n not in ("computed",)]
    if wrong:
        confidence *= FAILED_FACTOR
    confidence = round(min(max(confidence, 0.0), 1.0), 4)
    return Field(
        name=name or spec.name,
        kind=spec.kind,
        raw=raw,
        value=normal.value,
        confidence=confidence,
        box=candidate.piece.place,
        row=row,
        currency=normal.currency if spec.kind is FieldKind.MONEY and normal.value is not None else None,
        needs_review=bool(wrong) or confidence < document_type.review_threshold,
        notes=tuple(notes),
    )


def sorted_by_place(fields: list[Field]) -> list[Field]:
    """Fields from top to bottom, those without a place last."""
    return sorted(fields, key=lambda f: _place(f.box))


def _place(box: Box | None) -> tuple[float, float]:
    return (2.0, 0.0) if box is None else (round(box.y0, 2), box.x0)


def earlier_than(value: FieldValue, other: FieldValue) -> bool:
    """Whether both are dates and the first is the earlier (``not_before`` fails)."""
    return isinstance(value, date) and isinstance(other, date) and value < other
