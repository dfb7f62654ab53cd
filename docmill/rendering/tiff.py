"""The chain of image directories in a TIFF file, read without decoding anything.

Layout: TIFF 6.0, section 2, and the BigTIFF design (8-byte offsets and counts, version 43).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from docmill.failures import UnreadableDocument

_SUBFILE_TYPE, _WIDTH, _HEIGHT = 254, 256, 257
_REDUCED, _MASK = 1, 4  # bits of NewSubfileType
_VALUE_FORMATS = {1: "B", 3: "H", 4: "I", 16: "Q"}  # BYTE, SHORT, LONG, LONG8


@dataclass(frozen=True, slots=True)
class Frame:
    """One image of a TIFF file: its 0-based place in the chain and its size in pixels."""

    index: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Frames:
    """The pages of a TIFF file: its images without thumbnails and masks. ``broken``: the chain ends in damage."""

    pages: tuple[Frame, ...]
    left_out: int
    broken: bool


def read_frames(path: Path, most: int) -> Frames:
    """The images of a TIFF file, ``most`` + 1 at the most.

    Raises:
        UnreadableDocument: there is not one whole image directory.
    """
    with path.open("rb") as file:
        order, big, offset = _header(file)
        pages: list[Frame] = []
        secondary: list[Frame] = []
        seen: set[int] = set()
        broken = False
        while offset and len(pages) <= most:
            if offset in seen or len(seen) > 2 * most + 16:
                broken = True  # a chain that bites its tail
                break
            seen.add(offset)
            try:
                tags, offset = _directory(file, order, big, offset)
                frame = Frame(len(seen) - 1, tags[_WIDTH], tags[_HEIGHT])
            except (struct.error, KeyError, OSError, ValueError, OverflowError):
                broken = True
                break
            if frame.width < 1 or frame.height < 1:
                broken = True
                break
            (secondary if tags.get(_SUBFILE_TYPE, 0) & (_REDUCED | _MASK) else pages).append(frame)
    if not pages and secondary:
        pages, secondary = secondary, []
    if not pages:
        raise UnreadableDocument("the TIFF file has no whole image in it")
    return Frames(tuple(pages), len(secondary), broken)


def _header(file: BinaryIO) -> tuple[str, bool, int]:
    head = file.read(16)
    order = "<" if head[:2] == b"II" else ">"
    try:
        (version,) = struct.unpack_from(order + "H", head, 2)
        big = version == 43
        (offset,) = struct.unpack_from(order + ("Q" if big else "I"), head, 8 if big else 4)
    except struct.error as error:
        raise UnreadableDocument("the TIFF file ends within its header") from error
    return order, big, offset


def _directory(file: BinaryIO, order: str, big: bool, offset: int) -> tuple[dict[int, int], int]:
    """The wanted tags of one directory, and the offset of the next (0: none)."""
    file.seek(offset)
    count_format = order + ("Q" if big else "H")
    (count,) = struct.unpack(count_format, file.read(struct.calcsize(count_format)))
    if count > 4096:
        raise ValueError("too many tags")
    entry = struct.Struct(order + ("HHQ8s" if big else "HHI4s"))
    tags: dict[int, int] = {}
    for _ in range(count):
        tag, kind, _number, value = entry.unpack(file.read(entry.size))
        if tag in (_SUBFILE_TYPE, _WIDTH, _HEIGHT):
            (tags[tag],) = struct.unpack_from(order + _VALUE_FORMATS[kind], value)
    next_format = order + ("Q" if big else "I")
    rest = file.read(struct.calcsize(next_format))
    following = struct.unpack(next_format, rest)[0] if len(rest) == struct.calcsize(next_format) else 0
    return tags, following
