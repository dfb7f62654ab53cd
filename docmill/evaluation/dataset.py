"""Reading a folder of documents with known answers.

``truth.jsonl``: one JSON object a line with ``file`` and, where known, ``pages``, ``fields``, ``checkboxes``,
``tables``, ``field_boxes_norm``, ``document_type``, ``expect``. ``words.jsonl``: one a page with ``file``, ``page``
and ``lines`` (``text`` and ``box``, in pixels or, with ``box_unit`` "fraction of page", in fractions).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docmill.failures import ConfigurationError
from docmill.geometry import Box
from docmill.truth import CheckboxTruth, DocumentTruth, FieldTruth, LineTruth, PageTruth, TableTruth

_REMEDY = "the format of a set with known answers is in docs/evaluation.md"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Documents with known answers, in the order of ``truth.jsonl``."""

    folder: Path
    documents: tuple[DocumentTruth, ...]

    def of_type(self, document_type: str) -> Dataset:
        """Those of a document type, and those that do not say theirs; for ``generic`` all of them."""
        if document_type == "generic":
            return self
        kept = tuple(d for d in self.documents if d.document_type in (None, document_type))
        return replace(self, documents=kept)

    def path(self, document: DocumentTruth) -> Path:
        """Where its file lies."""
        return self.folder / document.file


def read_dataset(folder: Path) -> Dataset:
    """Read a set.

    Raises:
        ConfigurationError: there is no ``truth.jsonl``, a line of it or of ``words.jsonl`` is wrong (named by its
            number), or a file that it names is missing.
    """
    truth = folder / "truth.jsonl"
    if not truth.is_file():
        raise ConfigurationError(f"no truth.jsonl in {folder}", remedy=_REMEDY)
    pages = _pages(folder / "words.jsonl", folder)
    documents: list[DocumentTruth] = []
    for number, record in _records(truth):
        where = f"{truth}, line {number}"
        document = _document(record, where)
        if not (folder / document.file).is_file():
            raise ConfigurationError(f"{where}: no file {document.file}", remedy="add the file, or remove the line")
        if any(document.file == other.file for other in documents):
            raise ConfigurationError(f"{where}: {document.file} is there twice", remedy="remove one of the lines")
        documents.append(replace(document, page_truths=tuple(pages.pop(document.file, ()))))
    if not documents:
        raise ConfigurationError(f"{truth} is empty", remedy=_REMEDY)
    if pages:
        unknown = ", ".join(sorted(pages)[:3])
        raise ConfigurationError(f"{folder / 'words.jsonl'} names files that truth.jsonl does not: {unknown}",
                                 remedy="add their truth, or remove the lines")  # fmt: skip
    return Dataset(folder, tuple(documents))


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8", remedy=_REMEDY) from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigurationError(f"{path}, line {number} is not JSON", remedy=_REMEDY) from error
        if not isinstance(record, dict) or not isinstance(record.get("file"), str):
            raise ConfigurationError(f"{path}, line {number} has no text 'file'", remedy=_REMEDY)
        yield number, record


def _document(record: dict[str, Any], where: str) -> DocumentTruth:
    try:
        boxes = {name: _fraction_box(box) for name, box in record.get("field_boxes_norm", {}).items()}
        numbers = record.get("field_pages", {})
        return DocumentTruth(
            file=record["file"],
            pages=int(record.get("pages") or 0),
            fields={
                name: FieldTruth(_text(value), boxes.get(name), int(numbers.get(name, 1)))
                for name, value in record.get("fields", {}).items()
            },
            checkboxes=tuple(_checkbox(box) for box in record.get("checkboxes", [])),
            tables=tuple(_table(table) for table in record.get("tables", [])),
            document_type=record.get("document_type"),
            expect=record.get("expect"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"{where} is wrong: {type(error).__name__} {error}", remedy=_REMEDY) from error


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fraction_box(box: list[float]) -> Box:
    x0, y0, x1, y1 = box
    return Box.clipped(x0, y0, x1, y1)


def _checkbox(record: dict[str, Any]) -> CheckboxTruth:
    if not isinstance(record["checked"], bool):
        raise ValueError("checked is true or false")
    box = record.get("box_norm")
    return CheckboxTruth(
        label=str(record["label"]),
        checked=record["checked"],
        box=None if box is None else _fraction_box(box),
        page=int(record.get("page", 1)),
        field=record.get("field"),
        option=record.get("option"),
    )


def _table(record: dict[str, Any]) -> TableTruth:
    if "rows_as_objects" in record:
        objects = record["rows_as_objects"]
        header = tuple(dict.fromkeys(key for row in objects for key in row))
        rows = tuple(tuple(_text(row.get(key)) for key in header) for row in objects)
    else:
        header = tuple(_text(cell) for cell in record.get("header") or ())
        rows = tuple(tuple(_text(cell) for cell in row) for row in record["rows"])
    return TableTruth(
        title=_text(record.get("title")),
        header=header,
        rows=rows,
        page=int(record.get("page", 1)),
        name=record.get("name"),
        columns=tuple(record.get("columns", ())),
    )


def _pages(path: Path, folder: Path) -> dict[str, list[PageTruth]]:
    pages: dict[str, list[PageTruth]] = {}
    if not path.is_file():
        return pages
    sizes = _sizes(folder / "truth.jsonl")
    for number, record in _records(path):
        size = sizes.get(record["file"], (0, 0))
        width, height = int(record.get("width") or size[0]), int(record.get("height") or size[1])
        try:
            lines = tuple(_line(line, record.get("box_unit"), width, height) for line in record["lines"])
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"{path}, line {number} is wrong: {error}", remedy=_REMEDY) from error
        pages.setdefault(record["file"], []).append(PageTruth(int(record.get("page", 1)), lines, width, height))
    return pages


def _sizes(path: Path) -> dict[str, tuple[int, int]]:
    return {r["file"]: (int(r.get("width") or 0), int(r.get("height") or 0)) for _, r in _records(path)}


def _line(record: dict[str, Any], unit: str | None, width: int, height: int) -> LineTruth:
    x0, y0, x1, y1 = record["box"]
    if unit == "fraction of page":
        return LineTruth(str(record["text"]), Box.clipped(x0, y0, x1, y1))
    if not width or not height:
        raise ValueError("boxes in pixels need the page's width and height")
    return LineTruth(str(record["text"]), Box.clipped(x0 / width, y0 / height, x1 / width, y1 / height))
