from decimal import Decimal

import pytest

from docmill.document_types import load_document_type
from docmill.extraction import BlockKind, Field, FieldKind, PageText
from docmill.finding.extractor import find_fields

GENERIC = load_document_type("generic")


def pairs(page: PageText) -> dict[str, str]:
    return {f.name: f.raw for f in find_fields(page, GENERIC)[0] if f.row is None}


def test_label_and_value_in_one_line(blank) -> None:
    page = blank().text(0.1, 0.1, "Full Name: Isol Dove").text(0.1, 0.13, "Phone # : 555-0100")
    assert pairs(page.read()) == {"Full Name": "Isol Dove", "Phone": "555-0100"}


def test_several_pairs_in_one_line(blank) -> None:
    page = blank().text(0.05, 0.1, "Address: 9 Tinker Lane City: Stonequay State: XO Zip: 31063")
    assert pairs(page.read()) == {"Address": "9 Tinker Lane", "City": "Stonequay", "State": "XO", "Zip": "31063"}


def test_a_value_that_runs_into_the_next_label(blank) -> None:
    page = blank().row(0.1, (0.05, "State:"), (0.15, "CA Zip Code: 12345"))
    assert pairs(page.read()) == {"State": "CA", "Zip Code": "12345"}


def test_value_right_of_its_label(blank) -> None:
    page = blank().row(0.1, (0.05, "First Name:"), (0.20, "PERRIN"), (0.45, "Last Name:"), (0.60, "TALLOW"))
    assert pairs(page.read()) == {"First Name": "PERRIN", "Last Name": "TALLOW"}


def test_value_below_its_label(blank) -> None:
    page = (
        blank()
        .row(0.10, (0.05, "Invoice Date:"), (0.40, "Due Date:"))
        .row(0.12, (0.05, "08/26/2024"), (0.40, "09/13/2024"))
    )
    assert pairs(page.read()) == {"Invoice Date": "08/26/2024", "Due Date": "09/13/2024"}


def test_numbered_items_over_their_answers(blank) -> None:
    page = (
        blank()
        .row(0.10, (0.05, "1. Name of registrant"), (0.60, "2. Registration No."))
        .row(0.13, (0.08, "Willowham Works"), (0.65, "7741"))
        .row(0.17, (0.05, "3. Means of transmission"), (0.60, "4. Dates of transmission"))
        .row(0.20, (0.08, "Mail"), (0.65, "6/17/91"))
    )
    assert pairs(page.read()) == {
        "1. Name of registrant": "Willowham Works",
        "2. Registration No": "7741",
        "3. Means of transmission": "Mail",
        "4. Dates of transmission": "6/17/91",
    }


def test_a_label_of_two_lines(blank) -> None:
    page = (
        blank()
        .text(0.05, 0.10, "1. Name of registrant").text(0.07, 0.13, "Isol Dove")
        .text(0.05, 0.17, "2. Date of birth").text(0.07, 0.20, "17/08/1979")
        .text(0.05, 0.24, "3. Name of foreign principal on whose behalf")
        .text(0.07, 0.255, "this was transmitted")
        .text(0.07, 0.28, "Republic of Norvania")
    )  # fmt: skip
    assert (
        pairs(page.read())["3. Name of foreign principal on whose behalf this was transmitted"]
        == "Republic of Norvania"
    )


def test_numbered_prose_is_no_form(blank) -> None:
    page = (
        blank()
        .text(0.05, 0.10, "1. The number shown on this form is correct and I am waiting for it to be issued;")
        .text(0.05, 0.12, "2. I am not subject to any withholding because I am exempt from it by the law of")
        .text(0.05, 0.14, "the country in which I live and have lived for most of the years before the last")
    )
    assert pairs(page.read()) == {}


def test_a_caption_under_what_is_written(blank) -> None:
    page = (
        blank()
        .row(0.50, (0.10, "Perrin Tallow"), (0.60, "19-02-2022"))
        .row(0.525, (0.10, "Print name"), (0.60, "Date"))
    )
    assert pairs(page.read()) == {"Print name": "Perrin Tallow", "Date": "19-02-2022"}


def test_a_blank_line_to_write_on(blank) -> None:
    page = blank().text(0.1, 0.1, "Name ____Isol Dove____").text(0.1, 0.13, "Reference ________")
    assert pairs(page.read()) == {"Name": "Isol Dove"}


def test_single_characters_in_boxes_are_one_value(blank) -> None:
    page = blank().text(0.60, 0.10, "Social security number")
    for number, char in enumerate("418-27-9035"):
        page.text(0.60 + 0.025 * number, 0.125, char)
    assert pairs(page.read()) == {"Social security number": "418-27-9035"}


def test_chinese_cells_alternate_label_and_value(blank) -> None:
    page = (
        blank()
        .row(0.10, (0.10, "姓名"), (0.22, "李雷"), (0.40, "性别"), (0.50, "男"))
        .grid([0.08, 0.2, 0.38, 0.48, 0.6], [0.08, 0.12])
    )
    assert pairs(page.read()) == {"姓名": "李雷", "性别": "男"}


def test_chinese_labels_with_colons(blank) -> None:
    page = blank().row(0.1, (0.05, "收款人：张三"), (0.40, "复核："), (0.52, "李四"))
    assert pairs(page.read()) == {"收款人": "张三", "复核": "李四"}


def test_label_over_value_in_one_cell(blank) -> None:
    page = (
        blank()
        .grid([0.05, 0.50, 0.95], [0.08, 0.14, 0.20])
        .row(0.09, (0.06, "Account number"), (0.52, "Date of birth"))
        .row(0.12, (0.10, "90412K"), (0.60, "11-23-1969"))
        .row(0.15, (0.06, "Country"), (0.52, "Phone"))
        .row(0.18, (0.10, "Norvania"), (0.60, "555-0100"))
    )
    assert pairs(page.read()) == {
        "Account number": "90412K", "Date of birth": "11-23-1969", "Country": "Norvania", "Phone": "555-0100"
    }  # fmt: skip


def test_a_ruled_table_is_rows(blank) -> None:
    page = (
        blank()
        .text(0.10, 0.08, "Previous Employment")
        .grid([0.08, 0.30, 0.60, 0.90], [0.10, 0.13, 0.16, 0.19])
        .row(0.115, (0.10, "Start Date"), (0.32, "Employer Name"), (0.62, "Position"))
        .row(0.145, (0.10, "2/24/2008"), (0.32, "Umberfield Works"), (0.62, "Baker"))
        .row(0.175, (0.10, "9/5/2012"), (0.32, "Crumhorn Ltd"), (0.62, "Head Florist"))
    )
    fields, blocks, _ = find_fields(page.read(), GENERIC)
    assert [(f.name, f.row, f.raw) for f in fields] == [
        ("Previous Employment.Start Date", 0, "2/24/2008"),
        ("Previous Employment.Employer Name", 0, "Umberfield Works"),
        ("Previous Employment.Position", 0, "Baker"),
        ("Previous Employment.Start Date", 1, "9/5/2012"),
        ("Previous Employment.Employer Name", 1, "Crumhorn Ltd"),
        ("Previous Employment.Position", 1, "Head Florist"),
    ]
    (table,) = [b.table for b in blocks if b.kind is BlockKind.TABLE]
    assert table is not None
    assert table.header == ("Start Date", "Employer Name", "Position")
    assert table.rows[1] == ("9/5/2012", "Crumhorn Ltd", "Head Florist")


def boxes(page: PageText) -> dict[str, object]:
    return {f.name: f.value for f in find_fields(page, GENERIC)[0] if f.kind is FieldKind.BOOLEAN}


def test_boxes_with_labels_right_of_them(blank) -> None:
    page = blank().mark(0.10, 0.1, True).text(0.12, 0.1, "Annual").mark(0.30, 0.1, False).text(0.32, 0.1, "Monthly")
    assert boxes(page.read()) == {"Annual": True, "Monthly": False}


def test_boxes_with_labels_left_of_them(blank) -> None:
    page = blank()
    for x, label, checked in ((0.05, "Live:", False), (0.35, "Online:", True), (0.65, "Video:", True)):
        page.text(x, 0.1, label).mark(x + 0.11, 0.1, checked)
    assert boxes(page.read()) == {"Live": False, "Online": True, "Video": True}


def test_yes_and_no_behind_a_question(blank) -> None:
    page = (
        blank()
        .text(0.05, 0.1, "Do you have a cough?").mark(0.60, 0.1, False).text(0.62, 0.1, "Yes")
        .mark(0.70, 0.1, True).text(0.72, 0.1, "No")
    )  # fmt: skip
    assert boxes(page.read()) == {"Do you have a cough? Yes": False, "Do you have a cough? No": True}


def test_boxes_inside_one_line_of_text(blank) -> None:
    page = blank().text(0.12, 0.1, "Yes      No").mark(0.105, 0.1, True).mark(0.19, 0.1, False)
    assert boxes(page.read()) == {"Yes": True, "No": False}


def test_boxes_read_as_characters(blank) -> None:
    page = blank().text(0.1, 0.1, "☑ Annual ☐ Monthly").text(0.1, 0.13, "[x] Weekly [ ] Hourly")
    assert boxes(page.read()) == {"Annual": True, "Monthly": False, "Weekly": True, "Hourly": False}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("$620.00", FieldKind.MONEY, Decimal("620.00")),
        ("12345", FieldKind.TEXT, "12345"),
        ("Yes", FieldKind.BOOLEAN, True),
        ("Jane", FieldKind.TEXT, "Jane"),
    ],
)
def test_a_value_shows_its_kind(blank, text: str, kind: FieldKind, value: object) -> None:
    field: Field
    (field,) = find_fields(blank().text(0.1, 0.1, f"Entry: {text}").read(), GENERIC)[0]
    assert (field.kind, field.value) == (kind, value)


def test_an_empty_page_gives_nothing(blank) -> None:
    assert find_fields(blank().read(), GENERIC) == ((), (), ())


def test_text_without_structure_gives_text_blocks_and_no_fields(blank) -> None:
    page = blank().text(0.1, 0.1, "It was a bright cold day in April").text(0.1, 0.12, "and the clocks were striking")
    fields, blocks, _ = find_fields(page.read(), GENERIC)
    assert fields == ()
    assert [b.kind for b in blocks] == [BlockKind.TEXT]


def test_a_question_that_runs_into_the_labels_left_of_its_boxes(blank) -> None:
    page = (
        blank()
        .text(0.05, 0.1, "14. Have two copies been filed? Yes").mark(0.455, 0.1, True)
        .text(0.49, 0.1, "No").mark(0.535, 0.1, False)
    )  # fmt: skip
    assert boxes(page.read()) == {
        "14. Have two copies been filed? Yes": True,
        "14. Have two copies been filed? No": False,
    }


def test_a_form_with_boxes_whose_line_begins_at_the_box(blank) -> None:
    page = blank().text(0.10, 0.1, "To correct a deficiency in").mark(0.108, 0.1, True)
    assert boxes(page.read()) == {"To correct a deficiency in": True}


def test_an_empty_box_that_was_read_as_one_is_empty_though_its_frame_looks_like_ink(blank) -> None:
    page = blank().text(0.10, 0.1, "□Monthly").mark(0.106, 0.1, True)
    (field,) = find_fields(page.read(), GENERIC)[0]
    assert (field.name, field.value) == ("Monthly", False)
    assert field.confidence < 0.7


def test_yes_and_no_read_with_a_part_of_their_boxes(blank) -> None:
    page = (
        blank()
        .text(0.05, 0.1, "Do you have a cough?").text(0.60, 0.1, "ves").mark(0.605, 0.1, True)
        .text(0.70, 0.1, "□NO").mark(0.705, 0.1, False)
    )  # fmt: skip
    assert boxes(page.read()) == {"Do you have a cough? Yes": True, "Do you have a cough? No": False}


def test_a_letter_in_a_word_is_no_box(blank) -> None:
    page = blank().text(0.10, 0.1, "Phone: 7702118xxxx").mark(0.10 + 0.011 * 15.5, 0.1, True)
    assert boxes(page.read()) == {}


def rows(page: PageText) -> list[tuple[int, str, str]]:
    return [(f.row, f.name, f.raw) for f in find_fields(page, GENERIC)[0] if f.row is not None]


def test_headings_over_rows_without_ruling_are_a_table(blank) -> None:
    page = blank().row(0.20, (0.05, "Start Date"), (0.30, "End Date"), (0.55, "Gross Amount"), (0.80, "Net Amount"))
    page.row(0.22, (0.05, "01/06/21"), (0.30, "01/12/21"), (0.55, "$410.00"), (0.80, "$348.50"))
    page.row(0.24, (0.05, "Totals"), (0.55, "$410.00"), (0.80, "$348.50"))
    assert rows(page.read()) == [
        (0, "table 1.Start Date", "01/06/21"),
        (0, "table 1.End Date", "01/12/21"),
        (0, "table 1.Gross Amount", "$410.00"),
        (0, "table 1.Net Amount", "$348.50"),
        (1, "table 1.Start Date", "Totals"),
        (1, "table 1.Gross Amount", "$410.00"),
        (1, "table 1.Net Amount", "$348.50"),
    ]


def test_headings_over_one_row_are_pairs(blank) -> None:
    page = blank().row(0.20, (0.05, "Invoice Number"), (0.30, "Date of Issue"), (0.55, "Payment Due"))
    page.row(0.22, (0.05, "RE-1147"), (0.30, "20 January 2024"), (0.55, "3 February 2024"))
    found = pairs(page.read())
    assert found == {"Invoice Number": "RE-1147", "Date of Issue": "20 January 2024", "Payment Due": "3 February 2024"}


def test_a_text_that_goes_on_below_its_row_stays_in_its_cell(blank) -> None:
    page = blank().row(0.200, (0.05, "Item"), (0.30, "Description"), (0.70, "Amount"))
    page.row(0.222, (0.05, "1"), (0.30, "Repair of the long"), (0.70, "41.00")).text(0.30, 0.238, "garden wall")
    page.row(0.262, (0.05, "2"), (0.30, "Paint for a door"), (0.70, "12.00"))
    assert [raw for _, name, raw in rows(page.read()) if name.endswith("Description")] == [
        "Repair of the long garden wall",
        "Paint for a door",
    ]


def test_a_span_of_dates_is_also_its_ends(blank) -> None:
    page = blank().row(0.1, (0.05, "Flight Dates:"), (0.30, "02/11/21-02/18/21"))
    assert pairs(page.read()) == {
        "Flight Dates": "02/11/21-02/18/21",
        "Flight Dates from": "02/11/21",
        "Flight Dates to": "02/18/21",
    }


@pytest.mark.parametrize(
    ("label", "lines", "parts"),
    [
        ("Name and title:", ["Orla Fenwick", "Executive Director"], ["Orla Fenwick", "Executive Director"]),
        ("Name and title:", ["Orla Fenwick, Executive Director"], ["Orla Fenwick", "Executive Director"]),
        ("Name and address of employer:", ["Orla Fenwick 7 Moss Lane"], ["Orla Fenwick", "7 Moss Lane"]),
        ("Name and address:", ["Orla Fenwick", "Moss House, Dunmore"], ["Orla Fenwick", "Moss House, Dunmore"]),
    ],
)
def test_a_label_that_asks_for_two_things(blank, label: str, lines: list[str], parts: list[str]) -> None:
    page = blank().text(0.05, 0.1, label)
    for number, line in enumerate(lines):
        page.text(0.05, 0.12 + 0.018 * number, line)
    found = find_fields(page.read(), GENERIC)[0]
    assert [f.raw for f in found] == [" ".join(lines), *parts]


def test_two_numbers_under_two_names(blank) -> None:
    page = blank().row(0.1, (0.05, "Contract / Revision:"), (0.35, "114720 / 3"))
    assert pairs(page.read()) == {"Contract / Revision": "114720 / 3", "Contract": "114720", "Revision": "3"}


def test_a_stamp_with_its_moment(blank) -> None:
    page = blank().text(0.1, 0.02, "Received by the Registration Unit 03/09/2022 8:17:30 AM")
    assert pairs(page.read()) == {"Received by the Registration Unit": "03/09/2022 8:17:30 AM"}


def test_the_title_of_a_form(blank) -> None:
    page = blank().text(0.05, 0.04, "Department of Bridges").text(0.4, 0.06, "Application for a Permit", height=0.02)
    page.text(0.05, 0.12, "Name: Orla Fenwick")
    assert pairs(page.read()) == {"form title": "Application for a Permit", "Name": "Orla Fenwick"}


@pytest.mark.parametrize(
    "line",
    [
        "Note: If the account is in more than one name, see the instructions for line one and also what they say",
        "Instructions: Complete items 1 through 7 and forward this form to the office that is named in item 1",
        "no longer subject to backup rules; and",
    ],
)
def test_remarks_are_no_pairs(blank, line: str) -> None:
    assert pairs(blank().text(0.05, 0.1, line).text(0.05, 0.3, "Name: Orla Fenwick").read()) == {"Name": "Orla Fenwick"}


def test_a_label_of_two_lines_over_an_empty_space(blank) -> None:
    page = blank().text(0.05, 0.100, "10 Gross proceeds paid to an").text(0.05, 0.114, "attorney")
    page.text(0.05, 0.2, "11 Date of sale").text(0.05, 0.23, "4/5/2021").text(0.05, 0.3, "12 Name").text(
        0.05, 0.33, "Orla"
    )
    assert pairs(page.read()) == {"11 Date of sale": "4/5/2021", "12 Name": "Orla"}


def test_the_second_line_of_a_label_is_read_with_its_first(blank) -> None:
    page = blank().text(0.05, 0.100, "Exemption from reporting").row(0.114, (0.05, "code (if any)"), (0.30, "A"))
    assert pairs(page.read()) == {"Exemption from reporting code (if any)": "A"}


def test_a_drawn_line_parts_a_label_from_the_next_cell(blank) -> None:
    page = blank().grid([0.05, 0.45, 0.95], [0.1, 0.2, 0.3])
    page.row(0.115, (0.06, "Account number"), (0.46, "Payer's name")).text(0.46, 0.16, "Orla Fenwick")
    page.row(0.215, (0.06, "State"), (0.46, "City")).row(0.26, (0.06, "Oregon"), (0.46, "Dunmore"))
    assert pairs(page.read()) == {"Payer's name": "Orla Fenwick", "State": "Oregon", "City": "Dunmore"}


def test_a_name_of_two_spaced_characters_beside_a_heading_written_downwards(blank) -> None:
    page = blank().row(0.1, (0.05, "购"), (0.10, "名"), (0.16, "称:青禾茶行"))
    assert pairs(page.read()) == {"名称": "青禾茶行"}


def test_an_amount_beside_a_box_is_not_its_label(blank) -> None:
    page = blank().mark(0.30, 0.1, True).row(0.1, (0.1, "71420"), (0.33, "Weekly"))
    assert [f.name for f in find_fields(page.read(), GENERIC)[0] if f.kind is FieldKind.BOOLEAN] == ["Weekly"]


def test_a_pair_of_two_labels_is_trusted_less_than_one_with_a_value(blank) -> None:
    page = blank().row(0.1, (0.05, "Name: Orla 7")).row(0.2, (0.05, "Rates: Contract number"))
    found = {f.name: f.confidence for f in find_fields(page.read(), GENERIC)[0]}
    assert found["Rates"] < 0.75 * found["Name"]


def test_running_text_holds_no_pairs_but_its_stamps_and_dates(blank) -> None:
    page = blank().text(0.05, 0.02, "Received by the Registration Unit 03/09/2022 8:17:30 AM")
    for number, line in enumerate(
        [
            "the interest that is paid to you on the account for which the number",
            "2. Certify that you are not subject to any withholding by us, or that",
            "the states exceed five years of the time for which the account is held",
            "4. Certify that the codes entered on this form (if any) indicating that",
            "on his or her income would be attached to the form that is sent to us",
            "payments that may be subject to it include the sum paid to the bank or",
            "5. Sufficient facts to justify the exemption from tax under the terms of",
            "a treaty that is in force between the two countries at the time of this",
        ]
    ):
        page.text(0.05, 0.1 + 0.02 * number, line)
    page.text(0.05, 0.5, "Date: 3/9/2022")
    assert pairs(page.read()) == {
        "Received by the Registration Unit": "03/09/2022 8:17:30 AM",
        "Date": "3/9/2022",
    }


def test_a_wordy_form_that_is_filled_in_keeps_its_answers(blank) -> None:
    page = blank()
    items = ["Name of the person for whom this form is", "Number that was given to you", "Date of birth", "City", "Zip"]
    answers = ["Orla Fenwick", "114-720", "4/5/1987", "Dunmore", "75001"]
    for number, (item, answer) in enumerate(zip(items, answers, strict=True)):
        page.text(0.05, 0.1 + 0.06 * number, f"{number + 1}. {item}").text(0.05, 0.125 + 0.06 * number, answer)
    for number in range(12):
        page.text(0.05, 0.5 + 0.02 * number, "the sums that are paid to you by us in the course of the year are taxed")
    assert list(pairs(page.read()).values()) == answers
