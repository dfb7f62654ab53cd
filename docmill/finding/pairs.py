"""Key-value pairs of a form that nobody described: labels and values told apart by place, form and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from docmill.finding.geometry import NEAR_GAP_CHARS, neighbour
from docmill.finding.labels import label_end
from docmill.finding.sheet import Piece, Sheet, SheetCell, joined
from docmill.finding.vocabulary import is_prose, label_likeness
from docmill.normalisation.text import has_wide

LIKELY = 0.55
"""From this likeness on a text without a colon is taken for a label where a value stands beside or below it."""

_BLANKS = re.compile(r"_{2,}|\.{4,}|…{2,}")
_INNER = re.compile(
    r"(?<=\S)\s+(?=(?:[A-Z][A-Za-z'/]*\.?(?:\s(?:of|to|and|the|[A-Z#][A-Za-z'/]*\.?|\d))*\s?#?\s?[:：](?!\d\d\b|//)))"
)
_NOTHING = re.compile(r"^[\W_]*$")


@dataclass(frozen=True, slots=True)
class Pair:
    """A label and its value; ``quality`` says how clear the layout is, 0 to 1."""

    label: Piece
    value: Piece
    quality: float
    rule: str


def find_pairs(sheet: Sheet, used: frozenset[int]) -> list[Pair]:
    """All label-value pairs, in reading order.

    Args:
        sheet: the page.
        used: indices of lines that check boxes and tables have taken.
    """
    finder = _Finder(sheet, set(used))
    finder.cells()
    finder.colons()
    finder.likely_labels()
    return sorted(finder.pairs, key=lambda p: (p.label.index, p.label.box.y0, p.label.box.x0))


def segments(piece: Piece) -> Iterator[Piece]:
    """A line cut before each ``Label:`` inside it."""
    text = piece.text
    if has_wide(text):
        yield piece
        return
    starts = [0]
    for match in _INNER.finditer(text):
        before = text[starts[-1] : match.start()]
        end = label_end(before)
        if end and before[end:].strip(" :："):
            starts.append(match.end())
        elif not end and starts == [0] and not is_prose(before):
            # a value of the label to the left, then the next label: "CA Zip Code: 12345"
            starts.append(match.end())
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield piece.part(start, end)


def split_label(piece: Piece) -> tuple[Piece, Piece | None] | None:
    """(label, value or None) of a text such as ``Label: value`` or ``Label ____ value``; None where it is neither."""
    text = piece.text
    end = label_end(text)
    if end and any(c.isalpha() for c in text[:end]) and not re.search(r"https?$|www", text[:end]):
        value = _BLANKS.sub(" ", text[end:].lstrip(" :：#;"))
        start = len(text) - len(text[end:].lstrip(" :：#;"))
        return piece.part(0, end), None if _NOTHING.match(value) else _without_blanks(piece.part(start))
    blank = _BLANKS.search(text)
    if blank and blank.start() >= 2 and any(c.isalpha() for c in text[: blank.start()]):
        rest = text[blank.start() :]
        value = _BLANKS.sub(" ", rest)
        return piece.part(0, blank.start()), None if _NOTHING.match(value) else _without_blanks(
            piece.part(blank.start())
        )
    return None


def _without_blanks(piece: Piece) -> Piece:
    start = len(piece.text) - len(piece.text.lstrip("_ .…"))
    end = len(piece.text.rstrip("_ …"))
    return piece.part(start, end) if start < end else piece


class _Finder:
    """Walks the page once per rule, the clearest first; what one rule takes the next leaves alone."""

    def __init__(self, sheet: Sheet, used: set[int]) -> None:
        self.sheet = sheet
        self.used = used
        self.pairs: list[Pair] = []
        self._parts: list[Piece] = [
            part for piece in sheet.pieces if piece.index not in used for part in segments(piece)
        ]
        self._labels = {
            id(part): split for part in self._parts if (split := split_label(part)) is not None
        }  # fmt: skip
        self._taken: set[int] = set()

    # --- ruled cells ---------------------------------------------------------------------------------------------

    def cells(self) -> None:
        """Label and value in one cell, or in two neighbouring ones."""
        done: set[int] = set()
        for cell in sorted(self.sheet.cells, key=lambda c: (c.grid, c.cell.row, c.cell.column)):
            if id(cell) in done or not self._free(cell):
                continue
            if self._within(cell):
                done.add(id(cell))
                continue
            if len(cell.text) > 60 or self._is_whole_pair(cell):
                continue
            likeness = label_likeness(cell.text)
            for beside, factor in (
                (neighbour(self.sheet, cell, right=1), 0.9), (neighbour(self.sheet, cell, down=1), 0.75)
            ):  # fmt: skip
                if beside is None or id(beside) in done or not self._free(beside):
                    continue
                other = label_likeness(beside.text)
                if likeness >= 0.3 and (other < likeness or other < LIKELY):
                    self._add(joined(list(cell.pieces)), joined(list(beside.pieces)), factor, "cells")
                    done.update((id(cell), id(beside)))
                    break

    def _is_whole_pair(self, cell: SheetCell) -> bool:
        split = split_label(joined(list(cell.pieces)))
        return split is not None and split[1] is not None

    def _free(self, cell: SheetCell) -> bool:
        return bool(cell.pieces) and not any(p.index in self.used for p in cell.pieces)

    def _within(self, cell: SheetCell) -> bool:
        """A cell whose first line is the label and the others the value."""
        pieces = list(cell.pieces)
        if len(pieces) < 2 or any(split_label(p) is not None for p in pieces):
            return False
        for count in range(1, min(len(pieces), 4)):
            label, rest = joined(pieces[:count]), pieces[count:]
            gap = min(p.box.y0 for p in rest) - max(p.box.y1 for p in pieces[:count])
            smaller = rest[0].box.height > 1.15 * pieces[0].box.height
            likeness = label_likeness(label.text)
            follows = label_likeness(rest[0].text)
            if likeness >= LIKELY and follows < LIKELY and not is_prose(rest[0].text):
                if has_wide(label.text) != has_wide(rest[0].text) and follows >= 0.3 and count == 1 and not smaller:
                    continue  # the same label in a second language
                if smaller or gap > -0.5 * self.sheet.line_height:
                    self._add(label, joined(rest), 0.85, "in_cell")
                    return True
        return False

    # --- colons --------------------------------------------------------------------------------------------------

    def colons(self) -> None:
        """``Label: value`` in one line; the value right of, or below, a label that ends in a colon."""
        for part in self._parts:
            split = self._labels.get(id(part))
            if split is None or self._is_taken(part):
                continue
            label, value = split
            if value is not None:
                run = self._run_on(value)
                whole = joined([value, *run], " ")
                whole = joined([whole, *self._continuation(label, whole)])
                self._add(label, whole, 0.95, "same_line")
                self._take(part)
                continue
            right = self._right(label)
            if right:
                self._add(label, joined(right, " "), 0.9, "right_of")
                self._take(part)
                continue
            below = self._below(label)
            if below:
                self._add(label, joined(below), 0.75, "below")
                self._take(part)

    # --- labels known by their words -----------------------------------------------------------------------------

    def likely_labels(self) -> None:
        """Labels without a colon: item numbers and form words over, or left of, a value; or under a written line."""
        scored = [(label_likeness(p.text), p) for p in self._parts if not self._is_taken(p)]
        for likeness, part in scored:
            if likeness < LIKELY or self._is_taken(part) or id(part) in self._labels:
                continue
            right, below = self._right(part, 0.25), self._below(part)
            right = [] if right and label_likeness(right[0].text) >= min(likeness, LIKELY) else right
            near = right and right[0].box.x0 - part.box.x1 < 6 * self.sheet.char_width
            if right and (near or not below):
                self._add(part, joined(right, " "), 0.75 * likeness + 0.1, "right_of_word")
            elif below:
                self._add(part, joined(below), 0.75 * likeness + 0.05, "below_word")
            else:
                above = self._above(part)
                if above is None:
                    continue
                self._add(part, above, 0.6 * likeness, "above_word")
            self._take(part)

    # --- what stands around a label ------------------------------------------------------------------------------

    def _row(self, piece: Piece) -> list[Piece]:
        return [
            p
            for p in self._parts
            if p is not piece and not self._is_taken(p) and p.box.vertical_overlap(piece.box) > 0.45
        ]

    def _right(self, label: Piece, widest: float = 0.45) -> list[Piece]:
        run: list[Piece] = []
        edge = label.box.x1
        for piece in sorted(self._row(label), key=lambda p: p.box.x0):
            if piece.box.x0 < label.box.x1 - 0.012 or _NOTHING.match(piece.text):
                continue
            limit = NEAR_GAP_CHARS * self.sheet.char_width if run else widest
            if id(piece) in self._labels or piece.box.x0 - edge > limit or is_prose(piece.text):
                break
            if label_likeness(piece.text) >= 0.7:
                break
            run.append(piece)
            edge = piece.box.x1
        return run

    def _run_on(self, value: Piece) -> list[Piece]:
        run: list[Piece] = []
        edge = value.box.x1
        for piece in sorted(self._row(value), key=lambda p: p.box.x0):
            if piece.box.x0 < value.box.x1 - 0.005:
                continue
            if id(piece) in self._labels or piece.box.x0 - edge > 2.5 * self.sheet.char_width:
                break
            if label_likeness(piece.text) >= 0.7:
                break
            run.append(piece)
            edge = piece.box.x1
        return run

    def _continuation(self, label: Piece, value: Piece) -> list[Piece]:
        """Lines right below a value that stand under it, indented from the label: the value goes on."""
        if value.box.x0 < label.box.x1 - 0.01:
            return []
        return [p for p in self._below(value, tight=True) if p.box.x0 > label.box.x0 + 4 * self.sheet.char_width]

    def _below(self, label: Piece, *, tight: bool = False) -> list[Piece]:
        lines: list[Piece] = []
        bottom = label.box.y1
        height = max(label.box.height, self.sheet.line_height)
        column = [
            p
            for p in self._parts
            if p is not label and not self._is_taken(p) and p.box.center[1] > label.box.y1 and self._in_column(p, label)
        ]
        for piece in sorted(column, key=lambda p: (p.box.center[1], p.box.x0)):
            if lines and piece.box.vertical_overlap(lines[-1].box) > 0.5:
                continue
            limit = (0.8 if tight else 2.0) * height if not lines else 0.9 * height
            if piece.box.y0 - bottom > limit or id(piece) in self._labels or _NOTHING.match(piece.text):
                break
            if label_likeness(piece.text) >= LIKELY or (is_prose(piece.text) and not lines and len(label.text) > 60):
                break
            lines.append(piece)
            bottom = piece.box.y1
            if len(lines) >= 6:
                break
        return lines

    def _in_column(self, piece: Piece, label: Piece) -> bool:
        starts_near = abs(piece.box.x0 - label.box.x0) < 3 * self.sheet.char_width
        inside = piece.box.horizontal_overlap(label.box) > 0.6 and piece.box.width < 1.6 * label.box.width + 0.1
        return starts_near or inside

    def _above(self, label: Piece) -> Piece | None:
        """What is written on the line over a caption (``Signature``, ``Date``)."""
        over = [
            p
            for p in self._parts
            if p is not label and not self._is_taken(p) and id(p) not in self._labels
            and 0 < label.box.center[1] - p.box.center[1] < 2.2 * self.sheet.line_height
            and p.box.horizontal_overlap(label.box) > 0.5
            and label_likeness(p.text) < 0.3 and not is_prose(p.text)
        ]  # fmt: skip
        return max(over, key=lambda p: p.box.center[1], default=None)

    # --- book-keeping --------------------------------------------------------------------------------------------

    def _add(self, label: Piece, value: Piece, quality: float, rule: str) -> None:
        self.pairs.append(Pair(label, value, min(quality, 1.0), rule))
        for part in self._parts:
            if part is label or part is value or self._covers(value, part) or self._covers(label, part):
                self._take(part)

    def _covers(self, whole: Piece, part: Piece) -> bool:
        shared = whole.place.intersection(part.place)
        return part.text in whole.text and shared > 0.7 * part.place.area

    def _take(self, part: Piece) -> None:
        self._taken.add(id(part))

    def _is_taken(self, part: Piece) -> bool:
        return id(part) in self._taken
