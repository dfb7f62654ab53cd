"""Frames and rings of the size of a check box: the ink of their sides."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from docmill.layout.ink import Mask, Stroke, strokes

_SQUARE = 0.72
"""The shorter side of a frame over its longer one, at least."""

_DRAWN = 0.86
"""So much of each side must be there."""


@dataclass(frozen=True, slots=True)
class Frame:
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
        """Pixels, the mean of its width and height."""
        return (self.x1 - self.x0 + self.y1 - self.y0) / 2


def find_squares(ink: Mask, least: int, most: int, *, loose: bool = False) -> list[Frame]:
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
                    frame if flat else Frame(frame.y0, frame.x0, frame.y1, frame.x1, frame.thickness, frame.drawn)
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


def _between(ink: Mask, top: Stroke, bottom: Stroke, least: int, *, loose: bool = False) -> Frame | None:
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
    return Frame(x0, y0, x1, y1, thick, drawn)


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


def find_whole_frames(ink: Mask, least: int, most: int) -> list[Frame]:
    """Frames and rings that are whole: a contour with a hole, square or round, thin."""
    contours, tree = cv2.findContours(ink, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    frames: list[Frame] = []
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
                frames.append(Frame(x, y, x + width, y + height, thick, drawn))
        elif small > 0.9 * large and 0.72 < fullness < 0.83 and rim > 0.82 and thick <= 0.16 * small:
            length = cv2.arcLength(contours[number], True)
            if 4 * np.pi * outer / (length * length) > 0.8:
                frames.append(Frame(x, y, x + width, y + height, thick, 0.9, round=True))
    return frames


def _siblings(tree: np.ndarray, first: int) -> list[int]:
    found = []
    while first >= 0:
        found.append(first)
        first = int(tree[first][0])
    return found


def distinct(frames: list[Frame]) -> list[Frame]:
    """One frame a place: the better drawn, then the larger."""
    kept: list[Frame] = []
    for frame in sorted(frames, key=lambda f: (-round(f.drawn, 1), -f.side, f.x0, f.y0)):
        if not any(overlap(frame, other) for other in kept):
            kept.append(frame)
    return kept


def ratios(frame: Frame, other: Frame) -> tuple[float, float]:
    """Width over width and height over height."""
    return (frame.x1 - frame.x0) / (other.x1 - other.x0), (frame.y1 - frame.y0) / (other.y1 - other.y0)


def overlap(frame: Frame, other: Frame) -> bool:
    """Whether two frames stand in one place."""
    across = min(frame.x1, other.x1) - max(frame.x0, other.x0)
    down = min(frame.y1, other.y1) - max(frame.y0, other.y0)
    return across > 0 and down > 0 and across * down > 0.3 * min(frame.side, other.side) ** 2
