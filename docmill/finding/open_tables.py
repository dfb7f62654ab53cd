"""Tables without ruling on pages of any kind: a row of headings over rows of values that stand under them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from docmill.finding.parts import Pair, split_label
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.finding.tables import FoundTable
from docmill.finding.vocabulary import is_numbered, is_prose, label_likeness
from docmill.normalisation.text import has_wide

LEAST_HEADS = 3
LONGEST_HEAD = 28
ROW_GAP = 2.2
"""How far below each other rows of one table stand, in heights of a line."""


def open_tables(sheet: Sheet, used: frozenset[int]) -> tuple[list[FoundTable], list[Pair]]:
    """Tables of two rows or more; a single row under headings comes as pairs.

    Args:
        sheet: the page.
        used: indices of lines that check boxes and ruled tables have taken.
    """
    tables: list[FoundTable] = []
    pairs: list[Pair] = []
    taken = set(used)
    number = 0
    while number < len(sheet.rows):
        heads = [p for p in sheet.rows[number] if p.index not in taken]
        number += 1
        if len(heads) != len(sheet.rows[number - 1]) or not _are_heads(heads):
            continue
        rows = _rows_under(heads, sheet, number, taken)
        if len(rows) >= 2:
            cells = tuple(tuple(joined(c) if c else None for c in row) for row in rows)
            here = frozenset(p.index for p in heads) | {p.index for row in rows for c in row for p in c}
            tables.append(FoundTable(tuple(heads), cells, here, ruled=False))
            taken |= here
            number += len(rows)
        elif rows and all(rows[0]):
            pairs.extend(Pair(h, joined(c), 0.85, "columns") for h, c in zip(heads, rows[0], strict=True))
    return tables, pairs


def _are_heads(row: Sequence[Piece]) -> bool:
    """Whether all of a row's texts read like headings."""
    if len(row) < LEAST_HEADS:
        return False
    for piece in row:
        text = piece.text
        filled = re.search(r"\d[.,/:-]\d|\d{2,}|[$€£¥]\s?\d|[:：]\s*\S|@", text)
        if len(text) > LONGEST_HEAD or filled or text.endswith((":", "：", "?")) or is_numbered(text) or is_prose(text):
            return False
    likely = [label_likeness(p.text) for p in row]
    known = sum(score >= 0.3 for score in likely)
    return known >= 0.6 * len(row) and sum(likely) / len(row) >= (0.3 if any(has_wide(p.text) for p in row) else 0.38)


def _rows_under(heads: list[Piece], sheet: Sheet, start: int, taken: set[int]) -> list[list[list[Piece]]]:
    """For each row below the headings, the pieces of each column."""
    rows: list[list[list[Piece]]] = []
    bottom = max(p.box.y1 for p in heads)
    for row in sheet.rows[start:]:
        columns: list[list[Piece]] = [[] for _ in heads]
        if row[0].box.y0 - bottom > ROW_GAP * sheet.line_height or any(p.index in taken for p in row):
            break
        for piece in row:
            at = _column(piece, heads, sheet)
            if at is not None:
                columns[at].append(piece)
        filled = sum(bool(c) for c in columns)
        if filled and _goes_on(columns, rows, sheet):
            for column, more in zip(rows[-1], columns, strict=True):
                column.extend(more)
            bottom = max(p.box.y1 for p in row)
            continue
        held = [p for c in columns for p in c]
        if filled < max(2, 0.5 * len(heads)) or len(held) < len(row) or not _are_values(held):
            break
        rows.append(columns)
        bottom = max(p.box.y1 for p in row)
    return rows


def _goes_on(columns: list[list[Piece]], rows: list[list[list[Piece]]], sheet: Sheet) -> bool:
    """Whether a row of print is the second line of texts in the row above: close below them, starting where they do."""
    if not rows:
        return False
    for column, above in zip(columns, rows[-1], strict=True):
        for piece in column:
            if not above or label_likeness(piece.text) >= 0.55 or split_label(piece) is not None:
                return False
            close = piece.box.y0 - above[-1].box.y1 < 0.7 * sheet.line_height
            aligned = abs(piece.box.x0 - above[0].box.x0) < 2 * sheet.char_width
            text = any(c.isalpha() for c in above[0].text) and not re.fullmatch(r"[$€£¥]?[\d.,]+%?", piece.text)
            if not (close and aligned and text and above[0].box.width > 6 * sheet.char_width):
                return False
    return sum(bool(c) for c in columns) < 0.5 * len(columns)


def _column(piece: Piece, heads: Sequence[Piece], sheet: Sheet) -> int | None:
    """The heading that a piece stands under: the one it overlaps most, else one within two characters."""
    shares = [min(piece.box.x1, h.box.x1) - max(piece.box.x0, h.box.x0) for h in heads]
    best = max(range(len(heads)), key=lambda at: shares[at])
    return best if shares[best] > -2 * sheet.char_width else None


def _are_values(row: Sequence[Piece]) -> bool:
    """Whether a row's texts are filled in: some have digits, few read like labels, none asks for a value."""
    if any(split_label(p) is not None and split_label(p)[1] is None for p in row):  # type: ignore[index]
        return False
    digits = sum(any(c.isdigit() for c in p.text) for p in row)
    labels = sum(label_likeness(p.text) >= 0.55 for p in row)
    return digits >= 1 and digits >= 0.3 * len(row) and labels <= 0.34 * len(row)
