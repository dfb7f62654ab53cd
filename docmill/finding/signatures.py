"""Whether a form is signed."""

from __future__ import annotations

import re

from docmill.document_types import DocumentType, FieldSpec
from docmill.extraction import Field
from docmill.finding.geometry import cell_of
from docmill.finding.sheet import Piece, Sheet
from docmill.geometry import Box
from docmill.normalisation.text import comparison_form

_WRITTEN, _BLANK = 0.85, 0.65
"""How sure handwriting at the label, and a blank there, make it."""

_OVER, _ASIDE = 5.0, 0.32
"""How far a signature stands over or under its label, in its heights, and behind it, as a share of the page's width."""


def is_signature(spec: FieldSpec) -> bool:
    """Whether a field says that something is signed."""
    return any(re.search(r"signature|签名|签字", alias) for alias in (spec.name, *spec.aliases))


def find_signature(sheet: Sheet, spec: FieldSpec, document_type: DocumentType) -> Field | None:
    """Whether something is written at a signature's label: beside it, over it, under it or in its cell.

    False where the label is there and handwriting was looked for and not found. None without a label.
    """
    labels = [
        piece
        for piece in sheet.pieces
        if any(comparison_form(piece.text).startswith(comparison_form(a)) for a in spec.aliases if len(a) > 1)
    ]
    if not labels:
        return None
    for label in labels:
        place = _scribbled(sheet, label)
        if place is not None:
            return _field(spec, "signed", True, _WRITTEN * label.confidence, place, document_type)
    for label in labels:
        written = _read(sheet, label)
        if written is not None:
            return _field(spec, written.text, True, 0.6 * written.confidence, written.place, document_type)
    if sheet.scribbles is None:
        return None
    label = labels[0]
    return _field(spec, "", False, _BLANK * label.confidence, label.place, document_type)


def _field(
    spec: FieldSpec, raw: str, signed: bool, confidence: float, place: Box, document_type: DocumentType
) -> Field:
    confidence = round(confidence, 4)
    review = confidence < document_type.review_threshold
    return Field(spec.name, spec.kind, raw, signed, confidence, place, needs_review=review)


def _scribbled(sheet: Sheet, label: Piece) -> Box | None:
    """The handwriting nearest to a label."""
    near = []
    for box, place in sheet.scribbles or ():
        over = max(label.box.y0 - box.y1, box.y0 - label.box.y1, 0.0)
        aside = max(label.box.x0 - box.x1, box.x0 - label.box.x1, 0.0)
        before = box.center[0] < label.box.x0 - 0.02
        if over < _OVER * label.box.height and aside < _ASIDE and not before:
            near.append((over + aside, place))
    return min(near)[1] if near else None


def _read(sheet: Sheet, label: Piece) -> Piece | None:
    """What was read where a signature goes."""
    cell = cell_of(sheet, label)
    for other in sheet.pieces:
        if other.index == label.index or not any(c.isalnum() for c in other.text):
            continue
        beside = (
            other.box.vertical_overlap(label.box) > 0.3
            and 0 <= other.box.x0 - label.box.x1 < 0.12
            and not other.text.rstrip().endswith((":", "："))
            and not re.match(r"date|日期", other.text, re.IGNORECASE)
        )
        over = (
            0 < label.box.y0 - other.box.y0 < 2.2 * sheet.line_height
            and other.box.horizontal_overlap(label.box) > 0.5
            and cell is None
            and not other.text.rstrip().endswith((":", "：", "."))
            and len(other.text) < 40
        )
        inside = cell is not None and any(p.index == other.index for p in cell.pieces)
        if beside or over or inside:
            return other
    return None
