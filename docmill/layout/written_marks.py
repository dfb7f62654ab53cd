"""Marks that were read as text: ``[x]``, ``( )``, ``☐``, ``☑``, ``√``; and text without the frames of drawn marks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from docmill.extraction import Mark
from docmill.geometry import Box
from docmill.layout.glyphs import FRAMES, LETTERLIKE, TICKS, Glyph, is_text

_EMPTY, _FILLED = "□☐▢◻", "☑☒⊠⊡▣"

_WRITTEN = re.compile(
    rf"[{_EMPTY}{_FILLED}]"
    r"|(?<![^\s:：,，;；])(?:[\[［【]\s*[xX×✓✔√vV*]?\s*[\]］】]|[(（]\s*[xX×✓✔√]?\s*[)）])"
    r"|(?<!\S)[√✓✔](?!\S*[0-9])"
)
_TICK = re.compile(rf"[xX×✓✔√vV*{_FILLED}]")


def written_marks(glyphs: Sequence[Glyph], drawn: Sequence[Mark] = ()) -> tuple[Mark, ...]:
    """Marks among the characters of a page.

    Args:
        glyphs: all of them, in any order.
        drawn: marks found by their ink; what was read in the same places is not told again.

    Returns:
        In no order. ``fill`` is 1 or 0: it was read, not measured.
    """
    found = []
    for line in _lines(glyphs):
        for match in _WRITTEN.finditer("".join(g.text for g in line)):
            parts = line[match.start() : match.end()]
            box = Box.around(g.box for g in parts)
            if any(_same(box, mark.box) for mark in drawn):
                continue
            checked = bool(_TICK.search(match.group()))
            sure = min(g.confidence for g in parts if not g.text.isspace())
            found.append(Mark(box, checked, 1.0 if checked else 0.0, round(0.9 * sure, 3)))
    return tuple(found)


def without_frames(glyphs: Sequence[Glyph], marks: Sequence[Mark]) -> list[bool]:
    """For each glyph whether it is text: a frame, tick or ring that was read where a mark stands is not.

    A character of a word always is, though a mark's frame may reach over it.
    """
    lines = {line[0].line: line for line in _lines(glyphs)}
    kept = []
    for glyph in glyphs:
        alike = glyph.text in FRAMES or glyph.text in TICKS or glyph.text in LETTERLIKE
        held = [mark.box for mark in marks if _holds(mark.box, glyph.box)] if alike else []
        kept.append(not held or is_text(glyph, lines[glyph.line], held[0]))
    return kept


def _lines(glyphs: Sequence[Glyph]) -> list[list[Glyph]]:
    lines: dict[int, list[Glyph]] = {}
    for glyph in glyphs:
        lines.setdefault(glyph.line, []).append(glyph)
    return [sorted(line, key=lambda g: g.box.center[0]) for line in lines.values()]


def _same(a: Box, b: Box) -> bool:
    return a.intersection(b) > 0.2 * min(a.area, b.area)


def _holds(box: Box, glyph: Box) -> bool:
    x = glyph.center[0]
    return box.x0 - 0.2 * box.width <= x <= box.x1 + 0.2 * box.width and glyph.y0 <= box.center[1] <= glyph.y1
