"""Check boxes and radio buttons, by their ink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import cv2
import numpy as np

from docmill.extraction import Mark
from docmill.geometry import Box
from docmill.layout.frames import Frame, distinct, find_squares, find_whole_frames, overlap, ratios
from docmill.layout.glyphs import Glyph, ReadAs, read_as
from docmill.layout.ink import Mask, ink_of
from docmill.layout.straightening import Picture

_SMALLEST, _LARGEST = 0.007, 0.038
"""A frame's side, as a share of the page's shorter side: 12 to 64 pixels of a letter page at 200 dpi."""

_FULL = 0.6
"""What is fuller, and was not read as a frame, is a blot or letters that ran together."""

_INK = 0.06
"""Share of dark pixels inside the frame from which it counts as marked."""


def find_marks(gray: Picture, ink: Mask | None = None, glyphs: Sequence[Glyph] = ()) -> tuple[Mark, ...]:
    """Square frames and rings of the size of a check box on an upright, level page, and whether they are marked.

    Args:
        gray: (height, width) uint8.
        ink: its ``ink_of``, where that is known already.
        glyphs: the characters read on it: what was read as a letter is none.

    Returns:
        From top to bottom, left to right. Boxes are the frames' outer edges.
    """
    ink = ink_of(gray) if ink is None else ink
    height, width = ink.shape
    short = min(height, width)
    high = median(g.box.height for g in glyphs) * height if glyphs else 0.0
    least = max(8, round(short * _SMALLEST))
    most = round(min(150, max(64, short * _LARGEST, 1.4 * high)))
    frames = find_squares(ink, least, most) + find_whole_frames(ink, least, most)
    kept: list[tuple[Frame, Mark]] = []
    for frame in distinct(frames):
        mark = _measured(frame, _box(frame, ink), ink)
        read = read_as(mark.box, glyphs)
        if not _believable(frame, mark, read, high, ink):
            continue
        if read is ReadAs.TICK and not mark.checked and not all(_sides_clear(frame, ink, 0.1)):
            mark = replace(mark, checked=True, confidence=0.6)  # drawn half beside its frame
        kept.append((frame, mark))
    known = [frame for frame, _ in kept if not frame.round]
    for frame in _alike(known, ink) if len(known) > 2 else []:
        mark = _measured(frame, _box(frame, ink), ink)
        read = read_as(mark.box, glyphs)
        if read in (ReadAs.NOTHING, ReadAs.FRAME) or (read is ReadAs.TICK and all(_sides_clear(frame, ink, 0.22))):
            kept.append((frame, mark))
    return tuple(sorted((mark for _, mark in kept), key=lambda m: (round(m.box.y0, 3), m.box.x0)))


def _box(frame: Frame, ink: Mask) -> Box:
    height, width = ink.shape
    return Box.clipped(frame.x0 / width, frame.y0 / height, frame.x1 / width, frame.y1 / height)


def _alike(known: list[Frame], ink: Mask) -> list[Frame]:
    """More frames of the size of known ones and in a row or column with one: crossed out, broken, or faint."""
    side = median(frame.side for frame in known)
    found = []
    for frame in find_squares(ink, round(0.75 * side), round(1.35 * side), loose=True):
        near = [
            other
            for other in known
            if (abs(frame.y0 - other.y0) < 0.5 * side or abs(frame.x0 - other.x0) < 0.5 * side)
            and all(0.75 < ratio < 1.35 for ratio in ratios(frame, other))
        ]
        if near and not any(overlap(frame, other) for other in known) and any(_sides_clear(frame, ink, 0.22)):
            found.append(frame)
    return distinct(found)


def _believable(frame: Frame, mark: Mark, read: ReadAs, high: float, ink: Mask) -> bool:
    """Whether it is no letter, as far as the text tells; ``high`` is the usual height of its lines, in pixels."""
    if read in (ReadAs.LETTER, ReadAs.FRAME):
        return read is ReadAs.FRAME
    if read is ReadAs.TICK and not frame.round:
        # An x that opens a word has that word at its side.
        return frame.side > 0.5 * high or any(_sides_clear(frame, ink, 0.22))
    if read is ReadAs.NOTHING and mark.fill > 0.9 and frame.side < 0.7 * high:
        return False  # a bar, a blot, a bullet
    if read is ReadAs.NOTHING and not frame.round and high and frame.side > 0.85 * high:
        return True
    if frame.round and frame.side < 0.5 * high:
        return False
    # Letters that ran together are fuller than a box with a tick or a cross in it, and have no white beside them.
    share = 0.45 if read is ReadAs.ROUND else 0.22
    left, right = _sides_clear(frame, ink, share)
    if left and right:
        return True
    # Beside what it marks a box may stand close on one side: text that was not read is close on both, or small.
    return (
        read is ReadAs.NOTHING
        and not frame.round
        and (left or right)
        and frame.side > 0.55 * high
        and mark.fill < _FULL
    )


def _sides_clear(frame: Frame, ink: Mask, share: float) -> tuple[bool, bool]:
    """Whether there is white of this share of its side to its left and to its right, as there is not within a word."""
    gap = max(2, round(share * frame.side))
    # Not at its corners: a cross may reach out of them, or a line run along its foot.
    inset = max(frame.thickness, round(0.2 * frame.side))
    rows = slice(frame.y0 + inset, frame.y1 - inset)
    left, right = ink[rows, max(0, frame.x0 - gap) : max(0, frame.x0 - 1)], ink[rows, frame.x1 + 1 : frame.x1 + gap]
    return not left.any(), not right.any()


def _measured(frame: Frame, box: Box, ink: Mask) -> Mark:
    inside = _inner(frame, ink)
    inside = _without_specks(inside)
    if frame.round:
        rows, columns = np.ogrid[: inside.shape[0], : inside.shape[1]]
        middle = (inside.shape[0] - 1) / 2, (inside.shape[1] - 1) / 2
        disc = ((rows - middle[0]) / (middle[0] + 0.5)) ** 2 + ((columns - middle[1]) / (middle[1] + 0.5)) ** 2 <= 0.9
        fill = float((inside[disc] > 0).mean()) if disc.any() else 0.0
    else:
        fill = float((inside > 0).mean())
    checked = fill >= _INK
    distance = (fill - _INK) / 0.12 if checked else (_INK - fill) / _INK
    sure = min(1.0, 0.5 + 0.5 * distance) * (0.6 + 0.4 * frame.drawn)
    return Mark(box, checked, round(fill, 4), round(min(sure, 0.99), 3))


def _inner(frame: Frame, ink: Mask) -> Mask:
    """What the frame holds: without its sides, of which one may be a thicker line, and a little less."""
    whole = ink[frame.y0 : frame.y1, frame.x0 : frame.x1] > 0
    inset = frame.thickness + max(1, round(frame.side * 0.08))
    if frame.round or min(whole.shape) <= 4 * frame.thickness:
        cut = [inset] * 4
    else:
        most = max(inset, round(frame.side * 0.25))
        cut = []
        for view in (whole, whole[::-1], whole.T, whole.T[::-1]):
            side = [float(row.mean()) > 0.6 for row in view[:most]]
            last = max((i + 1 for i, drawn in enumerate(side) if drawn), default=0)
            cut.append(max(inset, last + max(1, round(frame.side * 0.05))))
    top, bottom, left, right = cut
    inside = whole[top : whole.shape[0] - bottom, left : whole.shape[1] - right]
    return (inside if inside.size else whole).astype(np.uint8) * np.uint8(255)


def _without_specks(inside: Mask) -> Mask:
    """Ink without dust: pieces of less than a hundredth of the frame (and of fewer than 4 pixels) fall away."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(np.ascontiguousarray(inside), connectivity=8)
    if count <= 1:
        return inside
    keep = stats[:, cv2.CC_STAT_AREA] >= max(4, inside.size * 0.01)
    keep[0] = False
    return np.where(keep[labels], np.uint8(255), np.uint8(0))
