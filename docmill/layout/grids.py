"""Ruled tables and boxed forms: from drawn lines to cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docmill.extraction import Cell, Grid
from docmill.geometry import Box
from docmill.layout.ink import Mask, Stroke, ink_of, strokes
from docmill.layout.straightening import Picture

_LEAST_LINE = 1 / 60
"""Of the page's longer side: shorter strokes are taken for letters."""

_COVERED = 0.6
"""A cell's side is drawn where a line covers at least so much of it."""


def find_grids(gray: Picture, ink: Mask | None = None, text: Sequence[Box] = ()) -> tuple[Grid, ...]:
    """Tables drawn with lines on an upright, level page.

    Lines that touch make one table; its cells are the smallest rectangles that they enclose, with spans where a line
    is left out. A frame around a single cell is not a table.

    Args:
        gray: (height, width) uint8.
        ink: its ``ink_of``, where that is known already.
        text: where lines of text stand: short strokes within them are letters.

    Returns:
        From top to bottom.
    """
    ink = ink_of(gray) if ink is None else ink
    height, width = ink.shape
    least = max(18, round(max(height, width) * _LEAST_LINE))
    across, _ = strokes(ink, "across", least, bridge=5)
    down, _ = strokes(ink, "down", max(16, least * 2 // 3), bridge=5)
    across = [s for s in across if s.thickness < 14 and s.length > 4 * s.thickness]
    down = [s for s in down if s.thickness < 14 and s.length > 4 * s.thickness]
    across, down = _without_letters(across, down, text, (width, height))
    slope = _slope(across)
    reach = max(5, round(max(height, width) / 330))
    high = median(box.height for box in text) if text else 0.008
    found = []
    for rows, columns in _networks(across, down, reach):
        grid = _grid(rows, columns, slope, reach, (width, height))
        if grid is not None and (grid := _legible(grid, high, width / height)) is not None:
            found.append(grid)
    return tuple(sorted(found, key=lambda g: (g.box.y0, g.box.x0)))


def _without_letters(
    across: list[Stroke], down: list[Stroke], text: Sequence[Box], size: tuple[int, int]
) -> tuple[list[Stroke], list[Stroke]]:
    """Strokes that are not parts of letters.

    Letters reach at most from the top of their line to its bottom, and run together into strokes of a few times their
    height. A ruling inside a line's box is longer than that, or stands at its edge.
    """
    for box in text:
        x0, y0, x1, y1 = box.x0 * size[0], box.y0 * size[1], box.x1 * size[0], box.y1 * size[1]
        high = y1 - y0
        if high > x1 - x0:
            continue
        down = [
            s
            for s in down
            if not (
                s.length <= 1.1 * high and x0 < s.at < x1 and y0 - 0.1 * high < (s.start + s.end) / 2 < y1 + 0.1 * high
            )
        ]
        across = [
            s
            for s in across
            if not (
                s.length <= 4 * high
                and x0 - high < s.start
                and s.end < x1 + high
                and y0 + 0.12 * high < s.at < y1 - 0.12 * high
            )
        ]
    return across, down


def _slope(across: Sequence[Stroke]) -> float:
    """Pixels down per pixel to the right, over the long lines."""
    slopes = sorted((s.far - s.near) / s.length for s in across if s.length > 200)
    return median(slopes) if slopes and abs(median(slopes)) < 0.02 else 0.0


def _networks(across: Sequence[Stroke], down: Sequence[Stroke], reach: int) -> list[tuple[list[Stroke], list[Stroke]]]:
    """Groups of lines that touch one another."""
    parent = list(range(len(across) + len(down)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, row in enumerate(across):
        low, high = min(row.near, row.far) - reach, max(row.near, row.far) + reach
        for j, column in enumerate(down):
            left, right = min(column.near, column.far), max(column.near, column.far)
            if row.start - reach <= right and left <= row.end + reach and column.start <= high and low <= column.end:
                parent[root(i)] = root(len(across) + j)
    groups: dict[int, tuple[list[Stroke], list[Stroke]]] = {}
    for i, row in enumerate(across):
        groups.setdefault(root(i), ([], []))[0].append(row)
    for j, column in enumerate(down):
        groups.setdefault(root(len(across) + j), ([], []))[1].append(column)
    return [group for group in groups.values() if len(group[0]) >= 2 and len(group[1]) >= 2]


@dataclass(frozen=True, slots=True)
class _Raster:
    """Where lines stand, and which sides of the rectangles between them are drawn."""

    ys: list[float]
    xs: list[float]
    tops: NDArray[Any]
    lefts: NDArray[Any]


def _grid(rows: list[Stroke], columns: list[Stroke], slope: float, reach: int, size: tuple[int, int]) -> Grid | None:
    # Coordinates without the page's remaining slope: y falls with x, and x with y the other way.
    level: list[tuple[float, float, float]] = [(s.at - slope * (s.start + s.end) / 2, s.start, s.end) for s in rows]
    plumb: list[tuple[float, float, float]] = [(s.at + slope * (s.start + s.end) / 2, s.start, s.end) for s in columns]
    middle = sum(s.at for s in columns) / len(columns)
    plumb = [(x, start - slope * middle, end - slope * middle) for x, start, end in plumb]
    ys, xs = _clusters(level, reach), _clusters(plumb, reach)
    if len(ys) < 2 or len(xs) < 2:
        return None
    raster = _Raster(ys, xs, _drawn(level, ys, xs, reach), _drawn(plumb, xs, ys, reach).T)
    cells = _cells(raster)
    if len(cells) < 2:
        return None
    boxes = []
    for row, column, below, right in cells:
        x0, x1, y0, y1 = xs[column], xs[right], ys[row], ys[below]
        shift_y, shift_x = slope * (x0 + x1) / 2, -slope * (y0 + y1) / 2
        boxes.append(
            Box.clipped(
                (x0 + shift_x) / size[0],
                (y0 + shift_y) / size[1],
                (x1 + shift_x) / size[0],
                (y1 + shift_y) / size[1],
            )
        )
    made = tuple(
        Cell(box, row, column, below - row, right - column)
        for box, (row, column, below, right) in zip(boxes, cells, strict=True)
    )
    return Grid(Box.around(boxes), made)


def _clusters(lines: Sequence[tuple[float, float, float]], reach: int) -> list[float]:
    """Places of lines; those closer than ``reach`` to the last one are the same (a double line, a broken one)."""
    places: list[list[tuple[float, float]]] = []
    for at, start, end in sorted(lines):
        if places and at - places[-1][-1][0] <= reach:
            places[-1].append((at, end - start))
        else:
            places.append([(at, end - start)])
    return [sum(a * w for a, w in group) / sum(w for _, w in group) for group in places]


def _drawn(
    lines: Sequence[tuple[float, float, float]], places: list[float], stops: list[float], reach: int
) -> NDArray[Any]:
    """(places, stops - 1) bool: whether a line stands at a place between a stop and the next."""
    drawn = np.zeros((len(places), len(stops) - 1))
    for at, start, end in lines:
        number = min(range(len(places)), key=lambda i: abs(places[i] - at))
        for k, (low, high) in enumerate(pairwise(stops)):
            drawn[number, k] += max(0.0, min(end + reach / 2, high) - max(start - reach / 2, low)) / (high - low)
    return drawn >= _COVERED


def _cells(raster: _Raster) -> list[tuple[int, int, int, int]]:
    """(row, column, row after, column after) of every enclosed rectangle, in reading order."""
    tall, wide = len(raster.ys) - 1, len(raster.xs) - 1
    group = np.full((tall, wide), -1)
    found: list[tuple[int, int, int, int]] = []
    for row in range(tall):
        for column in range(wide):
            if group[row, column] >= 0:
                continue
            # All that is reached without crossing a line.
            waiting, members, closed = [(row, column)], [], True
            group[row, column] = len(found)
            mark = group[row, column]
            while waiting:
                r, c = waiting.pop()
                members.append((r, c))
                for barred, nr, nc in (
                    (raster.tops[r, c], r - 1, c),
                    (raster.tops[r + 1, c], r + 1, c),
                    (raster.lefts[r, c], r, c - 1),
                    (raster.lefts[r, c + 1], r, c + 1),
                ):
                    if barred:
                        continue
                    if not (0 <= nr < tall and 0 <= nc < wide):
                        closed = False
                    elif group[nr, nc] < 0:
                        group[nr, nc] = mark
                        waiting.append((nr, nc))
            top, left = min(r for r, _ in members), min(c for _, c in members)
            below, right = max(r for r, _ in members) + 1, max(c for _, c in members) + 1
            whole = len(members) == (below - top) * (right - left)
            found.append((top, left, below, right) if closed and whole else (-1, -1, -1, -1))
    return sorted(cell for cell in found if cell[0] >= 0)


def _legible(grid: Grid, high: float, aspect: float) -> Grid | None:
    """Without cells too small for a line of text (``high``); None where most are: letters, or a pattern."""
    kept = [c for c in grid.cells if c.box.height > 0.55 * high and c.box.width * aspect > 0.55 * high]
    if len(kept) < 2 or len(kept) < 0.6 * len(grid.cells):
        return None
    return _compact(Grid(Box.around(c.box for c in kept), tuple(kept)))


def _compact(grid: Grid) -> Grid:
    """Without the row and column numbers at which no cell begins."""
    rows = {row: i for i, row in enumerate(sorted({c.row for c in grid.cells}))}
    columns = {column: i for i, column in enumerate(sorted({c.column for c in grid.cells}))}
    cells = []
    for cell in grid.cells:
        row_span = sum(cell.row <= r < cell.row + cell.row_span for r in rows)
        column_span = sum(cell.column <= c < cell.column + cell.column_span for c in columns)
        cells.append(Cell(cell.box, rows[cell.row], columns[cell.column], row_span, column_span))
    return Grid(grid.box, tuple(cells))
