import math

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docmill.geometry import Box
from docmill.layout.ink import ink_of
from docmill.layout.scribbles import find_scribbles

WIDTH, HEIGHT = 1654, 2339


class Paper:
    """A page with some print; it knows what was printed where."""

    def __init__(self) -> None:
        self.image = Image.new("L", (WIDTH, HEIGHT), 255)
        self.draw = ImageDraw.Draw(self.image)
        self.lines: list[tuple[str, Box]] = []

    def print(self, x: int, y: int, text: str, *, read: bool = True) -> None:
        font = ImageFont.load_default(26)
        self.draw.text((x, y), text, fill=0, font=font)
        left, top, right, bottom = self.draw.textbbox((x, y), text, font=font)
        if read:
            box = Box((left - 4) / WIDTH, (top - 4) / HEIGHT, (right + 4) / WIDTH, (bottom + 4) / HEIGHT)
            self.lines.append((text, box))

    def sign(self, x: int, y: int, width: int = 300, height: int = 70) -> None:
        points = [(x + width * t / 99, y + height / 2 * (1 + (1 - t / 150) * math.sin(t / 4))) for t in range(100)]
        self.draw.line(points, fill=60, width=3)

    def scribbles(self) -> tuple[Box, ...]:
        return find_scribbles(ink_of(np.asarray(self.image)), self.lines)


@pytest.mark.parametrize("label", ["Signature of applicant", "Signed:", "申请人签名"])
@pytest.mark.parametrize("place", ["over", "beside", "under"])
def test_handwriting_at_a_label(label: str, place: str) -> None:
    paper = Paper()
    paper.draw.line((600, 1500, 1200, 1500), fill=0, width=3)
    paper.print(600, 1510, label)
    x, y = {"over": (650, 1420), "beside": (920, 1460), "under": (650, 1560)}[place]
    paper.sign(x, y)
    (box,) = paper.scribbles()
    assert box.iou(Box(x / WIDTH, y / HEIGHT, (x + 300) / WIDTH, (y + 70) / HEIGHT)) > 0.6


def test_a_blank_line_rules_frames_and_specks_are_no_handwriting() -> None:
    paper = Paper()
    paper.draw.rectangle((550, 1380, 1300, 1600), outline=0, width=3)
    paper.draw.line((600, 1500, 1200, 1500), fill=0, width=3)
    paper.print(600, 1510, "Signature")
    for x in range(620, 1200, 37):
        paper.draw.ellipse((x, 1440, x + 4, 1444), fill=0)
    assert paper.scribbles() == ()


def test_print_that_was_not_read_is_no_handwriting() -> None:
    paper = Paper()
    paper.print(600, 1510, "Signature")
    paper.print(620, 1450, "of the person named above", read=False)
    assert paper.scribbles() == ()


def test_what_is_written_at_other_labels_is_not_told() -> None:
    paper = Paper()
    paper.print(600, 1510, "Signature")
    paper.print(1000, 1510, "Date:")
    paper.sign(1080, 1490, 200, 60)
    paper.print(600, 1100, "Name")
    paper.sign(700, 1090)
    paper.print(600, 1300, "A long line of prose that only says how a signature is to be given by the applicant in ink")
    paper.sign(700, 1220)
    assert paper.scribbles() == ()
