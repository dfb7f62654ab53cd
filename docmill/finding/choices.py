"""Fields of a document type that are filled in with check boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rapidfuzz import fuzz

from docmill.document_types import DocumentType, FieldSpec
from docmill.extraction import Field, FieldKind
from docmill.finding.candidate import Candidate
from docmill.finding.checkboxes import CheckBox, clean_label
from docmill.finding.field import Reading, build_field, normalise
from docmill.finding.generic import box_field
from docmill.finding.sheet import Piece, Sheet
from docmill.finding.signatures import find_signature, is_signature
from docmill.normalisation.booleans import parse_boolean
from docmill.normalisation.text import comparison_form

ALIKE = 82.0


def with_checkboxes(
    sheet: Sheet, fields: list[Field], boxes: Sequence[CheckBox], document_type: DocumentType, reading: Reading
) -> list[Field]:
    """The fields, those that boxes answer taken from the boxes; signatures from what is written over their line.

    A question with none of its boxes ticked has no answer and gives no field; with both ticked, a field without value
    (``contradictory``).
    """
    found = {f.name: f for f in fields}
    for spec in document_type.fields:
        if spec.kind is FieldKind.BOOLEAN:
            answer = _yes_or_no(spec, boxes, document_type) or _ticked(spec, boxes, document_type)
            if answer is None and is_signature(spec) and spec.name not in found:
                answer = find_signature(sheet, spec, document_type)
        elif spec.kind is FieldKind.ENUM:
            answer = _chosen(spec, boxes, document_type, reading)
        else:
            continue
        if answer is not None:
            found[spec.name] = answer
        elif any(_asks_for(spec, box, reading) for box in boxes):
            found.pop(spec.name, None)  # boxes ask for it and none is ticked: what stands beside its label is a choice
    order = [s.name for s in document_type.fields]
    return sorted(found.values(), key=lambda f: order.index(f.name))


def _names(text: str, spec: FieldSpec) -> bool:
    """Whether a label or question is the field's, nearly or as its beginning."""
    form = comparison_form(text)
    for alias in (comparison_form(a) for a in spec.aliases):
        if form == alias or fuzz.ratio(form, alias) >= ALIKE:
            return True
        if len(alias) >= 6 and (form.startswith(alias) or (alias in form and len(alias) > 0.6 * len(form))):
            return True
    return False


def _asks_for(spec: FieldSpec, box: CheckBox, reading: Reading) -> bool:
    """Whether a box belongs to a question of the field."""
    if box.question is None or box.label is None or not _names(clean_label(box.question.text), spec):
        return False
    if spec.kind is FieldKind.ENUM:
        return normalise(spec, box.label.text, reading).value is not None
    return parse_boolean(box.label.text) is not None


def _yes_or_no(spec: FieldSpec, boxes: Sequence[CheckBox], document_type: DocumentType) -> Field | None:
    answers: dict[bool, CheckBox] = {}
    for box in boxes:
        if box.question is None or box.label is None or not _names(clean_label(box.question.text), spec):
            continue
        stands_for = parse_boolean(box.label.text)
        if stands_for is not None:
            answers.setdefault(stands_for, box)
    if not answers:
        return None
    ticked = [value for value, box in answers.items() if box.checked]
    shown = answers[ticked[0]] if ticked else next(iter(answers.values()))
    field = box_field(shown, document_type, spec.name)
    if field is None:
        return None
    if len(ticked) == 1:
        raw = shown.label.text if shown.label is not None else field.raw
        return replace(field, value=ticked[0], raw=raw)
    if not ticked:
        return None
    return replace(field, value=None, raw="", needs_review=True, notes=("contradictory",))


def _ticked(spec: FieldSpec, boxes: Sequence[CheckBox], document_type: DocumentType) -> Field | None:
    for box in boxes:
        if box.label is not None and parse_boolean(box.label.text) is None and _names(box.label.text, spec):
            return box_field(box, document_type, spec.name)
    return None


def _chosen(spec: FieldSpec, boxes: Sequence[CheckBox], document_type: DocumentType, reading: Reading) -> Field | None:
    """The ticked option of an enum's group of boxes."""
    options = []
    for box in boxes:
        if box.label is None:
            continue
        value = normalise(spec, box.label.text, reading).value
        asked = box.question is not None and _names(clean_label(box.question.text), spec)
        if value is not None and (asked or box.question is None):
            options.append((box, value))
    ticked = [(box, value) for box, value in options if box.checked]
    if not ticked:
        return None
    box, _ = ticked[0]
    assert box.label is not None
    label = Piece(box.label.text, box.box, box.place, box.confidence, box.label.index)
    field = build_field(spec, Candidate(label, 0.95, "checkbox", box.question), document_type, reading)
    if len({value for _, value in ticked}) > 1:
        return replace(field, needs_review=True, notes=(*field.notes, "contradictory"))
    return field
