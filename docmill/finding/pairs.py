"""Key-value pairs of a form that nobody described: labels and values told apart by place, form and words."""

from __future__ import annotations

import re

from docmill.finding.cell_pairs import CONTINUES, LIKELY, cell_pairs, trusted_grids
from docmill.finding.geometry import NEAR_GAP_CHARS
from docmill.finding.parts import NOTHING, Pair, prepared, split_label
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.finding.stamps import stamps
from docmill.finding.vocabulary import is_numbered, is_prose, label_likeness, phrase_end
from docmill.geometry import Box
from docmill.normalisation.dates import DateOrder
from docmill.normalisation.text import has_wide

SECTION = re.compile(r"^(?:part|section|schedule|appendix)\s+(?:[IVXl1|]+|\d+|[A-Z])\b|^(?:or|and)$", re.IGNORECASE)
_REMARK = re.compile(
    r"^\W*(?:please\s+)?(?:notes?|instructions?|important|warning|caution|notice|example|remember|attention|disclaimer|tip|hint|"
    r"public reporting burden|privacy act[\w ]*)\W*$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r",\s")
_SENTENCE = re.compile(
    r"\b(?:I|we|you)\s+(?:am|are|have|had|will|must|certify|declare|agree)\b|[;,]$|\b(?:and|or)$", re.IGNORECASE
)
VALUE_GAP = 2.1
"""How far below its label a value can start, in heights of a line."""


def find_pairs(sheet: Sheet, used: frozenset[int], order: DateOrder = "DMY") -> list[Pair]:
    """All label-value pairs, in reading order.

    Args:
        sheet: the page.
        used: indices of lines that check boxes and tables have taken.
        order: how dates of the page are read.
    """
    finder = _Finder(sheet, set(used))
    finder.keep(cell_pairs(sheet, used))
    finder.stamps(order)
    finder.numbered()
    finder.colons()
    finder.phrases()
    finder.likely_labels()
    finder.rows()
    return sorted(finder.pairs, key=lambda p: (p.label.index, p.label.box.y0, p.label.box.x0))


class _Finder:
    """Walks the page once per rule, the clearest first; what one rule takes the next leaves alone."""

    def __init__(self, sheet: Sheet, used: set[int]) -> None:
        self.sheet = sheet
        self.used = used
        self.pairs: list[Pair] = []
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

    def keep(self, pairs: list[Pair]) -> None:
        """Take pairs that were found elsewhere: their text is spent."""
        for pair in pairs:
            self._add(pair.label, pair.value, pair.quality, pair.rule)

    # --- labels in the open --------------------------------------------------------------------------------------

    def stamps(self, order: DateOrder) -> None:
        """Stamps: what was done, and when."""
        for part, pair in stamps([p for p in self._parts if not self._is_taken(p)], order):
            self._add(pair.label, pair.value, pair.quality, pair.rule)
            self._take(part)

    def numbered(self) -> None:
        """Items of a numbered form: ``5. Date`` over (or left of) what is filled in."""
        items = [p for p in self._parts if is_numbered(p.text) and label_likeness(p.text) >= LIKELY]
        if len(items) < 3:
            return  # a numbered paragraph or two do not make a form
        for part in items:
            if self._is_taken(part) or (is_prose(part.text) and _SENTENCE.search(part.text)):
                continue
            split = self._labels.get(id(part))
            if split is not None and split[1] is not None:
                continue
            below = self._below(part, 0.85)
            right = self._right(part, 0.12)
            if right and (not below or right[0].box.x0 - part.box.x1 < 0.05):
                self._pair(part, part, right, 0.8, "item_right", " ")
            elif below:
                self._pair(part, part, below, 0.78, "item_below")

    def colons(self) -> None:
        """``Label: value`` in one line; the value right of, or below, a label that ends in a colon."""
        for part in self._parts:
            split = self._labels.get(id(part))
            if split is None or self._is_taken(part):
                continue
            label, value = split
            if value is not None and _is_remark(label.text, value.text):
                self._take(part)
                continue
            if value is not None:
                whole = joined([value, *self._run_on(part)], " ")
                whole = joined([whole, *self._continuation(label, whole)])
                self._pair(part, label, [whole], 0.95, "same_line")
            elif right := self._right(part, 0.45):
                self._pair(part, label, right, 0.9, "right_of", " ")
            elif below := self._below(part, 0.9 if not part.text[:1].islower() else 0.6):
                self._pair(part, label, below, 0.75, "below")

    def phrases(self) -> None:
        """Well-known labels that their value follows without a colon (``Sold To Willowham Works``)."""
        for part in self._parts:
            if self._is_taken(part) or id(part) in self._labels:
                continue
            end = phrase_end(part.text)
            if end:
                value = part.part(end + len(part.text[end:]) - len(part.text[end:].lstrip(" #.")))
                self._pair(part, part.part(0, end), [value, *self._run_on(part)], 0.7, "phrase", " ")

    def likely_labels(self) -> None:
        """Labels known by their words: left of, over, or under (a caption) what is filled in."""
        for part in self._parts:
            likeness = label_likeness(part.text)
            if likeness < LIKELY or self._is_taken(part) or id(part) in self._labels:
                continue
            right, below = self._right(part, 0.4), self._below(part, likeness)
            if right and label_likeness(right[0].text) >= 0.4:
                right = []
            gap = right[0].box.x0 - part.box.x1 if right else 1.0
            digits = any(c.isdigit() for p in right[:1] for c in p.text)
            beside = bool(right) and (gap < 0.12 or has_wide(part.text) or digits)
            label = self._whole_label(part)
            if beside or (right and not below):
                self._pair(part, label, right, 0.75 * likeness + 0.1, "right_of_word", " ")
            elif below:
                self._pair(part, label, below, 0.75 * likeness + 0.05, "below_word")
            elif (above := self._above(part)) is not None:
                self._pair(part, part, [above], 0.6 * likeness, "caption")

    def _whole_label(self, part: Piece) -> Piece:
        """The label with the line above that it goes on from: it starts with a small letter, right below it."""
        if not part.text[:1].islower():
            return part
        for above in self._parts:
            gap = part.box.y0 - above.box.y1
            if (
                -0.4 * self.sheet.line_height < gap < 0.6 * self.sheet.line_height
                and above.box.center[1] < part.box.y0
                and abs(above.box.x0 - part.box.x0) < 2 * self.sheet.char_width
                and not self._is_taken(above)
                and id(above) not in self._labels
                and above.text[:1].isupper()
                and not above.text.rstrip().endswith(".")
            ):
                self._take(above)
                return joined([above, part], " ")
        return part

    def rows(self) -> None:
        """What is left: a short text and a number behind it on one row."""
        for part in self._parts:
            if self._is_taken(part) or id(part) in self._labels or not _is_short_text(part.text):
                continue
            right = self._right(part, 0.3)
            if len(right) == 1 and re.fullmatch(r"[-(]?\W?\s?\d[\d.,]*\W?|[xX√✓]", right[0].text):
                self._pair(part, part, right, 0.5, "row")

    # --- what stands around a label ------------------------------------------------------------------------------

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
        left, right = label.box.x0 - 2.5 * self.sheet.char_width, row[0].box.x0 if row else 1.01
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

    # --- book-keeping --------------------------------------------------------------------------------------------

    def _pair(
        self, part: Piece, label: Piece, value: list[Piece], quality: float, rule: str, separator: str | None = None
    ) -> None:
        """Keep a pair; lines at the value's head that are the label's second line go to the label."""
        rest = list(value)
        more: list[Piece] = []
        while rest and rule != "same_line" and _opens(" ".join([label.text, *(p.text for p in more)])):
            more.append(rest.pop(0))  # the label's bracket closes on a line of its own
        if not rest:
            return
        ends = label.text.rstrip().endswith((":", "：", "?"))
        while len(rest) > 1 and not ends and rule in ("item_below", "below_word") and CONTINUES.match(rest[0].text):
            if is_prose(rest[0].text) and len(rest[0].text) > 100 and not is_numbered(label.text):
                break
            more.append(rest.pop(0))
        if rule in ("item_below", "below_word") and not ends and not more and CONTINUES.match(rest[0].text):
            only_bracket = re.fullmatch(r"\([^()]*\)?", rest[0].text)
            if only_bracket:
                return
            tight = rest[0].box.y0 - label.box.y1 < 0.35 * self.sheet.line_height
            if tight and len(rest) == 1 and not any(c.isdigit() or c.isupper() for c in rest[0].text):
                return  # the label's second line over an empty space
        self._add(joined([label, *more]), joined(rest, separator), quality, rule)
        for piece in (part, *value):
            self._take(piece)

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


def _is_remark(label: str, value: str) -> bool:
    """Whether ``Label: text`` is a remark of the form's, or a sentence with a colon, and nothing that is filled in."""
    if _REMARK.match(label) and len(value.split()) >= 8:
        return True
    if not (is_prose(value) or (len(value.split()) >= 7 and value[:1].islower())):
        return _CLAUSE.search(label) is not None and len(value.split()) <= 2 and value.islower() and value.isalpha()
    return bool(_REMARK.match(label)) or label_likeness(label) < 0.3


def _opens(text: str) -> bool:
    return text.count("(") > text.count(")") and text.rfind("(") > 0


def _inside(box: Box, cell: Box) -> bool:
    """Whether the middle of a text stands in a cell."""
    x, y = box.center
    return cell.x0 <= x <= cell.x1 and cell.y0 <= y <= cell.y1


def _is_short_text(text: str) -> bool:
    words = text.split()
    return 1 <= len(words) <= 5 and sum(c.isalpha() for c in text) >= 3 and sum(c.isdigit() for c in text) <= 2
