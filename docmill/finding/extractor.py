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
from docmill.finding.geometry import block_below, value_candidates
from docmill.finding.heading import find_heading
from docmill.finding.labels import LabelMatch, find_labels
from docmill.finding.rows import sums_checked, table_fields, table_of
from docmill.finding.sheet import Sheet, joined
from docmill.finding.tables import FoundTable
from docmill.finding.totals import find_totals
from docmill.normalisation.money import currency_of
from docmill.normalisation.text import comparison_form

VERSION = "2"
"""Part of the OCR engine's fingerprint: raise it with every change of the rules that changes answers."""


_LOOSE = ("caption", "below", "cell_below")
"""Rules that take a text because it stands near a label: another label may stand nearer."""

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
        generic, grids, ticks = generic_fields(sheet, document_type, reading)
        return tuple(generic), page_blocks(sheet, grids, ticks), ()
    boxes = find_checkboxes(sheet)
    lists: list[tuple[FieldSpec, FoundTable]] = []
    for spec in document_type.fields:
        table = table_of(sheet, spec) if spec.kind is FieldKind.TABLE else None
        if table is not None:
            lists.append((spec, table))
    tables = [listed for _, listed in lists]
    in_tables = frozenset[int]().union(*(t.used for t in tables))
    fields = typed_fields(sheet, document_type, reading, in_tables)
    fields = with_checkboxes(sheet, fields, boxes.boxes, document_type, reading)
    for spec, listed in lists:
        fields.extend(table_fields(listed, spec, document_type, reading))
    fields = sums_checked(fields, document_type)
    names = {f.name.partition(".")[0] for f in fields}
    missing = tuple(s.name for s in document_type.fields if s.required and s.name not in names)
    return tuple(fields), page_blocks(sheet, tables, boxes.boxes), missing


def typed_fields(
    sheet: Sheet, document_type: DocumentType, reading: Reading, in_tables: frozenset[int] = frozenset()
) -> list[Field]:
    """The fields that the document type names, each at most once, by the rule that knows it best.

    Args:
        sheet: the page.
        document_type: what to find.
        reading: how its values are to be read.
        in_tables: indices of lines that belong to tables; their heads are no labels of fields.
    """
    specs = [s for s in document_type.fields if s.kind is not FieldKind.TABLE]
    if not sheet.pieces or not specs:
        return []
    matches = [m for m in find_labels(sheet, specs) if m.label.index not in in_tables]
    labels = {m.label.index for m in matches} | in_tables | _column_heads(sheet, document_type)
    by_field: dict[str, list[LabelMatch]] = {}
    for match in matches:
        by_field.setdefault(match.field, []).append(match)
    heads = {s.name for s in specs if s.role in ("issuer", "issuer_address")}
    others = {m.label.index for m in matches if m.field not in heads and m.value is None and m.quality >= 0.9}
    special = _by_role(sheet, specs, reading, others)
    chosen: dict[str, Candidate] = {}
    for spec in specs:
        held = by_field.get(spec.name, [])
        candidate = _best(sheet, spec, held, labels, special.get(spec.name), reading)
        candidate = candidate or _address_in_block(sheet, spec, by_field, labels) or _by_pattern(sheet, spec)
        if candidate is not None:
            chosen[spec.name] = candidate
    _each_once(specs, chosen)
    _choose_document_date(sheet, specs, chosen, reading)
    _currency_of_total(specs, chosen)
    fields = [build_field(s, chosen[s.name], document_type, reading) for s in specs if s.name in chosen]
    return _checked_together(fields, specs, document_type)


def _column_heads(sheet: Sheet, document_type: DocumentType) -> set[int]:
    """Lines that head a table's columns (two or more in a row), whether or not rows stand below: no field's value."""
    names = {comparison_form(a) for s in document_type.fields for c in s.columns for a in c.aliases}
    found: set[int] = set()
    for row in sheet.rows:
        heads = [p.index for p in row if comparison_form(p.text) in names]
        if len(heads) >= 2:
            found.update(heads)
    return found


def _each_once(specs: list[FieldSpec], chosen: dict[str, Candidate]) -> None:
    """A text that two fields took belongs to the one whose label it stands nearest to."""
    for spec in specs:
        own = chosen.get(spec.name)
        if own is None or own.label is None or own.rule not in _LOOSE:
            continue
        for other in specs:
            held = chosen.get(other.name)
            if other is spec or held is None or held.rule in ("heading", "below_heading"):
                continue
            shared = own.piece.place.intersection(held.piece.place)
            if shared > 0.5 * own.piece.place.area and held.quality > own.quality:
                del chosen[spec.name]
                break


def _choose_document_date(sheet: Sheet, specs: list[FieldSpec], chosen: dict[str, Candidate], reading: Reading) -> None:
    """The document's date among those that no other date field has; a date under its own label may be surer."""
    for spec in specs:
        if spec.role != "document_date":
            continue
        others = [
            chosen[s.name].piece.place for s in specs if s.kind is spec.kind and s is not spec and s.name in chosen
        ]
        found = document_date(sheet, reading.date_order, others)
        labelled = chosen.get(spec.name)
        if found is not None and (labelled is None or found.quality >= labelled.quality):
            chosen[spec.name] = found
        elif labelled is not None and labelled.piece.place in others:
            del chosen[spec.name]


def _currency_of_total(specs: list[FieldSpec], chosen: dict[str, Candidate]) -> None:
    """A field ``currency`` that nothing labels is the sign printed at the total."""
    total = next((chosen[s.name] for s in specs if s.role == "grand_total" and s.name in chosen), None)
    if total is None or "currency" in chosen or not any(s.name == "currency" for s in specs):
        return
    sign = re.search(r"[A-Z]{3}|[$€£¥₹]|RM|Rs\.?", total.piece.text)
    if sign is None or currency_of(sign[0]) is None:
        return
    chosen["currency"] = Candidate(total.piece.part(*sign.span()), 0.8 * total.quality, "sign_of_total", total.label)


def _address_in_block(
    sheet: Sheet, spec: FieldSpec, by_field: dict[str, list[LabelMatch]], labels: set[int]
) -> Candidate | None:
    """``customer_address`` is what stands below the name in the block that the label of ``customer`` heads."""
    if not spec.name.endswith("_address"):
        return None
    for match in by_field.get(spec.name.removesuffix("_address"), []):
        block = block_below(sheet, match, labels)
        if len(block) >= 2:
            return Candidate(joined(block[1:]), match.quality * 0.75, "block", match.label)
    return None


def _by_pattern(sheet: Sheet, spec: FieldSpec) -> Candidate | None:
    """An unlabelled value that its pattern alone makes known: an e-mail address, a time; not a plain number."""
    pattern = spec.validators.pattern
    if pattern is None or spec.kind is not FieldKind.TEXT or re.fullmatch(pattern, "12345678"):
        return None
    if re.fullmatch(pattern, "ABC"):
        return None
    for piece in sheet.pieces:
        match = re.search(rf"(?<![\w.])(?:{pattern})(?!\w)", piece.text)
        if match:
            return Candidate(piece.part(*match.span()), 0.65, "pattern")
    return None


def _by_role(sheet: Sheet, specs: list[FieldSpec], reading: Reading, labels: set[int]) -> dict[str, Candidate]:
    """Field name → what position and arithmetic know."""
    found: dict[str, Candidate | None] = {}
    roles = {s.role for s in specs}
    totals = find_totals(sheet, specs, reading.currency) if roles & {"grand_total", "subtotal", "tax"} else {}
    heading = find_heading(sheet, labels) if roles & {"issuer", "issuer_address"} else None
    for spec in specs:
        if spec.role == "issuer" and heading:
            found[spec.name] = heading.issuer
        elif spec.role == "issuer_address" and heading:
            found[spec.name] = heading.address
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
    if spec.kind is FieldKind.MONEY:
        return not re.fullmatch(r"\W*[\d.,]+\s?%\W*", text)  # a rate of tax is no amount
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
