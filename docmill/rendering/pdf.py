"""PDF documents through PDFium. Not thread-safe: one process, one thread."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import stringprep
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c
from PIL import Image

from docmill.failures import (
    DocmillError,
    DocumentTooLarge,
    EmptyDocument,
    EncryptedDocument,
    PageTooLarge,
    UnreadableDocument,
    UnreadablePage,
)
from docmill.rendering import poppler
from docmill.rendering.faults import translated
from docmill.rendering.limits import POINTS_PER_INCH, RenderLimits, check_source, chosen_dpi
from docmill.rendering.picture import RenderedPage
from docmill.rendering.sniff import HEAD_BYTES, pdf_offset

# It warns of every form made with XFA; open_document notes those.
logging.getLogger("pypdfium2._helpers.document").setLevel(logging.ERROR)

_HEADER_REACH = 1000  # PDFium looks for the header in the first 1024 bytes
_MOST_OBJECTS = 20_000  # drawings with more are not searched for scans
_SCAN_COVER = 0.3  # share of the page that pictures must cover for their resolution to count
_WHOLE_COVER = 0.85  # share from which the page is nothing but scan


def count_pages(path: Path, limits: RenderLimits, passwords: Sequence[str] = ()) -> tuple[int, tuple[str, ...]]:
    """How many pages a PDF has, and notes.

    Raises:
        EmptyDocument, EncryptedDocument, UnreadableDocument, DocumentTooLarge: as they say.
    """
    with translated(UnreadableDocument, "the PDF is damaged beyond opening"), _opened(path, passwords) as document:
        count = len(document)
        if count < 1:
            raise EmptyDocument("the PDF has no pages")
        if count > limits.max_pages:
            raise DocumentTooLarge(f"the PDF has {count} pages; at most {limits.max_pages} are read")
        notes = []
        if attachments := document.count_attachments():
            notes.append(f"{attachments} attached files are not read")
        if document.get_formtype() in (pdfium_c.FORMTYPE_XFA_FULL, pdfium_c.FORMTYPE_XFA_FOREGROUND):
            notes.append("XFA form: its AcroForm part is drawn")
        return count, tuple(notes)


def render_pdf_page(path: Path, page_no: int, limits: RenderLimits, passwords: Sequence[str] = ()) -> RenderedPage:
    """One page, as a viewer shows it: CropBox, /Rotate, annotations and form fields, on white, RGB.

    A page that PDFium cannot load is drawn by poppler where that is installed.

    Raises:
        UnreadablePage, PageTooLarge, EncryptedDocument, UnreadableDocument: as they say.
    """
    with (
        translated(UnreadablePage, f"page {page_no} cannot be drawn"),
        _opened(path, passwords, forms=True) as document,
    ):
        if not 1 <= page_no <= len(document):
            raise UnreadablePage(f"the PDF has no page {page_no}")
        try:
            page = document[page_no - 1]
        except pdfium.PdfiumError as error:
            second = poppler.render_page(path, page_no, limits, passwords)
            if second is not None:
                return second
            raise UnreadablePage(f"page {page_no} is damaged and cannot be loaded") from error
        try:
            return _drawn(page, limits)
        finally:
            page.close()


def _drawn(page: pdfium.PdfPage, limits: RenderLimits) -> RenderedPage:
    width, height = page.get_size()
    if not (width > 0 and height > 0):
        raise UnreadablePage("the page has no area")
    scan_dpi, cover = _scans(page, width * height, limits)
    dpi = chosen_dpi(width, height, scan_dpi, limits, all_scan=cover > _WHOLE_COVER)
    scale = dpi / POINTS_PER_INCH
    if math.ceil(width * scale) * math.ceil(height * scale) > limits.max_pixels * 1.05 + 65_536:
        raise PageTooLarge(f"the page would have {width * scale:.0f} x {height * scale:.0f} pixels")
    bitmap = page.render(scale=scale, rev_byteorder=True)
    try:
        image: Image.Image = bitmap.to_pil()
        return RenderedPage(image if image.mode == "RGB" else image.convert("RGB"), round(dpi, 2))
    finally:
        bitmap.close()


def _scans(page: pdfium.PdfPage, area: float, limits: RenderLimits) -> tuple[float, float]:
    """The resolution of the pictures that cover the page, weighted by area, and the share they cover; 0 where little.

    Raises:
        PageTooLarge: one of them has more than ``max_source_pixels``.
    """
    if pdfium_c.FPDFPage_CountObjects(page) > _MOST_OBJECTS:
        return 0.0, 0.0
    covered, pixels = 0.0, 0
    found = page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=4)
    for picture in itertools.islice(found, 1000):
        try:
            across, down = picture.get_px_size()
            left, bottom, right, top = picture.get_bounds()
        except pdfium.PdfiumError:
            continue
        check_source(across, down, limits)
        covered += abs(right - left) * abs(top - bottom)
        pixels += across * down
    if covered < _SCAN_COVER * area or not math.isfinite(covered):
        return 0.0, 0.0
    return math.sqrt(pixels / covered) * POINTS_PER_INCH, covered / area


@contextlib.contextmanager
def _opened(path: Path, passwords: Sequence[str], *, forms: bool = False) -> Iterator[pdfium.PdfDocument]:
    document = _unlocked(path, passwords)
    try:
        if forms:
            with contextlib.suppress(pdfium.PdfiumError):  # a broken form is no reason not to show the page
                document.init_forms()
        yield document
    finally:
        document.close()


def _unlocked(path: Path, passwords: Sequence[str]) -> pdfium.PdfDocument:
    tried = 0
    source: Path | bytes = path
    with path.open("rb") as file:
        offset = pdf_offset(file.read(HEAD_BYTES)) or 0
        if offset > _HEADER_REACH:
            file.seek(offset)
            source = file.read()
    for password in (None, *_spellings(passwords)):
        try:
            return _loaded(source, password)
        except pdfium.PdfiumError as error:
            if error.err_code != pdfium_c.FPDF_ERR_PASSWORD:
                raise _why_not(error) from error
            tried += password is not None
    if passwords:
        raise EncryptedDocument(f"the PDF asks for a password, and none of the {len(passwords)} known ones opens it")
    raise EncryptedDocument("the PDF asks for a password")


def _loaded(source: Path | bytes, password: str | None) -> pdfium.PdfDocument:
    # PDFium does not always set its error code, and then the last document's is read: fail once with "bad format".
    with contextlib.suppress(pdfium.PdfiumError):
        pdfium.PdfDocument(b"%PDF-")
    return pdfium.PdfDocument(source, password=password)


def _why_not(error: pdfium.PdfiumError) -> DocmillError:
    if error.err_code == pdfium_c.FPDF_ERR_SECURITY:
        return EncryptedDocument(
            "the PDF is protected in a way that is not supported (a certificate, or an unknown security handler)",
            remedy="upload it unprotected",
        )
    return UnreadableDocument("the PDF is damaged beyond opening", detail={"pdfium_error": error.err_code})


def _spellings(passwords: Sequence[str]) -> Iterator[str]:
    """Each password as given, and as SASLprep (RFC 4013) writes it, which AES-256 documents are locked with."""
    seen: set[str] = set()
    for password in passwords:
        mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
        for spelling in (password, unicodedata.normalize("NFKC", mapped)):
            if spelling and "\0" not in spelling and spelling not in seen:
                seen.add(spelling)
                yield spelling
