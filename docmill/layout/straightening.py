"""Between a page as a viewer shows it and the same page upright and level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, cos, radians, sin
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from docmill.extraction import PageText
from docmill.geometry import Box

Picture = NDArray[Any]
"""Gray (height, width) or colour (height, width, 3), uint8."""

_QUARTERS = {90: cv2.ROTATE_90_CLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_COUNTERCLOCKWISE}


@dataclass(frozen=True, slots=True)
class Straightening:
    """The turn and the rotation that make a page upright and level.

    Attributes:
        width, height: pixels of the page as a viewer shows it.
        turned: degrees clockwise to turn it by: 0, 90, 180 or 270.
        skew: degrees counter-clockwise by which its lines then still rise to the right; taken out second. Within 40.

    Raises:
        ValueError: for another turn, a steeper skew or a picture without pixels.
    """

    width: int
    height: int
    turned: int = 0
    skew: float = 0.0

    def __post_init__(self) -> None:
        if self.turned not in (0, 90, 180, 270):
            raise ValueError(f"not a right angle: {self.turned}")
        if abs(self.skew) > 40:
            raise ValueError(f"too steep to be a skew: {self.skew}")
        if self.width < 1 or self.height < 1:
            raise ValueError(f"not a picture: {self.width} x {self.height}")

    @classmethod
    def of(cls, text: PageText) -> Straightening:
        """The one that was used to read ``text``."""
        return cls(max(text.width, 1), max(text.height, 1), text.turned, text.skew)

    @property
    def identity(self) -> bool:
        """Whether nothing changes."""
        return self.turned == 0 and self.skew == 0

    @property
    def turned_size(self) -> tuple[int, int]:
        """Width and height in pixels after the turn."""
        return (self.height, self.width) if self.turned in (90, 270) else (self.width, self.height)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels of the upright, level page; a skewed one grows so that no corner is lost."""
        width, height = self.turned_size
        if self.skew == 0:
            return width, height
        across, along = abs(sin(radians(self.skew))), abs(cos(radians(self.skew)))
        return ceil(width * along + height * across), ceil(width * across + height * along)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """3 x 3: pixels of the page to pixels of the upright, level page, y downwards."""
        turn = {
            0: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
            90: [[0, -1, self.height], [1, 0, 0], [0, 0, 1]],
            180: [[-1, 0, self.width], [0, -1, self.height], [0, 0, 1]],
            270: [[0, 1, 0], [-1, 0, self.width], [0, 0, 1]],
        }[self.turned]
        return self._rotation() @ np.array(turn, dtype=np.float64)

    def _rotation(self) -> NDArray[np.float64]:
        if self.skew == 0:
            return np.eye(3)
        c, s = cos(radians(self.skew)), sin(radians(self.skew))
        (width, height), (wide, high) = self.turned_size, self.size
        x, y = width / 2, height / 2
        return np.array([[c, -s, wide / 2 - c * x + s * y], [s, c, high / 2 - s * x - c * y], [0, 0, 1]])

    def apply(self, picture: Picture) -> Picture:
        """The upright, level page; new corners take the colour of the page's border."""
        if self.turned:
            picture = cv2.rotate(picture, _QUARTERS[self.turned])
        if self.skew == 0:
            return picture
        return cv2.warpAffine(
            picture,
            self._rotation()[:2],
            self.size,
            flags=cv2.INTER_CUBIC,
            borderMode=cv2.BORDER_CONSTANT,
            borderValue=_border_colour(picture),
        )

    def to_page(self, box: Box) -> Box:
        """The smallest box on the page around a box of the upright, level page."""
        return self._mapped(box, np.linalg.inv(self.matrix), self.size, (self.width, self.height), shrink=False)

    def to_upright(self, box: Box) -> Box:
        """The box of the upright, level page whose ``to_page`` is the one given.

        Exact but for what the page's edges clipped: around a rectangle of w x h that is rotated by t stands one of
        ``w cos t + h sin t`` by ``w sin t + h cos t``, and that can be solved for w and h.
        """
        return self._mapped(box, self.matrix, (self.width, self.height), self.size, shrink=True)

    def _mapped(
        self,
        box: Box,
        matrix: NDArray[Any],
        source: tuple[int, int],
        target: tuple[int, int],
        *,
        shrink: bool,
    ) -> Box:
        middle_x, middle_y = box.center
        x, y, _ = (matrix @ np.array([middle_x * source[0], middle_y * source[1], 1.0])).tolist()
        width, height = box.width * source[0], box.height * source[1]
        # The box's own axes: the upright page's when leaving it, the turned page's when coming back.
        if shrink and self.turned in (90, 270):
            width, height = height, width
        c, s = cos(radians(abs(self.skew))), sin(radians(abs(self.skew)))
        if shrink:
            spread = c * c - s * s
            width, height = (width * c - height * s) / spread, (height * c - width * s) / spread
        else:
            width, height = width * c + height * s, width * s + height * c
            if self.turned in (90, 270):
                width, height = height, width
        width, height = max(width, 0.0), max(height, 0.0)
        return Box.clipped(
            (x - width / 2) / target[0],
            (y - height / 2) / target[1],
            (x + width / 2) / target[0],
            (y + height / 2) / target[1],
        )


def _border_colour(picture: Picture) -> tuple[float, ...]:
    edge = np.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])
    return tuple(float(v) for v in np.atleast_1d(np.median(edge, axis=0)))


def upright(text: PageText) -> PageText:
    """The same text with all boxes on the upright, level page: ``turned`` and ``skew`` 0, width and height of it.

    For whatever reasons with left, right, above and below. ``Straightening.of(text).to_page`` brings a box back.
    """
    way = Straightening.of(text)
    if way.identity:
        return text
    return _rebased(text, way.to_upright, way.size, 0, 0.0)


def on_page(text: PageText, way: Straightening) -> PageText:
    """Text that was read on the upright, level page, with all boxes on the page as a viewer shows it."""
    return _rebased(text, way.to_page, (way.width, way.height), way.turned, way.skew)


def _rebased(text: PageText, move: Callable[[Box], Box], size: tuple[int, int], turned: int, skew: float) -> PageText:
    return PageText(
        lines=tuple(
            replace(line, box=move(line.box), words=tuple(replace(w, box=move(w.box)) for w in line.words))
            for line in text.lines
        ),
        marks=tuple(replace(mark, box=move(mark.box)) for mark in text.marks),
        grids=tuple(
            replace(grid, box=move(grid.box), cells=tuple(replace(c, box=move(c.box)) for c in grid.cells))
            for grid in text.grids
        ),
        turned=turned,
        skew=skew,
        width=size[0],
        height=size[1],
        scribbles=None if text.scribbles is None else tuple(move(box) for box in text.scribbles),
    )
