"""The ``ocr`` engine: fields by rules over what the OCR has read."""

from __future__ import annotations

from typing import Any

from docmill.document_types import DocumentType
from docmill.extraction import Extraction, Field, Line, PageText
from docmill.finding.extractor import VERSION, find_fields
from docmill.geometry import Box
from docmill.ports import PageInput


class OcrExtractor:
    """Implements :class:`docmill.ports.PageExtractor` on a page's text, marks and grids; the picture is not looked at.

    Args:
        reader_fingerprint: names all about the reading that changes it (``serving.ocr``: models, options, code).
    """

    def __init__(self, reader_fingerprint: str) -> None:
        self._reader_fingerprint = reader_fingerprint

    @property
    def engine(self) -> str:
        """``ocr``."""
        return "ocr"

    @property
    def fingerprint(self) -> str:
        """The reader's, and the version of the rules."""
        return f"{self._reader_fingerprint}+finding-{VERSION}"

    @property
    def needs_image(self) -> bool:
        """No: it works on what the OCR saw."""
        return False

    async def extract(self, page: PageInput, document_type: DocumentType) -> Extraction:
        """Find the type's fields. A page without text gives none, and names the required ones as missing."""
        fields, blocks, missing = find_fields(page.text, document_type)
        return Extraction(
            engine=self.engine,
            document_type=document_type.name,
            fields=fields,
            blocks=blocks,
            text=page.text.text,
            confidence=page_confidence(page.text, fields),
            missing=missing,
            raw=_record(page.text),
        )


def page_confidence(text: PageText, fields: tuple[Field, ...]) -> float:
    """The mean confidence of the fields; of the lines where no field was found; 0 for an empty page."""
    held = [f.confidence for f in fields] or [line.confidence for line in text.lines]
    return round(sum(held) / len(held), 4) if held else 0.0


def _record(text: PageText) -> dict[str, object]:
    """The lines as they were read, for the record: what the fields were found in."""
    lines = [[line.text, *line.box.as_list(), round(line.confidence, 4)] for line in text.lines]
    return {
        "lines": lines,
        "turned": text.turned,
        "skew": round(text.skew, 3),
        "width": text.width,
        "height": text.height,
    }


def text_of(extraction: Extraction) -> PageText | None:
    """The lines that an extraction of this engine was made from; None for another engine's."""
    record: Any = extraction.raw
    if not isinstance(record.get("lines"), list):
        return None
    lines = tuple(Line(text, Box(*box), confidence) for text, *box, confidence in record["lines"])
    return PageText(lines, turned=record["turned"], skew=record["skew"], width=record["width"], height=record["height"])
