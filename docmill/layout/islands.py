"""Islands of ink on a page that is mostly blank, to be looked at one by one."""

from __future__ import annotations

import cv2
import numpy as np

from docmill.layout.ink import Mask, gray_picture, ink_of
from docmill.layout.straightening import Picture

Rectangle = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels; x1 and y1 are outside."""

_MOST = 12
"""Islands looked at, the ones with most ink first."""

_BLANK = 0.12
"""A page is sparse where its islands and their surroundings cover less of it."""

_GRID = 4
"""Ink is joined to islands on a picture so many times smaller."""


def find_islands(picture: Picture) -> list[Rectangle]:
    """Where the ink of a sparse page stands, with a margin of blank around each island.

    Frames, rules, the dark edges of a scan and specks are no islands. None where the page is not sparse.

    Args:
        picture: gray or colour, dark on light.

    Returns:
        In pixels of ``picture``, from top to bottom.
    """
    height, width = picture.shape[:2]
    ink = _without_frames(ink_of(gray_picture(picture)))
    if not ink.any():
        return []
    tall, wide = ink.shape
    small = cv2.dilate(ink, np.ones((_GRID, _GRID), np.uint8))[::_GRID, ::_GRID]
    # Words of a line and lines of a paragraph hang together; columns and distant paragraphs do not.
    reach = max(2, round(0.02 * min(small.shape)))
    joined = cv2.dilate(small, np.ones((2 * reach + 1, 2 * reach + 1), np.uint8))
    if (joined > 0).mean() > _BLANK:
        return []
    count, labels, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    amounts = np.bincount(labels[small > 0], minlength=count)
    amounts[0] = 0
    islands = []
    for number in sorted(range(1, count), key=lambda n: -int(amounts[n]))[:_MOST]:
        x, y, across, down = (int(v) for v in stats[number, :4])
        left, top = x * _GRID / wide * width, y * _GRID / tall * height
        right, bottom = (x + across) * _GRID / wide * width, (y + down) * _GRID / tall * height
        islands.append((int(left), int(top), min(width, round(right)), min(height, round(bottom))))
    return sorted(islands, key=lambda r: (r[1], r[0]))


def _without_frames(ink: Mask) -> Mask:
    """Ink without what is longer than half the page, hangs on its edge, or is smaller than a letter."""
    tall, wide = ink.shape
    count, labels, stats, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    keep = np.ones(count, dtype=bool)
    x, y, across, down, area = (stats[:, i] for i in range(5))
    keep &= (across < 0.5 * wide) & (down < 0.5 * tall)
    keep &= (x > 0) & (y > 0) & (x + across < wide) & (y + down < tall)
    keep &= (np.maximum(across, down) >= max(4, 0.003 * min(ink.shape))) & (area >= 6)
    # A rule: long and thin.
    keep &= np.maximum(across, down) < np.maximum(20 * np.minimum(across, down), 0.05 * min(ink.shape))
    keep[0] = False
    return np.where(keep[labels], np.uint8(255), np.uint8(0))
