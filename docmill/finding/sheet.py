"""A page as the finding rules see it: upright pieces of text in rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from docmill.extraction import Cell, Grid, Line, Mark, PageText, Word
from docmill.geometry import Box
from docmill.normalisation.text import collapse, comparison_form, fold_width, join_lines


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text.

    Attributes:
        text: full-width forms folded, blanks collapsed.
        box: where it stands once the page is upright; the rules compare these.
        place: where it stands on the page as a viewer shows it; fields carry these.
        index: of its line in reading order; pieces cut from one line share it.
    """

    text: str
    box: Box
    place: Box
    confidence: float
    index: int
    words: tuple[Word, ...] = ()

    def part(self, start: int, end: int | None = None) -> Piece:
        """The piece from character ``start`` to ``end``, with the box of the words there (else by proportion)."""
        end = len(self.text) if end is None else end
        text = self.text[start:end]
        lead = len(text) - len(text.lstrip())
        start, text = start + lead, text.strip()
        end = start + len(text)
        if (start, end) == (0, len(self.text)):
            return self
        return Piece(
            text, _share(self.box, self.text, start, end), self._place(start, end), self.confidence, self.index
        )

    def _place(self, start: int, end: int) -> Box:
        position = 0
        held: list[Box] = []
        for word in self.words:
            folded = collapse(fold_width(word.text))
            at = self.text.find(folded, position)
            if at < 0:
                held = []
                break
            position = at + len(folded)
            if at < end and position > start:
                if at < start or position > end:
                    held.append(_share(word.box, folded, max(start - at, 0), min(end - at, len(folded))))
                else:
                    held.append(word.box)
        return Box.around(held) if held else _share(self.place, self.text, start, end)


def _share(box: Box, text: str, start: int, end: int) -> Box:
    """The share of a box that some characters take, as if all were equally wide, along its longer side."""
    length = max(len(text), 1)
    if box.height > 2 * box.width and length > 3:
        return Box(box.x0, box.y0 + box.height * start / length, box.x1, box.y0 + box.height * end / length)
    return Box(box.x0 + box.width * start / length, box.y0, box.x0 + box.width * end / length, box.y1)


@dataclass(frozen=True, slots=True)
class SheetMark:
    """A check box on the upright page, and where it stands as a viewer shows it."""

    box: Box
    place: Box
    checked: bool
    confidence: float


@dataclass(frozen=True, slots=True)
class SheetCell:
    """A ruled cell on the upright page with the pieces in it; ``grid`` numbers its table."""

    cell: Cell
    box: Box
    grid: int
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """All its lines as one text."""
        return join_lines([p.text for p in self.pieces])


def joined(pieces: Sequence[Piece], separator: str | None = None) -> Piece:
    """Several pieces as one: their texts in the order given, the box around them, the confidence by length."""
    if len(pieces) == 1:
        return pieces[0]
    length = sum(max(len(p.text), 1) for p in pieces)
    text = join_lines([p.text for p in pieces]) if separator is None else separator.join(p.text for p in pieces)
    confidence = sum(p.confidence * max(len(p.text), 1) for p in pieces) / length
    box, place = Box.around(p.box for p in pieces), Box.around(p.place for p in pieces)
    return Piece(text, box, place, confidence, pieces[0].index, tuple(w for p in pieces for w in p.words))


class Sheet:
    """A page's text, upright, in rows from top to bottom and left to right.

    Skew and turning are taken out of the boxes that are compared, so that a row is a row on a tilted page too.
    """

    def __init__(self, page: PageText) -> None:
        self.page = page
        self.pieces: tuple[Piece, ...] = _without_echoes(
            [self._piece(index, line) for index, line in enumerate(page.lines) if line.text.strip()]
        )

    def _piece(self, index: int, line: Line) -> Piece:
        text = collapse(fold_width(line.text))
        return Piece(text, self._upright(line.box), line.box, line.confidence, index, line.words)

    def _upright(self, box: Box) -> Box:
        turned = box
        if self.page.turned == 90:
            turned = Box.clipped(1 - box.y1, box.x0, 1 - box.y0, box.x1)
        elif self.page.turned == 180:
            turned = Box.clipped(1 - box.x1, 1 - box.y1, 1 - box.x0, 1 - box.y0)
        elif self.page.turned == 270:
            turned = Box.clipped(box.y0, 1 - box.x1, box.y1, 1 - box.x0)
        return self._level(turned) if abs(self.page.skew) > 0.1 else turned

    def _level(self, box: Box) -> Box:
        """The box with the skew taken out: its middle turned back about the page's, its height without the tilt."""
        width, height = self._pixels
        angle = math.radians(self.page.skew)
        x, y = (box.center[0] - 0.5) * width, (box.center[1] - 0.5) * height
        x, y = x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)
        across, down = box.width * width, box.height * height
        sine, cosine = abs(math.sin(angle)), math.cos(angle)
        share = cosine * cosine - sine * sine
        flat = max((down * cosine - across * sine) / share, 0.25 * down) if share > 0.2 else down
        long = max((across * cosine - down * sine) / share, 0.5 * across) if share > 0.2 else across
        cx, cy = x / width + 0.5, y / height + 0.5
        return Box.clipped(cx - long / width / 2, cy - flat / height / 2, cx + long / width / 2, cy + flat / height / 2)

    @property
    def _pixels(self) -> tuple[float, float]:
        width, height = self.page.width or 1000, self.page.height or 1414
        return (height, width) if self.page.turned in (90, 270) else (width, height)

    @cached_property
    def line_height(self) -> float:
        """The median height of a line, as a fraction of the page's height."""
        return median([p.box.height for p in self.pieces]) if self.pieces else 0.01

    @cached_property
    def char_width(self) -> float:
        """The median width of a character, as a fraction of the page's width."""
        widths = [p.box.width / len(p.text) for p in self.pieces if len(p.text) >= 3]
        return median(widths) if widths else 0.01

    @cached_property
    def rows(self) -> tuple[tuple[Piece, ...], ...]:
        """Pieces that stand on one line of print, from left to right; rows from top to bottom."""
        return tuple(tuple(row) for row in rows_of(self.pieces))

    @cached_property
    def row_of(self) -> dict[int, int]:
        """Index of a line → index of its row."""
        return {piece.index: number for number, row in enumerate(self.rows) for piece in row}

    @cached_property
    def marks(self) -> tuple[SheetMark, ...]:
        """Check boxes in reading order."""
        marks: list[Mark] = sorted(self.page.marks, key=lambda m: (round(m.box.y0, 2), m.box.x0))
        return tuple(SheetMark(self._upright(m.box), m.box, m.checked, m.confidence) for m in marks)

    @cached_property
    def scribbles(self) -> tuple[tuple[Box, Box], ...] | None:
        """Handwriting that was not read: where it stands on the upright page, and as a viewer shows it."""
        if self.page.scribbles is None:
            return None
        return tuple((self._upright(box), box) for box in self.page.scribbles)

    @cached_property
    def cells(self) -> tuple[SheetCell, ...]:
        """All ruled cells with what stands in them. A line that runs across cells is cut at its words."""
        found = []
        for number, grid in enumerate(self.page.grids):
            found.extend(self._cells_of(number, grid))
        return tuple(found)

    def _cells_of(self, number: int, grid: Grid) -> list[SheetCell]:
        held: dict[Cell, list[Piece]] = {cell: [] for cell in grid.cells}
        for piece in self.pieces:
            if piece.place.intersection(grid.box) < 0.5 * piece.place.area:
                continue
            for cell, part in _shared_out(piece, grid.cells):
                held[cell].append(part)
        return [
            SheetCell(cell, self._upright(cell.box), number, tuple(p for row in rows_of(pieces) for p in row))
            for cell, pieces in held.items()
        ]


def _shared_out(piece: Piece, cells: Sequence[Cell]) -> Iterable[tuple[Cell, Piece]]:
    shares = sorted(((piece.place.intersection(c.box), c) for c in cells), key=lambda s: -s[0])
    if not shares or shares[0][0] <= 0:
        return
    if shares[0][0] >= 0.75 * piece.place.area or len(piece.words) < 2:
        yield shares[0][1], piece
        return
    runs: list[tuple[Cell, int, int]] = []
    position = 0
    for word in piece.words:
        folded = collapse(fold_width(word.text))
        at = piece.text.find(folded, position)
        if at < 0:
            yield shares[0][1], piece
            return
        position = at + len(folded)
        cell = max(cells, key=lambda c: word.box.intersection(c.box))
        if runs and runs[-1][0] == cell:
            runs[-1] = (cell, runs[-1][1], position)
        else:
            runs.append((cell, at, position))
    for cell, start, end in runs:
        yield cell, piece.part(start, end)


def rows_of(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Group pieces into rows: each joins the row whose nearest piece it shares most height with."""
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda p: p.box.center[1]):
        best, best_share = None, 0.4
        for row in rows[-6:]:
            nearest = min(row, key=lambda p: _gap(p.box, piece.box))
            if any(_stacked(p.box, piece.box) for p in row):
                continue
            share = nearest.box.vertical_overlap(piece.box)
            if share > best_share:
                best, best_share = row, share
        if best is None:
            rows.append([piece])
        else:
            best.append(piece)
    rows.sort(key=lambda row: sum(p.box.center[1] for p in row) / len(row))
    return [sorted(row, key=lambda p: p.box.x0) for row in rows]


def _without_echoes(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces without those that the OCR read a second time as part of a longer one at the same place."""

    def echoed(piece: Piece) -> bool:
        return len(piece.text) >= 3 and any(
            other is not piece
            and len(other.text) > len(piece.text)
            and piece.text in other.text
            and piece.box.intersection(other.box) > 0.5 * piece.box.area
            for other in pieces
        )

    return tuple(piece for piece in pieces if not echoed(piece))


def _stacked(a: Box, b: Box) -> bool:
    """Whether one stands over the other; boxes of neighbours on one line may overlap a little."""
    across = a.horizontal_overlap(b)
    return across > 0.75 or (across > 0.3 and a.vertical_overlap(b) < 0.6)


def _gap(a: Box, b: Box) -> float:
    return max(a.x0 - b.x1, b.x0 - a.x1, 0.0)


def plain(piece: Piece) -> str:
    """The piece's comparison form."""
    return comparison_form(piece.text)
