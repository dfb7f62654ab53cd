"""The picture of the readiness question, made in code."""

from __future__ import annotations

import base64
import struct
import zlib

_SIDE = 64


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def tiny_png() -> bytes:
    """A PNG of 64 × 64 pixels, RGB: a black frame on white, large enough for any vision part's smallest grid."""
    rows = bytearray()
    for y in range(_SIDE):
        rows.append(0)
        for x in range(_SIDE):
            edge = min(x, y, _SIDE - 1 - x, _SIDE - 1 - y)
            rows += b"\x00\x00\x00" if 8 <= edge < 12 else b"\xff\xff\xff"
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    body = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def tiny_image_uri() -> str:
    """The same as a data URI."""
    return "data:image/png;base64," + base64.b64encode(tiny_png()).decode()
