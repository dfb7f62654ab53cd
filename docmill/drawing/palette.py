"""Colours for confidence.

The colours are three of the eight that M. Okabe and K. Ito chose so that people with any kind of colour vision can tell
them apart ("Color Universal Design", 2002). Line style says the same once more: solid, dashed, dotted.
"""

from __future__ import annotations

import math
from enum import StrEnum

SURE_FROM = 0.9
FAIR_FROM = 0.6


class Level(StrEnum):
    """How far a value can be trusted."""

    SURE = "sure"  # 0.9 and above
    FAIR = "fair"  # 0.6 to 0.9
    DOUBTFUL = "doubtful"  # below 0.6


COLOURS: dict[Level, tuple[int, int, int]] = {
    Level.SURE: (0, 158, 115),
    Level.FAIR: (230, 159, 0),
    Level.DOUBTFUL: (213, 94, 0),
}
BLOCK_COLOUR = (86, 96, 112)


def percent(confidence: float) -> str:
    """As a whole percentage, rounded down: what is shown as 90 % is of the level that begins there."""
    return f"{math.floor(confidence * 100 + 1e-9)}%"


def level_of(confidence: float) -> Level:
    """The level of a confidence from 0 to 1."""
    if confidence >= SURE_FROM:
        return Level.SURE
    return Level.FAIR if confidence >= FAIR_FROM else Level.DOUBTFUL
