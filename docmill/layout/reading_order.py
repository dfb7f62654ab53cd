"""The order in which a person reads boxes on an upright page."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from docmill.geometry import Box

_COLUMN_LINES = 4
"""Fewer lines side by side are a row of a form, not a column of text."""

_COLUMN_ASPECT = 9.0
"""Lines of running text are at least this many times wider than high; labels and numbers in a table are not."""


def rows_of(boxes: Sequence[Box], aspect: float = 1.0) -> list[list[int]]:
    """Group boxes into rows by vertical overlap, each row left to right, rows top to bottom.

    A box joins the row whose nearest member (across) it overlaps by half or more, so a row may slope. The answer
    depends on the boxes alone, not on the order in which they come.

    Args:
        boxes: in fractions of the page.
        aspect: page width over page height, so that distances across and down compare.

    Returns:
        Indices into ``boxes``.
    """
    order = sorted(range(len(boxes)), key=lambda i: (boxes[i].center[1], boxes[i].as_list(), i))
    rows: list[list[int]] = []
    for index in order:
        box = boxes[index]
        best: tuple[float, int] | None = None
        for number in range(len(rows) - 1, max(-1, len(rows) - 9), -1):
            nearest = min(rows[number], key=lambda i: (_apart(boxes[i], box), i))
            if boxes[nearest].vertical_overlap(box) < 0.5 or not _alike(boxes[nearest], box, aspect):
                continue
            if any(_shared(boxes[i], box) > 0.3 * min(boxes[i].width, box.width) for i in rows[number]):
                continue
            # What stands near tells more of a sloping row than what stands far.
            score = boxes[nearest].vertical_overlap(box) - _apart(boxes[nearest], box) / 2
            if best is None or score > best[0]:
                best = (score, number)
        if best is None:
            rows.append([index])
        else:
            rows[best[1]].append(index)
    for row in rows:
        row.sort(key=lambda i: (boxes[i].x0, boxes[i].as_list(), i))
    rows.sort(key=lambda row: (sum(boxes[i].center[1] for i in row) / len(row), boxes[row[0]].as_list(), row[0]))
    return rows


def reading_order(boxes: Sequence[Box], aspect: float = 1.0) -> list[int]:
    """The order to read boxes in: rows top to bottom, left to right; columns of running text one after the other.

    Args:
        boxes: of lines, on the upright page.
        aspect: page width over page height.

    Returns:
        A permutation of the indices.
    """
    return _ordered(list(range(len(boxes))), boxes, aspect, depth=0)


def _ordered(chosen: list[int], boxes: Sequence[Box], aspect: float, depth: int) -> list[int]:
    rows = [[chosen[i] for i in row] for row in rows_of([boxes[i] for i in chosen], aspect)]
    if depth >= 4 or len(rows) < _COLUMN_LINES:
        return [i for row in rows for i in row]
    found: list[int] = []
    start = 0
    while start < len(rows):
        block = _columns(rows, start, boxes, aspect)
        if block is None:
            found += rows[start]
            start += 1
            continue
        end, gutter = block
        inside = [i for row in rows[start:end] for i in row]
        found += _ordered([i for i in inside if boxes[i].center[0] < gutter], boxes, aspect, depth + 1)
        found += _ordered([i for i in inside if boxes[i].center[0] >= gutter], boxes, aspect, depth + 1)
        start = end
    return found


def _columns(rows: list[list[int]], start: int, boxes: Sequence[Box], aspect: float) -> tuple[int, float] | None:
    """Where a block of two columns that begins in this row ends, and the middle of its gutter."""
    if len(rows[start]) < 2:
        return None
    for left, right in zip(rows[start], rows[start][1:], strict=False):
        low, high = boxes[left].x1, boxes[right].x0
        end = start
        while end < len(rows):
            inside = [boxes[i] for i in rows[end]]
            near = max((b.x1 for b in inside if b.center[0] < (low + high) / 2), default=low)
            far = min((b.x0 for b in inside if b.center[0] >= (low + high) / 2), default=high)
            narrow = 0.8 * median(b.height for b in inside) / aspect
            if min(high, far) - max(low, near) < narrow:
                break
            low, high = max(low, near), min(high, far)
            end += 1
        sides = [[], []] if end == start else _sides(rows[start:end], boxes, (low + high) / 2)
        if all(_running_text(side, aspect) for side in sides):
            return end, (low + high) / 2
    return None


def _sides(rows: list[list[int]], boxes: Sequence[Box], gutter: float) -> list[list[Box]]:
    inside = [boxes[i] for row in rows for i in row]
    return [[b for b in inside if b.center[0] < gutter], [b for b in inside if b.center[0] >= gutter]]


def _running_text(side: list[Box], aspect: float) -> bool:
    if len(side) < _COLUMN_LINES:
        return False
    return median(b.width * aspect / b.height for b in side if b.height > 0) >= _COLUMN_ASPECT


def _shared(a: Box, b: Box) -> float:
    return max(0.0, min(a.x1, b.x1) - max(a.x0, b.x0))


def _apart(a: Box, b: Box) -> float:
    return max(0.0, max(a.x0, b.x0) - min(a.x1, b.x1))


def _alike(a: Box, b: Box, aspect: float) -> bool:
    """Far apart, boxes must agree better to be one row: a slope adds up, and so does chance."""
    return a.vertical_overlap(b) >= 0.65 or _apart(a, b) * aspect < 20 * min(a.height, b.height)
