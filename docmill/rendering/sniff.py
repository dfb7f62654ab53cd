"""The type of a document by its first bytes; names and extensions do not count."""

from __future__ import annotations

import re

from docmill.failures import EmptyDocument, UnsupportedFormat

HEAD_BYTES = 8192  # how much of a file is looked at

PDF = "application/pdf"
TIFF = "image/tiff"
JPEG = "image/jpeg"
PNG = "image/png"
WEBP = "image/webp"
BMP = "image/bmp"
GIF = "image/gif"
HEIC = "image/heic"
AVIF = "image/avif"
MEDIA_TYPES = (PDF, TIFF, JPEG, PNG, WEBP, BMP, GIF, HEIC, AVIF)

_STARTS = (
    (b"%PDF-", PDF),
    (b"\xff\xd8\xff", JPEG),
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
    (b"II+\0", TIFF),
    (b"MM\0+", TIFF),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
)
_HEIF_BRANDS = frozenset((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"hevm", b"hevs", b"mif1", b"msf1"))
_AVIF_BRANDS = frozenset((b"avif", b"avis"))
_BMP_HEADERS = frozenset((12, 16, 40, 52, 56, 64, 108, 124))

_FOREIGN = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document of the old kind (.doc, .xls, .ppt, .msg)"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript file"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript file"),
    (b"AT&TFORM", "a DjVu document"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 picture"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL picture"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"8BPS", "a Photoshop picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"version https://git-lfs.github.com", "a Git LFS pointer, not the file itself"),
    (b"From ", "an e-mail"),
    (b"Return-Path:", "an e-mail"),
    (b"Received:", "an e-mail"),
    (b"MIME-Version:", "an e-mail"),
)
_ZIPPED = (
    (b"word/", "a Word document"),
    (b"xl/", "an Excel workbook"),
    (b"ppt/", "a PowerPoint presentation"),
    (b"mimetypeapplication/vnd.oasis.opendocument", "an OpenDocument file"),
    (b"mimetypeapplication/epub", "an e-book"),
    (b"[Content_Types].xml", "an Office document"),
)
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|script|div|p|h1)\b", re.IGNORECASE)


def media_type_of(head: bytes) -> str:
    """The media type of a document (one of ``MEDIA_TYPES``) from its first ``HEAD_BYTES`` bytes.

    A PDF may have other bytes before its header: a byte order mark, mail headers, an AppleSingle envelope.

    Raises:
        EmptyDocument: there are no bytes.
        UnsupportedFormat: it is something else; the message says what.
    """
    if not head:
        raise EmptyDocument("the file has no bytes")
    for start, media_type in _STARTS:
        if head.startswith(start):
            return media_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return BMP
    if head[4:8] == b"ftyp":
        length = min(int.from_bytes(head[:4], "big"), 256)
        brands = {head[8:12]} | {head[i : i + 4] for i in range(16, length - 3, 4)}
        if brands & _AVIF_BRANDS:
            return AVIF
        if brands & _HEIF_BRANDS:
            return HEIC
    name = _name_by_start(head)
    if name is None and pdf_offset(head) is not None:
        return PDF
    raise UnsupportedFormat(f"the file is {name or _name_by_look(head)}, not a document that can be read")


def pdf_offset(head: bytes) -> int | None:
    """Where the PDF header starts; None where there is none."""
    at = head.find(b"%PDF-")
    return at if at >= 0 else None


def _name_by_start(head: bytes) -> str | None:
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"):
        return next((name for mark, name in _ZIPPED if mark in head), "a zip archive")
    for start, name in _FOREIGN:
        if head.startswith(start):
            return name
    if head[4:8] == b"ftyp":
        return "a video or sound file"
    if _HTML.match(_text_start(head)):
        return "an HTML page"
    return None


def _name_by_look(head: bytes) -> str:
    text = _text_start(head)
    if text.startswith((b"<?xml", b"<svg")):
        if b"<svg" in text:
            return "an SVG picture"
        return "an HTML page" if _HTML.search(text) else "an XML file"
    if text.startswith(b"<") and b">" in text:
        return "an HTML page" if _HTML.search(text) else "an XML file"
    if not head.strip(b"\0"):
        return "nothing but zero bytes"
    if not text:
        return "blank text"
    if text[:1] in b"{[" and text.rstrip()[-1:] in b"}],":
        return "a JSON file"
    if _is_text(head):
        return "plain text"
    return "of no known type"


def _text_start(head: bytes) -> bytes:
    """The text without byte order mark and leading blanks; UTF-16 is made narrow."""
    for bom in _BOMS:
        if head.startswith(bom):
            head = head[len(bom) :]
            if bom != _BOMS[0]:
                head = head.replace(b"\0", b"")
            break
    return head.lstrip()


def _is_text(head: bytes) -> bool:
    if head.startswith(_BOMS[1:]):
        return True
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return controls == 0
