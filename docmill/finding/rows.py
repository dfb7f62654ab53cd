"""A document type's tables as fields, one a cell."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from docmill.document_types import DocumentType, FieldSpec
from docmill.extraction import Field
from docmill.finding.candidate import Candidate
from docmill.finding.field import Reading, build_field
from docmill.finding.receipt_items import headless_items
from docmill.finding.sheet import Sheet
from docmill.finding.table_heads import head_likeness
from docmill.finding.tables import FoundTable, column_table, grid_tables
from docmill.normalisation.text import comparison_form

RULED_QUALITY = 0.92
UNRULED_QUALITY = 0.8
SUM_TOLERANCE = Decimal("0.02")


def table_of(sheet: Sheet, spec: FieldSpec) -> FoundTable | None:
    """The type's table on the page with its columns in the type's order.

    The ruled one, unless its lines were seen so badly that its print alone gives more columns.
    """
    ruled = _ruled(sheet, spec)
    opened = column_table(sheet, spec)
    if ruled is None or (opened is not None and _named(opened) > _named(ruled) and len(opened.rows) >= len(ruled.rows)):
        return opened or headless_items(sheet, spec)
    return ruled


def _named(table: FoundTable) -> int:
    return sum(head is not None for head in table.header)


def _ruled(sheet: Sheet, spec: FieldSpec) -> FoundTable | None:
    for table in grid_tables(sheet):
        order = _columns(table, spec)
        if sum(at is not None for at in order) >= 2:
            header = tuple(table.header[at] if at is not None else None for at in order)
            rows = tuple(tuple(row[at] if at is not None else None for at in order) for row in table.rows)
            return FoundTable(header, rows, table.used, ruled=True, title=table.title)
    return None


def _columns(table: FoundTable, spec: FieldSpec) -> list[int | None]:
    """For each column of the type, which column of the found table it is."""
    taken: set[int] = set()
    order: list[int | None] = []
    for column in spec.columns:
        scores = {
            at: max((head_likeness(comparison_form(head.text), alias) for alias in column.aliases), default=0.0)
            for at, head in enumerate(table.header)
            if head is not None and at not in taken
        }
        best = max(scores, key=lambda at: scores[at], default=None)
        if best is not None and scores[best] >= 85:
            taken.add(best)
            order.append(best)
        else:
            order.append(None)
    return order


def table_fields(table: FoundTable, spec: FieldSpec, document_type: DocumentType, reading: Reading) -> list[Field]:
    """A field for every filled cell: ``items.amount`` with its row; empty rows are left out."""
    quality = RULED_QUALITY if table.ruled else UNRULED_QUALITY
    fields: list[Field] = []
    number = 0
    for row in table.rows:
        if not any(piece is not None for piece in row):
            continue
        for column, piece in zip(spec.columns, row, strict=True):
            if piece is None:
                continue
            candidate = Candidate(piece, quality, "table")
            fields.append(
                build_field(column, candidate, document_type, reading, name=f"{spec.name}.{column.name}", row=number)
            )
        number += 1
    return fields


def sums_checked(fields: list[Field], document_type: DocumentType) -> list[Field]:
    """The validator ``equals_sum_of``: a field that should be the sum of a table's column, and is not."""
    checked = []
    for found in fields:
        spec = next((s for s in document_type.fields if s.name == found.name), None)
        column = spec.validators.equals_sum_of if spec is not None else None
        if column is not None and isinstance(found.value, Decimal):
            amounts = [f.value for f in fields if f.name == column and isinstance(f.value, Decimal)]
            if amounts and abs(sum(amounts, Decimal(0)) - found.value) > SUM_TOLERANCE:
                found = replace(found, needs_review=True, notes=(*found.notes, "not_the_sum"))
        checked.append(found)
    return checked
