import hashlib
from collections.abc import Callable
from pathlib import Path

import pypdfium2 as pdfium
import pytest
from PIL import Image

from docmill.failures import (
    AccessDenied,
    DocumentNotFound,
    DocumentTooLarge,
    EmptyDocument,
    EncryptedDocument,
    PageTooLarge,
    UnreadableDocument,
    UnsupportedFormat,
)
from docmill.rendering import RenderLimits, open_document


def test_what_opening_finds(store, make_pdf) -> None:
    data = make_pdf(b"", b"", b"")
    opened = open_document(store(data))
    assert opened.sha256 == hashlib.sha256(data).hexdigest()
    assert (opened.media_type, opened.page_count, opened.notes) == ("application/pdf", 3, ())


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DocumentNotFound):
        open_document(tmp_path / "none")
    with pytest.raises(UnreadableDocument):
        open_document(tmp_path)


def test_a_file_that_must_not_be_read(store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(b"%PDF-")

    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything, so the system is not asked
    with pytest.raises(AccessDenied):
        open_document(path)


def test_empty_and_oversized_files(store, make_pdf) -> None:
    with pytest.raises(EmptyDocument):
        open_document(store(b""))
    data = make_pdf(b"")
    with pytest.raises(DocumentTooLarge, match=f"{len(data)} bytes"):
        open_document(store(data), RenderLimits(max_document_bytes=len(data) - 1))
    assert open_document(store(data), RenderLimits(max_document_bytes=len(data))).page_count == 1


def test_pages_are_limited(store, make_pdf, make_tiff) -> None:
    limits = RenderLimits(max_pages=2)
    for two, three in ((make_pdf(b"", b""), make_pdf(b"", b"", b"")), (make_tiff({}, {}), make_tiff({}, {}, {}))):
        assert open_document(store(two), limits).page_count == 2
        with pytest.raises(DocumentTooLarge):
            open_document(store(three), limits)


def test_a_pdf_without_pages(store, make_pdf) -> None:
    with pytest.raises((EmptyDocument, UnreadableDocument)):  # PDFium takes it for damaged
        open_document(store(make_pdf()))


def test_a_pdf_that_is_only_a_header(store) -> None:
    with pytest.raises(UnreadableDocument):
        open_document(store(b"%PDF-1.4\n%%EOF\n"))


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\n" * 700, b"\x00\x05\x16\x00" + bytes(2500)])
def test_bytes_before_the_header_of_a_pdf(store, make_pdf, before: bytes) -> None:
    assert open_document(store(before + make_pdf(b"", b""))).page_count == 2


def test_passwords(store, make_pdf) -> None:
    path = store(make_pdf(b"", b"", password=b"open sesame"))
    with pytest.raises(EncryptedDocument, match="asks for a password") as without:
        open_document(path)
    with pytest.raises(EncryptedDocument, match="none of the 2 known ones"):
        open_document(path, passwords=("sesame", "barley"))
    assert "pipeline.passwords" in without.value.remedy
    assert open_document(path, passwords=("barley", "open sesame")).page_count == 2


def test_a_password_is_also_tried_as_saslprep_writes_it(store, make_pdf) -> None:
    path = store(make_pdf(b"", password=b"SaSLprep"))
    assert open_document(path, passwords=("S\u00aaS\u00adLprep",)).page_count == 1


def test_an_owner_password_alone_does_not_lock(store, make_pdf) -> None:
    assert open_document(store(make_pdf(b"", password=b""))).page_count == 1


def test_unsupported_encryption_is_told_from_a_missing_password(store, make_pdf) -> None:
    data = make_pdf(b"", trailer=b"/Encrypt << /Filter /Adobe.PubSec /V 4 /SubFilter /adbe.pkcs7.s5 >>")
    with pytest.raises(EncryptedDocument, match="not supported") as caught:
        open_document(store(data), passwords=("any",))
    assert "password" not in caught.value.remedy


def test_an_error_is_never_the_one_of_the_document_before(store, make_pdf) -> None:
    locked = store(make_pdf(b"", password=b"x"))
    for damaged in (b"%PDF-1.7 garbage", b"%PDF-1.7\ntrailer << /Root 1 0 R >>\n%%EOF"):
        with pytest.raises(EncryptedDocument):
            open_document(locked)
        with pytest.raises(UnreadableDocument):
            open_document(store(damaged))


def test_attachments_and_xfa_are_noted(store, make_pdf, tmp_path: Path) -> None:
    document = pdfium.PdfDocument.new()
    document.new_page(100, 100)
    document.new_attachment("invoice.xml").set_data(b"<x/>")
    document.save(tmp_path / "with.pdf")
    document.close()
    assert open_document(tmp_path / "with.pdf").notes == ("1 attached files are not read",)
    form = make_pdf(b"", catalog=b"/AcroForm << /Fields [] /XFA (<xdp/>) >>")
    assert any("XFA" in note for note in open_document(store(form)).notes)


def test_several_pictures_in_one_file_are_noted(store, saved, halves: Callable[..., Image.Image]) -> None:
    data = saved(halves("L"), "GIF", save_all=True, append_images=[Image.new("L", (64, 40)), halves("L", (63, 40))])
    opened = open_document(store(data))
    assert opened.page_count == 1
    assert opened.notes == ("the first of 3 pictures is read",)


def test_tiff_pages(store, make_tiff, saved, halves) -> None:
    assert open_document(store(make_tiff({}, {}, {}))).page_count == 3
    assert open_document(store(make_tiff({}, {}, big=True))).page_count == 2
    thumbnails = open_document(store(make_tiff({}, {254: 1}, {}, {254: 4})))
    assert (thumbnails.page_count, thumbnails.notes) == (2, ("2 thumbnails or masks are left out",))
    assert open_document(store(make_tiff({254: 1}))).page_count == 1
    big_endian = saved(halves("L"), "TIFF").replace(b"II*\0", b"II*\0")
    assert open_document(store(big_endian)).page_count == 1


def test_a_tiff_chain_that_bites_its_tail_or_breaks_off(store, make_tiff) -> None:
    looped = open_document(store(make_tiff({}, {}, loop=True)))
    assert (looped.page_count, looped.notes) == (2, ("damaged after page 2",))
    broken = open_document(store(make_tiff({}, {257: 0}, {})))
    assert (broken.page_count, broken.notes) == (1, ("damaged after page 1",))
    with pytest.raises(UnreadableDocument):
        open_document(store(make_tiff({256: 0})))
    with pytest.raises(UnreadableDocument):
        open_document(store(b"II*\0\x08"))


def test_a_damaged_header(store, saved, halves) -> None:
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "AVIF", "HEIF"):
        if kind == "HEIF":
            import pillow_heif

            pillow_heif.register_heif_opener()
        data = saved(halves(), kind)
        with pytest.raises(UnreadableDocument):
            open_document(store(data[:20]))


@pytest.mark.parametrize("kind", ["png", "gif", "bmp", "webp", "jpeg"])
def test_decompression_bombs_are_refused_by_their_header(store, saved, halves, huge_png, kind: str) -> None:
    wide, high = 16_000, 15_000
    size = wide.to_bytes(2, "little") + high.to_bytes(2, "little")
    if kind == "png":
        data = huge_png(wide, high)
    elif kind == "gif":
        data = bytearray(saved(halves("P"), "GIF"))
        data[6:10] = size
    elif kind == "bmp":
        data = bytearray(saved(halves(), "BMP"))
        data[18:26] = wide.to_bytes(4, "little") + high.to_bytes(4, "little")
    elif kind == "webp":
        alpha = Image.new("RGBA", (64, 40))
        data = bytearray(saved(alpha, "WEBP", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0"))
        assert data[12:16] == b"VP8X"
        data[24:30] = (wide - 1).to_bytes(3, "little") + (high - 1).to_bytes(3, "little")
    else:
        data = bytearray(saved(halves(), "JPEG"))
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = high.to_bytes(2, "big") + wide.to_bytes(2, "big")
    with pytest.raises(PageTooLarge):
        open_document(store(bytes(data)))


def test_other_formats_say_what_they_are(store) -> None:
    with pytest.raises(UnsupportedFormat, match="HTML"):
        open_document(store(b"<html>Service unavailable</html>"))
