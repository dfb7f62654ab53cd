"""Key-value pairs in the cells of ruled forms."""

from __future__ import annotations

import re

from docmill.finding.geometry import neighbour
from docmill.finding.parts import NOTHING, Pair, split_label
from docmill.finding.sheet import Sheet, SheetCell, joined
from docmill.finding.vocabulary import is_numbered, is_prose, label_likeness
from docmill.normalisation.text import has_wide

LIKELY = 0.55
"""From this likeness on a text without a colon is taken for a label where a value stands beside or below it."""

CONTINUES = re.compile(r"^[a-z(]")
"""How the second line of a label begins."""


def cell_pairs(sheet: Sheet, used: frozenset[int]) -> list[Pair]:
    """Label and value in one ruled cell, or in two neighbouring ones.

    Args:
        sheet: the page.
        used: indices of lines that check boxes and tables have taken.
    """
    pairs: list[Pair] = []
    done: set[int] = set()
    trusted = trusted_grids(sheet)
    for cell in sorted(sheet.cells, key=lambda c: (c.grid, c.cell.row, c.cell.column)):
        if id(cell) in done or cell.grid not in trusted or not _free(cell, used):
            continue
        pair = _within(cell)
        if pair is not None:
            pairs.append(pair)
            done.add(id(cell))
            continue
        whole = joined(list(cell.pieces))
        split = split_label(whole)
        likeness = label_likeness(whole.text)
        if len(whole.text) > 60 or (split is not None and split[1] is not None) or likeness < 0.3:
            continue
        value = _value_cell(sheet, cell, likeness, used)
        if value is not None and id(value) not in done:
            pairs.append(Pair(whole, joined(list(value.pieces)), 0.9, "cells"))
            done.update((id(cell), id(value)))
    return pairs


def _value_cell(sheet: Sheet, cell: SheetCell, likeness: float, used: frozenset[int]) -> SheetCell | None:
    """The cell right of a label's, else the one below; an empty one right of it says that nothing is filled in."""
    right = neighbour(sheet, cell, right=1)
    if right is not None:
        other = label_likeness(right.text)
        if not right.pieces and likeness >= LIKELY:
            return None
        if _free(right, used) and (other < 0.4 or other < likeness - 0.25) and _is_value(right):
            return right
    below = neighbour(sheet, cell, down=1)
    if below is None or not _free(below, used) or below.box.width < 0.6 * cell.box.width:
        return None
    fits = likeness >= LIKELY and label_likeness(below.text) < 0.4 and _is_value(below)
    return below if fits else None


def _is_value(cell: SheetCell) -> bool:
    """Whether a cell holds one value: no pairs of its own, no label over a value."""
    pairs = sum(split_label(p) is not None for p in cell.pieces)
    return pairs == 0 and (len(cell.pieces) == 1 or label_likeness(cell.pieces[0].text) < LIKELY)


def trusted_grids(sheet: Sheet) -> set[int]:
    """Grids whose lines do not cut through the text: those are drawn tables, others are underlines and frames."""
    whole: dict[int, list[bool]] = {}
    lines = {p.index: p.text for p in sheet.pieces}
    for cell in sheet.cells:
        for piece in cell.pieces:
            whole.setdefault(cell.grid, []).append(lines.get(piece.index) == piece.text)
    return {grid for grid, held in whole.items() if sum(held) >= 0.6 * len(held)}


def _free(cell: SheetCell, used: frozenset[int]) -> bool:
    return bool(cell.pieces) and not any(p.index in used for p in cell.pieces)


def _within(cell: SheetCell) -> Pair | None:
    """The pair of a cell whose first line or two are the label and the others the value."""
    pieces = [p for p in cell.pieces if not NOTHING.match(p.text)]
    if (
        len(pieces) < 2
        or any(split_label(p) is not None for p in pieces)
        or cell.box.height > (0.2 if len(pieces) > 3 else 0.3)
    ):
        return None
    for count in range(1, min(len(pieces), 4)):
        label, rest = joined(pieces[:count]), pieces[count:]
        likeness, follows = label_likeness(label.text), [label_likeness(p.text) for p in rest]
        if likeness < LIKELY or any(is_numbered(p.text) for p in rest) or max(follows) >= LIKELY:
            continue
        if CONTINUES.match(rest[0].text) and len(rest) > 1:
            continue
        if has_wide(label.text) != has_wide(rest[0].text) and follows[0] >= 0.3 and count == 1:
            continue  # the same label in a second language
        if is_prose(rest[0].text) or label.text.count("(") > label.text.count(")"):
            continue
        return Pair(label, joined(rest), 0.85, "in_cell")
    return None
