"""What is known to stand in a document: the answers that evaluation compares with.

Written by :mod:`docmill.synthesis`, read by :mod:`docmill.evaluation`. On disk a set is a folder with its files,
``truth.jsonl`` (one line a document) and, where lines are known, ``words.jsonl`` (one line a page).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from docmill.geometry import Box


@dataclass(frozen=True, slots=True)
class LineTruth:
    """One stretch of printed text."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class CheckboxTruth:
    """A check box: the label beside it and whether it is ticked.

    ``field`` and ``option``: where known, the document type's field that it belongs to and the value it stands for.
    """

    label: str
    checked: bool
    box: Box | None = None
    page: int = 1
    field: str | None = None
    option: str | None = None


@dataclass(frozen=True, slots=True)
class TableTruth:
    """A table. ``columns`` are the names of the document type's columns, where known, in the order of ``header``."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    page: int = 1
    name: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageTruth:
    """A page's lines. ``width`` and ``height`` in pixels, 0 where they are not known."""

    number: int
    lines: tuple[LineTruth, ...]
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class FieldTruth:
    """A field's value as it is printed; an empty text says that nothing is filled in."""

    text: str
    box: Box | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class DocumentTruth:
    """All that is known about one document.

    Attributes:
        file: path inside the set, with forward slashes.
        pages: how many there are; 0 where it is not known.
        page_truths: those pages whose lines are known.
        expect: for a file that cannot be read, the code of the failure that is right; else None.
    """

    file: str
    pages: int
    fields: dict[str, FieldTruth] = field(default_factory=dict)
    checkboxes: tuple[CheckboxTruth, ...] = ()
    tables: tuple[TableTruth, ...] = ()
    page_truths: tuple[PageTruth, ...] = ()
    document_type: str | None = None
    expect: str | None = None

    def record(self) -> dict[str, Any]:
        """Its line of ``truth.jsonl``."""
        record: dict[str, Any] = {
            "file": self.file,
            "document_type": self.document_type,
            "pages": self.pages,
            "fields": {name: value.text for name, value in self.fields.items()},
            "field_boxes_norm": {n: v.box.as_list() for n, v in self.fields.items() if v.box is not None},
            "field_pages": {n: v.page for n, v in self.fields.items() if v.box is not None},
            "checkboxes": [_checkbox_record(box) for box in self.checkboxes],
            "tables": [_table_record(table) for table in self.tables],
        }
        if self.expect is not None:
            record["expect"] = self.expect
        return record

    def line_records(self) -> list[dict[str, Any]]:
        """Its lines of ``words.jsonl``, one a page."""
        return [
            {
                "file": self.file,
                "page": page.number,
                "width": page.width,
                "height": page.height,
                "box_unit": "fraction of page",
                "lines": [{"text": line.text, "box": line.box.as_list()} for line in page.lines],
            }
            for page in self.page_truths
        ]


def _checkbox_record(box: CheckboxTruth) -> dict[str, Any]:
    record: dict[str, Any] = {"label": box.label, "checked": box.checked, "page": box.page}
    if box.box is not None:
        record["box_norm"] = box.box.as_list()
    if box.field is not None:
        record |= {"field": box.field, "option": box.option}
    return record


def _table_record(table: TableTruth) -> dict[str, Any]:
    record: dict[str, Any] = {
        "title": table.title,
        "header": list(table.header),
        "rows": [list(row) for row in table.rows],
        "page": table.page,
    }
    if table.name is not None:
        record |= {"name": table.name, "columns": list(table.columns)}
    return record
