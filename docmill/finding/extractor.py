"""All fields of a document type on a page."""

from __future__ import annotations

import re
from dataclasses import replace

from docmill.document_types import DocumentType, FieldSpec
from docmill.extraction import Block, Field, FieldKind, PageText
from docmill.finding.blocks import page_blocks
from docmill.finding.candidate import Candidate
from docmill.finding.checkboxes import find_checkboxes
from docmill.finding.choices import with_checkboxes
from docmill.finding.dated import document_date, page_date_order
from docmill.finding.field import Reading, build_field, earlier_than, normalise
from docmill.finding.generic import generic_fields
from docmill.finding.geometry import value_candidates
from docmill.finding.heading import find_heading
from docmill.finding.labels import LabelMatch, find_labels
from docmill.finding.rows import sums_checked, table_fields, table_of
from docmill.finding.sheet import Sheet
from docmill.finding.totals import find_totals

VERSION = "1"
"""Part of the OCR engine's fingerprint: raise it with every change of the rules that changes answers."""

_ROW_KINDS = {
    "cash": "cash",
    "change": "change",
    "rounding": "rounding",
    "service_charge": "service",
    "discount": "saving",
}


def find_fields(
    text: PageText, document_type: DocumentType
) -> tuple[tuple[Field, ...], tuple[Block, ...], tuple[str, ...]]:
    """Fields, laid-out blocks, and names of required fields that the page does not show.

    An empty page has no fields: nothing is invented.
    """
    sheet = Sheet(text)
    reading = Reading(page_date_order(sheet, document_type.date_order), document_type.default_currency)
    if not sheet.pieces and not sheet.marks:
        return (), (), tuple(s.name for s in document_type.fields if s.required)
    if not document_type.fields:
        generic, lists, ticks = generic_fields(sheet, document_type, reading)
        return tuple(generic), page_blocks(sheet, lists, ticks), ()
    boxes = find_checkboxes(sheet)
    fields = typed_fields(sheet, document_type, reading)
    fields = with_checkboxes(sheet, fields, boxes.boxes, document_type, reading)
    tables = []
    for spec in document_type.fields:
        if spec.kind is FieldKind.TABLE and (table := table_of(sheet, spec)) is not None:
            tables.append(table)
            fields.extend(table_fields(table, spec, document_type, reading))
    fields = sums_checked(fields, document_type)
    found = {f.name.partition(".")[0] for f in fields}
    missing = tuple(s.name for s in document_type.fields if s.required and s.name not in found)
    return tuple(fields), page_blocks(sheet, tables, boxes.boxes), missing


def typed_fields(sheet: Sheet, document_type: DocumentType, reading: Reading) -> list[Field]:
    """The fields that the document type names, each at most once, by the rule that knows it best."""
    specs = [s for s in document_type.fields if s.kind is not FieldKind.TABLE]
    if not sheet.pieces or not specs:
        return []
    matches = find_labels(sheet, specs)
    labels = {m.label.index for m in matches}
    by_field: dict[str, list[LabelMatch]] = {}
    for match in matches:
        by_field.setdefault(match.field, []).append(match)
    special = _by_role(sheet, specs, reading)
    fields: list[Field] = []
    for spec in specs:
        candidate = _best(sheet, spec, by_field.get(spec.name, []), labels, special.get(spec.name), reading)
        if candidate is not None:
            fields.append(build_field(spec, candidate, document_type, reading))
    return _checked_together(fields, specs, document_type)


def _by_role(sheet: Sheet, specs: list[FieldSpec], reading: Reading) -> dict[str, Candidate]:
    """Field name → what position and arithmetic know."""
    found: dict[str, Candidate | None] = {}
    roles = {s.role for s in specs}
    totals = find_totals(sheet, specs, reading.currency) if roles & {"grand_total", "subtotal", "tax"} else {}
    heading = find_heading(sheet) if roles & {"issuer", "issuer_address"} else None
    for spec in specs:
        if spec.role == "issuer" and heading:
            found[spec.name] = heading.issuer
        elif spec.role == "issuer_address" and heading:
            found[spec.name] = heading.address
        elif spec.role == "document_date":
            found[spec.name] = document_date(sheet, reading.date_order)
        elif spec.role in ("grand_total", "subtotal", "tax"):
            found[spec.name] = totals.get(spec.role)
        elif spec.name in _ROW_KINDS and spec.kind is FieldKind.MONEY:
            found[spec.name] = totals.get(_ROW_KINDS[spec.name])
    return {name: candidate for name, candidate in found.items() if candidate is not None}


def _best(
    sheet: Sheet,
    spec: FieldSpec,
    matches: list[LabelMatch],
    labels: set[int],
    special: Candidate | None,
    reading: Reading,
) -> Candidate | None:
    labelled: list[Candidate] = []
    for match in sorted(matches, key=lambda m: -m.quality):
        multi_line = spec.role == "issuer_address" or "address" in spec.name
        for candidate in value_candidates(sheet, match, labels, multi_line=multi_line):
            if normalise(spec, candidate.piece.text, reading).value is not None and _plausible(spec, candidate):
                labelled.append(candidate)
                break
    best = max(labelled, key=lambda c: c.quality, default=None)
    if special is None:
        return best
    if spec.role in ("issuer", "issuer_address") and best is not None and best.quality > max(special.quality, 0.9):
        return best
    return special


def _plausible(spec: FieldSpec, candidate: Candidate) -> bool:
    """Whether a text can be a value of the field at all (a number field's text has digits, a name has letters)."""
    text = candidate.piece.text
    if spec.kind is not FieldKind.TEXT:
        return True
    if re.search(r"(_no|_number|_id|^iban|phone|postcode)$", spec.name) and not any(c.isdigit() for c in text):
        return False
    return any(c.isalnum() for c in re.sub(r"[(（][^()（）]*[)）]", "", text))


def _checked_together(fields: list[Field], specs: list[FieldSpec], document_type: DocumentType) -> list[Field]:
    """Validators that look at two fields: ``not_before``."""
    values = {f.name: f.value for f in fields}
    checked = []
    for found in fields:
        spec = next(s for s in specs if s.name == found.name)
        other = spec.validators.not_before
        if other is not None and earlier_than(found.value, values.get(other)):
            found = replace(found, needs_review=True, notes=(*found.notes, "before_" + other))
        checked.append(found)
    return checked
