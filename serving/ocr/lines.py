"""From a line's place and characters to a line with words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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


def without(quad: NDArray[np.float32], answer: Recognised, keep: Sequence[bool]) -> tuple[Any, Recognised] | None:
    """A line without some of its characters, and its place without them where they stood at its ends.

    Dropped characters between others leave a space, so that what they parted does not run together. None where
    nothing is left.
    """
    if all(keep):
        return quad, answer
    characters = answer.characters
    kept = [i for i, wanted in enumerate(keep) if wanted and not characters[i].text.isspace()]
    if not kept:
        return None
    first, last = kept[0], kept[-1]
    start = (characters[first - 1].at + characters[first].at) / 2 if not all(keep[:first]) else 0.0
    end = (characters[last].at + characters[last + 1].at) / 2 if not all(keep[last + 1 :]) else 1.0
    start, end = min(start, characters[first].at), max(end, characters[last].at, start + 1e-6)
    left = [
        replace(c, text=c.text if wanted else " ", at=(c.at - start) / (end - start))
        for c, wanted in zip(characters[first : last + 1], keep[first : last + 1], strict=True)
    ]
    corners = reading_corners(quad)
    ends = np.array([[start], [end]], dtype=np.float32)
    top, bottom = corners[0] + (corners[1] - corners[0]) * ends, corners[3] + (corners[2] - corners[3]) * ends
    cut = np.stack([top[0], top[1], bottom[1], bottom[0]])
    sure = sum(c.confidence for c in left) / len(left)
    return cut if corners is quad else cut[[1, 2, 3, 0]], Recognised(tuple(left), sure)


def reading_corners(quad: NDArray[np.float32]) -> NDArray[np.float32]:
    """The corners from where reading starts, as ``crops.cropped`` turns the line: a high one is read upwards."""
    across, down = float(np.linalg.norm(quad[0] - quad[1])), float(np.linalg.norm(quad[0] - quad[3]))
    return quad if down < 1.5 * across else quad[[3, 0, 1, 2]]


def _box(points: NDArray[Any], size: tuple[int, int]) -> Box:
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return Box.clipped(x0 / size[0], y0 / size[1], x1 / size[0], y1 / size[1])
