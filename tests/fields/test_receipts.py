from datetime import date
from decimal import Decimal

import pytest

from docmill.document_types import load_document_type
from docmill.extraction import Field, PageText
from docmill.finding.extractor import find_fields

RECEIPT = load_document_type("receipt")


def found(page: PageText) -> dict[str, Field]:
    return {f.name: f for f in find_fields(page, RECEIPT)[0] if f.row is None}


def test_a_whole_receipt(receipt) -> None:
    fields = found(receipt.read())
    assert {name: field.value for name, field in fields.items()} == {
        "company": "KEDAI ANEKA SDN BHD",
        "address": "No 12, Jalan Melati 3/4, Taman Bunga, 43200 Cheras, Selangor.",
        "date": date(2019, 5, 16),
        "time": "09:41",
        "receipt_no": "R-00417",
        "phone": "03-1234 5678",
        "tax_id": "000123456789",
        "subtotal": Decimal("7.50"),
        "tax": Decimal("0.45"),
        "rounding": Decimal("0.00"),
        "total": Decimal("7.95"),
        "cash": Decimal("10.00"),
        "change": Decimal("2.05"),
    }
    assert fields["total"].confidence > 0.9
    assert not fields["total"].needs_review


def test_every_value_stands_in_its_box(receipt) -> None:
    page = receipt.read()
    for field in found(page).values():
        assert field.box is not None
        under = " ".join(line.text for line in page.lines if line.box.intersection(field.box) > 0)
        assert field.raw.split()[0] in under


def test_the_items_are_rows(receipt) -> None:
    fields, _, missing = find_fields(receipt.read(), RECEIPT)
    cells = {(f.row, f.name): f.value for f in fields if f.row is not None}
    assert cells == {
        (0, "items.description"): "Kopi O",
        (0, "items.quantity"): Decimal(2),
        (0, "items.unit_price"): Decimal("2.20"),
        (0, "items.amount"): Decimal("4.40"),
        (1, "items.description"): "Roti Bakar",
        (1, "items.quantity"): Decimal(1),
        (1, "items.unit_price"): Decimal("3.10"),
        (1, "items.amount"): Decimal("3.10"),
    }
    assert missing == ()


def test_an_item_whose_name_stands_on_a_line_of_its_own(blank) -> None:
    page = (
        blank()
        .row(0.20, (0.05, "Description"), (0.45, "Qty"), (0.58, "U.price"), (0.75, "Total TAX"))
        .row(0.22, (0.05, "Mee Goreng"))
        .row(0.24, (0.45, "2x"), (0.58, "2.10"), (0.75, "4.20"), (0.86, "SR"))
        .row(0.26, (0.05, "Air Limau"))
        .row(0.28, (0.45, "1x"), (0.58, "1.80"), (0.75, "1.80"), (0.86, "SR"))
        .row(0.32, (0.05, "TOTAL:"), (0.75, "6.00"))
    )
    rows = {(f.row, f.name): f.value for f in find_fields(page.read(), RECEIPT)[0] if f.row is not None}
    assert rows[0, "items.description"] == "Mee Goreng"
    assert rows[1, "items.description"] == "Air Limau"
    assert rows[1, "items.amount"] == Decimal("1.80")
    assert len({row for row, _ in rows}) == 2


@pytest.mark.parametrize(
    ("rows", "total"),
    [
        ([("SUB TOTAL", "6.60"), ("GST", "0.40"), ("TOTAL", "7.00")], "7.00"),
        ([("Total Excl. GST", "22.00"), ("Total GST", "1.32"), ("Total Incl. GST", "23.32")], "23.32"),
        ([("Total", "28.31"), ("Rounding Adjustment", "-0.01"), ("Total Rounded", "28.30")], "28.30"),
        ([("TOTAL", "28.31"), ("ROUNDING ADJ", "0.04"), ("AMOUNT DUE", "28.35"), ("CASH", "30.00")], "28.35"),
        ([("Total Amount", "9.90"), ("GST @6%", "0.56"), ("Nett Total", "9.90")], "9.90"),
        ([("Total Qty", "3.00"), ("Net Total", "21.00"), ("Cash", "50.00"), ("Change", "29.00")], "21.00"),
        ([("Total Savings", "5.00"), ("GRAND TOTAL", "31.00")], "31.00"),
        ([("Subtotal", "10.00"), ("Service Charge 10%", "1.00"), ("Total", "11.00"), ("Visa", "11.00")], "11.00"),
        ([("小计", "50.00"), ("优惠", "5.00"), ("应付", "45.00"), ("现金", "100.00"), ("找零", "55.00")], "45.00"),
        ([("合计", "￥45.00")], "45.00"),
        ([("IUIAL", "6.30"), ("CASH", "7.00")], "6.30"),
        ([("TOTAL", "52-00"), ("CASH", "60.00"), ("CHANGE", "8.00")], "52.00"),
    ],
)
def test_the_total_among_the_amounts(blank, rows: list[tuple[str, str]], total: str) -> None:
    page = blank()
    for number, (label, amount) in enumerate(rows):
        page.row(0.3 + 0.02 * number, (0.05, label), (0.75, amount))
    assert found(page.read())["total"].value == Decimal(total)


def test_a_total_that_was_not_read_is_worked_out_from_cash_and_change(blank) -> None:
    page = (
        blank()
        .row(0.30, (0.05, "Tape"), (0.75, "7.00"))
        .row(0.34, (0.05, "CASH"), (0.75, "10.00"))
        .row(0.36, (0.05, "CHANGE"), (0.75, "3.00"))
    )
    total = found(page.read())["total"]
    assert total.value == Decimal("7.00")
    assert "computed" in total.notes


def test_a_total_that_only_its_size_speaks_for_needs_review(blank) -> None:
    page = blank().row(0.30, (0.05, "Tape"), (0.75, "7.00")).row(0.32, (0.05, "Glue"), (0.75, "9.00"))
    total = found(page.read())["total"]
    assert total.value == Decimal("9.00")
    assert total.needs_review
    assert "guessed" in total.notes


def test_two_labels_on_one_row_keep_their_own_amounts(blank) -> None:
    page = (
        blank()
        .row(0.70, (0.05, "Net amount"), (0.25, "100.00"), (0.60, "Subtotal"), (0.85, "121.00"))
        .row(0.72, (0.05, "VAT 21%"), (0.25, "21.00"), (0.60, "Total"), (0.85, "121.00"))
    )
    fields = found(page.read())
    assert (fields["subtotal"].value, fields["tax"].value, fields["total"].value) == (100, 21, 121)


def test_a_handwritten_note_over_the_head_is_not_the_company(blank) -> None:
    page = (
        blank()
        .text(0.30, 0.03, "lena paid this", height=0.02)
        .text(0.30, 0.06, "MAWAR TOYS AND GIFTS")
        .text(0.26, 0.08, "31, Jalan Mawar 6,")
        .text(0.26, 0.10, "45600 Bandar Mawar, Johor.")
    )
    fields = found(page.read())
    assert fields["company"].value == "MAWAR TOYS AND GIFTS"
    assert fields["address"].value == "31, Jalan Mawar 6, 45600 Bandar Mawar, Johor."


def test_a_company_by_its_form_wins_over_a_brand_above_it(blank) -> None:
    page = (
        blank()
        .text(0.40, 0.04, "KIOSK9")
        .text(0.30, 0.06, "QUILLON PASAR SDN BHD")
        .text(0.20, 0.08, "No.8B, Jalan Intan K, 46200 Intan Jaya")
    )
    assert found(page.read())["company"].value == "QUILLON PASAR SDN BHD"


def test_a_name_over_two_lines_and_its_registration_number(blank) -> None:
    page = (
        blank()
        .text(0.30, 0.04, "TANGLIN KITCHENS")
        .text(0.40, 0.06, "SDN BHD (77123-P)")
        .text(0.20, 0.08, "Level 4, Wisma Intan, 46200 Intan Jaya")
    )
    assert found(page.read())["company"].value == "TANGLIN KITCHENS SDN BHD"


def test_no_company_where_the_head_was_not_read(blank) -> None:
    page = (
        blank().text(0.3, 0.05, "23, JALAN MERPATI,").text(0.3, 0.07, "46200 INTAN JAYA").text(0.1, 0.2, "Cashier: 01")
    )
    fields, _, missing = find_fields(page.read(), RECEIPT)
    assert "company" not in {f.name for f in fields}
    assert set(missing) == {"company", "date", "total"}
    assert found(page.read())["address"].value == "23, JALAN MERPATI, 46200 INTAN JAYA"


def test_the_labelled_date_wins_over_others(blank) -> None:
    page = (
        blank()
        .row(0.10, (0.05, "Valid until 31/12/2019"))
        .row(0.12, (0.05, "Promotion 01/02/2018"))
        .row(0.14, (0.05, "Date :"), (0.30, "16/05/2019 09:41"))
    )
    assert found(page.read())["date"].value == date(2019, 5, 16)


def test_the_page_itself_decides_the_order_of_its_dates(blank) -> None:
    page = blank().row(0.10, (0.05, "Date: 03/04/2018")).row(0.12, (0.05, "Printed 03/25/2018"))
    assert found(page.read())["date"].value == date(2018, 3, 4)


def test_a_chinese_receipt(blank) -> None:
    page = (
        blank()
        .text(0.35, 0.05, "好味道餐厅", height=0.02)
        .row(0.10, (0.05, "日期：2021年5月20日"), (0.60, "单号：A0012"))
        .row(0.15, (0.05, "品名"), (0.40, "数量"), (0.55, "单价"), (0.75, "金额"))
        .row(0.17, (0.05, "牛肉面"), (0.42, "2"), (0.55, "18.00"), (0.75, "36.00"))
        .row(0.22, (0.05, "合计"), (0.75, "36.00"))
    )
    fields = found(page.read())
    assert fields["company"].value == "好味道餐厅"
    assert fields["date"].value == date(2021, 5, 20)
    assert fields["receipt_no"].value == "A0012"
    assert fields["total"].value == Decimal("36.00")


def test_confidence_follows_the_ocr(blank) -> None:
    sure = blank().text(0.05, 0.3, "TOTAL 7.00", confidence=0.99)
    unsure = blank().text(0.05, 0.3, "TOTAL 7.00", confidence=0.6)
    high, low = found(sure.read())["total"], found(unsure.read())["total"]
    assert low.confidence < high.confidence
    assert low.needs_review
    assert not high.needs_review


def test_former_names_and_licences_are_no_address(blank) -> None:
    page = (
        blank()
        .text(0.40, 0.04, "Burger House")
        .text(0.30, 0.06, "TANGLIN KITCHENS SDN BHD")
        .text(0.30, 0.08, "(77123-P) FORMERLY KNOWN AS")
        .text(0.30, 0.10, "SILVER KITCHENS SDN BHD")
        .text(0.30, 0.12, "Level 4, Wisma Intan, Lakeside 2,")
        .text(0.30, 0.14, "46200 Intan Jaya")
    )
    fields = found(page.read())
    assert fields["company"].value == "TANGLIN KITCHENS SDN BHD"
    assert fields["address"].value == "Level 4, Wisma Intan, Lakeside 2, 46200 Intan Jaya"


@pytest.mark.parametrize(
    "remark", ["Page 1 of 2", "continued on next page", "Acme Ltd, invoice 17, continued", "Carried forward", "P.T.O."]
)
def test_nothing_is_guessed_on_a_page_that_goes_on(blank, remark: str) -> None:
    def page() -> object:
        return (
            blank()
            .text(0.1, 0.05, "ACME LTD")
            .row(0.20, (0.1, "Lamp oil"), (0.8, "41.80"))
            .row(0.22, (0.1, "Wicks"), (0.8, "4,188.80"))
        )

    assert found(page().read())["total"].notes == ("guessed",)
    assert "total" not in found(page().text(0.8, 0.95, remark).read())


def test_a_sum_carried_over_is_no_total(blank) -> None:
    page = blank().text(0.1, 0.05, "ACME LTD").row(0.20, (0.1, "Lamp oil"), (0.8, "41.80"))
    page.row(0.24, (0.1, "Total carried forward"), (0.8, "41.80"))
    assert "total" not in found(page.read())


def test_who_served_behind_another_sentence(blank) -> None:
    page = blank().text(0.1, 0.05, "ACME LTD").row(0.20, (0.1, "Total"), (0.8, "41.80"))
    assert found(page.text(0.1, 0.3, "9 items. Served by Orla").read())["cashier"].value == "Orla"


def test_a_label_misread_in_one_letter(blank) -> None:
    page = blank().text(0.1, 0.05, "ACME LTD").text(0.1, 0.2, "Involce No. RE-2023-1147")
    assert found(page.read())["receipt_no"].value == "RE-2023-1147"


def test_a_running_head_is_not_part_of_the_name(blank) -> None:
    page = blank().text(0.1, 0.05, "Acme Lamps Ltd, invoice RE-2024-1147, continued")
    assert found(page.read())["company"].value == "Acme Lamps Ltd"


def test_items_without_a_header_with_quantity_and_price(blank) -> None:
    page = blank().text(0.1, 0.05, "ACME LTD").row(0.20, (0.1, "Lamp oil"), (0.5, "3"), (0.6, "1.50"), (0.8, "4.50"))
    fields, _, _ = find_fields(page.row(0.24, (0.1, "Total"), (0.8, "4.50")).read(), RECEIPT)
    assert {f.name: f.raw for f in fields if f.row == 0} == {
        "items.description": "Lamp oil",
        "items.quantity": "3",
        "items.unit_price": "1.50",
        "items.amount": "4.50",
    }


def test_a_currency_sign_between_label_and_amount(blank) -> None:
    page = blank().text(0.1, 0.05, "ACME LTD").row(0.20, (0.1, "Lamp oil"), (0.8, "441.80"))
    total = found(page.row(0.24, (0.1, "TOTAL"), (0.5, "RM"), (0.8, "44.80")).read())["total"]
    assert total.value == Decimal("44.80") and not total.needs_review


def test_a_heading_misread_in_one_letter_still_heads_its_column(blank) -> None:
    page = blank().text(0.1, 0.05, "ACME LTD").row(0.20, (0.1, "Itern"), (0.5, "Prlce"), (0.8, "Arnount"))
    page.row(0.20, (0.65, "Qty")).row(0.22, (0.1, "Wicks"), (0.5, "1.50"), (0.65, "3"), (0.8, "4.50"))
    fields, _, _ = find_fields(page.row(0.26, (0.1, "Total"), (0.8, "4.50")).read(), RECEIPT)
    assert {f.raw for f in fields if f.name == "items.unit_price"} == {"1.50"}


def test_what_was_read_twice_is_there_once(blank) -> None:
    page = blank().text(0.1, 0.05, "ACME LAMPS LTD").text(0.1, 0.051, "ACME").text(0.1, 0.09, "7 Moss Lane")
    assert found(page.read())["company"].value == "ACME LAMPS LTD"
