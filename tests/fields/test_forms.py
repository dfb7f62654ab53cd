from datetime import date
from decimal import Decimal

import pytest

from docmill.document_types import DocumentType, load_document_type
from docmill.extraction import Cell, Field, Grid, Line, Mark, PageText, Word
from docmill.finding.extractor import find_fields
from docmill.geometry import Box

FORM = load_document_type("application_form")
INVOICE = load_document_type("invoice")


def found(page: PageText, document_type: DocumentType = FORM) -> dict[str, Field]:
    return {f.name: f for f in find_fields(page, document_type)[0] if f.row is None}


def test_labels_over_left_of_and_before_their_values(blank) -> None:
    page = (
        blank()
        .row(0.10, (0.05, "Full name"), (0.55, "Date of birth"))
        .row(0.12, (0.05, "Isolwyn Inkersole"), (0.55, "27/02/1988"))
        .row(0.16, (0.05, "Nationality"), (0.30, "Merrowland"))
        .row(0.20, (0.05, "E-mail address: isolwyn@example.com"))
        .row(0.24, (0.05, "Monthly income"), (0.30, "2,160.00"))
    )
    fields = found(page.read())
    assert {n: f.value for n, f in fields.items()} == {
        "name": "Isolwyn Inkersole",
        "date_of_birth": date(1988, 2, 27),
        "nationality": "Merrowland",
        "email": "isolwyn@example.com",
        "monthly_income": Decimal("2160.00"),
    }
    assert fields["email"].confidence > fields["name"].confidence


def test_the_longest_label_wins(blank) -> None:
    page = (
        blank()
        .row(0.1, (0.05, "Email address"), (0.30, "jane@example.com"))
        .row(0.14, (0.05, "Address"), (0.30, "5 Elm Way"))
    )
    fields = found(page.read())
    assert (fields["email"].value, fields["address"].value) == ("jane@example.com", "5 Elm Way")


def test_a_label_with_ocr_errors_is_less_sure(blank) -> None:
    good = found(blank().row(0.1, (0.05, "Nationality:"), (0.30, "Norvania")).read())["nationality"]
    bad = found(blank().row(0.1, (0.05, "Nationa1ity:"), (0.30, "Norvania")).read())["nationality"]
    assert bad.value == good.value == "Norvania"
    assert bad.confidence < good.confidence


def test_a_label_is_never_a_value(blank) -> None:
    page = blank().row(0.10, (0.05, "Full name:"), (0.50, "Nationality:")).row(0.12, (0.05, "Date of birth:"))
    fields, _, missing = find_fields(page.read(), FORM)
    assert fields == ()
    assert missing == ("name",)


def test_an_address_of_several_lines_stops_at_the_next_label(blank) -> None:
    page = (
        blank()
        .row(0.10, (0.05, "Address:"), (0.30, "Flat 2,"))
        .row(0.117, (0.30, "5 Elm Way"))
        .row(0.134, (0.05, "City:"), (0.30, "Eastlight"))
    )
    fields = found(page.read())
    assert fields["address"].value == "Flat 2, 5 Elm Way"
    assert fields["city"].value == "Eastlight"


def test_a_date_under_a_caption_and_not_the_birthday(blank) -> None:
    page = (
        blank()
        .row(0.10, (0.05, "Date of birth:"), (0.30, "27/02/1988"))
        .row(0.50, (0.05, "30/08/2023"))
        .row(0.52, (0.05, "Date"))
    )
    fields = found(page.read())
    assert fields["date_of_birth"].value == date(1988, 2, 27)
    assert fields["application_date"].value == date(2023, 8, 30)


def test_options_and_questions_by_their_boxes(blank) -> None:
    page = (
        blank()
        .text(0.05, 0.1, "Gender:")
        .text(0.05, 0.14, "Are you currently employed?")
        .text(0.09, 0.18, "Subscribe to newsletter")
    )
    for x, label, checked in ((0.25, "Female", True), (0.45, "Male", False)):
        page.mark(x, 0.1, checked).text(x + 0.02, 0.1, label)
    for x, label, checked in ((0.55, "Yes", False), (0.65, "No", True)):
        page.mark(x, 0.14, checked).text(x + 0.02, 0.14, label)
    page.mark(0.07, 0.18, True)
    fields = found(page.read())
    assert fields["gender"].value == "female"
    assert fields["employed"].value is False
    assert fields["newsletter"].value is True
    assert fields["gender"].box is not None


def test_yes_and_no_both_ticked_is_no_answer(blank) -> None:
    page = blank().text(0.05, 0.1, "Currently employed")
    for x, label in ((0.40, "Yes"), (0.50, "No")):
        page.mark(x, 0.1, True).text(x + 0.02, 0.1, label)
    field = found(page.read())["employed"]
    assert field.value is None
    assert field.needs_review
    assert field.notes == ("contradictory",)


def test_yes_and_no_both_empty_is_no_answer_at_all(blank) -> None:
    page = blank().text(0.05, 0.1, "Currently employed")
    for x, label in ((0.40, "Yes"), (0.50, "No")):
        page.mark(x, 0.1, False).text(x + 0.02, 0.1, label)
    assert "employed" not in found(page.read())


def test_options_none_of_which_is_ticked_are_no_answer(blank) -> None:
    page = blank().text(0.05, 0.1, "Gender:")
    for x, label in ((0.25, "Female"), (0.45, "Male")):
        page.mark(x, 0.1, False).text(x + 0.02, 0.1, label)
    assert "gender" not in found(page.read())


def test_chinese_labels_in_cells(blank) -> None:
    page = (
        blank()
        .grid([0.05, 0.2, 0.5, 0.65, 0.95], [0.08, 0.12, 0.16])
        .row(0.10, (0.07, "姓名"), (0.22, "李雷"), (0.52, "出生日期"), (0.67, "1992年5月8日"))
        .row(0.14, (0.07, "国籍"), (0.22, "中国"), (0.52, "联系电话"), (0.67, "010-66123480"))
    )
    assert {n: f.value for n, f in found(page.read()).items()} == {
        "name": "李雷", "date_of_birth": date(1992, 5, 8), "nationality": "中国", "phone": "010-66123480"
    }  # fmt: skip


def test_a_list_without_numbers_under_its_heads(blank) -> None:
    page = (
        blank()
        .row(0.40, (0.05, "From"), (0.20, "To"), (0.35, "Employer"), (0.70, "Position held"))
        .row(0.43, (0.05, "02/2007"), (0.20, "02/2011"), (0.35, "Seven Acre Timber Ltd"), (0.70, "Data clerk"))
        .row(0.46, (0.05, "05/2011"), (0.20, "12/2014"), (0.35, "Umberfield Works"), (0.70, "Florist"))
        .row(0.52, (0.05, "Signature"))
    )
    fields = find_fields(page.read(), FORM)[0]
    assert {(f.row, f.name.partition(".")[2]): f.value for f in fields} == {
        (0, "from_date"): "02/2007", (0, "to_date"): "02/2011", (0, "employer"): "Seven Acre Timber Ltd",
        (0, "position"): "Data clerk", (1, "from_date"): "05/2011", (1, "to_date"): "12/2014",
        (1, "employer"): "Umberfield Works", (1, "position"): "Florist",
    }  # fmt: skip


def test_a_signature_that_was_read(blank) -> None:
    page = blank().text(0.5, 0.70, "J. Doe").text(0.5, 0.725, "Signature of applicant")
    field = found(page.read())["signature"]
    assert (field.value, field.raw) == (True, "J. Doe")


def invoice(blank):
    return (
        blank()
        .text(0.05, 0.05, "Nettleship Engineering Ltd", height=0.02)
        .text(0.05, 0.075, "180 Harbour Parade")
        .text(0.05, 0.092, "12127 Stonequay")
        .row(0.15, (0.05, "Bill To:"), (0.55, "Invoice No: F-2025-0405"))
        .row(0.17, (0.05, "Eiderstone Cleaning Services"), (0.55, "Invoice Date:"), (0.75, "11/02/2025"))
        .row(0.187, (0.05, "44 Lantern Street"), (0.55, "Due Date:"), (0.75, "25/02/2025"))
        .row(0.25, (0.05, "Description"), (0.45, "Qty"), (0.55, "Unit Price"), (0.70, "VAT %"), (0.85, "Amount"))
        .row(0.27, (0.05, "Gel pens, blue"), (0.46, "2"), (0.57, "11.63"), (0.71, "20%"), (0.86, "23.26"))
        .row(0.29, (0.05, "Cable 5 m"), (0.46, "10"), (0.57, "6.74"), (0.71, "20%"), (0.86, "67.40"))
        .row(0.33, (0.60, "Subtotal"), (0.86, "90.66"))
        .row(0.35, (0.60, "VAT 20%"), (0.86, "18.13"))
        .row(0.37, (0.60, "Total"), (0.82, "EUR 108.79"))
        .row(0.42, (0.05, "IBAN: XX13 4889 3455 3473"))
    )


def test_a_whole_invoice(blank) -> None:
    fields = found(invoice(blank).read(), INVOICE)
    assert {n: f.value for n, f in fields.items()} == {
        "issuer": "Nettleship Engineering Ltd",
        "issuer_address": "180 Harbour Parade 12127 Stonequay",
        "customer": "Eiderstone Cleaning Services",
        "customer_address": "44 Lantern Street",
        "invoice_no": "F-2025-0405",
        "date": date(2025, 2, 11),
        "due_date": date(2025, 2, 25),
        "subtotal": Decimal("90.66"),
        "tax": Decimal("18.13"),
        "total": Decimal("108.79"),
        "iban": "XX13 4889 3455 3473",
        "currency": "EUR",
    }
    assert fields["total"].currency == "EUR"


def test_what_stands_under_a_head_that_the_type_does_not_know_is_no_value(blank) -> None:
    page = (
        blank()
        .row(0.25, (0.05, "Description"), (0.45, "Disc."), (0.60, "Unit Price"), (0.85, "Amount"))
        .row(0.27, (0.05, "Gel pens"), (0.45, "10.00"), (0.61, "11.63"), (0.86, "23.26"))
        .row(0.33, (0.60, "Total"), (0.86, "23.26"))
    )
    cells = {f.name: f.value for f in find_fields(page.read(), INVOICE)[0] if f.row is not None}
    assert cells == {
        "items.description": "Gel pens", "items.unit_price": Decimal("11.63"), "items.amount": Decimal("23.26")
    }  # fmt: skip


def test_a_due_date_before_the_invoice_needs_review(blank) -> None:
    page = blank().row(0.1, (0.05, "Invoice Date: 25/02/2025")).row(0.13, (0.05, "Due Date: 11/02/2025"))
    due = found(page.read(), INVOICE)["due_date"]
    assert due.needs_review
    assert "before_date" in due.notes


def test_a_value_that_fails_its_pattern_is_kept_for_review(blank) -> None:
    page = blank().row(0.1, (0.05, "Email:"), (0.30, "not given"))
    email = found(page.read())["email"]
    assert (email.value, email.needs_review, email.notes) == ("not given", True, ("invalid_pattern",))


def test_the_part_that_matches_its_pattern_is_the_value(blank) -> None:
    page = blank().row(0.1, (0.05, "Email: jane@example.com (work)"))
    assert found(page.read())["email"].value == "jane@example.com"


@pytest.mark.parametrize("name", ["receipt", "invoice", "application_form"])
def test_an_empty_page_names_what_is_missing_and_invents_nothing(name: str) -> None:
    document_type = load_document_type(name)
    fields, blocks, missing = find_fields(PageText(()), document_type)
    assert (fields, blocks) == ((), ())
    assert missing == tuple(s.name for s in document_type.fields if s.required)


TOTALS = DocumentType.model_validate(
    {
        "name": "sums",
        "fields": [
            {"name": "total", "kind": "money", "role": "grand_total", "aliases": ["total"],
             "validators": {"equals_sum_of": "items.amount", "maximum": 50}},
            {"name": "items", "kind": "table", "columns": [
                {"name": "description", "aliases": ["description"]},
                {"name": "amount", "kind": "money", "aliases": ["amount"]}]},
        ],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("total", "notes"), [("30.00", ()), ("31.00", ("not_the_sum",)), ("60.00", ("above_maximum", "not_the_sum"))]
)
def test_validators_of_sums_and_ranges(blank, total: str, notes: tuple[str, ...]) -> None:
    page = (
        blank()
        .row(0.1, (0.05, "Description"), (0.80, "Amount"))
        .row(0.12, (0.05, "Pen"), (0.80, "10.00"))
        .row(0.14, (0.05, "Ink"), (0.80, "20.00"))
        .row(0.18, (0.05, "Total"), (0.80, total))
    )
    field = found(page.read(), TOTALS)["total"]
    assert field.notes == notes
    assert field.needs_review is bool(notes)


def turned(page: PageText, degrees: int) -> PageText:
    """The page as a viewer shows it that has to be turned clockwise by ``degrees`` to be upright."""

    def back(box: Box) -> Box:
        if degrees == 90:
            return Box.clipped(box.y0, 1 - box.x1, box.y1, 1 - box.x0)
        if degrees == 180:
            return Box.clipped(1 - box.x1, 1 - box.y1, 1 - box.x0, 1 - box.y0)
        return Box.clipped(1 - box.y1, box.x0, 1 - box.y0, box.x1)

    return PageText(
        tuple(
            Line(ln.text, back(ln.box), ln.confidence, tuple(Word(w.text, back(w.box), w.confidence) for w in ln.words))
            for ln in page.lines
        ),
        tuple(Mark(back(m.box), m.checked, m.fill, m.confidence) for m in page.marks),
        tuple(
            Grid(back(g.box), tuple(Cell(back(c.box), c.row, c.column, c.row_span, c.column_span) for c in g.cells))
            for g in page.grids
        ),
        turned=degrees,
        width=page.width if degrees == 180 else page.height,
        height=page.height if degrees == 180 else page.width,
    )


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_that_lies_on_its_side_gives_the_same_values_where_they_stand(blank, degrees: int) -> None:
    page = invoice(blank).read()
    upright, lying = found(page, INVOICE), found(turned(page, degrees), INVOICE)
    assert {n: f.value for n, f in lying.items()} == {n: f.value for n, f in upright.items()}
    boxes = turned(PageText(tuple(Line(n, f.box, 1.0) for n, f in upright.items() if f.box)), degrees)
    for line in boxes.lines:
        box = lying[line.text].box
        assert box is not None
        assert box.iou(line.box) > 0.6


def test_a_tilted_page_keeps_its_rows(blank) -> None:
    from math import cos, radians, sin

    page = invoice(blank).read()

    def tilt(box: Box) -> Box:
        angle, corners = radians(-3.0), [(box.x0, box.y0), (box.x1, box.y0), (box.x0, box.y1), (box.x1, box.y1)]
        moved = [
            (
                0.5 + ((x - 0.5) * 1000 * cos(angle) - (y - 0.5) * 1400 * sin(angle)) / 1000,
                0.5 + ((x - 0.5) * 1000 * sin(angle) + (y - 0.5) * 1400 * cos(angle)) / 1400,
            )
            for x, y in corners
        ]
        return Box.clipped(
            min(x for x, _ in moved), min(y for _, y in moved), max(x for x, _ in moved), max(y for _, y in moved)
        )

    lines = tuple(
        Line(ln.text, tilt(ln.box), ln.confidence, tuple(Word(w.text, tilt(w.box), w.confidence) for w in ln.words))
        for ln in page.lines
    )
    tilted = PageText(lines, skew=3.0, width=1000, height=1400)
    assert {n: f.value for n, f in found(tilted, INVOICE).items()} == {
        n: f.value for n, f in found(page, INVOICE).items()
    }


def test_a_quantity_and_its_unit_read_as_one_stand_under_two_heads(blank) -> None:
    page = (
        blank()
        .row(0.25, (0.05, "Description"), (0.45, "Qty"), (0.50, "Unit"), (0.85, "Amount"))
        .row(0.27, (0.05, "Gel pens"), (0.46, "10 pcs"), (0.86, "23.26"))
        .row(0.33, (0.60, "Total"), (0.86, "23.26"))
    )
    cells = {f.name: f.value for f in find_fields(page.read(), INVOICE)[0] if f.row is not None}
    assert (cells["items.quantity"], cells["items.unit"]) == (Decimal(10), "pcs")


def test_a_columns_heading_is_no_value(blank) -> None:
    page = blank().text(0.05, 0.05, "Full name: Orla Fenwick").text(0.60, 0.200, "Present employer")
    page.row(0.225, (0.05, "From"), (0.20, "To"), (0.35, "Company name"), (0.60, "Position held"))
    page.row(0.245, (0.05, "01/1999"), (0.20, "03/2004"), (0.35, "Moss Works"), (0.60, "Turner"))
    fields = {f.name: f.raw for f in find_fields(page.read(), FORM)[0] if f.row is None}
    assert "employer" not in fields


def test_a_text_belongs_to_the_nearest_label(blank) -> None:
    page = blank().text(0.05, 0.05, "Full name: Orla Fenwick").row(0.20, (0.05, "Position applied for"))
    page.text(0.05, 0.22, "Bookbinder").text(0.05, 0.24, "Present employer")
    fields = {f.name: f.raw for f in find_fields(page.read(), FORM)[0] if f.row is None}
    assert fields == {"name": "Orla Fenwick", "occupation": "Bookbinder"}


def test_a_rate_is_no_amount(blank) -> None:
    page = blank().text(0.05, 0.05, "Moss Works Ltd").row(0.2, (0.05, "BTW %"), (0.3, "21 %"))
    assert "tax" not in {f.name for f in find_fields(page.read(), load_document_type("invoice"))[0]}


def test_an_e_mail_address_cut_from_a_word_is_doubted(blank) -> None:
    page = blank().text(0.05, 0.05, "Full name: Orla Fenwick").text(0.05, 0.10, "Email: orla.fenw ck@example.com")
    found = {f.name: f for f in find_fields(page.read(), FORM)[0]}["email"]
    assert found.confidence < 0.65


def test_a_table_whose_lines_were_half_seen_is_read_by_its_print(blank) -> None:
    page = blank().text(0.05, 0.05, "Full name: Orla Fenwick").grid([0.04, 0.34, 0.64, 0.9], [0.19, 0.21, 0.23, 0.25])
    page.row(0.20, (0.05, "Start date"), (0.20, "End date"), (0.35, "Employer name"), (0.65, "Position"))
    page.row(0.22, (0.05, "10/1975"), (0.20, "10/1976"), (0.35, "Moss Works"), (0.65, "Turner"))
    page.row(0.24, (0.05, "01/1977"), (0.20, "11/1978"), (0.35, "Dunmore Mill"), (0.65, "Clerk"))
    fields = [f for f in find_fields(page.read(), FORM)[0] if f.row == 1]
    assert [f.raw for f in fields] == ["01/1977", "11/1978", "Dunmore Mill", "Clerk"]
