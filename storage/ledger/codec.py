"""Between domain objects and what Postgres holds: JSONB documents and the typed columns of ``fields``.

``encode_extraction`` and ``decode_extraction`` are each other's inverse: Decimal and date come back exactly, boxes
rounded to the 5 digits that are stored. Text that Postgres refuses (NUL, lone surrogates) becomes U+FFFD on the way
in.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from docmill.extraction import Block, BlockKind, Extraction, Field, FieldKind, FieldValue, TableData
from docmill.failures import Category, Disposition, Failure
from docmill.geometry import Box

_REFUSED = re.compile("[\x00\ud800-\udfff]")

# numeric holds more digits than this, but a value so long is a misreading, and its text form would fill the row.
_MAX_DIGITS = 1000


def clean_text(text: str) -> str:
    """The text as Postgres takes it: NUL and lone surrogates become U+FFFD."""
    return _REFUSED.sub("\ufffd", text)


def clean_json(value: Any) -> Any:
    """The value as JSONB takes it: clean text, finite numbers (others become None), plain types only.

    Numbers of other libraries become Python's by their ``item()``; whatever else JSON does not know becomes its text.
    """
    match value:
        case None | bool():
            return value
        case str():
            return clean_text(value)
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else None
        case Mapping():
            return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [clean_json(item) for item in value]
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "size", 0) == 1:
        return clean_json(item())
    return clean_text(str(value))


def dump_json(value: Any) -> str:
    """JSON text for a JSONB column, cleaned by :func:`clean_json`. All that goes into JSONB goes through here."""
    return json.dumps(clean_json(value), ensure_ascii=False, separators=(",", ":"))


def finite(number: float) -> float:
    """The number, or 0 where it is none (NaN, infinity): every confidence in the ledger is a number."""
    return float(number) if math.isfinite(number) else 0.0


def _box(box: Box | None) -> list[float] | None:
    return None if box is None else box.as_list()


def _unboxed(corners: list[float] | None) -> Box | None:
    return None if corners is None else Box(*(float(corner) for corner in corners))


def value_text(value: FieldValue) -> str | None:
    """The value as text: numbers without exponent, dates as ISO 8601, ``true``/``false``; None for None."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f") if is_storable(value) else str(value)
        case date():
            return value.isoformat()
    return clean_text(value)


def is_storable(number: Decimal) -> bool:
    """Whether the number fits a numeric column (finite and of sane length)."""
    if not number.is_finite():
        return False
    sign_and_digits = number.as_tuple()
    return abs(number.adjusted()) <= _MAX_DIGITS and len(sign_and_digits.digits) <= _MAX_DIGITS


_TYPES: dict[str, Callable[[Any], FieldValue]] = {
    "text": str,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "boolean": bool,
    "none": lambda _: None,
}


def _tagged(value: FieldValue) -> tuple[str, Any]:
    match value:
        case None:
            return "none", None
        case bool():
            return "boolean", value
        case Decimal():
            return "decimal", str(value)
        case date():
            return "date", value.isoformat()
    return "text", value


def _encode_field(field: Field) -> dict[str, Any]:
    kind, value = _tagged(field.value)
    return {
        "name": field.name,
        "kind": field.kind.value,
        "raw": field.raw,
        "type": kind,
        "value": value,
        "confidence": finite(field.confidence),
        "box": _box(field.box),
        "row": field.row,
        "currency": field.currency,
        "needs_review": field.needs_review,
        "notes": list(field.notes),
    }


def _decode_field(data: Mapping[str, Any]) -> Field:
    return Field(
        name=data["name"],
        kind=FieldKind(data["kind"]),
        raw=data["raw"],
        value=_TYPES[data["type"]](data["value"]),
        confidence=float(data["confidence"]),
        box=_unboxed(data["box"]),
        row=data["row"],
        currency=data["currency"],
        needs_review=data["needs_review"],
        notes=tuple(data["notes"]),
    )


def _encode_block(block: Block) -> dict[str, Any]:
    table = block.table
    return {
        "kind": block.kind.value,
        "text": block.text,
        "box": _box(block.box),
        "confidence": finite(block.confidence),
        "table": None if table is None else {"header": list(table.header), "rows": [list(row) for row in table.rows]},
    }


def _decode_block(data: Mapping[str, Any]) -> Block:
    table = data["table"]
    return Block(
        kind=BlockKind(data["kind"]),
        text=data["text"],
        box=Box(*(float(corner) for corner in data["box"])),
        confidence=float(data["confidence"]),
        table=None
        if table is None
        else TableData(header=tuple(table["header"]), rows=tuple(tuple(row) for row in table["rows"])),
    )


def encode_extraction(extraction: Extraction) -> dict[str, Any]:
    """The extraction as JSON-able data, all but ``raw``, which has a column of its own."""
    return {
        "engine": extraction.engine,
        "document_type": extraction.document_type,
        "fields": [_encode_field(field) for field in extraction.fields],
        "blocks": [_encode_block(block) for block in extraction.blocks],
        "text": extraction.text,
        "confidence": finite(extraction.confidence),
        "missing": list(extraction.missing),
    }


def decode_extraction(data: Mapping[str, Any], raw: Mapping[str, Any] | None = None) -> Extraction:
    """The extraction that :func:`encode_extraction` encoded."""
    return Extraction(
        engine=data["engine"],
        document_type=data["document_type"],
        fields=tuple(_decode_field(field) for field in data["fields"]),
        blocks=tuple(_decode_block(block) for block in data["blocks"]),
        text=data["text"],
        confidence=float(data["confidence"]),
        missing=tuple(data["missing"]),
        raw=dict(raw or {}),
    )


def field_columns(field: Field, *, position: int, page_no: int) -> dict[str, Any]:
    """The columns of one row of ``fields``, without its extraction.

    ``value_text`` is filled whenever the value is; the typed column beside it by the value's type.
    """
    value = field.value
    box = field.box.as_list() if field.box else [None] * 4
    number = value if isinstance(value, Decimal) and is_storable(value) else None
    return {
        "position": position,
        "page_no": page_no,
        "name": clean_text(field.name),
        "kind": field.kind.value,
        "row": field.row,
        "raw": clean_text(field.raw),
        "value_text": value_text(value),
        "value_number": number,
        "value_date": value if isinstance(value, date) else None,
        "value_boolean": value if isinstance(value, bool) else None,
        "currency": None if field.currency is None else clean_text(field.currency),
        "confidence": finite(field.confidence),
        "x0": box[0],
        "y0": box[1],
        "x1": box[2],
        "y1": box[3],
        "needs_review": field.needs_review,
        "notes": [clean_text(note) for note in field.notes],
    }


def failure_columns(failure: Failure) -> dict[str, Any]:
    """The columns of ``failures`` that say what went wrong; ``attempts`` has them without ``remedy`` and ``detail``."""
    return {
        "code": clean_text(failure.code),
        "category": failure.category.value,
        "message": clean_text(failure.message),
        "remedy": clean_text(failure.remedy),
        "disposition": failure.disposition.value,
        "detail": failure.detail,
    }


def decode_failure(row: Mapping[str, Any]) -> Failure:
    """The failure that a row of ``failures`` records."""
    return Failure(
        row["code"],
        Category(row["category"]),
        row["message"],
        row["remedy"],
        Disposition(row["disposition"]),
        dict(row["detail"] or {}),
    )
