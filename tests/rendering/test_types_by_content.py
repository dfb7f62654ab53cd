import io
import zipfile

import pytest

from docmill.failures import EmptyDocument, UnsupportedFormat
from docmill.rendering.sniff import media_type_of


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"%PDF-1.4\n", "application/pdf"),
        (b"\xef\xbb\xbf%PDF-1.4\n", "application/pdf"),
        (b"\r\n\r\n%PDF-1.4\n", "application/pdf"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n%PDF-1.4\n", "application/pdf"),
        (b"\x00\x05\x16\x00\x00\x02\x00\x00" + bytes(2000) + b"%PDF-1.4\n", "application/pdf"),
        (b"II*\0\x08\0\0\0", "image/tiff"),
        (b"MM\0*\0\0\0\x08", "image/tiff"),
        (b"II+\0\x08\0\0\0", "image/tiff"),
        (b"MM\0+\0\x08\0\0", "image/tiff"),
        (b"\xff\xd8\xff\xe1\0\0Exif", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", "image/bmp"),
        (b"GIF89a\x01\0\x01\0", "image/gif"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "image/heic"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", "image/avif"),
        (b"\0\0\0\x18ftypavif\0\0\0\0mif1avif", "image/avif"),
    ],
)
def test_a_type_is_known_by_its_content(head: bytes, media_type: str) -> None:
    assert media_type_of(head) == media_type


def zipped(*names: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in names:
            archive.writestr(name, "%PDF-1.4 stored inside")
    return held.getvalue()


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"<!DOCTYPE html><html><body>404</body></html>", "an HTML page"),
        (b"\xef\xbb\xbf \n<HTML><head>", "an HTML page"),
        ("<html><body>".encode("utf-16"), "an HTML page"),
        (b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">', "an HTML page"),
        (b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', "an XML file"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "an SVG picture"),
        (zipped("a.pdf"), "a zip archive"),
        (zipped("[Content_Types].xml", "word/document.xml"), "a Word document"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "an Office document of the old kind"),
        (b"{\\rtf1\\ansi", "an RTF document"),
        (b"%!PS-Adobe-3.0", "a PostScript file"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 picture"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0isom", "a video or sound file"),
        (b"\x1f\x8b\x08\0", "a gzip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b'{"error": "not found"}', "a JSON file"),
        (b"Dear Sir,\nplease find attached", "plain text"),
        (b"BMW sells cars", "plain text"),
        ("第一条".encode(), "plain text"),
        (bytes(500), "nothing but zero bytes"),
        (b" \n\t", "blank text"),
        (b"\x01\x02\x03\x04", "of no known type"),
    ],
)
def test_what_is_not_read_is_named(head: bytes, name: str) -> None:
    with pytest.raises(UnsupportedFormat, match=name) as caught:
        media_type_of(head)
    assert "PDF, TIFF, JPEG" in caught.value.remedy


def test_no_bytes_is_an_error_of_its_own() -> None:
    with pytest.raises(EmptyDocument):
        media_type_of(b"")
