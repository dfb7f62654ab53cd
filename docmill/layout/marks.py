"""Check boxes and radio buttons, by their ink."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from docmill.extraction import Mark
from docmill.geometry import Box
from docmill.layout.glyphs import Glyph, ReadAs, read_as
from docmill.layout.ink import Mask, Stroke, ink_of, strokes
from docmill.layout.straightening import Picture

_SMALLEST, _LARGEST = 0.007, 0.038
"""A frame's side, as a share of the page's shorter side: 12 to 64 pixels of a letter page at 200 dpi."""

_SQUARE = 0.72
"""The shorter side of a frame over its longer one, at least."""

_DRAWN = 0.86
"""So much of each side must be there."""

_FULL = 0.6
"""What is fuller, and was not read as a frame, is a blot or letters that ran together."""

_INK = 0.06
"""Share of dark pixels inside the frame from which it counts as marked."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Outer edges in pixels, thickness of its sides, and how much of the sides is really drawn."""

    x0: int
    y0: int
    x1: int
    y1: int
    thickness: int
    drawn: float
    round: bool = False

    @property
    def side(self) -> float:
        return (self.x1 - self.x0 + self.y1 - self.y0) / 2


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
    frames = _squares(ink, least, most) + _contoured(ink, least, most)
    kept: list[tuple[_Frame, Mark]] = []
    for frame in _distinct(frames):
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


def _box(frame: _Frame, ink: Mask) -> Box:
    height, width = ink.shape
    return Box.clipped(frame.x0 / width, frame.y0 / height, frame.x1 / width, frame.y1 / height)


def _alike(known: list[_Frame], ink: Mask) -> list[_Frame]:
    """More frames of the size of known ones and in a row or column with one: crossed out, broken, or faint."""
    side = median(frame.side for frame in known)
    found = []
    for frame in _squares(ink, round(0.75 * side), round(1.35 * side), loose=True):
        near = [
            other
            for other in known
            if (abs(frame.y0 - other.y0) < 0.5 * side or abs(frame.x0 - other.x0) < 0.5 * side)
            and all(0.75 < ratio < 1.35 for ratio in _ratios(frame, other))
        ]
        if near and not any(_overlap(frame, other) for other in known) and any(_sides_clear(frame, ink, 0.22)):
            found.append(frame)
    return _distinct(found)


def _ratios(frame: _Frame, other: _Frame) -> tuple[float, float]:
    return (frame.x1 - frame.x0) / (other.x1 - other.x0), (frame.y1 - frame.y0) / (other.y1 - other.y0)


def _overlap(frame: _Frame, other: _Frame) -> bool:
    across = min(frame.x1, other.x1) - max(frame.x0, other.x0)
    down = min(frame.y1, other.y1) - max(frame.y0, other.y0)
    return across > 0 and down > 0 and across * down > 0.3 * min(frame.side, other.side) ** 2


def _believable(frame: _Frame, mark: Mark, read: ReadAs, high: float, ink: Mask) -> bool:
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


def _squares(ink: Mask, least: int, most: int, *, loose: bool = False) -> list[_Frame]:
    """Frames from two parallel sides of the same extent, with the other two sides drawn between them.

    ``loose``: the sides may differ more, have gaps, and lack a corner.
    """
    frames = []
    for flat in (True, False):
        picture = ink if flat else np.ascontiguousarray(ink.T)
        sides, _ = strokes(picture, "across", least, bridge=3)
        sides = [s for s in sides if s.length <= most and s.thickness <= max(3.0, 0.3 * s.length)]
        for top, bottom in _pairs(sides, reach=max(2, 0.3 * most)):
            frame = _between(picture, top, bottom, least, loose=loose)
            if frame is not None:
                frames.append(
                    frame if flat else _Frame(frame.y0, frame.x0, frame.y1, frame.x1, frame.thickness, frame.drawn)
                )
    return frames


def _pairs(sides: list[Stroke], reach: float) -> Iterator[tuple[Stroke, Stroke]]:
    """Sides that begin within ``reach`` pixels of each other and are no farther apart than a frame's can be."""
    columns: dict[int, list[Stroke]] = {}
    for side in sorted(sides, key=lambda s: s.at):
        columns.setdefault(int(side.start // reach), []).append(side)
    for column, tops in columns.items():
        for near in (column - 1, column, column + 1):
            bottoms = columns.get(near, [])
            for top in tops:
                for bottom in bottoms[bisect_right(bottoms, top.at, key=lambda s: s.at) :]:
                    if bottom.at - top.at > top.length / _SQUARE:
                        break
                    yield top, bottom


def _between(ink: Mask, top: Stroke, bottom: Stroke, least: int, *, loose: bool = False) -> _Frame | None:
    slack = max(2, (0.3 if loose else 0.12) * top.length)
    if abs(top.start - bottom.start) > slack or abs(top.end - bottom.end) > slack:
        return None
    thick = max(1, round(min(top.thickness, bottom.thickness)))
    x0, x1 = min(top.start, bottom.start), max(top.end, bottom.end)
    y0, y1 = round(top.at - thick / 2), round(bottom.at + thick / 2)
    across, down = x1 - x0, y1 - y0
    if min(across, down) < least or min(across, down) < _SQUARE * max(across, down):
        return None
    # One side may lie on a longer line; two are a table's.
    if min(_goes_on(ink, x0, y0, y1, thick), _goes_on(ink, x1 - thick, y0, y1, thick)) > 0:
        return None
    drawn = _drawn(ink, x0, y0, x1, y1, thick, gaps=4 if loose else 8)
    if drawn < (0.7 if loose else _DRAWN) or not (loose or _cornered(ink, x0, y0, x1, y1)):
        return None
    return _Frame(x0, y0, x1, y1, thick, drawn)


def _goes_on(ink: Mask, x: int, y0: int, y1: int, thick: int) -> int:
    """At how many of its two ends a vertical side goes on, as a table's line does."""
    left, right = max(0, x - 1), x + thick + 1
    reach = max(6, (y1 - y0) // 2)
    above, below = ink[max(0, y0 - reach) : max(0, y0 - 2), left:right], ink[y1 + 2 : y1 + reach, left:right]
    return sum(bool(part.size and part.any(axis=1).mean() > 0.9) for part in (above, below))


def _drawn(ink: Mask, x0: int, y0: int, x1: int, y1: int, thick: int, *, gaps: int = 8) -> float:
    """How much of the worst of the four sides is drawn as one straight stroke; 0 where one has a gap."""
    if min(x0, y0) < 0:
        return 0.0
    slack = max(1, round(min(x1 - x0, y1 - y0) * 0.06))
    deep = thick + 2 * slack
    picture = ink[y0:y1, x0:x1]
    sides = (picture[:deep], picture[::-1][:deep], picture.T[:deep], picture.T[::-1][:deep])
    return min(_straight(side, thick, gaps) for side in sides)


def _straight(side: Mask, thick: int, gaps: int) -> float:
    """The best covered band of ``thick`` + 1 rows; 0 where its longest gap is more than a ``gaps``-th of its length."""
    best = 0.0
    band = thick + 1
    for top in range(max(1, side.shape[0] - band + 1)):
        covered = np.asarray(side[top : top + band].any(axis=0))
        share = float(covered.mean())
        if share > best and not _gap(covered, max(2, covered.size // gaps)):
            best = share
    return best


def _gap(covered: NDArray[Any], allowed: int) -> bool:
    run = 0
    for filled in covered.tolist():
        run = 0 if filled else run + 1
        if run > allowed:
            return True
    return False


def _cornered(ink: Mask, x0: int, y0: int, x1: int, y1: int) -> bool:
    """Whether there is ink at all four corners: letters are round somewhere."""
    near = 1 + round(0.12 * min(x1 - x0, y1 - y0))
    falling = np.add.outer(np.arange(near), np.arange(near)) <= near - 1
    patches = (
        ink[y0 : y0 + near, x0 : x0 + near],
        ink[y0 : y0 + near, x1 - near : x1][:, ::-1],
        ink[y1 - near : y1, x0 : x0 + near][::-1],
        ink[y1 - near : y1, x1 - near : x1][::-1, ::-1],
    )
    return all(patch.shape == falling.shape and bool((patch[falling] > 0).any()) for patch in patches)


def _contoured(ink: Mask, least: int, most: int) -> list[_Frame]:
    """Frames and rings that are whole: a contour with a hole, square or round, thin."""
    contours, tree = cv2.findContours(ink, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    frames: list[_Frame] = []
    if tree is None:
        return frames
    for number, (_, _, child, parent) in enumerate(tree[0]):
        if parent >= 0 or child < 0:
            continue
        x, y, width, height = cv2.boundingRect(contours[number])
        small, large = min(width, height), max(width, height)
        if small < least or large > most or small < 0.8 * large:
            continue
        outer = cv2.contourArea(contours[number])
        hole = max((contours[c] for c in _siblings(tree[0], child)), key=cv2.contourArea)
        hw, hh = cv2.boundingRect(hole)[2:]
        thick = max(1, round((width - hw) / 4 + (height - hh) / 4 + 1))
        fullness = outer / ((width - 1) * (height - 1))
        rim = 4 * cv2.contourArea(hole) / (np.pi * hw * hh)
        if thick > 0.3 * small:
            continue
        if fullness > 0.9 and rim > 1.1 and _cornered(ink, x, y, x + width, y + height):
            drawn = _drawn(ink, x, y, x + width, y + height, thick)
            if drawn >= _DRAWN:
                frames.append(_Frame(x, y, x + width, y + height, thick, drawn))
        elif small > 0.9 * large and 0.72 < fullness < 0.83 and rim > 0.82 and thick <= 0.16 * small:
            length = cv2.arcLength(contours[number], True)
            if 4 * np.pi * outer / (length * length) > 0.8:
                frames.append(_Frame(x, y, x + width, y + height, thick, 0.9, round=True))
    return frames


def _siblings(tree: np.ndarray, first: int) -> list[int]:
    found = []
    while first >= 0:
        found.append(first)
        first = int(tree[first][0])
    return found


def _distinct(frames: list[_Frame]) -> list[_Frame]:
    """One frame a place: the better drawn, then the larger."""
    kept: list[_Frame] = []
    for frame in sorted(frames, key=lambda f: (-round(f.drawn, 1), -f.side, f.x0, f.y0)):
        if not any(_overlap(frame, other) for other in kept):
            kept.append(frame)
    return kept


def _sides_clear(frame: _Frame, ink: Mask, share: float) -> tuple[bool, bool]:
    """Whether there is white of this share of its side to its left and to its right, as there is not within a word."""
    gap = max(2, round(share * frame.side))
    # Not at its corners: a cross may reach out of them, or a line run along its foot.
    inset = max(frame.thickness, round(0.2 * frame.side))
    rows = slice(frame.y0 + inset, frame.y1 - inset)
    left, right = ink[rows, max(0, frame.x0 - gap) : max(0, frame.x0 - 1)], ink[rows, frame.x1 + 1 : frame.x1 + gap]
    return not left.any(), not right.any()


def _measured(frame: _Frame, box: Box, ink: Mask) -> Mark:
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


def _inner(frame: _Frame, ink: Mask) -> Mask:
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
