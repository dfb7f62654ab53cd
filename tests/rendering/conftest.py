"""Files made by hand: PDF from objects, TIFF from tags, pictures of a black left and a white right half."""

from __future__ import annotations

import hashlib
import io
import itertools
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

MakePdf = Callable[..., bytes]
MakeTiff = Callable[..., bytes]
Store = Callable[[bytes], Path]

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def _locked(objects: dict[int, tuple[bytes, bytes | None]], password: bytes) -> bytes:
    """Encrypt the streams with RC4, 40 bits (PDF 1.7, 7.6.2 and 7.6.3, revision 2); returns the trailer's entries."""
    padded = (password + _PADDING)[:32]
    owner = _rc4(hashlib.md5((b"owner" + _PADDING)[:32]).digest()[:5], padded)
    key = hashlib.md5(padded + owner + struct.pack("<i", -4) + b"0123456789abcdef").digest()[:5]
    user = _rc4(key, _PADDING)
    for number, (dictionary, stream) in objects.items():
        if stream is not None:
            own = hashlib.md5(key + struct.pack("<I", number)[:3] + b"\0\0").digest()[:10]
            objects[number] = (dictionary, _rc4(own, stream))
    return b"/ID [<%s> <%s>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (
        *[b"0123456789abcdef".hex().encode()] * 2,
        owner.hex().encode(),
        user.hex().encode(),
    )


def make_pdf_bytes(
    *pages: bytes,
    content: bytes = b"",
    catalog: bytes = b"",
    extra: dict[int, tuple[bytes, bytes | None]] | None = None,
    password: bytes | None = None,
    trailer: bytes = b"",
) -> bytes:
    """A PDF.

    Args:
        pages: entries of each page's dictionary (MediaBox is 0 0 612 792 where none is given).
        content: the content stream of every page (object 3).
        catalog: further entries of the catalog.
        extra: objects from number 100 on: (dictionary, stream or None).
        password: locks it.
        trailer: further entries of the trailer.
    """
    numbers = range(10, 10 + len(pages))
    kids = b" ".join(b"%d 0 R" % n for n in numbers)
    objects: dict[int, tuple[bytes, bytes | None]] = {
        1: (b"/Type /Catalog /Pages 2 0 R " + catalog, None),
        2: (b"/Type /Pages /Count %d /Kids [%s]" % (len(pages), kids), None),
        3: (b"", content),
    }
    for number, page in zip(numbers, pages, strict=True):
        box = b"" if b"/MediaBox" in page else b"/MediaBox [0 0 612 792] "
        objects[number] = (b"/Type /Page /Parent 2 0 R /Contents 3 0 R " + box + page, None)
    objects.update(extra or {})
    if password is not None:
        trailer += _locked(objects, password)
    out = io.BytesIO()
    out.write(b"%PDF-1.7\n")
    places = {}
    for number, (dictionary, stream) in sorted(objects.items()):
        places[number] = out.tell()
        out.write(b"%d 0 obj\n<< %s" % (number, dictionary))
        if stream is None:
            out.write(b" >>\nendobj\n")
        else:
            out.write(b" /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (len(stream), stream))
    start = out.tell()
    out.write(b"xref\n0 1\n0000000000 65535 f \n")
    for number, place in places.items():
        out.write(b"%d 1\n%010d 00000 n \n" % (number, place))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (max(places) + 1, trailer, start))
    return out.getvalue()


def make_tiff_bytes(
    *frames: dict[int, int | None], pixels: bytes = b"\0\xff", big: bool = False, loop: bool = False
) -> bytes:
    """A little-endian TIFF of 8-bit gray frames.

    Args:
        frames: tags that replace or add to (None: take away from) those of 2 x 1 pixels in one strip.
        pixels: of every frame.
        big: BigTIFF.
        loop: the last frame names the first as its next.
    """
    out = bytearray(b"II+\0\x08\0\0\0" if big else b"II*\0")
    out += bytes(8 if big else 4)
    place, entry, count = ("<Q", "<HHQQ", "<Q") if big else ("<I", "<HHII", "<H")
    link, first = len(out) - struct.calcsize(place), 0
    data_at = len(out)
    out += pixels + b"\0" * (len(pixels) % 2)
    for frame in frames:
        tags = {256: 2, 257: 1, 258: 8, 259: 1, 262: 1, 273: data_at, 277: 1, 278: 1, 279: len(pixels)} | frame
        tags = {tag: value for tag, value in tags.items() if value is not None}
        at = len(out)
        first = first or at
        struct.pack_into(place, out, link, at)
        out += struct.pack(count, len(tags))
        for tag, value in sorted(tags.items()):
            out += struct.pack(entry, tag, 4, 1, value)
        link = len(out)
        out += bytes(struct.calcsize(place))
    if loop:
        struct.pack_into(place, out, link, first)
    return bytes(out)


def halves_picture(mode: str = "RGB", size: tuple[int, int] = (64, 40)) -> Image.Image:
    """Black on the left, white on the right, in any mode."""
    picture = Image.new("L", size, 255)
    picture.paste(0, (0, 0, size[0] // 2, size[1]))
    if mode == "I;16":
        return Image.frombytes("I;16", size, b"".join(struct.pack("<H", 257 * v) for v in picture.tobytes()))
    if mode in ("I", "F"):
        return picture.point(lambda v: v * 257, "I") if mode == "I" else picture.convert("F")
    if mode in ("LA", "RGBA", "CMYK", "P", "1"):
        return (picture if mode in ("LA", "1") else picture.convert("RGB")).convert(mode)
    return picture.convert(mode)


def saved_bytes(picture: Image.Image, format_: str, **options: object) -> bytes:
    """A picture as a file."""
    held = io.BytesIO()
    picture.save(held, format_, **options)
    return held.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG of any size, and no pixels in it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.fixture(scope="session")
def make_pdf() -> MakePdf:
    return make_pdf_bytes


@pytest.fixture(scope="session")
def make_tiff() -> MakeTiff:
    return make_tiff_bytes


@pytest.fixture(scope="session")
def halves() -> Callable[..., Image.Image]:
    return halves_picture


@pytest.fixture(scope="session")
def saved() -> Callable[..., bytes]:
    return saved_bytes


@pytest.fixture(scope="session")
def huge_png() -> Callable[[int, int], bytes]:
    return png_header


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Write bytes to a file whose name says nothing."""
    numbers = itertools.count()

    def write(data: bytes) -> Path:
        path = tmp_path / f"object-{next(numbers)}"
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def render(store: Store) -> Callable[..., object]:
    """Open bytes as a document and draw one of its pages."""
    from docmill.rendering import RenderLimits, open_document, render_page

    def render(data: bytes, page_no: int = 1, limits: RenderLimits | None = None, passwords: tuple[str, ...] = ()):
        path = store(data)
        limits = limits or RenderLimits()
        opened = open_document(path, limits, passwords)
        return render_page(path, opened.media_type, page_no, limits, passwords)

    return render
