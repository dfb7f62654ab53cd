"""Tables: ruled ones from their cells, others from a header row and the columns below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from docmill.document_types import FieldSpec
from docmill.extraction import FieldKind, TableData
from docmill.finding.amount_kinds import kind_of_row
from docmill.finding.sheet import Piece, Sheet, SheetCell, joined
from docmill.finding.table_heads import header_rows
from docmill.finding.vocabulary import label_likeness
from docmill.geometry import Box
from docmill.normalisation.money import find_amounts
from docmill.normalisation.text import comparison_form

MOST_ROWS = 400
END_KINDS = frozenset({"total", "subtotal", "tax", "quantity", "rounding", "cash", "change", "service"})


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table.

    Attributes:
        header: a piece a column (None where the header cell is empty); empty where no header was recognised.
        rows: as many cells a row as there are columns; None where a cell is empty.
        used: indices of the lines it takes up.
        ruled: whether lines are drawn.
        title: the line above it, where there is one.
    """

    header: tuple[Piece | None, ...]
    rows: tuple[tuple[Piece | None, ...], ...]
    used: frozenset[int]
    ruled: bool
    title: Piece | None = None

    @property
    def data(self) -> TableData:
        """Its cells as text."""
        return TableData(
            tuple(p.text if p else "" for p in self.header),
            tuple(tuple(p.text if p else "" for p in row) for row in self.rows),
        )

    @property
    def pieces(self) -> list[Piece]:
        """All that stands in it."""
        return [p for row in (self.header, *self.rows) for p in row if p is not None]

    @property
    def place(self) -> Box:
        """The box around it."""
        return Box.around(p.place for p in self.pieces)


def grid_tables(sheet: Sheet) -> list[FoundTable]:
    """Ruled tables that list things: a header row of short texts over two columns or more.

    Ruled forms (label and value in cells) are no such tables; :mod:`docmill.finding.pairs` reads those.
    """
    found = []
    for number in range(len(sheet.page.grids)):
        cells = [c for c in sheet.cells if c.grid == number]
        found.extend(_lists_in(cells, sheet))
    return found


def _lists_in(cells: list[SheetCell], sheet: Sheet) -> list[FoundTable]:
    """Runs of rows of a grid that have the same columns and start with a header."""
    by_row: dict[int, list[SheetCell]] = {}
    for cell in cells:
        by_row.setdefault(cell.cell.row, []).append(cell)
    rows = [sorted(by_row[number], key=lambda c: c.cell.column) for number in sorted(by_row)]
    found: list[FoundTable] = []
    start = 0
    while start < len(rows):
        shape = _shape(rows[start])
        end = start + 1
        while end < len(rows) and _shape(rows[end]) == shape:
            end += 1
        run = rows[start:end]
        if len(shape) >= 2 and len(run) >= 2 and _is_list(run):
            found.append(_table_of(run, sheet))
        start = end
    return found


def _shape(row: list[SheetCell]) -> tuple[tuple[int, int], ...]:
    return tuple((c.cell.column, c.cell.column_span) for c in row)


def _is_list(run: list[list[SheetCell]]) -> bool:
    """Whether the first row heads the others: all its cells are short texts and no row repeats its kind of cells."""
    header = [c.text for c in run[0]]
    filled = [t for t in header if t]
    if len(filled) < max(2, len(header) - 1) or any(_looks_filled(t) for t in filled):
        return False
    if sum(map(label_likeness, filled)) < 0.35 * len(filled):
        return False
    if len(run[0]) == 2 and len(run) < 3:
        return False
    # A form alternates label and value: its first column reads like labels and its second like values in every row.
    body = [[c.text for c in row] for row in run[1:]]
    if any(t.rstrip().endswith((":", "：")) for row in body for t in row):
        return False
    if any(t.rstrip().endswith((":", "：")) for t in filled):
        return False
    values = sum(_looks_filled(t) for row in body for t in row if t)
    filled_rows = sum(any(t for t in row) for row in body)
    return filled_rows > 0 and (values > 0 or len(header) >= 3) and not _alternates(header, body)


def _looks_filled(text: str) -> bool:
    """Whether a text reads like a value rather than a heading: it has an amount, a date or a long number."""
    return bool(re.search(r"\d[.,/:-]\d|\d{4,}|^[$€£¥]?\s?\d+%?$", text)) or len(text) > 48


def _alternates(header: list[str], body: list[list[str]]) -> bool:
    """Whether columns go label, value, label, value, as in forms, instead of all heads above all values."""
    if len(header) % 2:
        return False
    rows = [header, *body]
    even = [label_likeness(row[i]) for row in rows for i in range(0, len(row), 2) if row[i]]
    odd = [label_likeness(row[i]) for row in rows for i in range(1, len(row), 2) if row[i]]
    if not even or not odd:
        return True
    return sum(even) / len(even) - sum(odd) / len(odd) > 0.25


def _table_of(run: list[list[SheetCell]], sheet: Sheet) -> FoundTable:
    header = tuple(joined(list(c.pieces)) if c.pieces else None for c in run[0])
    rows = tuple(
        tuple(joined(list(c.pieces)) if c.pieces else None for c in row)
        for row in run[1:]
        if any(c.pieces for c in row)
    )
    used = frozenset(p.index for row in run for c in row for p in c.pieces)
    return FoundTable(header, rows, used, ruled=True, title=_title(run, sheet, used))


def _title(run: list[list[SheetCell]], sheet: Sheet, used: frozenset[int]) -> Piece | None:
    top = min(c.box.y0 for c in run[0])
    left, right = min(c.box.x0 for c in run[0]), max(c.box.x1 for c in run[0])
    above = [
        p
        for p in sheet.pieces
        if p.index not in used and 0 <= top - p.box.y1 + 0.2 * sheet.line_height < 2 * sheet.line_height
        and p.box.x0 < right and p.box.x1 > left
    ]  # fmt: skip
    return above[0] if len(above) == 1 and len(above[0].text) < 60 else None


def column_table(sheet: Sheet, spec: FieldSpec) -> FoundTable | None:
    """The table of a document type on the page: its header by the columns' aliases, its rows by place.

    A row is one that has something in a column of numbers; a line of text alone belongs to the row below it where that
    one has no text yet, else to the row above.
    """
    numeric = [c.name for c in spec.columns if c.kind in (FieldKind.MONEY, FieldKind.NUMBER)]
    for number, named in header_rows(sheet, spec.columns)[:3]:
        if numeric and not set(named) & set(numeric):
            continue
        rows, used = _rows_below(sheet, number, named, spec, numeric)
        if rows:
            header = tuple(named.get(c.name) for c in spec.columns)
            used.update(p.index for p in named.values())
            return FoundTable(header, tuple(rows), frozenset(used), ruled=False)
    return None


def _rows_below(
    sheet: Sheet, number: int, named: dict[str, Piece], spec: FieldSpec, numeric: list[str]
) -> tuple[list[tuple[Piece | None, ...]], set[int]]:
    text_column = next((c.name for c in spec.columns if c.name not in numeric and c.name in named), None)
    text_column = text_column or next((c.name for c in spec.columns if c.name not in numeric), None)
    rows: list[dict[str, list[Piece]]] = []
    waiting: list[Piece] = []
    used: set[int] = set()
    for row in sheet.rows[number + 1 :]:
        label = " ".join(p.text for p in row if not find_amounts(p.text)) or row[0].text
        label_form = comparison_form(label)
        if (kind_of_row(label) in END_KINDS or label_form.startswith("total")) and any(
            find_amounts(p.text) for p in row
        ):
            break
        if kind_of_row(label) in ("total", "subtotal", "quantity") and len(row) <= 2 and rows:
            break
        shared = _by_column(row, named, numeric)
        has_numbers = any(shared.get(c) for c in numeric) if numeric else len(_named_only(shared)) >= 2
        if not has_numbers:
            texts = [p for p in row if any(ch.isalpha() for ch in p.text)]
            if not rows and not texts:
                continue  # "(RM)" and the like under the header
            if rows and not numeric:
                break  # a list without numbers ends where its columns end
            waiting.extend(texts)
            used.update(p.index for p in row)
            if len(waiting) > 5:
                break
            continue
        if text_column is not None:
            if shared.get(text_column) and any(ch.isalpha() for p in shared[text_column] for ch in p.text):
                if rows and waiting:
                    rows[-1].setdefault(text_column, []).extend(waiting)
            elif waiting:
                shared[text_column] = [*waiting, *shared.get(text_column, [])]
            waiting = []
        rows.append(shared)
        used.update(p.index for p in row)
        if len(rows) >= MOST_ROWS:
            break
    if rows and waiting and text_column is not None and not rows[-1].get(text_column):
        rows[-1][text_column] = waiting
    whole = [tuple(joined(r[c.name]) if r.get(c.name) else None for c in spec.columns) for r in rows]
    return whole, used


def _named_only(shared: dict[str, list[Piece]]) -> list[str]:
    return [name for name in shared if not name.startswith("?")]


def _by_column(row: Sequence[Piece], named: dict[str, Piece], numeric: list[str]) -> dict[str, list[Piece]]:
    """The pieces of a row shared out to the columns; a piece of several numbers is cut at its words."""
    shared: dict[str, list[Piece]] = {}
    for piece in (part for p in row for part in _cells_in(p)):
        parts = _number_and_unit(piece)
        heads = [_head_of(part, named, numeric) for part in parts]
        if len(parts) == 2 and (heads[0] == heads[1] or None in heads):
            parts, heads = [piece], [_head_of(piece, named, numeric)]
        for part, head in zip(parts, heads, strict=True):
            if head is not None:
                shared.setdefault(head, []).append(part)
    return shared


def _head_of(piece: Piece, named: dict[str, Piece], numeric: list[str]) -> str | None:
    """The column that a piece stands under; None where it is too far from all."""
    is_number = bool(re.fullmatch(r"[-(]?\W{0,3}(RM|[$€£¥])?\s?[\d.,]+\)?-?\s?[A-Za-z%*]{0,3}", piece.text))
    best = max(named, key=lambda name: _fits(piece, named[name], is_number == (name in numeric)))
    return best if _fits(piece, named[best], is_number == (best in numeric)) > -0.2 else None


def _number_and_unit(piece: Piece) -> list[Piece]:
    """``10 pcs`` as two pieces: it may stand under two heads."""
    match = re.fullmatch(r"(\d+(?:[.,]\d+)?)\s([^\W\d]+\.?)", piece.text)
    return [piece.part(0, match.end(1)), piece.part(match.start(2))] if match else [piece]


def _cells_in(piece: Piece) -> list[Piece]:
    if re.fullmatch(r"[\d.,]+[xX@%]?(\s[-$€£¥RM]*[\d.,]+%?)+(\s?[A-Z]{1,3})?", piece.text) and " " in piece.text:
        cuts, at = [], 0
        for word in piece.text.split(" "):
            cuts.append(piece.part(at, at + len(word)))
            at += len(word) + 1
        return cuts
    return [piece]


def _fits(piece: Piece, head: Piece, same_kind: bool) -> float:
    """How well a piece stands under a head: their overlap, else how far apart they are."""
    shared = min(piece.box.x1, head.box.x1) - max(piece.box.x0, head.box.x0)
    smaller = max(min(piece.box.width, head.box.width), 1e-6)
    fit = min(shared / smaller, 1.0) if shared > 0 else shared * 4
    return fit + (0.15 if same_kind else -0.15)
