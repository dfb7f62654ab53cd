"""Finding the answer that belongs to a known label: check boxes, label-value pairs, table cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from docmill.evaluation.metrics import normal_form, plain_form
from docmill.evaluation.outcomes import DocumentOutcome
from docmill.extraction import BlockKind, Field, FieldKind
from docmill.geometry import Box
from docmill.normalisation.booleans import parse_boolean
from docmill.normalisation.text import comparison_form
from docmill.truth import CheckboxTruth, TableTruth

SAME_LABEL = 85.0
"""Labels with at least this similarity (0 to 100, of comparison forms) are one: OCR mistakes a letter in ten."""


@dataclass(frozen=True, slots=True)
class FoundCheckbox:
    """A check box that was read, with its place where known."""

    label: str
    checked: bool
    box: Box | None
    page: int


def found_checkboxes(outcome: DocumentOutcome) -> list[FoundCheckbox]:
    """Boolean fields, and check-box blocks whose text begins with a mark (``[x]``, ``☐``)."""
    found = []
    for page in outcome.pages:
        if page.extraction is None:
            continue
        for field in page.extraction.fields:
            if isinstance(field.value, bool):
                found.append(FoundCheckbox(field.name, field.value, field.box, page.number))
        for block in page.extraction.blocks:
            if block.kind is BlockKind.CHECKBOX and (state := _state(block.text)) is not None:
                found.append(FoundCheckbox(state[1], state[0], block.box, page.number))
    return found


def _state(text: str) -> tuple[bool, str] | None:
    """Ticked or not, and the label behind the mark."""
    for length in (3, 2, 1):
        checked = parse_boolean(text[:length])
        if checked is not None and not text[:length].strip(" ").isalnum():
            return checked, text[length:].strip()
    return None


def checkbox_state(truth: CheckboxTruth, outcome: DocumentOutcome, found: Sequence[FoundCheckbox]) -> bool | None:
    """Whether the box was read as ticked; None where it was not found.

    By the field that it belongs to where the outcome has it, else by place, else by label.
    """
    if truth.field is not None and truth.option is not None:
        field = outcome.best(truth.field)
        if field is not None and field.value is not None:
            value = str(field.value).lower() if isinstance(field.value, bool) else str(field.value)
            return plain_form(value) == plain_form(truth.option)
    here = [box for box in found if box.page == truth.page]
    if truth.box is not None:
        placed = [box for box in here if box.box is not None and _holds(box.box, truth.box)]
        if placed:
            return min(placed, key=lambda box: box.box.area if box.box else 1.0).checked
    named = [(likeness(truth.label, box.label), box) for box in found]
    best = max(named, key=lambda pair: pair[0], default=None)
    return best[1].checked if best is not None and best[0] >= SAME_LABEL else None


def _holds(found: Box, truth: Box) -> bool:
    """Whether the middle of the smaller box lies in the larger, and it is not a box around half the page."""
    x, y = truth.center
    return found.x0 <= x <= found.x1 and found.y0 <= y <= found.y1 and found.height < 4 * max(truth.height, 0.005)


def likeness(truth: str, found: str) -> float:
    """Of two labels, 0 to 100."""
    return fuzz.ratio(comparison_form(truth), comparison_form(found))


def same_value(truth: str, found: Field) -> bool:
    """Whether a found value is the known one, as text or as what its kind makes of both."""
    texts = {plain_form(found.raw)} | ({plain_form(found.value)} if isinstance(found.value, str) else set())
    if plain_form(truth) in texts:
        return True
    kind = found.kind
    if kind in (FieldKind.TEXT, FieldKind.ENUM, FieldKind.TABLE):
        return False
    known = normal_form(kind, truth)
    return not isinstance(known, str) and known == normal_form(kind, found.raw, found.value)


def pair_found(label: str, value: str, fields: Iterable[Field]) -> bool:
    """Whether a field with that label (spelled nearly so) carries that value."""
    return any(likeness(label, field.name) >= SAME_LABEL and same_value(value, field) for field in fields)


def value_found(value: str, fields: Iterable[Field]) -> bool:
    """Whether any field carries that value, whatever its label."""
    return any(same_value(value, field) for field in fields)


def cells_found(tables: Sequence[TableTruth], outcome: DocumentOutcome) -> tuple[int, int]:
    """(cells of the known tables that were read, cells that are not empty), as multisets of plain forms."""
    known = Counter(plain_form(cell) for table in tables for row in table.rows for cell in row)
    del known[""]
    read: Counter[str] = Counter()
    for page in outcome.pages:
        if page.extraction is None:
            continue
        cells = [f.raw for f in page.extraction.fields if f.row is not None]
        if not cells:
            cells = [c for block in page.extraction.blocks if block.table for row in block.table.rows for c in row]
        read.update(plain_form(cell) for cell in cells)
    return sum((known & read).values()), sum(known.values())
