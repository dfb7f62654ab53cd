"""Key-value pairs of a form that nobody described: labels and values told apart by place, form and words."""

from __future__ import annotations

import re

from docmill.finding.cell_pairs import CONTINUES, LIKELY, cell_pairs
from docmill.finding.parts import Pair
from docmill.finding.sheet import Piece, Sheet, joined
from docmill.finding.stamps import stamps
from docmill.finding.surroundings import Surroundings
from docmill.finding.vocabulary import is_numbered, is_prose, label_likeness, phrase_end
from docmill.normalisation.dates import DateOrder
from docmill.normalisation.text import has_wide

_REMARK = re.compile(
    r"^\W*(?:please\s+)?(?:notes?|instructions?|important|warning|caution|notice|example|remember|attention|disclaimer|tip|hint|"
    r"public reporting burden|privacy act[\w ]*)\W*$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r",\s")
_SENTENCE = re.compile(
    r"\b(?:I|we|you)\s+(?:am|are|have|had|will|must|certify|declare|agree)\b|[;,]$|\b(?:and|or)$", re.IGNORECASE
)


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


class _Finder(Surroundings):
    """Walks the page once per rule, the clearest first; what one rule takes the next leaves alone."""

    def __init__(self, sheet: Sheet, used: set[int]) -> None:
        super().__init__(sheet, used)
        self.pairs: list[Pair] = []

    def keep(self, pairs: list[Pair]) -> None:
        """Take pairs that were found elsewhere: their text is spent."""
        for pair in pairs:
            self._add(pair.label, pair.value, pair.quality, pair.rule)

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

    def rows(self) -> None:
        """What is left: a short text and a number behind it on one row."""
        for part in self._parts:
            if self._is_taken(part) or id(part) in self._labels or not _is_short_text(part.text):
                continue
            right = self._right(part, 0.3)
            if len(right) == 1 and re.fullmatch(r"[-(]?\W?\s?\d[\d.,]*\W?|[xX√✓]", right[0].text):
                self._pair(part, part, right, 0.5, "row")

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


def _is_remark(label: str, value: str) -> bool:
    """Whether ``Label: text`` is a remark of the form's, or a sentence with a colon, and nothing that is filled in."""
    if value in ("and", "or"):
        return True
    if _REMARK.match(label) and len(value.split()) >= 8:
        return True
    if not (is_prose(value) or (len(value.split()) >= 7 and value[:1].islower())):
        return _CLAUSE.search(label) is not None and len(value.split()) <= 2 and value.islower() and value.isalpha()
    return bool(_REMARK.match(label)) or label_likeness(label) < 0.3


def _opens(text: str) -> bool:
    return text.count("(") > text.count(")") and text.rfind("(") > 0


def _is_short_text(text: str) -> bool:
    words = text.split()
    return 1 <= len(words) <= 5 and sum(c.isalpha() for c in text) >= 3 and sum(c.isdigit() for c in text) <= 2
