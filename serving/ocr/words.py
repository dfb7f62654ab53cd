"""From what the recogniser says of one line's picture to text and words."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median


@dataclass(frozen=True, slots=True)
class Character:
    """A character and where the recogniser saw it.

    Attributes:
        at: its middle along the line, 0 (left edge) to 1.
    """

    text: str
    at: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Span:
    """A word along its line: from ``start`` to ``end``, 0 to 1 of the line's length."""

    text: str
    start: float
    end: float
    confidence: float


def is_han(character: str) -> bool:
    """Whether it is set in a square and without spaces: Chinese characters, kana, full-width forms."""
    return unicodedata.east_asian_width(character) in ("W", "F")


def with_spaces(characters: Sequence[Character]) -> list[Character]:
    """The same characters with the spaces that the recogniser overlooked between Latin ones.

    A gap counts where it is much wider than the line's usual pitch.
    """
    kept: list[Character] = []
    steps = [
        b.at - a.at
        for a, b in pairwise(characters)
        if not (a.text.isspace() or b.text.isspace() or is_han(a.text) or is_han(b.text))
    ]
    if len(steps) < 4:
        return list(characters)
    wide = 2.1 * median(steps)
    for number, character in enumerate(characters):
        if number:
            before = characters[number - 1]
            latin = before.text.isalnum() and character.text.isalnum()
            plain = not (is_han(before.text) or is_han(character.text))
            if latin and plain and character.at - before.at > wide:
                middle = (before.at + character.at) / 2
                kept.append(Character(" ", middle, min(before.confidence, character.confidence)))
        kept.append(character)
    return kept


def words_of(characters: Sequence[Character]) -> list[Span]:
    """Split a line into words at its spaces, and between Latin and Chinese runs.

    Returns:
        Words from left to right. Neighbours touch in the middle of the gap between them; the first begins at 0 and the
        last ends at 1.
    """
    groups: list[list[Character]] = []
    before: Character | None = None
    for character in characters:
        if character.text.isspace():
            before = None
            continue
        if before is None or _breaks(before.text, character.text):
            groups.append([])
        groups[-1].append(character)
        before = character
    if not groups:
        return []
    pitch = _pitch(characters)
    spans: list[Span] = []
    for number, group in enumerate(groups):
        start, end = max(0.0, group[0].at - pitch * 0.6), min(1.0, group[-1].at + pitch * 0.6)
        start = max(start, (groups[number - 1][-1].at + group[0].at) / 2) if number else 0.0
        end = min(end, (group[-1].at + groups[number + 1][0].at) / 2) if number + 1 < len(groups) else 1.0
        sure = sum(c.confidence for c in group) / len(group)
        spans.append(Span("".join(c.text for c in group), min(start, end), max(start, end), sure))
    return spans


def _pitch(characters: Sequence[Character]) -> float:
    steps = [b.at - a.at for a, b in pairwise(characters)]
    return median(steps) if steps else 1.0


def _breaks(left: str, right: str) -> bool:
    """Between a Chinese character and a Latin letter or digit; punctuation stays with what it follows."""
    return is_han(left) != is_han(right) and left.isalnum() and right.isalnum()
