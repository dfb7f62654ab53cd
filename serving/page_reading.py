"""From a file and a page number to a picture and its text; runs inside a worker process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from docmill.extraction import PageText
from docmill.ports import PageImage
from docmill.rendering import RenderedPage, RenderLimits, render_page
from serving.ocr.reader import OcrOptions, OcrReader


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How to view a page.

    Attributes:
        passwords: tried in order on an encrypted document.
        keep_image: whether the encoded picture is to come back (engines that read text alone do without).
    """

    limits: RenderLimits
    passwords: tuple[str, ...]
    ocr: OcrOptions
    keep_image: bool


@dataclass(frozen=True, slots=True)
class PageView:
    """A page as it was seen.

    Attributes:
        width, height: pixels of the picture as a viewer shows it.
        seconds: of the steps ``render`` and ``ocr``.
        notes: what was odd about the page, as short codes.
    """

    image: PageImage | None
    text: PageText
    width: int
    height: int
    dpi: float | None
    seconds: dict[str, float]
    notes: tuple[str, ...]


def view_page(path: Path, media_type: str, page_no: int, options: ViewOptions) -> PageView:
    """Render one page and read its text.

    Raises:
        PermanentError: the document or the page cannot be drawn; see docmill.rendering.render_page.
    """
    began = time.monotonic()
    page = render_page(path, media_type, page_no, options.limits, options.passwords)
    drawn = time.monotonic()
    text = OcrReader(options.ocr).read(page.image)
    seconds = {"render": drawn - began, "ocr": time.monotonic() - drawn}
    return PageView(
        image=page.encode() if options.keep_image else None,
        text=text,
        width=page.width,
        height=page.height,
        dpi=page.dpi,
        seconds=seconds,
        notes=page.notes,
    )


def picture_page(
    path: Path, media_type: str, page_no: int, limits: RenderLimits, passwords: tuple[str, ...], long_side: int
) -> PageImage:
    """One page as a JPEG for people, at most ``long_side`` pixels on its longer side.

    Raises:
        PermanentError: as view_page.
    """
    page = render_page(path, media_type, page_no, limits, passwords)
    image = page.image
    if max(image.size) > long_side:
        image = image.copy()
        image.thumbnail((long_side, long_side))
    return RenderedPage(image, page.dpi).encode(quality=72)
