import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

from docmill.document_types import load_document_type
from docmill.extraction import Extraction, Field, FieldKind, FieldValue
from docmill.geometry import Box
from docmill.ledger import FinishedPage
from docmill.merging import merge_pages

INVOICE = load_document_type("invoice")
BOX = Box(0.1, 0.1, 0.2, 0.12)


def field(
    name: str, value: FieldValue, confidence: float, *, kind: FieldKind = FieldKind.TEXT, row: int | None = None
) -> Field:
    return Field(
        name, kind, str(value), value, confidence, BOX, row=row, currency="EUR" if kind is FieldKind.MONEY else None
    )


def page(number: int, *fields: Field, text: str = "") -> FinishedPage:
    return FinishedPage(number, Extraction("ocr", "invoice", fields, (), text or f"page {number}", 0.9), None)


def test_the_best_supported_value_wins_and_what_contradicts_it_is_kept() -> None:
    result, _ = merge_pages(
        [
            page(1, field("total", Decimal("496.65"), 0.3, kind=FieldKind.MONEY)),
            page(2, field("total", Decimal("5433.72"), 0.9, kind=FieldKind.MONEY)),
        ],
        INVOICE,
    )
    total = result["fields"]["total"]
    assert (total["value"], total["page"], total["currency"]) == ("5433.72", 2, "EUR")
    assert [c["value"] for c in total["conflicts"]] == ["496.65"]


def test_pages_that_agree_outweigh_one_that_does_not() -> None:
    result, _ = merge_pages(
        [
            page(1, field("invoice_no", "F-1", 0.80)),
            page(2, field("invoice_no", "F 1", 0.78)),
            page(3, field("invoice_no", "F-7", 0.85)),
        ],
        INVOICE,
    )
    number = result["fields"]["invoice_no"]
    assert number["value"] == "F-1"
    assert [c["value"] for c in number["conflicts"]] == ["F-7"]


def test_tables_go_on_across_pages() -> None:
    result, _ = merge_pages(
        [
            page(2, field("items.description", "Ink", 0.9, row=0)),
            page(1, field("items.description", "Pen", 0.9, row=0), field("items.description", "Paper", 0.9, row=1)),
        ],
        INVOICE,
    )
    rows = result["tables"]["items"]
    assert [(r["row"], r["page"], r["cells"]["description"]["value"]) for r in rows] == [
        (0, 1, "Pen"),
        (1, 1, "Paper"),
        (2, 2, "Ink"),
    ]


def test_failed_pages_are_listed_and_lower_the_confidence() -> None:
    whole, high = merge_pages([page(1, field("total", Decimal(5), 0.8))], INVOICE)
    part, low = merge_pages([page(1, field("total", Decimal(5), 0.8)), FinishedPage(2, None, "poison_page")], INVOICE)
    assert whole["failed_pages"] == []
    assert part["failed_pages"] == [{"page": 2, "code": "poison_page"}]
    assert part["needs_review"]
    assert low == high / 2


def test_what_is_required_and_on_no_page_is_missing() -> None:
    result, confidence = merge_pages([page(1)], INVOICE)
    assert result["missing"] == ["invoice_no", "date", "issuer", "total"]
    assert result["fields"] == {}
    assert confidence == 0.9


def test_a_document_of_failures_alone() -> None:
    result, confidence = merge_pages([FinishedPage(1, None, "unreadable_page")], INVOICE)
    assert (result["fields"], result["text"], confidence) == ({}, {}, 0.0)


def test_the_result_is_json_and_keeps_text_by_page() -> None:
    result, _ = merge_pages(
        [page(1, field("date", date(2025, 2, 11), 0.9, kind=FieldKind.DATE), text="one"), page(2, text="two")], INVOICE
    )
    again = json.loads(json.dumps(result))
    assert again == result
    assert again["fields"]["date"]["value"] == "2025-02-11"
    assert again["text"] == {"1": "one", "2": "two"}
    assert again["fields"]["date"]["box"] == [0.1, 0.1, 0.2, 0.12]


def test_a_guess_neither_beats_nor_contradicts_a_labelled_value() -> None:
    guess = replace(field("total", Decimal("4188.80"), 0.95, kind=FieldKind.MONEY), notes=("guessed",))
    labelled = field("total", Decimal("18546.13"), 0.6, kind=FieldKind.MONEY)
    result, _ = merge_pages([page(1, guess), page(2, labelled)], INVOICE)
    assert (result["fields"]["total"]["value"], result["fields"]["total"]["conflicts"]) == ("18546.13", [])


def test_a_guess_alone_is_kept() -> None:
    guess = replace(field("total", Decimal("41.88"), 0.3, kind=FieldKind.MONEY), notes=("guessed",))
    result, _ = merge_pages([page(1, guess)], INVOICE)
    assert result["fields"]["total"]["value"] == "41.88"
