"""Characters with their places, and what they say about marks: brackets, ticks, frames that were read as letters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from docmill.geometry import Box

FRAMES = frozenset("口□☐☑☒▢◻回囗日区図国田图⊠⊡▣")
"""What a recogniser makes of a square frame, empty or marked."""

LETTERLIKE = frozenset("OoDCcQ0UuXxVv〇○◯●◉⊙LlJI|[](){}√✓✔")
"""What it makes of one too, but which is more often what it looks like."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """One character as it was read. ``line`` numbers the line that it belongs to; spaces are glyphs too."""

    text: str
    box: Box
    confidence: float
    line: int


def is_letter(box: Box, glyphs: Sequence[Glyph], *, apart: bool) -> bool:
    """Whether what looks like a frame at ``box`` was read as a letter of a word.

    Args:
        box: of the frame.
        glyphs: of the page, sorted by the left edge of their boxes.
        apart: there is white to the left and to the right of the box.
    """
    inside = [g for g in near(box, glyphs) if not g.text.isspace()]
    if not inside:
        return False
    if len(inside) > 1:
        # A frame around several characters is a cell or a stamp.
        return True
    glyph = inside[0]
    if glyph.text in FRAMES:
        return False
    return not (apart and (glyph.text in LETTERLIKE or glyph.confidence < 0.5))


def near(box: Box, glyphs: Sequence[Glyph]) -> list[Glyph]:
    """The glyphs whose middle lies within a box, or whose own box holds the box's middle."""
    start = bisect_left(glyphs, box.x0 - 0.06, key=lambda g: g.box.x0)
    found = []
    for glyph in glyphs[start:]:
        if glyph.box.x0 > box.x1:
            break
        (x, y), (gx, gy) = box.center, glyph.box.center
        level = glyph.box.y0 <= y <= glyph.box.y1 or box.y0 <= gy <= box.y1
        if level and (box.x0 <= gx <= box.x1 or glyph.box.x0 <= x <= glyph.box.x1):
            found.append(glyph)
    return found
