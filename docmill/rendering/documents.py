"""Open a document; draw one of its pages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from docmill.failures import (
    AccessDenied,
    DocumentNotFound,
    DocumentTooLarge,
    EmptyDocument,
    UnreadableDocument,
    UnsupportedFormat,
)
from docmill.ledger import OpenedDocument
from docmill.ports import PageImage
from docmill.rendering import pdf, pictures, sniff
from docmill.rendering.limits import RenderLimits
from docmill.rendering.picture import RenderedPage

_DEFAULT_LIMITS = RenderLimits()


def open_document(path: Path, limits: RenderLimits = _DEFAULT_LIMITS, passwords: Sequence[str] = ()) -> OpenedDocument:
    """What a file is: its hash, type by content, pages. Nothing is drawn or decoded.

    Args:
        path: a local file of any name.
        limits: bytes and pages beyond which it is refused.
        passwords: tried in order on an encrypted document.

    Raises:
        EmptyDocument, UnreadableDocument, EncryptedDocument, UnsupportedFormat, DocumentTooLarge, PageTooLarge,
        DocumentNotFound, AccessDenied: as they say.
    """
    try:
        size = path.stat().st_size
        if size > limits.max_document_bytes:
            raise DocumentTooLarge(f"the file has {size} bytes; at most {limits.max_document_bytes} are read")
        with path.open("rb") as file:
            head = file.read(sniff.HEAD_BYTES)
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise DocumentNotFound("the file is gone") from error
    except PermissionError as error:
        raise AccessDenied("the file must not be read") from error
    except OSError as error:
        raise UnreadableDocument("the file cannot be read", detail={"errno": error.errno}) from error
    media_type = sniff.media_type_of(head)
    if media_type == sniff.PDF:
        count, notes = pdf.count_pages(path, limits, passwords)
    else:
        count, notes = pictures.count_pages(path, media_type, limits)
    if count < 1:
        raise EmptyDocument("the file has no pages")
    if count > limits.max_pages:
        raise DocumentTooLarge(f"the file has {count} pages or more; at most {limits.max_pages} are read")
    return OpenedDocument(sha256=sha256, media_type=media_type, page_count=count, notes=notes)


def render_page(
    path: Path,
    media_type: str,
    page_no: int,
    limits: RenderLimits = _DEFAULT_LIMITS,
    passwords: Sequence[str] = (),
) -> RenderedPage:
    """One page as a picture in memory, as a viewer shows it, RGB or gray on a plain ground.

    Args:
        path: a local file.
        media_type: as ``open_document`` found it.
        page_no: 1-based.
        limits: pixels and resolution; larger pages are drawn smaller, pictures are never made larger (but for the
            oblong pixels of a fax).
        passwords: tried in order on an encrypted document.

    Raises:
        UnreadablePage, PageTooLarge, EncryptedDocument, UnreadableDocument, UnsupportedFormat, DocumentNotFound: as
        they say.
    """
    if media_type not in sniff.MEDIA_TYPES:
        raise UnsupportedFormat(f"{media_type} is not a type that can be drawn")
    if page_no < 1:
        raise ValueError("pages are counted from 1")
    if not path.is_file():
        raise DocumentNotFound("the file is gone")
    if media_type == sniff.PDF:
        return pdf.render_pdf_page(path, page_no, limits, passwords)
    return pictures.render_picture(path, media_type, page_no, limits)


def draw_page(
    path: Path,
    media_type: str,
    page_no: int,
    limits: RenderLimits = _DEFAULT_LIMITS,
    passwords: Sequence[str] = (),
) -> PageImage:
    """``render_page``, encoded as JPEG: what can be sent between processes."""
    return render_page(path, media_type, page_no, limits, passwords).encode()
