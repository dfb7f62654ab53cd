"""Made documents as files: JPEG, PNG, multi-page TIFF and PDF, and the folder with their truth."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from PIL import Image

from docmill.synthesis.documents import SynthDocument
from docmill.truth import DocumentTruth

# Pillow writes the time into a PDF; with a fixed one the same document gives the same bytes.
_PDF_TIME = time.gmtime(1_760_000_000)


class Format(StrEnum):
    """What a document can be written as."""

    JPEG = "jpeg"
    PNG = "png"
    TIFF = "tiff"
    PDF = "pdf"

    @property
    def suffix(self) -> str:
        """Of the file's name, with the dot."""
        return {"jpeg": ".jpg", "png": ".png", "tiff": ".tif", "pdf": ".pdf"}[self.value]

    @property
    def holds_pages(self) -> bool:
        """Whether it holds more than one page."""
        return self in (Format.TIFF, Format.PDF)


def encode(document: SynthDocument, kind: Format, *, dpi: int = 150, quality: int = 70) -> bytes:
    """The document as the bytes of a file.

    Args:
        document: what to write. In a TIFF, pages of black and white (mode 1) are compressed as G4, others as JPEG.
        kind: of file.
        dpi: that the file says it has.
        quality: of JPEG compression, 1 to 95.

    Raises:
        ValueError: more than one page for a JPEG or a PNG.
    """
    first, *others = document.pages
    if others and not kind.holds_pages:
        raise ValueError(f"a {kind.value} holds one page, the document has {len(document.pages)}: use tiff or pdf")
    data = io.BytesIO()
    if kind is Format.JPEG:
        _plain(first).save(data, "JPEG", quality=quality, dpi=(dpi, dpi), optimize=True)
    elif kind is Format.PNG:
        first.save(data, "PNG", dpi=(dpi, dpi), optimize=True)
    elif kind is Format.TIFF:
        compression = "group4" if first.mode == "1" else "jpeg"
        options = {} if first.mode == "1" else {"quality": quality}
        first.save(
            data, "TIFF", save_all=True, append_images=others, compression=compression, dpi=(dpi, dpi), **options
        )
    else:
        first.save(
            data, "PDF", save_all=True, append_images=others, resolution=dpi, quality=quality,
            creationDate=_PDF_TIME, modDate=_PDF_TIME,
        )  # fmt: skip
    return data.getvalue()


def _plain(image: Image.Image) -> Image.Image:
    return image.convert("L") if image.mode == "1" else image


def write_document(document: SynthDocument, folder: Path, name: str, data: bytes) -> DocumentTruth:
    """Write ``data`` as ``folder/name`` (``name`` with forward slashes) and return the truth that names it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return replace(document.truth, file=name)


def write_truth(folder: Path, truths: Iterable[DocumentTruth]) -> None:
    """Write ``truth.jsonl`` and ``words.jsonl``."""
    known = list(truths)
    _write_lines(folder / "truth.jsonl", (truth.record() for truth in known))
    _write_lines(folder / "words.jsonl", (record for truth in known for record in truth.line_records()))


def _write_lines(path: Path, records: Iterable[dict[str, object]]) -> None:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text(text, encoding="utf-8", newline="\n")
