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
_YES_NO = (("Yes", r"\w{0,2}es"), ("No", r"\w?no"))
_EMPTY = frozenset("□☐▢")
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
    """The marks seen in the picture with their labels, and boxes that only the OCR saw, as characters.

    Where the OCR read an empty box's character at a mark that looks filled, the box counts as empty, with less
    confidence: a thick frame on a small picture looks like ink, but reads like a frame.
    """
    words = [w for p in sheet.pieces for w in _word_pieces(p)]
    marks = tuple(
        m
        for m in sheet.marks
        if not any(_inside_word(m.box, w) for w in words) and not any(_in_chinese_line(m.box, p) for p in sheet.pieces)
    )
    found: list[CheckBox] = []
    used: set[int] = set()
    for group in _mark_rows(marks):
        labels, left_sided = _labels(group, words, sheet)
        labels = yes_no_mended(labels)
        question = _question(group, labels, sheet, left_sided)
        if left_sided and question is None:
            question, labels = _asked_before(labels)
        for mark, label in zip(group, labels, strict=True):
            own = question if question is not None and (label is None or question.text != label.text) else None
            checked, confidence = mark.checked, mark.confidence
            if checked and any(w.text[:1] in _EMPTY and _touches(mark.box, w.box) for w in words):
                checked, confidence = False, 0.65
            found.append(CheckBox(mark.box, mark.place, checked, confidence, label, own))
            used.update(p.index for p in (label, own) if p is not None)
    drawn = _glyph_boxes(sheet, [m.box for m in marks])
    return FoundBoxes((*found, *drawn.boxes), frozenset(used) | drawn.used)


def _asked_before(labels: list[Piece | None]) -> tuple[Piece | None, list[Piece | None]]:
    """The question that runs into the first label of boxes right of theirs: ``Is it filed? Yes [x]  No [ ]``."""
    first = labels[0]
    if first is None or " " not in first.text or not _yes_no(labels[1:]):
        return None, labels
    cut = first.text.rindex(" ")
    answer = first.part(cut)
    if parse_boolean(answer.text) is None:
        return None, labels
    return first.part(0, cut), [answer, *labels[1:]]


def _touches(mark: Box, word: Box) -> bool:
    return mark.vertical_overlap(word) > 0.4 and word.x0 - 0.01 < mark.center[0] < word.x0 + max(2 * mark.width, 0.015)


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
    """Whether a mark is a letter (an ``x``, a ``口``) in a word rather than a box beside one."""
    char = word.box.width / max(len(word.text), 1)
    return (
        len(word.text) >= 4
        and mark.vertical_overlap(word.box) > 0.5
        and word.box.x0 + 2.2 * char < mark.center[0] < word.box.x1 - 0.3 * char
        and mark.width < 2.2 * char
    )


def _in_chinese_line(mark: Box, line: Piece) -> bool:
    """Whether a mark is a character (``日``, ``口``, ``区``) of a line of Chinese text, which looks like a frame."""
    wide = sum(2 if has_wide(c) else 1 for c in line.text)
    if not has_wide(line.text) or wide < 8 or _INK_GLYPH.search(line.text):
        return False
    char = 2 * line.box.width / wide
    options = [t for t in line.text.split() if len(t) <= 4]
    return (
        mark.vertical_overlap(line.box) > 0.6
        and line.box.x0 + 1.2 * char < mark.x0
        and mark.x1 < line.box.x1 + 1.5 * char
        and mark.width < 1.5 * char
        and len(options) < 2
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
    if re.fullmatch(r"[$€£¥]?(?:\d[.,-]?){4,}[A-Z]?|[$€£¥]", word.text):
        return False  # something filled in beside the box
    return bool(clean_label(word.text)) or any(c.isalnum() for c in word.text)


def _run_right(mark: SheetMark, following: SheetMark | None, words: list[Piece], sheet: Sheet) -> Piece | None:
    """The words behind a mark up to the next one; a line that begins at it is all its label."""
    run: list[Piece] = []
    edge = mark.box.x1
    limit = following.box.center[0] if following is not None else 1.0
    starts = {p.index: p.box.x0 for p in reversed(sheet.pieces)}
    for word in words:
        begins_here = starts.get(word.index, 0.0) >= mark.box.x0 - 1.5 * sheet.char_width
        after = word.box.x1 > mark.box.center[0] if begins_here else word.box.center[0] > mark.box.x1
        if not after or word.box.center[0] >= limit or _only_glyph(word.text):
            continue
        gap = word.box.x0 - edge
        if gap > (3.0 * sheet.char_width if run else FARTHEST_LABEL):
            break
        run.append(word)
        edge = word.box.x1
    return _cleaned(joined(run, _separator(run))) if run else None


def _only_glyph(text: str) -> bool:
    return not clean_label(text)


def yes_no_mended(labels: list[Piece | None]) -> list[Piece | None]:
    """Labels of a yes-no pair that were read with a part of their box (``ves``, ``res``, ``XNO``) as what they mean."""
    forms = [_yes_no_like(p.text) if p is not None else None for p in labels]
    if (
        len(labels) > 2
        or not any(forms)
        or any(p is not None and f is None for p, f in zip(labels, forms, strict=True))
    ):
        return labels
    return [
        Piece(f, p.box, p.place, p.confidence, p.index) if p is not None and f is not None else p
        for p, f in zip(labels, forms, strict=True)
    ]


def _yes_no_like(text: str) -> str | None:
    tokens = [comparison_form(t) for t in text.split()]
    tokens = [t for t in tokens if t]
    if not tokens or len(tokens) > 2:
        return None
    kinds = [next((says for says, form in _YES_NO if re.fullmatch(form, t)), None) for t in tokens]
    if len(kinds) == 2 and kinds != ["Yes", "No"]:
        return None
    return kinds[0]


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
    short = all(p is None or len(p.text.split()) <= 3 for p in labels)
    if _yes_no(labels) or (len(group) > 1 and short):
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


def _glyph_boxes(sheet: Sheet, marks: list[Box]) -> FoundBoxes:
    """Boxes that were read as characters: ``☑ Yes ☐ No``, ``[x] Annual``; those where a mark was seen are left out."""
    found: list[CheckBox] = []
    used: set[int] = set()
    for piece in sheet.pieces:
        matches = list(_INK_GLYPH.finditer(piece.text))
        for match, following in zip_longest(matches, matches[1:]):
            end = following.start() if following else len(piece.text)
            label = _cleaned(piece.part(match.end(), end)) if piece.text[match.end() : end].strip() else None
            place = piece.part(match.start(), match.end())
            if label is None or not any(c.isalpha() for c in label.text):
                continue
            if any(_touches(m, Box.around([place.box, label.box])) for m in marks):
                continue
            glyph = match["box"]
            checked = glyph[0] in _FULL or (glyph[0] == "[" and len(glyph.strip("[] ")) > 0)
            before = piece.part(0, match.start()) if match is matches[0] and match.start() > 1 else None
            if before is not None and not any(c.isalpha() for c in before.text):
                before = None
            found.append(CheckBox(place.box, place.place, checked, 0.65 * piece.confidence, label, before))
            used.add(piece.index)
    return FoundBoxes(tuple(found), frozenset(used))
