"""How large a document may be and at which resolution its pages are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

from docmill.failures import PageTooLarge

POINTS_PER_INCH = 72.0


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Limits and resolution.

    Attributes:
        max_document_bytes: larger files are not opened.
        max_pages: documents with more are not opened.
        max_pixels: of a drawn page; what has more is drawn, or made, smaller.
        max_source_pixels: of one picture before it is made smaller; what has more is refused before it is decoded.
        target_dpi: for pages that are drawn. 200 dpi gives 8-point print an x-height of about 11 pixels.
        min_dpi: a page so large that it would have to be drawn more coarsely is refused.
        scan_dpi: how far pages follow the higher resolution of the scans in them.
        max_dpi: how far small pages are enlarged.
        min_long_side: pixels that the longer side of a small page should have.
    """

    max_document_bytes: int = 512 * 1024 * 1024
    max_pages: int = 5_000
    max_pixels: int = 12_000_000
    max_source_pixels: int = 180_000_000
    target_dpi: float = 200.0
    min_dpi: float = 15.0
    scan_dpi: float = 300.0
    max_dpi: float = 600.0
    min_long_side: int = 1_600

    def __post_init__(self) -> None:
        if not 0 < self.min_dpi <= self.target_dpi <= self.scan_dpi <= self.max_dpi:
            raise ValueError("resolutions must grow: 0 < min_dpi <= target_dpi <= scan_dpi <= max_dpi")
        counts = (self.max_document_bytes, self.max_pages, self.max_pixels, self.max_source_pixels, self.min_long_side)
        if min(counts) < 1:
            raise ValueError("limits must be positive")


_LONG_SIDE_INCHES = 11.0  # of a letter page: a smaller page may have as many pixels as a scan of that


def chosen_dpi(width: float, height: float, scan_dpi: float, limits: RenderLimits, *, all_scan: bool = False) -> float:
    """The resolution to draw a page at.

    Args:
        width: of the page in points.
        height: of the page in points.
        scan_dpi: resolution of the scans on the page; 0 where there are none.
        limits: what to stay within.
        all_scan: the scans cover the page: nothing on it is finer than they are.

    Raises:
        PageTooLarge: within ``max_pixels`` the page could only be drawn below ``min_dpi``.
    """
    if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
        raise PageTooLarge("the page has no proper size", remedy="export the document again")
    long_side = max(width, height) / POINTS_PER_INCH
    dpi = limits.target_dpi
    if long_side * dpi < limits.min_long_side:
        dpi = min(limits.max_dpi, limits.min_long_side / long_side)
    if scan_dpi > dpi:
        dpi = max(dpi, min(scan_dpi, limits.scan_dpi * max(1.0, _LONG_SIDE_INCHES / long_side)))
    elif all_scan and long_side > _LONG_SIDE_INCHES:
        # Scans are often put on far too large a page (one pixel a point): enlarging them adds nothing.
        dpi = min(dpi, max(scan_dpi, limits.target_dpi * _LONG_SIDE_INCHES / long_side))
    area = width * height / POINTS_PER_INCH**2
    most = math.sqrt(limits.max_pixels / area)
    # A strip a hair wide has little area at any length: no side is longer than eight times that of a square.
    most = min(most, 8 * math.sqrt(limits.max_pixels) / long_side)
    if most < limits.min_dpi:
        raise PageTooLarge(f"the page is {width / POINTS_PER_INCH:.0f} x {height / POINTS_PER_INCH:.0f} inches")
    return min(dpi, most)


def check_source(width: int, height: int, limits: RenderLimits) -> None:
    """Refuse a picture before it is decoded.

    Raises:
        PageTooLarge: it has more than ``max_source_pixels``.
    """
    if width * height > limits.max_source_pixels:
        raise PageTooLarge(
            f"the picture has {width} x {height} pixels; at most {limits.max_source_pixels / 1e6:.0f} million are read"
        )


def fitting_size(width: int, height: int, limits: RenderLimits) -> tuple[int, int]:
    """The largest size of the same shape within ``max_pixels``; the size itself where it fits."""
    if width * height <= limits.max_pixels:
        return width, height
    factor = math.sqrt(limits.max_pixels / (width * height))
    return max(1, int(width * factor)), max(1, int(height * factor))
