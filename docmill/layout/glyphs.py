"""Characters with their places, and what they say about marks: brackets, ticks, frames that were read as letters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from docmill.geometry import Box

FRAMES = frozenset("[]|口□☐☑☒▢◻回囗日区図国田图⊠⊡▣")
"""What a recogniser makes of a square frame, empty or marked."""

TICKS = frozenset("XxVv√✓✔✗✘×☓乂")
"""What it makes of the tick or cross in one."""

LETTERLIKE = frozenset("OoDCcQ0Uu〇○◯●◉⊙LlJI(){}")
"""What it makes of one too, but which is more often what it looks like."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """One character as it was read. ``line`` numbers the line that it belongs to; spaces are glyphs too."""

    text: str
    box: Box
    confidence: float
    line: int


class ReadAs(StrEnum):
    """What the recogniser took a frame for."""

    NOTHING = "nothing"
    FRAME = "frame"
    TICK = "tick"
    ROUND = "round"
    LETTER = "letter"


def read_as(box: Box, glyphs: Sequence[Glyph]) -> ReadAs:
    """What was read where something that looks like a frame stands.

    Args:
        box: of the frame.
        glyphs: of the page, sorted by the left edge of their boxes.
    """
    inside = [g for g in near(box, glyphs) if not g.text.isspace()]
    if not inside:
        return ReadAs.NOTHING
    nearest = min(inside, key=lambda g: abs(g.box.center[0] - box.center[0]))
    if nearest.text in FRAMES:
        return ReadAs.FRAME
    if nearest.text in TICKS:
        return ReadAs.TICK
    if len(inside) > 1:
        # A frame around several characters is a cell or a stamp.
        return ReadAs.LETTER
    if nearest.text not in LETTERLIKE and nearest.confidence >= 0.5:
        return ReadAs.LETTER
    return ReadAs.ROUND if _begins(nearest, glyphs) else ReadAs.LETTER


def _begins(glyph: Glyph, glyphs: Sequence[Glyph]) -> bool:
    """Whether it is the first of its line or stands after a space or a box."""
    before = [g for g in glyphs if g.line == glyph.line and g.box.x0 < glyph.box.x0]
    if not before:
        return True
    last = max(before, key=lambda g: g.box.x0)
    return last.text.isspace() or last.text in FRAMES


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


def line_boxes(glyphs: Sequence[Glyph]) -> list[Box]:
    """Where the lines stand that the glyphs belong to, in the order of their numbers."""
    lines: dict[int, list[Box]] = {}
    for glyph in glyphs:
        lines.setdefault(glyph.line, []).append(glyph.box)
    return [Box.around(boxes) for _, boxes in sorted(lines.items())]
