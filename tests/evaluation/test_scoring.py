from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from docmill.document_types import load_document_type
from docmill.evaluation import Dataset, DocumentOutcome, PageOutcome, score
from docmill.extraction import Block, BlockKind, Extraction, Field, FieldKind, FieldValue, Line, PageText, TableData
from docmill.geometry import Box
from docmill.synthesis import Kind, make_document
from docmill.truth import CheckboxTruth, DocumentTruth, FieldTruth, LineTruth, PageTruth, TableTruth

RECEIPT = load_document_type("receipt")
FORM = load_document_type("application_form")
GENERIC = load_document_type("generic")
BOX = Box(0.1, 0.1, 0.2, 0.12)


def field(name: str, raw: str, kind: FieldKind = FieldKind.TEXT, value: FieldValue = None, **more: object) -> Field:
    given = raw if value is None and kind is FieldKind.TEXT else value
    return replace(Field(name, kind, raw, given, 0.9, BOX), **more)  # type: ignore[arg-type]


def read(*fields: Field, blocks: tuple[Block, ...] = (), text: str = "", number: int = 1) -> PageOutcome:
    extraction = Extraction("ocr", "receipt", fields, blocks, text, 0.9)
    return PageOutcome(number, extraction, seconds=2.0)


def dataset(*truths: DocumentTruth) -> Dataset:
    return Dataset(Path("set"), truths)


def receipt(file: str, **fields: str) -> DocumentTruth:
    return DocumentTruth(file, 1, {name: FieldTruth(text) for name, text in fields.items()})


def test_fields_are_scored_by_kind() -> None:
    truth = receipt("a", company="AEON CO", date="11/03/2018", total="13.10")
    page = read(
        field("company", "AEON C0"),
        field("date", "11 Mar 2018", FieldKind.DATE),
        field("total", "RM13.10", FieldKind.MONEY, Decimal("13.10")),
    )
    report = score(dataset(truth), [DocumentOutcome("a", (page,))], RECEIPT)
    by_name = {f.name: f for f in report.fields}
    assert {name: f.exact for name, f in by_name.items()} == {"company": 0, "date": 1, "total": 1}
    assert by_name["company"].anls == pytest.approx(6 / 7)
    assert by_name["date"].anls == 1
    assert report.exact == pytest.approx(2 / 3)
    assert report.anls == pytest.approx((6 / 7 + 2) / 3)
    assert [(m.field, m.found) for m in report.misses] == [("company", "AEON C0")]
    assert report.seconds_per_page == 2.0


def test_failed_and_missing_documents_count_as_wrong() -> None:
    truths = [receipt(name, total="5.00", phone="") for name in ("read", "broken", "lost", "page failed")]
    outcomes = [
        DocumentOutcome("read", (read(field("total", "5.00", FieldKind.MONEY)),)),
        DocumentOutcome("broken", failure="unreadable_document"),
        DocumentOutcome("page failed", (PageOutcome(1, failure="page_deadline_exceeded"),)),
    ]
    report = score(dataset(*truths), outcomes, RECEIPT)
    assert report.documents == 4
    assert report.documents_failed == 3
    assert (report.pages, report.pages_failed) == (4, 3)
    assert report.failures == {
        "broken": "unreadable_document",
        "lost": "not_read",
        "page failed": "page_deadline_exceeded",
    }
    for name in ("total", "phone"):  # "nothing there" is only right where the page was looked at
        (scored,) = (f for f in report.fields if f.name == name)
        assert (scored.documents, scored.exact, scored.anls) == (4, 1, 0.25)


def test_a_value_where_nothing_is_printed_is_wrong() -> None:
    page = read(field("phone", "555"))
    report = score(dataset(receipt("a", phone="")), [DocumentOutcome("a", (page,))], RECEIPT)
    assert report.exact == 0


def test_a_failure_that_is_expected_is_right() -> None:
    truth = DocumentTruth("a", 0, expect="unreadable_document")
    report = score(dataset(truth), [DocumentOutcome("a", failure="unreadable_document")], RECEIPT)
    assert (report.documents_failed, report.failures_expected) == (1, 1)
    report = score(dataset(truth), [DocumentOutcome("a", failure="unexpected")], RECEIPT)
    assert report.failures_expected == 0


def test_the_surest_of_several_pages_is_taken() -> None:
    pages = (
        read(field("total", "1.00", FieldKind.MONEY, confidence=0.4)),
        read(field("total", "9.00", FieldKind.MONEY, confidence=0.8), number=2),
    )
    report = score(dataset(receipt("a", total="9.00")), [DocumentOutcome("a", pages)], RECEIPT)
    assert report.exact == 1


def test_names_that_the_type_does_not_have_are_named() -> None:
    report = score(dataset(receipt("a", total="1", colour="red")), [], RECEIPT)
    assert report.unscored == ("colour",)


def test_text_is_compared_by_rows_and_a_failed_page_counts_whole() -> None:
    lines = (LineTruth("12.50", Box(0.7, 0.2, 0.8, 0.22)), LineTruth("Total", Box(0.1, 0.2, 0.2, 0.22)))
    truths = [DocumentTruth(name, 1, page_truths=(PageTruth(1, lines, 100, 100),)) for name in "ab"]
    found = (Line("T0tal", Box(0.1, 0.2, 0.2, 0.22), 0.9), Line("12.50", Box(0.7, 0.2, 0.8, 0.22), 0.9))
    page = replace(read(text="nothing of the kind"), text=PageText(found, width=100, height=100))
    report = score(dataset(*truths), [DocumentOutcome("a", (page,)), DocumentOutcome("b", failure="x")], RECEIPT)
    assert report.character_error_rate == pytest.approx(11 / 20)
    assert (report.words.right, report.words.of) == (1, 4)
    without_lines = score(dataset(truths[0]), [DocumentOutcome("a", (read(text="total 12.50"),))], RECEIPT)
    assert without_lines.character_error_rate == 0


def test_rows_of_a_tilted_page_are_those_of_the_level_page() -> None:
    """Two rows that fall to the right by more than their distance."""
    left, right = ("one", "three"), ("two", "four")
    lines = []
    for row in (0, 1):
        lines.append(LineTruth(left[row], Box(0.1, 0.2 + row * 0.03, 0.2, 0.22 + row * 0.03)))
        lines.append(LineTruth(right[row], Box(0.8, 0.23 + row * 0.03, 0.9, 0.25 + row * 0.03)))
    truth = DocumentTruth("a", 1, page_truths=(PageTruth(1, tuple(lines), 1000, 1000),))
    seen = [Line(line.text, line.box, 1.0) for line in lines]
    tilt = math.degrees(math.atan(0.03 / 0.7))
    text = PageText(tuple(reversed(seen)), skew=-tilt, width=1000, height=1000)
    straight = score(dataset(truth), [DocumentOutcome("a", (replace(read(), text=text),))], RECEIPT)
    assert straight.character_error_rate == 0
    by_order = read(text="one two\nthree four")
    unlevelled = score(dataset(truth), [DocumentOutcome("a", (by_order,))], RECEIPT)
    assert unlevelled.character_error_rate > 0  # without the tilt "three" and "two" share a row


def test_pairs_of_a_generic_document_may_differ_by_a_letter_in_the_label_only() -> None:
    truth = receipt("a", **{"Date of Birth": "07/08/1979", "Last Name": "OTTERBANK", "Email": "", "City": "WILLOWHAM"})
    page = read(
        field("Date of Birlh:", "7 Aug 1979", FieldKind.DATE),
        field("Last Name", "0TTERBANK"),
        field("Surname", "WILLOWHAM"),
    )
    report = score(dataset(truth), [DocumentOutcome("a", (page,))], GENERIC)
    assert (report.key_values.right, report.key_values.of) == (1, 3)
    assert (report.values.right, report.values.of) == (2, 3)
    assert report.fields == ()
    assert report.exact is None


def test_check_boxes_are_found_by_field_by_place_and_by_label() -> None:
    place = Box(0.5, 0.5, 0.52, 0.52)
    truth = DocumentTruth(
        "a",
        1,
        checkboxes=(
            CheckboxTruth("Gender Female", True, None, field="gender", option="female"),
            CheckboxTruth("Gender Male", False, None, field="gender", option="male"),
            CheckboxTruth("Misread", True, place),
            CheckboxTruth("I agree to the terms", True),
            CheckboxTruth("Newsletter", False),
            CheckboxTruth("Not on the page", False),
        ),
    )
    page = read(
        field("gender", "Female", FieldKind.ENUM, "female"),
        field("M1sr3ad", "x", FieldKind.BOOLEAN, True, box=place),
        field("I agree to the term", "x", FieldKind.BOOLEAN, True),
        blocks=(Block(BlockKind.CHECKBOX, "[ ] Newsletter", Box(0.1, 0.8, 0.3, 0.82), 0.9),),
    )
    report = score(dataset(truth), [DocumentOutcome("a", (page,))], FORM)
    assert (report.checkboxes.right, report.checkboxes.of) == (5, 6)
    assert [(m.field, m.truth, m.found) for m in report.misses] == [("Not on the page", "empty", None)]


def test_table_cells_are_counted_from_fields_or_blocks() -> None:
    table = TableTruth("items", ("Item", "Price"), (("Tea", "2.00"), ("Tea", "3.00"), ("", "1.00")))
    truth = DocumentTruth("a", 1, tables=(table,))
    fields = (field("items.description", "TEA", row=0), field("items.amount", "2.00", row=0))
    by_fields = score(dataset(truth), [DocumentOutcome("a", (read(*fields),))], RECEIPT)
    assert (by_fields.table_cells.right, by_fields.table_cells.of) == (2, 5)
    block = Block(BlockKind.TABLE, "", BOX, 0.9, TableData((), (("Tea", "2.00"), ("Tea", "9.00"))))
    by_blocks = score(dataset(truth), [DocumentOutcome("a", (read(blocks=(block,)),))], RECEIPT)
    assert (by_blocks.table_cells.right, by_blocks.table_cells.of) == (3, 5)


@pytest.mark.parametrize("kind", Kind)
def test_a_perfect_reader_scores_one(kind: Kind) -> None:
    document_type = load_document_type(kind.value)
    kinds = {spec.name: spec.kind for spec in document_type.fields}
    truths, outcomes = [], []
    for seed in range(4):
        truth = replace(make_document(kind, seed, dpi=40).truth, file=f"{seed}")
        pages = []
        for page in truth.page_truths:
            fields = [
                field(name, known.text, kinds[name], box=known.box)
                for name, known in truth.fields.items()
                if known.page == page.number and known.text
            ]
            fields = [
                replace(f, value=f.raw == "true") if f.kind is FieldKind.BOOLEAN else replace(f, value=f.raw)
                for f in fields
            ]
            cells = [
                field(f"{table.name}.{column}", cell, row=index)
                for table in truth.tables
                if table.page == page.number
                for index, row in enumerate(table.rows)
                for column, cell in zip(table.columns, row, strict=True)
            ]
            found = tuple(Line(line.text, line.box, 1.0) for line in page.lines)
            text = PageText(found, width=page.width, height=page.height)
            pages.append(replace(read(*fields, *cells, number=page.number), text=text))
        truths.append(truth)
        outcomes.append(DocumentOutcome(truth.file, tuple(pages)))
    report = score(dataset(*truths), outcomes, document_type)
    assert (report.exact, report.anls, report.character_error_rate) == (1, 1, 0)
    assert report.words.rate == 1
    assert report.table_cells.rate == 1
    assert report.checkboxes.rate == (1 if kind is Kind.APPLICATION_FORM else None)
    assert report.misses == ()


def test_a_report_is_json_and_keeps_page_contents_out_unless_asked() -> None:
    report = score(dataset(receipt("a", company="SECRET LTD", total="1.00")), [], RECEIPT)
    assert "SECRET" not in json.dumps(report.as_json())
    assert "SECRET" in json.dumps(report.as_json(with_misses=True))
    assert report.as_json()["fields"][0]["exact_rate"] == 0
    assert dict(report.summary_rows())["documents"] == "1, 1 failed"
    assert [row[0] for row in report.field_rows()] == ["company", "total"]
