"""Check boxes with their labels and the question they answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from statistics import median

from docmill.finding.sheet import Piece, Sheet, SheetMark, joined
from docmill.geometry import Box
from docmill.normalisation.booleans import parse_boolean
from docmill.normalisation.text import collapse, comparison_form, fold_width, has_wide

_GLYPH = re.compile(r"^[\s□☐☑☒✓✔√口〇○◯●■▢\[\]()|_.:-]+(?=\S)|[\s□☐☑☒✓✔√▢\[\](|_]+$")
_INK_GLYPH = re.compile(r"(?P<box>[□☐▢○◯☑☒✓✔√⊠■●]|\[\s?[xXvV✓]?\s?\])\s?")
_FULL = frozenset("☑☒✓✔√⊠■●")
FARTHEST_LABEL = 0.12
"""How far from its box a label can start, as a fraction of the page's width."""


@dataclass(frozen=True, slots=True)
class CheckBox:
    """A check box.

    Attributes:
        label: what stands beside it, without the box's own glyph; None where nothing does.
        question: what its group asks (``Gender``, ``Do you have a cough?``); None where nothing shows it.
    """

    box: Box
    place: Box
    checked: bool
    confidence: float
    label: Piece | None
    question: Piece | None

    @property
    def name(self) -> str:
        """Question and label as one text."""
        parts = [clean_label(p.text) for p in (self.question, self.label) if p is not None]
        return collapse(" ".join(parts))


@dataclass(frozen=True, slots=True)
class FoundBoxes:
    """All check boxes of a page, and the indices of the lines that their labels and questions use up."""

    boxes: tuple[CheckBox, ...]
    used: frozenset[int]


def clean_label(text: str) -> str:
    """A label without box glyphs and trailing colons."""
    text = _GLYPH.sub("", text)
    return _GLYPH.sub("", text).strip(" :：").strip()


def find_checkboxes(sheet: Sheet) -> FoundBoxes:
    """The marks seen in the picture with their labels; without marks, boxes that the OCR read as characters."""
    words = [w for p in sheet.pieces for w in _word_pieces(p)]
    marks = tuple(m for m in sheet.marks if not any(_inside_word(m.box, w) for w in words))
    if not marks:
        return _glyph_boxes(sheet)
    used: set[int] = set()
    found: list[CheckBox] = []
    for group in _mark_rows(marks):
        labels, left_sided = _labels(group, words, sheet)
        question = _question(group, labels, sheet, left_sided)
        for mark, label in zip(group, labels, strict=True):
            own = question if question is not None and (label is None or question.index != label.index) else None
            found.append(CheckBox(mark.box, mark.place, mark.checked, mark.confidence, label, own))
            used.update(p.index for p in (label, own) if p is not None)
    return FoundBoxes(tuple(found), frozenset(used))


def _word_pieces(piece: Piece) -> list[Piece]:
    """A piece cut at its words, so that a line that holds several labels can be shared out."""
    position, found = 0, []
    for word in piece.words:
        folded = collapse(fold_width(word.text))
        at = piece.text.find(folded, position)
        if at < 0:
            return [piece]
        position = at + len(folded)
        found.append(piece.part(at, position))
    return found or [piece]


def _inside_word(mark: Box, word: Piece) -> bool:
    """Whether a mark is a letter (an ``x``, a ``口``) in the middle of a word rather than a box beside one."""
    char = word.box.width / max(len(word.text), 1)
    return (
        len(word.text) >= 3
        and word.box.x0 + 0.9 * char < mark.x0
        and mark.x1 < word.box.x1 - 0.4 * char
        and mark.vertical_overlap(word.box) > 0.5
    ) or (
        len(word.text) >= 6
        and word.box.x0 + 2 * char < mark.center[0]
        and mark.vertical_overlap(word.box) > 0.5
        and mark.center[0] < word.box.x1
        and mark.width < 1.3 * char
    )


def _mark_rows(marks: tuple[SheetMark, ...]) -> list[list[SheetMark]]:
    rows: list[list[SheetMark]] = []
    for mark in sorted(marks, key=lambda m: m.box.center[1]):
        for row in rows[-4:]:
            if row[-1].box.vertical_overlap(mark.box) > 0.5 and all(
                m.box.horizontal_overlap(mark.box) < 0.3 for m in row
            ):
                row.append(mark)
                break
        else:
            rows.append([mark])
    return [sorted(row, key=lambda m: m.box.x0) for row in rows]


def _labels(group: list[SheetMark], words: list[Piece], sheet: Sheet) -> tuple[list[Piece | None], bool]:
    """The labels of the boxes in one row, and whether they stand left of their boxes."""
    height = median(m.box.height for m in group)
    near = sorted(
        (w for w in words if abs(w.box.center[1] - _at(group, w)) < 0.6 * max(height, w.box.height) and _in(w)),
        key=lambda w: w.box.x0,
    )
    right = [
        _run_right(mark, following, near, sheet) for mark, following in zip(group, [*group[1:], None], strict=True)
    ]
    left = [_run_left(mark, previous, near, sheet) for mark, previous in zip(group, [None, *group[:-1]], strict=True)]
    lefts = sum(r is not None for r in left)
    last_has_none = right[-1] is None and left[0] is not None
    colons = sum(r is not None and r.text.rstrip().endswith((":", "：")) for r in left)
    if (last_has_none or (len(group) > 1 and colons == len(group))) and lefts >= len(group):
        return left, True
    return [r if r is not None else (o if len(group) == 1 else None) for r, o in zip(right, left, strict=True)], False


def _at(group: list[SheetMark], word: Piece) -> float:
    nearest = min(group, key=lambda m: abs(m.box.center[0] - word.box.center[0]))
    return nearest.box.center[1]


def _in(word: Piece) -> bool:
    return bool(clean_label(word.text)) or any(c.isalnum() for c in word.text)


def _run_right(mark: SheetMark, following: SheetMark | None, words: list[Piece], sheet: Sheet) -> Piece | None:
    run: list[Piece] = []
    edge = mark.box.x1
    limit = following.box.x0 if following is not None else 1.0
    for word in words:
        if word.box.center[0] <= mark.box.x1 or word.box.center[0] >= limit:
            continue
        gap = word.box.x0 - edge
        if gap > (3.0 * sheet.char_width if run else FARTHEST_LABEL):
            break
        run.append(word)
        edge = word.box.x1
    return _cleaned(joined(run, _separator(run))) if run else None


def _run_left(mark: SheetMark, previous: SheetMark | None, words: list[Piece], sheet: Sheet) -> Piece | None:
    run: list[Piece] = []
    edge = mark.box.x0
    limit = previous.box.x1 if previous is not None else 0.0
    for word in reversed(words):
        if word.box.center[0] >= mark.box.x0 or word.box.center[0] <= limit:
            continue
        gap = edge - word.box.x1
        if gap > (3.0 * sheet.char_width if run else FARTHEST_LABEL):
            break
        run.insert(0, word)
        edge = word.box.x0
    return _cleaned(joined(run, _separator(run))) if run else None


def _separator(run: list[Piece]) -> str:
    return "" if all(has_wide(p.text) for p in run) else " "


def _cleaned(piece: Piece) -> Piece | None:
    text = clean_label(piece.text)
    if not text:
        return None
    at = piece.text.find(text)
    return piece.part(at, at + len(text)) if at >= 0 else piece


def _question(group: list[SheetMark], labels: list[Piece | None], sheet: Sheet, left_sided: bool) -> Piece | None:
    """What a row of boxes asks: the text left of the first box, else the line close above a yes-no group."""
    if left_sided:
        return None
    first = group[0]
    own = {p.index for p in labels if p is not None}
    row = [
        p
        for p in sheet.pieces
        if p.index not in own and p.box.x1 <= first.box.x0 + 0.01 and p.box.vertical_overlap(first.box) > 0.3
    ]
    if row:
        nearest = max(row, key=lambda p: p.box.x1)
        run = [p for p in row if p.box.vertical_overlap(nearest.box) > 0.5 and p.box.x0 >= nearest.box.x0 - 0.25]
        whole = joined(sorted(run, key=lambda p: p.box.x0), " ")
        if len(group) > 1 or _asks(whole.text) or _yes_no(labels):
            return whole
        return None
    if _yes_no(labels) or len(group) > 1:
        above = [
            p
            for p in sheet.pieces
            if p.index not in own
            and 0 <= first.box.y0 - p.box.y1 + 0.3 * sheet.line_height < 1.6 * sheet.line_height
            and p.box.x0 < first.box.x1
            and p.box.x1 > first.box.x0 - 0.05
        ]
        asking = [p for p in above if _asks(p.text) or _yes_no(labels)]
        return max(asking, key=lambda p: p.box.y1, default=None)
    return None


def _asks(text: str) -> bool:
    return text.rstrip().endswith(("?", "？", ":", "："))


def _yes_no(labels: list[Piece | None]) -> bool:
    held = [comparison_form(p.text) for p in labels if p is not None]
    return bool(held) and all(parse_boolean(h) is not None for h in held)


def _glyph_boxes(sheet: Sheet) -> FoundBoxes:
    """Boxes that were read as characters: ``☑ Yes ☐ No``, ``[x] Annual``."""
    found: list[CheckBox] = []
    used: set[int] = set()
    for piece in sheet.pieces:
        matches = list(_INK_GLYPH.finditer(piece.text))
        for match, following in zip_longest(matches, matches[1:]):
            end = following.start() if following else len(piece.text)
            label = _cleaned(piece.part(match.end(), end)) if piece.text[match.end() : end].strip() else None
            if label is None or not any(c.isalpha() for c in label.text):
                continue
            glyph = match["box"]
            checked = glyph[0] in _FULL or (glyph[0] == "[" and len(glyph.strip("[] ")) > 0)
            before = piece.part(0, match.start()) if match is matches[0] and match.start() > 1 else None
            mark = piece.part(match.start(), match.end())
            found.append(CheckBox(mark.box, mark.place, checked, 0.6 * piece.confidence, label, before))
            used.add(piece.index)
    return FoundBoxes(tuple(found), frozenset(used))
