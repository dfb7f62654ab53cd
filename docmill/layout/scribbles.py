"""Handwriting that no text line covers, in the blank beside, over or under a label for a signature."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import cv2
import numpy as np

from docmill.geometry import Box
from docmill.layout.ink import Mask
from docmill.layout.islands import Rectangle

_LABEL = re.compile(
    r"\b(?:signatures?|signed|sign here|autograph|signatory)\b|签名|签字|签章|签署|簽名|簽字|簽章|署名", re.IGNORECASE
)

_REACH = 4.5
"""How far over and under its label a signature stands, in heights of the label."""

_ASIDE = 0.3
"""How far behind its label it goes, as a share of the page's width."""

_LONGEST_LABEL = 70
"""Characters: a longer line is prose."""


def find_scribbles(ink: Mask, lines: Sequence[tuple[str, Box]], apart: Sequence[Box] = ()) -> tuple[Box, ...]:
    """Where something is written by hand that was not read as text.

    Print that was not read has letters of the label's height; handwriting has larger strokes that hang together.

    Args:
        ink: of an upright, level page.
        lines: what was read, and where.
        apart: what else is no handwriting, as the frames of check boxes.

    Returns:
        From top to bottom; one box a signature.
    """
    found: list[Box] = []
    others = [box for _, box in lines]
    for text, label in lines:
        if len(text) > _LONGEST_LABEL or not _LABEL.search(text):
            continue
        for box in _written(ink, _zone(label, others), label, [*others, *apart]):
            if all(box.intersection(known) < 0.3 * min(box.area, known.area) for known in found):
                found.append(box)
    return tuple(sorted(found, key=lambda b: (b.y0, b.x0)))


def _zone(label: Box, lines: Sequence[Box]) -> Box:
    """The blank around a label, up to what stands beside, over and under it."""
    high = label.height
    left, right = label.x0 - 0.5 * high, min(1.0, label.x1 + _ASIDE)
    for line in lines:
        if line.x0 > label.x1 and line.vertical_overlap(label) > 0.4:
            right = min(right, line.x0)
    top, bottom = label.y0 - _REACH * high, label.y1 + _REACH * high
    for line in lines:
        if line is label or min(line.x1, label.x1) <= max(line.x0, label.x0):
            continue
        if line.center[1] < label.y0:
            top = max(top, min(line.y1, label.y0))
        elif line.center[1] > label.y1:
            bottom = min(bottom, max(line.y0, label.y1))
    return Box.clipped(left, top, right, bottom)


def _written(ink: Mask, zone: Box, label: Box, covered: Sequence[Box]) -> list[Box]:
    tall, wide = ink.shape
    x0, y0, x1, y1 = round(zone.x0 * wide), round(zone.y0 * tall), round(zone.x1 * wide), round(zone.y1 * tall)
    part = np.ascontiguousarray(ink[y0:y1, x0:x1])
    high = max(8, round(label.height * tall))
    if min(part.shape) < high // 2:
        return []
    for direction in ((1, 3 * high), (3 * high, 1)):
        rules = cv2.morphologyEx(part, cv2.MORPH_OPEN, np.ones(direction, np.uint8))
        part[cv2.dilate(rules, np.ones((3, 3), np.uint8)) > 0] = 0
    for box in covered:
        left, top = round(box.x0 * wide) - x0 - 1, round(box.y0 * tall) - y0 - 1
        right, bottom = round(box.x1 * wide) - x0 + 1, round(box.y1 * tall) - y0 + 1
        part[max(0, top) : max(0, bottom), max(0, left) : max(0, right)] = 0
    # A pen crosses the line that it signs on: what that line's removal parted is joined again.
    joined = cv2.morphologyEx(part, cv2.MORPH_CLOSE, np.ones((max(5, high // 3), 3), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    pieces = [tuple(int(v) for v in stats[n]) for n in range(1, count)]
    strokes = [p for p in pieces if _is_stroke(p, high, part.shape[1])]
    found: list[Box] = []
    for cluster in _clusters(strokes, [p for p in pieces if p[4] >= 6], high):
        left, top, right, bottom = cluster
        if right - left >= 1.5 * high and bottom - top >= 0.8 * high:
            found.append(Box.clipped((x0 + left) / wide, (y0 + top) / tall, (x0 + right) / wide, (y0 + bottom) / tall))
    return found


def _is_stroke(piece: tuple[int, ...], high: int, wide: int) -> bool:
    """Whether a piece of ink is larger than a letter, drawn with a pen rather than filled, and no rule."""
    _, _, across, down, area = piece
    return (
        max(across, down) >= 1.3 * high
        and across >= 0.6 * high
        and down >= 0.5 * high
        and across < 0.97 * wide
        and area < 0.5 * across * down
        and area >= 2 * high
    )


def _clusters(strokes: Sequence[tuple[int, ...]], pieces: Sequence[tuple[int, ...]], high: int) -> list[Rectangle]:
    """Rectangles around strokes and the pieces of ink near them."""
    found = _merged([(x, y, x + across, y + down) for x, y, across, down, _ in strokes], high)
    near = [(x, y, x + across, y + down) for x, y, across, down, _ in pieces if down >= 0.3 * high]
    for _ in range(3):
        # Strokes that a rule parted lie apart: each round takes in what is near to what is held.
        found = _merged([_grown(cluster, near, high // 2) for cluster in found], high)
    return found


def _grown(box: Rectangle, near: Sequence[Rectangle], reach: int) -> Rectangle:
    return functools.reduce(_around, (own for own in near if _near(box, own, reach)), box)


def _merged(boxes: Sequence[Rectangle], reach: int) -> list[Rectangle]:
    found: list[Rectangle] = []
    for one in boxes:
        box = one
        while close := [known for known in found if _near(known, box, reach)]:
            for known in close:
                found.remove(known)
                box = _around(box, known)
        found.append(box)
    return found


def _near(a: Rectangle, b: Rectangle, reach: int) -> bool:
    return max(a[0], b[0]) - min(a[2], b[2]) <= reach and max(a[1], b[1]) - min(a[3], b[3]) <= reach


def _around(a: Rectangle, b: Rectangle) -> Rectangle:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
