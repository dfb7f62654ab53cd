from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from docmill.document_types import load_document_type
from docmill.extraction import FieldKind
from docmill.geometry import Box
from docmill.synthesis import Kind, Scan, make_document

SEEDS = range(9)


def ink(page: Image.Image, box: Box) -> float:
    """Share of dark pixels in the box."""
    wide, high = page.size
    cut = page.convert("L").crop((box.x0 * wide, box.y0 * high, box.x1 * wide, box.y1 * high))
    return float((np.asarray(cut) < 150).mean())


@pytest.mark.parametrize("kind", Kind)
def test_every_field_and_column_is_one_of_the_document_type(kind: Kind) -> None:
    document_type = load_document_type(kind.value)
    names = {field.name for field in document_type.fields}
    columns = {field.name: {column.name for column in field.columns} for field in document_type.fields}
    options = {field.name: set(field.options) for field in document_type.fields if field.kind is FieldKind.ENUM}
    booleans = {field.name for field in document_type.fields if field.kind is FieldKind.BOOLEAN}
    for seed in SEEDS:
        truth = make_document(kind, seed, dpi=75).truth
        assert set(truth.fields) <= names
        for table in truth.tables:
            assert set(table.columns) <= columns[str(table.name)]
            assert all(len(row) == len(table.header) == len(table.columns) for row in table.rows)
        for name in booleans & set(truth.fields):
            assert truth.fields[name].text in ("true", "false")
        for name in options.keys() & truth.fields.keys():
            assert truth.fields[name].text in options[name]


@pytest.mark.parametrize("kind", Kind)
def test_required_fields_are_always_there(kind: Kind) -> None:
    required = {field.name for field in load_document_type(kind.value).fields if field.required}
    for seed in SEEDS:
        fields = make_document(kind, seed, dpi=75).truth.fields
        assert all(fields[name].text for name in required)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("how", [Scan(0), Scan(1.0), Scan(0.6, bilevel=True)], ids=["clean", "bad", "bilevel"])
def test_boxes_hold_the_ink_of_the_scanned_page(kind: Kind, how: Scan) -> None:
    for seed in range(3):
        document = make_document(kind, seed, how=how)
        for page in document.truth.page_truths:
            image = document.pages[page.number - 1]
            assert image.size == (page.width, page.height)
            for line in page.lines:
                assert ink(image, line.box) > 0.02, line
        for name, field in document.truth.fields.items():
            if field.box is not None:
                assert ink(document.pages[field.page - 1], field.box) > 0.01, name


def test_ticked_boxes_hold_more_ink_than_empty_ones() -> None:
    for seed in SEEDS:
        document = make_document(Kind.APPLICATION_FORM, seed)
        ticked, empty = [], []
        for checkbox in document.truth.checkboxes:
            assert checkbox.box is not None
            (ticked if checkbox.checked else empty).append(ink(document.pages[checkbox.page - 1], checkbox.box))
        assert min(ticked) > max(empty)


def test_a_group_of_check_boxes_agrees_with_its_field() -> None:
    for seed in SEEDS:
        truth = make_document(Kind.APPLICATION_FORM, seed, dpi=75).truth
        for name in ("gender", "marital_status", "employed"):
            chosen = [box.option for box in truth.checkboxes if box.field == name and box.checked]
            assert chosen == [truth.fields[name].text]


def test_the_money_adds_up() -> None:
    for seed in SEEDS:
        fields = make_document(Kind.INVOICE, seed, dpi=75).truth.fields
        subtotal, tax, total = (float(fields[name].text.replace(",", "")) for name in ("subtotal", "tax", "total"))
        assert subtotal + tax == pytest.approx(total)


def test_item_rows_add_up_to_the_subtotal_over_all_pages() -> None:
    truth = make_document(Kind.INVOICE, 5, dpi=75, pages=3).truth
    assert [table.page for table in truth.tables] == [1, 2, 3]
    amount = truth.tables[0].columns.index("amount")
    total = sum(float(row[amount].replace(",", "")) for table in truth.tables for row in table.rows)
    assert total == pytest.approx(float(truth.fields["subtotal"].text.replace(",", "")))


@pytest.mark.parametrize("kind", Kind)
def test_a_seed_gives_the_same_document_and_another_seed_another(kind: Kind) -> None:
    one, again, other = (make_document(kind, seed, dpi=75, how=Scan(0.5)) for seed in (7, 7, 10))
    assert one.truth == again.truth
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one.pages, again.pages, strict=True))
    assert one.truth.fields != other.truth.fields


def test_two_hundred_receipts_carry_two_hundred_numbers() -> None:
    numbers = {make_document(Kind.RECEIPT, seed, dpi=20).truth.fields["receipt_no"].text for seed in range(200)}
    assert len(numbers) == 200


def test_scanning_changes_no_text() -> None:
    drawn, scanned = make_document(Kind.INVOICE, 4, dpi=75), make_document(Kind.INVOICE, 4, dpi=75, how=Scan(1.0))
    without_boxes = [
        {name: replace(field, box=None) for name, field in document.truth.fields.items()}
        for document in (drawn, scanned)
    ]
    assert without_boxes[0] == without_boxes[1]


@pytest.mark.parametrize(
    ("kind", "seed", "pages"), [("receipt", -1, None), ("receipt", 0, 2), ("invoice", 0, 0), ("letter", 0, None)]
)
def test_what_cannot_be_made_is_refused(kind: str, seed: int, pages: int | None) -> None:
    with pytest.raises(ValueError, match=r"seed|pages|Kind"):
        make_document(kind, seed, pages=pages)


def test_a_severity_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="severity"):
        Scan(1.5)
