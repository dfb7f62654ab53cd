"""The second opinion: poppler's pdftoppm through pdf2image, where both are installed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from docmill.rendering.limits import POINTS_PER_INCH, RenderLimits, chosen_dpi
from docmill.rendering.picture import RenderedPage

_SECONDS = 60


def render_page(path: Path, page_no: int, limits: RenderLimits, passwords: Sequence[str] = ()) -> RenderedPage | None:
    """The page as poppler draws it; None where poppler is not installed or cannot draw it either.

    Raises:
        PageTooLarge: the page's size is past the limits.
    """
    if shutil.which("pdftoppm") is None:
        return None
    try:
        import pdf2image
    except ImportError:
        return None
    for password in (None, *passwords):
        try:
            facts = pdf2image.pdfinfo_from_path(
                str(path), userpw=password, first_page=page_no, last_page=page_no, timeout=_SECONDS
            )
            width, height = _size(facts, page_no)
        except Exception:
            continue
        dpi = chosen_dpi(width, height, 0.0, limits)
        try:
            drawn = pdf2image.convert_from_path(
                str(path), dpi=int(dpi), first_page=page_no, last_page=page_no, userpw=password, timeout=_SECONDS
            )
        except Exception:
            continue
        least = min(width, height) * int(dpi) / POINTS_PER_INCH / 2
        if len(drawn) == 1 and min(drawn[0].size) >= max(2.0, least):  # it answers 1 x 1 for what it cannot hold
            return RenderedPage(drawn[0].convert("RGB"), float(int(dpi)), ("drawn by poppler: PDFium could not",))
    return None


def _size(facts: dict[str, object], page_no: int) -> tuple[float, float]:
    """Points, from a line such as ``Page    1 size: 612 x 792 pts (letter)``."""
    named = {" ".join(key.split()): value for key, value in facts.items()}
    words = str(named.get(f"Page {page_no} size", named.get("Page size", ""))).split()
    return float(words[0]), float(words[2])
