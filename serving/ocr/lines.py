"""From a line's place and characters to a line with words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from docmill.extraction import Line, Word
from docmill.geometry import Box
from docmill.layout.glyphs import Glyph
from serving.ocr.recognizer import Recognised
from serving.ocr.words import with_spaces, words_of


def line_of(quad: NDArray[np.float32], answer: Recognised, size: tuple[int, int]) -> Line:
    """The line at ``quad`` (4 corners in pixels from the top left clockwise) of a page of ``size`` pixels."""
    corners = reading_corners(quad)
    characters = with_spaces(answer.characters)
    words = []
    for span in words_of(characters):
        ends = np.array([[span.start], [span.end]])
        top = corners[0] + (corners[1] - corners[0]) * ends
        bottom = corners[3] + (corners[2] - corners[3]) * ends
        words.append(Word(span.text, _box(np.concatenate([top, bottom]), size), round(span.confidence, 4)))
    text = "".join(c.text for c in characters).strip()
    return Line(text, _box(quad, size), round(answer.confidence, 4), tuple(words))


def glyphs_of(number: int, quad: NDArray[np.float32], answer: Recognised, size: tuple[int, int]) -> list[Glyph]:
    """The characters of line ``number`` with their places: as wide as half the way to their neighbours, at most."""
    corners = reading_corners(quad)
    places = [c.at for c in answer.characters]
    pitch = float(np.median(np.diff(places))) if len(places) > 1 else 0.5
    glyphs = []
    for character in answer.characters:
        ends = np.clip(np.array([[character.at - pitch / 2], [character.at + pitch / 2]]), 0, 1)
        top = corners[0] + (corners[1] - corners[0]) * ends
        bottom = corners[3] + (corners[2] - corners[3]) * ends
        box = _box(np.concatenate([top, bottom]), size)
        glyphs.append(Glyph(character.text, box, character.confidence, number))
    return glyphs


def reading_corners(quad: NDArray[np.float32]) -> NDArray[np.float32]:
    """The corners from where reading starts, as ``crops.cropped`` turns the line: a high one is read upwards."""
    across, down = float(np.linalg.norm(quad[0] - quad[1])), float(np.linalg.norm(quad[0] - quad[3]))
    return quad if down < 1.5 * across else quad[[3, 0, 1, 2]]


def _box(points: NDArray[Any], size: tuple[int, int]) -> Box:
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return Box.clipped(x0 / size[0], y0 / size[1], x1 / size[0], y1 / size[1])
