"""Everything on a page of a type without fields: pairs, check boxes and tables."""

from __future__ import annotations

import re
from dataclasses import replace

from docmill.document_types import DocumentType, FieldSpec
from docmill.extraction import Field, FieldKind
from docmill.finding.candidate import Candidate
from docmill.finding.checkboxes import CheckBox, find_checkboxes
from docmill.finding.compounds import parts_of
from docmill.finding.field import Reading, build_field
from docmill.finding.open_tables import open_tables
from docmill.finding.pairs import find_pairs
from docmill.finding.parts import Pair
from docmill.finding.sheet import Sheet
from docmill.finding.stamps import title_of
from docmill.finding.tables import FoundTable, grid_tables
from docmill.finding.vocabulary import is_numbered, is_prose, label_likeness
from docmill.normalisation.booleans import parse_boolean
from docmill.normalisation.dates import find_dates
from docmill.normalisation.money import find_amounts
from docmill.normalisation.text import collapse, has_wide

READS_ON = 0.6
"""From this share of a page's characters in sentences on it is running text."""

LONGEST_NAME = 120
"""Characters of a printed label that become the field's name."""


def generic_fields(
    sheet: Sheet, document_type: DocumentType, reading: Reading
) -> tuple[list[Field], list[FoundTable], list[CheckBox]]:
    """All fields of the page, its tables and check boxes (for blocks)."""
    boxes = find_checkboxes(sheet)
    tables = [t for t in grid_tables(sheet) if not t.used & boxes.used]
    taken = boxes.used.union(*(t.used for t in tables))
    opened, columns = open_tables(sheet, taken)
    tables = [*tables, *opened]
    taken = taken.union(*(t.used for t in opened), (p.index for c in columns for p in (c.label, c.value)))
    pairs = [*columns, *find_pairs(sheet, taken, reading.date_order)]
    pairs = [part for pair in pairs for part in (pair, *parts_of(pair, reading.date_order))]
    if _reads_on(sheet) and not _is_filled_in(pairs):
        pairs = [pair for pair in pairs if _stands_out(pair)]
    fields = [pair_field(pair, document_type, reading) for pair in pairs]
    title = title_of(sheet, {p.label.index for p in pairs})
    if title is not None:
        named = Candidate(title, 0.6, "title")
        fields.insert(0, build_field(FieldSpec(name="value"), named, document_type, reading, name="form title"))
    for number, table in enumerate(tables, 1):
        fields.extend(_table_fields(table, number, document_type, reading))
    fields.extend(f for box in boxes.boxes if (f := box_field(box, document_type)) is not None)
    return fields, tables, list(boxes.boxes)


def _reads_on(sheet: Sheet) -> bool:
    """Whether a page is running text (instructions, a letter, terms) rather than a form: no boxes, mostly sentences."""
    if len(sheet.marks) > 1:
        return False
    sentences = whole = 0
    for piece in sheet.pieces:
        words = piece.text.split()
        whole += len(piece.text)
        if len(words) >= 6 and sum(w[:1].islower() for w in words) >= 0.5 * len(words):
            sentences += len(piece.text)
    return sentences > READS_ON * whole


def _is_filled_in(pairs: list[Pair]) -> bool:
    """Whether most of a page's numbered items have short answers, some of them numbers or dates: a wordy form."""
    numbered = [p for p in pairs if is_numbered(p.label.text)]
    short = [p for p in numbered if len(p.value.text.split()) <= 8 and not p.value.text[:1].islower()]
    digits = sum(any(c.isdigit() for c in p.value.text) for p in short)
    return len(short) >= 4 and len(short) >= 0.6 * len(numbered) and digits >= 0.3 * len(short)


def _stands_out(pair: Pair) -> bool:
    """Whether a pair on a page of running text is more than a sentence cut in two."""
    label, value = pair.label.text.rstrip(" :："), pair.value.text
    if pair.rule in ("stamp", "columns"):
        return True
    if (
        re.search(r"\d[\d.,/-]*\d", value)
        and len(value.split()) <= 5
        and not is_prose(label)
        and not label[:1].islower()
    ):
        return True
    if re.fullmatch(r"\([^()]*\)?", label) and len(value.split()) <= 6:
        return True  # the caption of a line that was written on
    if len(label.split()) > 6 or is_prose(value) or len(value.split()) > 10 or label[:1].islower():
        return False
    return not value[:1].islower() and (label_likeness(label) >= 0.4 or pair.label.text.endswith((":", "：")))


def pair_field(pair: Pair, document_type: DocumentType, reading: Reading) -> Field:
    """A pair as a field: named by its label, its kind by its value."""
    kind = kind_of(pair.value.text, reading)
    spec = FieldSpec(name="value", kind=kind)
    quality = pair.quality * _trust(pair)
    built = build_field(spec, Candidate(pair.value, quality, pair.rule, pair.label), document_type, reading)
    return replace(built, name=label_name(pair.label.text))


def _trust(pair: Pair) -> float:
    """What the words of a pair leave of its quality: labels are short and made of labels' words, values no prose."""
    label = pair.label.text.rstrip(" :：?")
    trust = 1.0
    if is_prose(label) and not is_numbered(label):
        trust *= 0.6
    elif label_likeness(label) < 0.2 and not has_wide(label):
        trust *= 0.85
    if is_prose(pair.value.text):
        trust *= 0.8
    if not any(c.isdigit() for c in pair.value.text) and label_likeness(pair.value.text) >= 0.55:
        trust *= 0.7  # may be the label of something else
    return trust


def label_name(text: str) -> str:
    """A printed label as a field's name: without colons and blanks at its ends."""
    name = collapse(re.sub(r"[_…]{2,}|\.{3,}", " ", text)).strip(" :：.;,*|#")
    return (name or collapse(text))[:LONGEST_NAME].rstrip()


def kind_of(text: str, reading: Reading) -> FieldKind:
    """The kind of a value by its form: a date, an amount with currency or decimals, a yes or no, else text."""
    folded = collapse(text)
    dates = find_dates(folded, order=reading.date_order)
    if len(dates) == 1 and dates[0].end - dates[0].start >= 0.6 * len(folded):
        return FieldKind.DATE
    amounts = find_amounts(folded)
    if len(amounts) == 1 and amounts[0].end - amounts[0].start >= 0.8 * len(folded):
        found = amounts[0]
        if found.money.currency or found.decimals == 2:
            return FieldKind.MONEY
    if len(folded) > 1 and parse_boolean(folded) is not None:
        return FieldKind.BOOLEAN
    return FieldKind.TEXT


def _table_fields(table: FoundTable, number: int, document_type: DocumentType, reading: Reading) -> list[Field]:
    title = label_name(table.title.text) if table.title is not None else f"table {number}"
    fields = []
    for row_number, row in enumerate(table.rows):
        for column, piece in enumerate(row):
            if piece is None:
                continue
            head = table.header[column] if column < len(table.header) else None
            spec = FieldSpec(name="value", kind=kind_of(piece.text, reading))
            name = label_name(head.text) if head is not None else f"column {column + 1}"
            fields.append(
                build_field(
                    spec,
                    Candidate(piece, 0.85, "table"),
                    document_type,
                    reading,
                    name=f"{title}.{name}",
                    row=row_number,
                )
            )
    return fields


def box_field(box: CheckBox, document_type: DocumentType, name: str | None = None) -> Field | None:
    """A check box as a boolean field; None where nothing names it."""
    name = name or label_name(box.name)
    if not name.strip() or (is_prose(name) and name[:1].islower()):
        return None  # a mark inside running text
    confidence = round(box.confidence * (0.95 if box.label is not None else 0.7), 4)
    return Field(
        name=name,
        kind=FieldKind.BOOLEAN,
        raw="[x]" if box.checked else "[ ]",
        value=box.checked,
        confidence=confidence,
        box=box.place,
        needs_review=confidence < document_type.review_threshold,
    )
