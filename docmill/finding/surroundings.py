"""What stands around a label on a form: right of it, below it, above it, within the drawn lines."""

from __future__ import annotations

import re

from docmill.finding.cell_pairs import CONTINUES, LIKELY, trusted_grids
from docmill.finding.geometry import NEAR_GAP_CHARS
from docmill.finding.parts import NOTHING, prepared, split_label
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.finding.vocabulary import is_numbered, is_prose, label_likeness
from docmill.geometry import Box

SECTION = re.compile(r"^(?:part|section|schedule|appendix)\s+(?:[IVXl1|]+|\d+|[A-Z])\b|^(?:or|and)$", re.IGNORECASE)
VALUE_GAP = 2.1
"""How far below its label a value can start, in heights of a line."""


class Surroundings:
    """The parts of a page, which of them are labels, and which are spent.

    Args:
        sheet: the page.
        used: indices of lines that check boxes and tables have taken.
    """

    def __init__(self, sheet: Sheet, used: set[int]) -> None:
        self.sheet = sheet
        self._parts = prepared(sheet, used)
        self._labels = {id(part): split for part in self._parts if (split := split_label(part)) is not None}
        self._taken: set[int] = set()
        trusted = trusted_grids(sheet)
        self._cells = [c.box for c in sheet.cells if c.grid in trusted and c.box.area < 0.15]

    def _apart(self, label: Piece, part: Piece) -> bool:
        """Whether a drawn line parts the two: the label stands in a cell that the other is not in."""
        room = 1.8 * max(label.box.height, self.sheet.line_height)  # a cell too low for a value has it elsewhere
        own = [c for c in self._cells if _inside(label.box, c) and c.height > room]
        if not own:
            return False
        return not any(_inside(part.box, c) for c in own)

    def _whole_label(self, part: Piece) -> Piece:
        """The label with the line above that it goes on from: it starts with a small letter, right below it."""
        if not part.text[:1].islower():
            return part
        for above in self._parts:
            gap = part.box.y0 - above.box.y1
            indent = 0.045 if is_numbered(above.text) else 2 * self.sheet.char_width
            if (
                -0.4 * self.sheet.line_height < gap < 0.6 * self.sheet.line_height
                and above.box.center[1] < part.box.y0
                and -2 * self.sheet.char_width < part.box.x0 - above.box.x0 < indent
                and not self._is_taken(above)
                and id(above) not in self._labels
                and (above.text[:1].isupper() or is_numbered(above.text))
                and not above.text.rstrip().endswith(".")
            ):
                self._take(above)
                return joined([above, part], " ")
        return part

    def _row(self, piece: Piece) -> list[Piece]:
        return sorted(
            (
                p
                for p in self._parts
                if p is not piece and p.box.vertical_overlap(piece.box) > 0.45 and p.box.x0 > piece.box.x0
            ),
            key=lambda p: p.box.x0,
        )

    def _right(self, label: Piece, widest: float) -> list[Piece]:
        """The run of text right of a label, up to the next label."""
        run: list[Piece] = []
        edge = label.box.x1
        for piece in self._row(label):
            if piece.box.x0 < label.box.x1 - 0.015 or NOTHING.match(piece.text):
                continue
            limit = NEAR_GAP_CHARS * self.sheet.char_width if run else widest
            if self._is_taken(piece) or id(piece) in self._labels or piece.box.x0 - edge > limit:
                break
            if self._apart(label, piece):
                break
            if is_prose(piece.text) or is_numbered(piece.text) or label_likeness(piece.text) >= 0.6:
                break
            run.append(piece)
            edge = piece.box.x1
        return run

    def _run_on(self, part: Piece) -> list[Piece]:
        """Pieces close behind a part that already holds its value: the OCR cut the value in two."""
        run = self._right(part, 2.5 * self.sheet.char_width)
        return [p for p in run if p.box.x0 - part.box.x1 < 12 * self.sheet.char_width]

    def _continuation(self, label: Piece, value: Piece) -> list[Piece]:
        """Lines right below a value that start where it starts, right of its label: the value goes on."""
        lines: list[Piece] = []
        if value.box.x0 < label.box.x1 - 0.01 or len(value.text) < 12:
            return lines
        for part in self._parts:
            last = lines[-1] if lines else value
            gap = part.box.y0 - last.box.y1
            if (
                abs(part.box.x0 - value.box.x0) < 2 * self.sheet.char_width
                and -0.3 * self.sheet.line_height < gap < 0.7 * self.sheet.line_height
                and part.box.center[1] > last.box.y1
                and not self._is_taken(part)
                and id(part) not in self._labels
                and label_likeness(part.text) < LIKELY
            ):
                lines.append(part)
        return lines

    def _below(self, label: Piece, likeness: float) -> list[Piece]:
        """The lines below a label, in the zone between its start and the next text on its row."""
        row = [p for p in self._row(label) if p.box.x0 >= label.box.x1 - 0.015]
        indent = max(2.5 * self.sheet.char_width, 0.045 if likeness >= 0.7 and not is_numbered(label.text) else 0)
        left, right = label.box.x0 - indent, row[0].box.x0 if row else 1.01
        height = max(min(label.box.height, 1.6 * self.sheet.line_height), self.sheet.line_height)
        lines: list[list[Piece]] = []
        bottom = label.box.y1
        reach = 0.25 if is_numbered(label.text) else 0.15
        for part in self._parts:
            started = bottom - 0.1 * height if lines else label.box.center[1] + 0.5 * height
            if part is label or part.box.center[1] <= started or NOTHING.match(part.text):
                continue
            if not (left <= part.box.x0 < right - self.sheet.char_width) or part.box.x0 - label.box.x1 > reach:
                continue
            if lines and part.box.vertical_overlap(lines[-1][-1].box) > 0.5:
                near = part.box.x0 - lines[-1][-1].box.x1 < NEAR_GAP_CHARS * self.sheet.char_width
                if near and not self._is_taken(part):
                    lines[-1].append(part)
                continue
            still_label = all(CONTINUES.match(line[0].text) for line in lines)
            limit = VALUE_GAP if still_label else 0.75
            stop = part.box.y0 - bottom > limit * height or self._is_taken(part) or self._apart(label, part)
            if stop or not self._can_be_value(part, likeness, first=not lines):
                break
            if lines and is_prose(part.text) and not is_prose(lines[0][0].text):
                break
            lines.append([part])
            bottom = max(bottom, part.box.y1)
            if len(lines) >= 7:
                break
        return [joined(line, " ") for line in lines]

    def _can_be_value(self, part: Piece, likeness: float, *, first: bool) -> bool:
        split = self._labels.get(id(part))
        if SECTION.match(part.text) or is_numbered(part.text):
            return False
        if first and CONTINUES.match(part.text) and split is not None and split[1] is None:
            return True  # the label's second line, which ends in the colon
        other = label_likeness(part.text if split is None else split[0].text)
        if split is not None and other >= (0.3 if split[1] is None else 0.5):
            return False
        if other >= LIKELY and other > likeness - 0.2:
            return False
        if other >= 0.4 and any(re.fullmatch(r"[\d.,]+", p.text) for p in self._row(part)[:1]):
            return False  # itself the label of a number behind it
        return not (first and is_prose(part.text) and likeness < 0.8)

    def _above(self, label: Piece) -> Piece | None:
        """What is written on the line over a caption (``Signature``, ``Date``)."""
        over = [
            p
            for p in self._parts
            if p is not label and not self._is_taken(p) and id(p) not in self._labels
            and 0 < label.box.center[1] - p.box.center[1] < 2.5 * self.sheet.line_height
            and p.box.horizontal_overlap(label.box) > 0.5
            and label_likeness(p.text) < 0.4 and not is_prose(p.text) and not NOTHING.match(p.text)
        ]  # fmt: skip
        return max(over, key=lambda p: p.box.center[1], default=None)

    def _take(self, part: Piece) -> None:
        self._taken.add(id(part))

    def _is_taken(self, part: Piece) -> bool:
        return id(part) in self._taken


def _inside(box: Box, cell: Box) -> bool:
    """Whether the middle of a text stands in a cell."""
    x, y = box.center
    return cell.x0 <= x <= cell.x1 and cell.y0 <= y <= cell.y1
