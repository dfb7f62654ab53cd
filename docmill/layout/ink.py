"""Ink: which pixels of a page are drawn on, and the straight strokes among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from docmill.layout.straightening import Picture

Mask = NDArray[Any]
"""(height, width) uint8: 255 where there is ink, else 0."""

_WORKING_PIXELS = 4_000_000

_COARSE = 1250
"""Pictures with a longer side of fewer pixels are looked at twice as large."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A straight horizontal or vertical stroke in pixels: ``at`` is its middle across, ``start`` to ``end`` along it.

    ``near`` and ``far`` are the middles across at its two ends: they differ where it slopes.
    """

    at: float
    start: int
    end: int
    thickness: float
    near: float
    far: float

    @property
    def length(self) -> int:
        """Pixels."""
        return self.end - self.start


def gray_picture(picture: Picture) -> Picture:
    """Gray, of a size at which lines can be told from letters (about 200 dpi) and looking for them stays cheap."""
    gray = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    height, width = gray.shape
    if max(height, width) < _COARSE and min(height, width) > 300:
        return cv2.resize(gray, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    scale = (_WORKING_PIXELS / (height * width)) ** 0.5
    return cv2.resize(gray, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 0.97 else gray


def ink_of(gray: Picture) -> Mask:
    """Pixels clearly darker than what surrounds them, or dark in themselves."""
    local = cv2.adaptiveThreshold(gray, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, 41, 14)
    return cv2.bitwise_or(local, cv2.inRange(gray, np.array([0]), np.array([90])))


def strokes(ink: Mask, direction: Literal["across", "down"], least: int, bridge: int = 3) -> tuple[list[Stroke], Mask]:
    """Straight strokes of at least ``least`` pixels, and a mask of them.

    Args:
        ink: 255 where there is ink.
        direction: of the strokes.
        least: pixels; shorter ones are left out.
        bridge: gaps of up to so many pixels along the stroke are closed.
    """
    flat = direction == "across"

    def kernel(length: int) -> NDArray[Any]:
        return np.ones((1, length) if flat else (length, 1), dtype=np.uint8)

    mask = cv2.morphologyEx(ink, cv2.MORPH_CLOSE, kernel(bridge)) if bridge > 1 else ink
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, kernel(least))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    found = []
    for number in range(1, count):
        x, y, width, height, area = (int(v) for v in stats[number])
        along, across = (width, height) if flat else (height, width)
        if along < least:
            continue
        part = labels[y : y + height, x : x + width] == number
        near, far = (
            (part[:, : max(1, along // 8)], part[:, -max(1, along // 8) :])
            if flat
            else (
                part[: max(1, along // 8)],
                part[-max(1, along // 8) :],
            )
        )
        base, axis = (y, 0) if flat else (x, 1)
        ends = [base + float(np.flatnonzero(p.any(axis=1 - axis)).mean()) + 0.5 for p in (near, far)]
        start = x if flat else y
        found.append(Stroke(base + across / 2, start, start + along, area / along, ends[0], ends[1]))
    return found, mask
