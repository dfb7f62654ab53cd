"""A sheet of paper to draw on, which remembers the truth of what was drawn.

Lengths are in points (1/72 inch) from the top left corner; boxes come out as fractions of the page.
"""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Literal, cast

from PIL import Image, ImageDraw, ImageFont

from docmill.geometry import Box
from docmill.truth import CheckboxTruth, FieldTruth, LineTruth, PageTruth, TableTruth

Colour = tuple[int, int, int]
Align = Literal["left", "center", "right"]

INK: Colour = (22, 22, 26)
FAINT: Colour = (96, 96, 104)
PEN: Colour = (24, 34, 110)
RULE: Colour = (70, 70, 78)
WHITE: Colour = (255, 255, 255)


@cache
def bundled_font(pixels: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow (Aileron), without the shaping engine, so that every machine draws the same."""
    font = cast(ImageFont.FreeTypeFont, ImageFont.load_default(pixels))
    return font.font_variant(layout_engine=ImageFont.Layout.BASIC)


@cache
def font_of(path: str | None, pixels: int) -> ImageFont.FreeTypeFont:
    """A font by its file, or the bundled one."""
    if path is None:
        return bundled_font(pixels)
    return ImageFont.truetype(path, pixels, layout_engine=ImageFont.Layout.BASIC)


class Canvas:
    """One page.

    Args:
        width, height: of the page, in points.
        dpi: pixels per inch.
        font: file of a TrueType font; None for the bundled one.
        number: 1-based page number.
    """

    def __init__(
        self, width: float, height: float, *, dpi: int = 150, font: str | None = None, number: int = 1
    ) -> None:
        self.width = width
        self.height = height
        self.number = number
        self.scale = dpi / 72
        self.font = font
        self.image = Image.new("RGB", (round(width * self.scale), round(height * self.scale)), WHITE)
        self._draw = ImageDraw.Draw(self.image)
        self.lines: list[LineTruth] = []
        self.fields: dict[str, list[FieldTruth]] = {}
        self.checkboxes: list[CheckboxTruth] = []
        self.tables: list[TableTruth] = []

    def _at(self, size: float) -> ImageFont.FreeTypeFont:
        return font_of(self.font, max(6, round(size * self.scale)))

    def _box(self, corners: tuple[float, float, float, float]) -> Box:
        """Pixels to fractions of the page."""
        wide, high = self.image.size
        return Box.clipped(corners[0] / wide, corners[1] / high, corners[2] / wide, corners[3] / high)

    def measure(self, text: str, size: float, *, bold: bool = False) -> float:
        """How wide it would be drawn, in points."""
        return (self._at(size).getlength(text) + (0.05 * size * self.scale if bold else 0)) / self.scale

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 9,
        *,
        bold: bool = False,
        align: Align = "left",
        colour: Colour = INK,
        field: str | None = None,
        value: str | None = None,
    ) -> Box:
        """Draw one line with its top at ``y``; ``x`` is its left end, middle or right end, as ``align`` says.

        ``field`` is the field whose value this is (a second call with the same name adds a line to the value);
        ``value`` is the part of ``text`` that is the value, where that is not all of it.
        """
        font = self._at(size)
        stroke = 0.022 * size * self.scale if bold else 0
        length = font.getlength(text)
        left = x * self.scale - {"left": 0.0, "center": length / 2, "right": length}[align]
        place = (round(left), round(y * self.scale))
        self._draw.text(place, text, font=font, fill=colour, anchor="la", stroke_width=stroke)
        corners = self._draw.textbbox(place, text, font=font, anchor="la", stroke_width=stroke)
        box = self._box(corners)
        self.lines.append(LineTruth(text, box))
        if field is not None:
            where = box
            if value is not None and value != text:
                before = font.getlength(text[: text.index(value)])
                span = (place[0] + before, corners[1], place[0] + before + font.getlength(value), corners[3])
                where = self._box(span)
            self.fields.setdefault(field, []).append(FieldTruth(value or text, where, self.number))
        return box

    def written(self, x: float, y: float, text: str, rng: random.Random, size: float = 11, *, field: str | None) -> Box:
        """Draw a value as a person fills it in: blue, every letter a little off the line."""
        left, boxes = x * self.scale, []
        font = self._at(size)
        for letter in text:
            place = (round(left), round((y + rng.uniform(-0.35, 0.35)) * self.scale))
            self._draw.text(place, letter, font=font, fill=PEN, anchor="la")
            if letter != " ":
                boxes.append(self._box(self._draw.textbbox(place, letter, font=font, anchor="la")))
            left += font.getlength(letter) + rng.uniform(0.0, 0.25) * self.scale
        box = Box.around(boxes)
        self.lines.append(LineTruth(text, box))
        if field is not None:
            self.fields.setdefault(field, []).append(FieldTruth(text, box, self.number))
        return box

    def rule(
        self, x0: float, y0: float, x1: float, y1: float, *, thickness: float = 0.6, colour: Colour = RULE
    ) -> None:
        """A straight line."""
        ends = [(round(x0 * self.scale), round(y0 * self.scale)), (round(x1 * self.scale), round(y1 * self.scale))]
        self._draw.line(ends, fill=colour, width=max(1, round(thickness * self.scale)))

    def dashes(self, x0: float, y: float, x1: float) -> None:
        """A dashed line across."""
        x = x0
        while x < x1:
            self.rule(x, y, min(x + 2.6, x1), y, thickness=0.7)
            x += 4.4

    def frame(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        *,
        thickness: float = 0.6,
        colour: Colour = RULE,
        fill: Colour | None = None,
    ) -> None:
        """A rectangle."""
        corners = [round(v * self.scale) for v in (x0, y0, x1, y1)]
        width = max(1, round(thickness * self.scale)) if thickness else 0
        self._draw.rectangle(corners, outline=colour if width else None, fill=fill, width=width)

    def checkbox(
        self,
        x: float,
        y: float,
        label: str,
        checked: bool,
        rng: random.Random,
        *,
        size: float = 9.5,
        field: str | None = None,
        option: str | None = None,
        spoken: str | None = None,
    ) -> float:
        """A box with its label to the right of it; returns the x behind the label.

        ``spoken``: the label in the truth, where the printed one ("Yes") does not stand alone.
        """
        self.frame(x, y, x + size, y + size, thickness=0.9, colour=INK)
        if checked:
            self._tick(x, y, size, rng)
        box = Box.clipped(x / self.width, y / self.height, (x + size) / self.width, (y + size) / self.height)
        self.checkboxes.append(CheckboxTruth(spoken or label, checked, box, self.number, field, option))
        if checked and field is not None and option is not None:
            self.fields.setdefault(field, []).append(FieldTruth(option, box, self.number))
        self.text(x + size + 4, y + size / 2 - 6, label, 9.5)
        return x + size + 4 + self.measure(label, 9.5)

    def _tick(self, x: float, y: float, size: float, rng: random.Random) -> None:
        def near(across: float, down: float) -> tuple[int, int]:
            return (
                round((x + size * across + rng.uniform(-0.5, 0.5)) * self.scale),
                round((y + size * down + rng.uniform(-0.5, 0.5)) * self.scale),
            )

        wide = max(2, round(1.3 * self.scale))
        if rng.random() < 0.5:
            self._draw.line([near(0.1, 0.1), near(0.9, 0.9)], fill=PEN, width=wide)
            self._draw.line([near(0.9, 0.1), near(0.1, 0.9)], fill=PEN, width=wide)
        else:
            self._draw.line([near(0.12, 0.5), near(0.42, 0.85), near(1.0, 0.0)], fill=PEN, width=wide, joint="curve")

    def signature(self, x: float, y: float, width: float, height: float, rng: random.Random, *, field: str) -> None:
        """A scribble that reads as no word; the field's text is ``true``."""
        turns = rng.randint(5, 8)
        phase = rng.uniform(0, math.tau)
        points: list[tuple[float, float]] = []
        for step in range(180):
            t = step / 179
            swing = 0.5 * (1 - 0.65 * t) * math.sin(turns * math.tau * t + phase)
            loop = 0.05 * math.cos(turns * math.tau * t + phase)
            drift = 0.12 * math.sin(2.3 * math.tau * t)
            points.append((x + width * min(max(t * 0.95 + loop, 0), 1), y + height * (0.5 + 0.85 * swing + drift)))
        pixels = [(round(px * self.scale), round(py * self.scale)) for px, py in points]
        self._draw.line(pixels, fill=PEN, width=max(2, round(1.1 * self.scale)), joint="curve")
        tail = [(x + width * 0.1, y + height * 0.98), (x + width, y + height * rng.uniform(0.75, 0.9))]
        self._draw.line(
            [(round(px * self.scale), round(py * self.scale)) for px, py in tail],
            fill=PEN,
            width=max(1, round(0.9 * self.scale)),
        )
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        box = Box.clipped(min(xs) / self.width, min(ys) / self.height, max(xs) / self.width, max(ys) / self.height)
        self.fields[field] = [FieldTruth("true", box, self.number)]

    def cut(self, height: float) -> None:
        """Shorten the page to ``height`` points; the boxes follow."""
        kept = self.image.crop((0, 0, self.image.width, round(height * self.scale)))
        ratio = self.image.height / kept.height
        self.image, self._draw = kept, ImageDraw.Draw(kept)
        self.height = height

        def moved(box: Box | None) -> Box | None:
            return None if box is None else Box.clipped(box.x0, box.y0 * ratio, box.x1, box.y1 * ratio)

        self.lines = [LineTruth(line.text, cast(Box, moved(line.box))) for line in self.lines]
        self.fields = {
            name: [FieldTruth(part.text, moved(part.box), part.page) for part in parts]
            for name, parts in self.fields.items()
        }

    def page_truth(self) -> PageTruth:
        """The page's lines."""
        return PageTruth(self.number, tuple(self.lines), self.image.width, self.image.height)
