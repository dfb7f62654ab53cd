"""What benchmarks/nasty.py does in its worker processes (they do not import its main module)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from docmill.rendering import RenderLimits, render_page

LIMITS = RenderLimits()


@cache
def _reader() -> Any:
    from serving.ocr.reader import OcrOptions, OcrReader

    return OcrReader(OcrOptions())


def drawn_size(path: Path, media_type: str, page_no: int, passwords: tuple[str, ...]) -> tuple[Any, ...]:
    """Draw and throw away: (width, height, dpi, notes, text)."""
    page = render_page(path, media_type, page_no, LIMITS, passwords)
    page.encode()
    return page.width, page.height, page.dpi, page.notes, ""


def read_page(path: Path, media_type: str, page_no: int, passwords: tuple[str, ...]) -> tuple[Any, ...]:
    """Draw and read: (width, height, dpi, notes, text)."""
    page = render_page(path, media_type, page_no, LIMITS, passwords)
    text = _reader().read(page.image).text
    return page.width, page.height, page.dpi, page.notes, text
