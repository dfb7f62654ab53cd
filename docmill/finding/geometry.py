"""Where the value of a label stands: behind it, in its cell, to its right, below it."""

from __future__ import annotations

from collections.abc import Collection

from docmill.finding.candidate import Candidate
from docmill.finding.labels import LabelMatch
from docmill.finding.sheet import Piece, Sheet, SheetCell, joined

WIDEST_GAP = 0.55
"""How far right of its label a value can stand, as a fraction of the page's width."""

NEAR_GAP_CHARS = 4.0
"""Pieces of one row closer than so many characters belong to one value."""


def value_candidates(
    sheet: Sheet, match: LabelMatch, labels: Collection[int], *, multi_line: bool = False
) -> list[Candidate]:
    """Values a label can have, the most likely first.

    Args:
        sheet: the page.
        match: the label.
        labels: indices of the lines that are (or start with) labels: their text is no value.
        multi_line: whether the value may run over several lines (addresses).
    """
    found: list[Candidate] = []
    if match.value is not None:
        value = match.value
        if multi_line:
            value = joined([value, *_lines_below(sheet, value, labels, first=False)])
        else:
            value = joined([value, *_run_on(sheet, value, labels)], " ")
        found.append(Candidate(value, match.quality, "same_line", match.label))
    found.extend(_in_cells(sheet, match, labels))
    right = right_of(sheet, match.label, labels)
    if right is not None:
        value = right
        if multi_line:
            value = joined([right, *_lines_below(sheet, right, labels, first=False)])
        gap = max(right.box.x0 - match.label.box.x1, 0.0)
        found.append(Candidate(value, match.quality * (0.95 - 0.2 * gap / WIDEST_GAP), "right_of", match.label))
    if match.value is None:
        below = _lines_below(sheet, match.label, labels, first=True)
        if below:
            value = joined(below) if multi_line else below[0]
            found.append(Candidate(value, match.quality * 0.75, "below", match.label))
        above = _above(sheet, match.label, labels)
        if above is not None:
            found.append(Candidate(above, match.quality * 0.65, "caption", match.label))
    return found


def block_below(sheet: Sheet, match: LabelMatch, labels: Collection[int]) -> list[Piece]:
    """The lines that a label heads: the first names someone, the others are the address."""
    if match.value is not None:
        return [match.value, *_lines_below(sheet, match.value, labels, first=False)]
    return _lines_below(sheet, match.label, labels, first=True)


def _above(sheet: Sheet, label: Piece, labels: Collection[int]) -> Piece | None:
    """What is written on the line over a caption."""
    over = [
        p
        for p in sheet.pieces
        if p.index not in labels
        and 0 < label.box.center[1] - p.box.center[1] < 2.5 * max(sheet.line_height, label.box.height)
        and p.box.horizontal_overlap(label.box) > 0.5
        and not p.text.rstrip().endswith((":", "："))
    ]
    return max(over, key=lambda p: p.box.center[1], default=None)


def _row(sheet: Sheet, piece: Piece) -> tuple[Piece, ...]:
    number = sheet.row_of.get(piece.index)
    return sheet.rows[number] if number is not None else ()


def right_of(sheet: Sheet, label: Piece, labels: Collection[int]) -> Piece | None:
    """The text right of a label on its row, up to the next label; None where a label or nothing follows."""
    run: list[Piece] = []
    edge = label.box.x1
    for piece in _row(sheet, label):
        if piece.index == label.index or piece.box.x0 < label.box.x1 - 0.01:
            continue
        if piece.index in labels:
            break
        gap = piece.box.x0 - edge
        if gap > (NEAR_GAP_CHARS * sheet.char_width if run else WIDEST_GAP):
            break
        run.append(piece)
        edge = piece.box.x1
    if not run:
        return None
    value = joined(run, " ")
    start = len(value.text) - len(value.text.lstrip(" :：=."))
    return value.part(start) if value.text[start:].strip() else None


def _run_on(sheet: Sheet, value: Piece, labels: Collection[int]) -> list[Piece]:
    """Pieces close behind a value on its row (the OCR cut one value into two)."""
    run: list[Piece] = []
    edge = value.box.x1
    for piece in _row(sheet, value):
        if piece.index == value.index or piece.box.x0 < value.box.x1 - 0.005:
            continue
        if piece.index in labels or piece.box.x0 - edge > 2 * sheet.char_width:
            break
        run.append(piece)
        edge = piece.box.x1
    return run


def _lines_below(sheet: Sheet, over: Piece, labels: Collection[int], *, first: bool) -> list[Piece]:
    """Lines straight below a piece, in its column, close together, up to the next label."""
    lines: list[Piece] = []
    bottom, height = over.box.y1, max(over.box.height, sheet.line_height)
    for row in sheet.rows:
        inside = [
            p
            for p in row
            if p.index != over.index and p.box.y0 > over.box.center[1] and p.box.center[1] > bottom
            and (p.box.horizontal_overlap(over.box) > 0.5 or abs(p.box.x0 - over.box.x0) < 2 * sheet.char_width)
        ]  # fmt: skip
        if not inside:
            continue
        nearest = min(inside, key=lambda p: abs(p.box.x0 - over.box.x0))
        left = [p for p in row if p.box.x1 <= nearest.box.x0 + 0.01 and p.index != nearest.index]
        if left and left[-1].index in labels:
            break  # it is the value of the label left of it
        limit = (2.2 if first and not lines else 1.3) * height
        if nearest.index in labels or nearest.box.y0 - bottom > limit or len(lines) >= 5:
            break
        lines.append(nearest)
        bottom = nearest.box.y1
    return lines


def cell_of(sheet: Sheet, piece: Piece) -> SheetCell | None:
    """The smallest ruled cell that holds the piece."""
    holding = [c for c in sheet.cells if any(p.index == piece.index for p in c.pieces)]
    return min(holding, key=lambda c: (-c.box.intersection(piece.box), c.box.area), default=None)


def neighbour(sheet: Sheet, cell: SheetCell, *, down: int = 0, right: int = 0) -> SheetCell | None:
    """The cell right of (or below) a cell, across its spans."""
    inner = cell.cell
    row = inner.row + (inner.row_span if down else 0)
    column = inner.column + (inner.column_span if right else 0)
    for other in sheet.cells:
        c = other.cell
        if (
            other.grid == cell.grid
            and c.row <= row < c.row + c.row_span
            and c.column <= column < c.column + c.column_span
        ):
            return other
    return None


def _in_cells(sheet: Sheet, match: LabelMatch, labels: Collection[int]) -> list[Candidate]:
    cell = cell_of(sheet, match.label)
    if cell is None:
        return []
    found = []
    inside = [p for p in cell.pieces if p.index != match.label.index and p.index not in labels]
    if inside and match.value is None:
        after = [p for p in inside if p.box.center[1] >= match.label.box.y0]
        if after:
            found.append(Candidate(joined(after), match.quality * 0.95, "in_cell", match.label))
    if match.value is None and not inside:
        beside, below = neighbour(sheet, cell, right=1), neighbour(sheet, cell, down=1)
        for other, factor, rule in ((beside, 0.97, "cell_right"), (below, 0.8, "cell_below")):
            if other is not None and other.pieces and not any(p.index in labels for p in other.pieces):
                found.append(Candidate(joined(list(other.pieces)), match.quality * factor, rule, match.label))
                break
    return found
