"""Documents and batches as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from console.tables import cells_of, single_fields


def _table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    def cell(value: Any) -> str:
        return "" if value is None else str(value).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")

    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def document(found: dict[str, Any]) -> str:
    """One document: its fields, tables and failures, then its text by page."""
    facts = found["document"]
    parts = [
        f"# {facts['key']}",
        f"{facts['document_type']}, {facts['status']}, {facts['page_count'] or 0} pages, engine {facts['engine']}",
    ]
    single = [{**f, "confidence": f"{f['confidence']:.2f}"} for f in single_fields(found["fields"])]
    if single:
        parts += ["## Fields", _table(["page_no", "name", "value", "confidence"], single)]
    for name, (columns, rows) in cells_of(found["fields"]).items():
        parts += [f"## {name}", _table(columns, rows)]
    if found["failures"]:
        parts += ["## Failures", _table(["page_no", "code", "message", "remedy"], found["failures"])]
    for page in found["pages"]:
        if page.extraction is not None and page.extraction.text:
            parts += [f"## Page {page.page_no}", "```text\n" + page.extraction.text.replace("```", "'''") + "\n```"]
    return "\n\n".join(parts)


def batch(found: dict[str, Any]) -> str:
    """One batch: its documents and failures."""
    facts = found["batch"]
    parts = [f"# Batch {facts['batch_id']}", f"{facts['source']} as {facts['document_type']}: {facts['status']}"]
    parts.append(_table(["key", "status", "page_count", "fields", "fields_to_review"], found["documents"]))
    if found["failures"]:
        parts += ["## Failures", _table(["key", "page_no", "code", "message", "remedy"], found["failures"])]
    return "\n\n".join(parts)
