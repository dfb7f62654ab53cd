"""Drawing fields and blocks over a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from docmill.drawing.palette import BLOCK_COLOUR, COLOURS, Level, level_of, percent
from docmill.extraction import Block, Field
from docmill.geometry import Box

_Rectangle = tuple[int, int, int, int]
_DARK = 150
_DASHES = {Level.SURE: (0, 0), Level.FAIR: (9, 5), Level.DOUBTFUL: (3, 4)}


def draw_boxes(image: Image.Image, fields: Iterable[Field], blocks: Iterable[Block] = ()) -> Image.Image:
    """A copy of the page (mode RGB, same size) with a box around every field, its name and its confidence.

    Fields without a box are left out. Blocks get a thin gray frame. Labels step aside for each other, and stand where
    nothing is printed if there is such a place beside the value.
    """
    page = image.convert("RGBA")
    unit = max(1.0, page.height / 1400, page.width / 1000)
    held = [field for field in fields if field.box is not None]
    tint = Image.new("RGBA", page.size, (0, 0, 0, 0))
    brush = ImageDraw.Draw(tint)
    places: list[_Rectangle] = []
    for field in held:
        places.append(_pixels(cast(Box, field.box), page.size, round(2 * unit)))
        brush.rectangle(places[-1], fill=(*COLOURS[level_of(field.confidence)], 38))
    page = Image.alpha_composite(page, tint)
    pen = ImageDraw.Draw(page)
    for block in blocks:
        pen.rectangle(_pixels(block.box, page.size, round(4 * unit)), outline=BLOCK_COLOUR, width=max(1, round(unit)))
    taken = list(places)
    ink = np.asarray(image.convert("L")) < _DARK
    font = cast(ImageFont.FreeTypeFont, ImageFont.load_default(round(11 * unit)))
    for field, place in zip(held, places, strict=True):
        level = level_of(field.confidence)
        _outline(pen, place, level, unit)
        if field.row is None:
            _label(pen, _caption(field), place, level, font, taken, ink)
    return page.convert("RGB")


def _pixels(box: Box, size: tuple[int, int], margin: int) -> _Rectangle:
    wide, high = size
    return (
        max(0, round(box.x0 * wide) - margin),
        max(0, round(box.y0 * high) - margin),
        min(wide - 1, round(box.x1 * wide) + margin),
        min(high - 1, round(box.y1 * high) + margin),
    )


def _caption(field: Field) -> str:
    """The name, where the font can draw it, and the confidence."""
    sure = percent(field.confidence)
    return f"{field.name} {sure}" if all(ord(c) < 0x250 for c in field.name) else sure


def _outline(pen: ImageDraw.ImageDraw, place: _Rectangle, level: Level, unit: float) -> None:
    width = max(2, round(1.6 * unit))
    dash, gap = (round(part * unit) for part in _DASHES[level])
    if not dash:
        pen.rectangle(place, outline=COLOURS[level], width=width)
        return
    x0, y0, x1, y1 = place
    for x in range(x0, x1, dash + gap):
        for y in (y0, y1):
            pen.line([(x, y), (min(x + dash, x1), y)], fill=COLOURS[level], width=width)
    for y in range(y0, y1, dash + gap):
        for x in (x0, x1):
            pen.line([(x, y), (x, min(y + dash, y1))], fill=COLOURS[level], width=width)


def _label(
    pen: ImageDraw.ImageDraw,
    text: str,
    place: _Rectangle,
    level: Level,
    font: ImageFont.FreeTypeFont,
    taken: list[_Rectangle],
    ink: NDArray[np.bool_],
) -> None:
    left, _, right, bottom = pen.textbbox((0, 0), text, font=font, anchor="la")
    pad = max(2, round(font.size * 0.25))
    width, height = round(right - left) + 2 * pad, round(bottom) + pad
    spot = _free_spot(place, width, height, taken, ink)
    taken.append(spot)
    pen.rounded_rectangle(spot, radius=pad, fill=COLOURS[level])
    letters = (255, 255, 255) if level is not Level.FAIR else (30, 22, 0)
    pen.text((spot[0] + pad, spot[1] + round(pad * 0.4)), text, font=font, fill=letters, anchor="la")


def _free_spot(
    place: _Rectangle, width: int, height: int, taken: list[_Rectangle], ink: NDArray[np.bool_]
) -> _Rectangle:
    """Above, right of, left of or below the box: the first that is free, else the one that hides least."""
    x0, y0, x1, y1 = place
    page_height, page_width = ink.shape
    starts = (
        (x0, y0 - height),
        (x1 + 2, y0 + (y1 - y0 - height) // 2),
        (x0 - width - 2, y0 + (y1 - y0 - height) // 2),
        (x1 - width, y0 - height),
        (x0, y1 + 1),
        (x1 - width, y1 + 1),
    )
    spots = []
    for x, y in starts:
        left = min(max(x, 0), max(0, page_width - width - 1))
        top = min(max(y, 0), max(0, page_height - height - 1))
        spots.append((left, top, left + width, top + height))

    def hidden(spot: _Rectangle) -> int:
        printed = int(ink[spot[1] : spot[3], spot[0] : spot[2]].sum())
        return printed + 2 * sum(_shared(spot, other) for other in taken)

    return min(spots, key=hidden)


def _shared(one: _Rectangle, other: _Rectangle) -> int:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across * down if across > 0 and down > 0 else 0
