"""Pages of one document put together as its result."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from docmill.document_types import DocumentType
from docmill.extraction import Field, FieldKind, FieldValue
from docmill.ledger import FinishedPage
from docmill.normalisation.text import comparison_form

UNLABELLED = ("guessed", "computed")
"""Notes of values that no label names, the least trusted first."""

AGREEMENT_BONUS = 0.1
"""What a second page with the same value adds to a value's support."""


def merge_pages(pages: Sequence[FinishedPage], document_type: DocumentType) -> tuple[dict[str, Any], float]:
    """The document's result and its confidence.

    Per field the value with the most support (its best confidence, and a little for every other page that says the
    same) with its page; values that contradict it are kept beside it. Tables go on across pages. Failed pages are
    listed: a result without them says so.

    Args:
        pages: every page of the document that is finished.
        document_type: the type it was read for; ``generic`` (no fields) keeps every value of a label.

    Returns:
        A JSON-able dict::

            {"document_type", "pages", "failed_pages": [{"page", "code"}], "missing": [names], "needs_review",
             "fields": {name: {"value", "raw", "kind", "page", "box", "confidence", "needs_review", "notes",
                               "currency", "conflicts": [the same, without conflicts]}},
             "tables": {name: [{"page", "row", "cells": {column: {"value", ...}}}]},
             "text": {page: text}}

        and the mean confidence of the fields, lowered by the share of failed pages; 0 where nothing was read.
    """
    ordered = sorted(pages, key=lambda p: p.page_no)
    read = [(p.page_no, p.extraction) for p in ordered if p.extraction is not None]
    failed = [{"page": p.page_no, "code": p.failure_code or "unknown"} for p in ordered if p.extraction is None]
    single: dict[str, list[tuple[int, Field]]] = {}
    rows: list[tuple[int, Field]] = []
    for number, extraction in read:
        for found in extraction.fields:
            if found.row is None:
                single.setdefault(found.name, []).append((number, found))
            else:
                rows.append((number, found))
    names = [s.name for s in document_type.fields if s.name in single]
    names += [name for name in single if name not in names]
    fields = {name: _merged(single[name]) for name in names}
    tables = _tables(rows)
    missing = [s.name for s in document_type.fields if s.required and s.name not in fields and s.name not in tables]
    held = [entry["confidence"] for entry in fields.values()] + [found.confidence for _, found in rows]
    if not held:
        held = [extraction.confidence for _, extraction in read]
    share = len(read) / len(ordered) if ordered else 0.0
    confidence = round(sum(held) / len(held) * share, 4) if held else 0.0
    result: dict[str, Any] = {
        "document_type": document_type.name,
        "pages": len(ordered),
        "failed_pages": failed,
        "missing": missing,
        "needs_review": bool(missing or failed)
        or any(entry["needs_review"] for entry in fields.values())
        or any(found.needs_review for _, found in rows),
        "fields": fields,
        "tables": tables,
        "text": {str(number): extraction.text for number, extraction in read},
    }
    return result, confidence


def _merged(found: list[tuple[int, Field]]) -> dict[str, Any]:
    """The best-supported value first, the others as its conflicts."""
    for note in UNLABELLED:
        # what size, place or arithmetic gave neither beats nor contradicts what is labelled on another page
        found = [f for f in found if note not in f[1].notes] or found
    groups: dict[str, list[tuple[int, Field]]] = {}
    for number, field in found:
        groups.setdefault(_same(field), []).append((number, field))

    def support(group: list[tuple[int, Field]]) -> tuple[float, int]:
        best = max(f.confidence for _, f in group)
        return best + AGREEMENT_BONUS * (len({n for n, _ in group}) - 1), -group[0][0]

    ranked = sorted(groups.values(), key=support, reverse=True)
    heads = [_entry(*max(group, key=lambda g: g[1].confidence)) for group in ranked]
    return {**heads[0], "conflicts": heads[1:]}


def _same(field: Field) -> str:
    """What makes two readings of a field the same value."""
    if field.value is None:
        return "?" + comparison_form(field.raw)
    if isinstance(field.value, str):
        return comparison_form(field.value) or field.value
    if isinstance(field.value, Decimal):
        return str(field.value.normalize())
    return str(field.value)


def json_value(value: FieldValue) -> str | bool | None:
    """A value as JSON keeps it without loss: dates as ISO 8601, numbers as decimal text."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return value


def _entry(page: int, field: Field) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "value": json_value(field.value),
        "raw": field.raw,
        "kind": str(field.kind),
        "page": page,
        "box": field.box.as_list() if field.box is not None else None,
        "confidence": field.confidence,
        "needs_review": field.needs_review,
        "notes": list(field.notes),
    }
    if field.kind is FieldKind.MONEY:
        entry["currency"] = field.currency
    return entry


def _tables(found: list[tuple[int, Field]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of each table, numbered on from page to page."""
    tables: dict[str, dict[tuple[int, int], dict[str, Any]]] = {}
    for page, field in found:
        table, _, column = field.name.rpartition(".")
        row = field.row if field.row is not None else 0
        cells = tables.setdefault(table or field.name, {}).setdefault((page, row), {})
        cells[column] = _entry(page, field)
    return {
        name: [
            {"page": page, "row": number, "cells": cells}
            for number, ((page, _), cells) in enumerate(sorted(rows.items(), key=lambda item: item[0]))
        ]
        for name, rows in tables.items()
    }
