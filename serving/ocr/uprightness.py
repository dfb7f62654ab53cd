"""Which way up a page is, and how far its lines slope."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from docmill.layout.straightening import Picture, Straightening
from serving.ocr.crops import cropped
from serving.ocr.recognizer import Recognizer

Quads = NDArray[np.float32]
"""(n, 4, 2): corners of lines in pixels, from the top left clockwise."""

SURE = 0.8
"""Below this share the orientation model's answer is only a hint."""

SMALLEST_SKEW, STEEPEST_SKEW = 0.3, 16.0
"""Degrees. Less does no harm; more is not taken for a slope."""

_SAMPLE = 8


def moved(quads: Quads, matrix: NDArray[Any]) -> Quads:
    """Corners after a 3 x 3 affine map, each from its own top left clockwise again."""
    if len(quads) == 0:
        return quads
    points = quads.reshape(-1, 2) @ matrix[:2, :2].T + matrix[:2, 2]
    return in_order(points.reshape(-1, 4, 2).astype(np.float32))


def in_order(quads: Quads) -> Quads:
    """Corners so that the first side of each leads to the right (a detector may start elsewhere where they slope)."""
    if len(quads) == 0:
        return quads
    sides = np.roll(quads, -1, axis=1) - quads
    first = np.abs(np.arctan2(sides[:, :, 1], sides[:, :, 0])).argmin(axis=1)
    places = (first[:, None] + np.arange(4)[None, :]) % 4
    return np.take_along_axis(quads, places[:, :, None], axis=1)


def sizes(quads: Quads) -> tuple[NDArray[Any], NDArray[Any]]:
    """Lengths along and across each line, in pixels."""
    return np.linalg.norm(quads[:, 1] - quads[:, 0], axis=1), np.linalg.norm(quads[:, 3] - quads[:, 0], axis=1)


def covered(quads: Quads) -> float:
    """The area of all lines, in pixels."""
    along, across = sizes(quads)
    return float((along * across).sum())


def stands_on_its_side(quads: Quads) -> bool:
    """Whether most of the text runs up or down the picture."""
    if len(quads) == 0:
        return False
    along, across = sizes(quads)
    up, level = along[across > 2 * along], across[along > 2 * across]
    return bool(across[across > 2 * along].sum() > along[along > 2 * across].sum()) and len(up) > len(level) / 2


def slope(quads: Quads) -> float:
    """Degrees counter-clockwise by which lines rise to the right: the median over lines, weighted by length.

    0 where fewer than three lines are long enough to tell.
    """
    if len(quads) == 0:
        return 0.0
    along, across = sizes(quads)
    long = (along > 4 * across) & (along > 60)
    if long.sum() < 3:
        return 0.0
    # The middle of the left edge to the middle of the right edge.
    reach = (quads[long, 1] + quads[long, 2] - quads[long, 0] - quads[long, 3]) / 2
    angles = np.degrees(np.arctan2(-reach[:, 1], reach[:, 0]))
    order = np.argsort(angles)
    weight = np.cumsum(along[long][order])
    middle = float(angles[order][np.searchsorted(weight, weight[-1] / 2)])
    # Where lines disagree (a curled receipt, a photograph) the page as a whole does not slope.
    spread = float(np.average(np.abs(angles - middle), weights=along[long]))
    return middle if spread < max(1.0, abs(middle) / 2) else 0.0


def best_turn(recognizer: Recognizer, picture: Picture, quads: Quads, turns: list[int]) -> int:
    """The turn among ``turns`` (degrees clockwise) after which the longest lines read best; the first wins a draw."""
    height, width = picture.shape[:2]
    along, across = sizes(quads)
    longest = quads[np.argsort(-np.maximum(along, across), kind="stable")[:_SAMPLE]]
    best, best_score = turns[0], -1.0
    for turn in turns:
        way = Straightening(width, height, turn)
        lines = [cropped(way.apply(picture), quad, upright=True) for quad in moved(longest, way.matrix)]
        answers = recognizer.recognise([line for line in lines if line is not None])
        # Letters count as well: upside down much is not read at all.
        score = float(np.mean([a.confidence for a in answers])) if answers else 0.0
        if score > best_score + 0.02:
            best, best_score = turn, score
    return best
