"""Characters with their places, and what they say about marks: brackets, ticks, frames that were read as letters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from docmill.geometry import Box

SQUARE_HAN = frozenset("口囗回日曰目区図国田囲图品因困固")
"""Chinese characters that look like a square frame, empty or marked, and are read for one."""

FRAMES = frozenset("[]|□☐☑☒▢◻⊠⊡▣") | SQUARE_HAN
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
    if nearest.text in SQUARE_HAN or nearest.text in TICKS:
        line = sorted((g for g in glyphs if g.line == nearest.line), key=lambda g: g.box.center[0])
        if is_text(nearest, line, box):
            return ReadAs.LETTER
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


def is_text(glyph: Glyph, line: Sequence[Glyph], frame: Box | None = None) -> bool:
    """Whether a character that could be a frame or a tick is one of a word.

    ``日``, ``国`` or ``口`` beside other Chinese characters or digits, unless it opens the line or follows a blank
    or a stop and makes no word with what follows; ``x`` within or at the end of a word of its own case.

    Args:
        glyph: one of ``line``.
        line: the characters of its line from left to right.
        frame: what was drawn there; one that is as high as the line is no small letter.
    """
    at = next(i for i, g in enumerate(line) if g is glyph)
    before = line[at - 1].text if at else ""
    after = line[at + 1].text if at + 1 < len(line) else ""
    if glyph.text in SQUARE_HAN:
        if _is_han(before) or before.isdecimal():
            # 性别口男口女: the same empty frame again and again is no character.
            return glyph.text not in "口囗" or sum(g.text in "口囗□" for g in line) < 2
        if not _is_han(after):
            # 中国 8295: a name that a blank parts; a frame opens what it marks.
            return False
        return after in _WORDS.get(glyph.text, "")
    if glyph.text not in TICKS or not glyph.text.isalpha() or not before.isalnum():
        return False
    small = frame is None or frame.height < 0.72 * glyph.box.height
    alike = before.isdecimal() or before.isupper() == glyph.text.isupper()
    return small and (alike or after.isalnum())


_WORDS = {
    "口": "头径令腔岸味碑述语感罩号服红香诀",
    "回": "执复信访避函单收款报国家答馈",
    "日": "期历常间程本元文语用记志均前后",
    "目": "的录标前次光击",
    "区": "域县号间分别块划",
    "国": "籍家别际内外产民税务库有营债土庆",
    "田": "径地园野间",
    "图": "片书表形号纸案像例章",
    "品": "名牌种类质目号味德",
    "因": "此为素果",
    "困": "难境",
    "固": "定话体态",
}
"""What follows each of them in the words that open a label most often."""


def _is_han(text: str) -> bool:
    return bool(text) and "\u3400" <= text <= "\u9fff"


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
