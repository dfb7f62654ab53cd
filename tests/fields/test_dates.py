from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.normalisation.dates import find_dates, month_number, parse_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013年10月26日", date(2013, 10, 26)),
        ("２０１３年１０月２６日", date(2013, 10, 26)),
        ("二〇一三年十月二十六日", date(2013, 10, 26)),
        ("23rd March 1994", date(1994, 3, 23)),
        ("this 23rd day of March, 1994", date(1994, 3, 23)),
        ("25 DEC 2018", date(2018, 12, 25)),
        ("25DEC2018", date(2018, 12, 25)),
        ("21-Feb-2019 04:35:12 PM", date(2019, 2, 21)),
        ("March 21, 1996", date(1996, 3, 21)),
        ("Dec 31 2017", date(2017, 12, 31)),
        ("17 maart 2015", date(2015, 3, 17)),
        ("3 août 2021", date(2021, 8, 3)),
        ("17 Ogos 2019", date(2019, 8, 17)),
        ("2018-03-11", date(2018, 3, 11)),
        ("2018/3/1", date(2018, 3, 1)),
        ("11.03.18", date(2018, 3, 11)),
        ("20180311", date(2018, 3, 11)),
        (": 27/05/2019 8:21:43 PM", date(2019, 5, 27)),
        ("08/04/20192:31:05 PM", date(2019, 4, 8)),
        ("O1/l2/2O18", date(2018, 12, 1)),
        ("25 0ct 2018", date(2018, 10, 25)),
        ("6/17/91", date(1991, 6, 17)),
    ],
)
def test_reads(text: str, expected: date) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "03-77120456",
        "123-45-6789",
        "1.50 1.50",
        "31/02/2018",
        "13/27/2018",
        "555-0100",
        "1992.5",
        "12:30:45",
    ],
)
def test_no_date_where_there_is_none(text: str) -> None:
    assert parse_date(text) is None


def test_the_order_decides_only_what_is_ambiguous() -> None:
    assert parse_date("03/04/2018", order="DMY") == date(2018, 4, 3)
    assert parse_date("03/04/2018", order="MDY") == date(2018, 3, 4)
    assert parse_date("18/04/03", order="YMD") == date(2018, 4, 3)
    assert parse_date("25/04/2018", order="MDY") == date(2018, 4, 25)


def test_certainty_says_how_it_was_told() -> None:
    (clear,), (ordered,) = find_dates("25/04/2018"), find_dates("03/04/2018")
    (mended,) = find_dates("2S/O4/2018") or find_dates("25/O4/2018")
    assert clear.certainty == 1.0
    assert mended.certainty < ordered.certainty < clear.certainty


def test_two_dates_keep_their_places() -> None:
    text = "flight 5/6/2021 - 5/9/2021"
    first, second = find_dates(text, order="MDY")
    assert (text[first.start : first.end], text[second.start : second.end]) == ("5/6/2021", "5/9/2021")


def test_a_month_is_not_any_word() -> None:
    assert month_number("Febuary") == 2
    assert month_number("mat") is None
    assert month_number("Selangor") is None


SHAPES = [
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%d.%m.%Y",
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d %b %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%d-%b-%y",
    "%Y%m%d",
]


@given(day=st.dates(date(1950, 1, 1), date(2049, 12, 31)), shape=st.sampled_from(SHAPES))
def test_round_trip(day: date, shape: str) -> None:
    assert parse_date(day.strftime(shape)) == day


@given(day=st.dates(date(1950, 1, 1), date(2049, 12, 31)))
def test_round_trip_chinese(day: date) -> None:
    assert parse_date(f"开票日期：{day.year}年{day.month:02}月{day.day:02}日") == day


@given(text=st.text(max_size=40))
def test_any_text_is_read_without_error(text: str) -> None:
    for found in find_dates(text):
        assert 0 <= found.start < found.end <= len(text)


@pytest.mark.parametrize("text", ["29/06/2018-17:56", "29/06/201817:56", "29/06/18-17:56"])
def test_a_time_behind_a_date_is_no_part_of_it(text: str) -> None:
    assert parse_date(text) == date(2018, 6, 29)
