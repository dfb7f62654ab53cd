"""Boxes on a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Box:
    """A rectangle on a page, in fractions of the page's width and height.

    The origin is the top left corner of the page *as a viewer shows it*: after ``/Rotate`` and EXIF orientation, before
    any turning or deskewing that docmill does to read it. ``0 <= x0 <= x1 <= 1`` and the same for y.

    Raises:
        ValueError: where the corners are out of order or outside the page by more than rounding.
    """

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        if not (-1e-6 <= self.x0 <= self.x1 <= 1 + 1e-6 and -1e-6 <= self.y0 <= self.y1 <= 1 + 1e-6):
            raise ValueError(f"not a box inside the page: {self.x0}, {self.y0}, {self.x1}, {self.y1}")

    @classmethod
    def clipped(cls, x0: float, y0: float, x1: float, y1: float) -> Box:
        """The box with its corners put in order and clipped to the page."""
        left, right = sorted((min(max(x0, 0.0), 1.0), min(max(x1, 0.0), 1.0)))
        top, bottom = sorted((min(max(y0, 0.0), 1.0), min(max(y1, 0.0), 1.0)))
        return cls(left, top, right, bottom)

    @classmethod
    def around(cls, boxes: Iterable[Box]) -> Box:
        """The smallest box that holds all of them.

        Raises:
            ValueError: where there are none.
        """
        held = list(boxes)
        if not held:
            raise ValueError("no boxes to hold")
        return cls(min(b.x0 for b in held), min(b.y0 for b in held), max(b.x1 for b in held), max(b.y1 for b in held))

    @property
    def width(self) -> float:
        """In fractions of the page's width."""
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        """In fractions of the page's height."""
        return self.y1 - self.y0

    @property
    def area(self) -> float:
        """In fractions of the page."""
        return self.width * self.height

    @property
    def center(self) -> tuple[float, float]:
        """(x, y)."""
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    def intersection(self, other: Box) -> float:
        """The area that both cover, in fractions of the page."""
        across = min(self.x1, other.x1) - max(self.x0, other.x0)
        down = min(self.y1, other.y1) - max(self.y0, other.y0)
        return across * down if across > 0 and down > 0 else 0.0

    def iou(self, other: Box) -> float:
        """Intersection over union, 0 to 1."""
        shared = self.intersection(other)
        union = self.area + other.area - shared
        return shared / union if union > 0 else 0.0

    def vertical_overlap(self, other: Box) -> float:
        """How much of the lower of the two heights they share, 0 to 1: above 0.5 they stand on one line."""
        shared = min(self.y1, other.y1) - max(self.y0, other.y0)
        lower = min(self.height, other.height)
        return max(0.0, shared / lower) if lower > 0 else 0.0

    def horizontal_overlap(self, other: Box) -> float:
        """How much of the smaller of the two widths they share, 0 to 1: above 0.5 they stand in one column."""
        shared = min(self.x1, other.x1) - max(self.x0, other.x0)
        smaller = min(self.width, other.width)
        return max(0.0, shared / smaller) if smaller > 0 else 0.0

    def as_list(self) -> list[float]:
        """``[x0, y0, x1, y1]`` rounded to 5 digits, as it is stored."""
        return [round(self.x0, 5), round(self.y0, 5), round(self.x1, 5), round(self.y1, 5)]
