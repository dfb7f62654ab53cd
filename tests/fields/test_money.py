from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.normalisation.money import Money, find_amounts, parse_money
from docmill.normalisation.numbers import parse_chinese_number, parse_number


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("1,234.56", "1234.56", None),
        ("1.234,56", "1234.56", None),
        ("1 234,56 €", "1234.56", "EUR"),
        ("€ 3.817,26", "3817.26", "EUR"),
        ("1'234.50 CHF", "1234.50", "CHF"),
        ("RM 13.10", "13.10", "MYR"),
        ("RM1,234", "1234", "MYR"),
        ("$620.00", "620.00", "USD"),
        ("￥4888.00", "4888.00", "CNY"),
        ("Rs. 2746", "2746", "INR"),
        ("(12.00)", "-12.00", None),
        ("($84.00)", "-84.00", "USD"),
        ("12.00-", "-12.00", None),
        ("-0.01", "-0.01", None),
        (".10", "0.10", None),
        ("5.90SR", "5.90", None),
        ("RM3.70 s", "3.70", "MYR"),
        ("12. 50", "12.50", None),
        ("l2.O0", "12.00", None),
        ("52-00", "52.00", None),
        ("陆仟零贰拾柒圆柒角肆分", "6027.74", "CNY"),
    ],
)
def test_reads(text: str, amount: str, currency: str | None) -> None:
    assert parse_money(text) == Money(Decimal(amount), currency)


@pytest.mark.parametrize("text", ["", "abc", "03-77120456", "12/05/2018", "1.2.3.4", "SR"])
def test_no_amount_where_there_is_none(text: str) -> None:
    assert parse_money(text) is None


def test_the_document_decides_what_a_dollar_is() -> None:
    assert parse_money("$5.00", default_currency="SGD") == Money(Decimal("5.00"), "SGD")
    assert parse_money("¥500", default_currency="JPY") == Money(Decimal(500), "JPY")
    assert parse_money("€5.00", default_currency="SGD") == Money(Decimal("5.00"), "EUR")


def test_amounts_in_a_line_leave_dates_times_and_rates_alone() -> None:
    text = "11:59AM 28-01-18 GST 6% 2 x 269.00 RM538.00 03-8943"
    assert [a.money.amount for a in find_amounts(text) if a.decimals] == [Decimal("269.00"), Decimal("538.00")]
    assert all(text[a.start : a.end].strip() for a in find_amounts(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("17%", "17"), ("1.234", "1.234"), ("1,234", "1234"), ("1.234.567", "1234567"), ("0.500", "0.500"), ("+3", "3")],
)
def test_numbers(text: str, expected: str) -> None:
    assert parse_number(text) == Decimal(expected)


def test_a_decimal_mark_that_is_known_decides() -> None:
    assert parse_number("1.234", decimal_mark=",") == Decimal(1234)
    assert parse_number("1,234", decimal_mark=",") == Decimal("1.234")


def test_chinese_numerals() -> None:
    assert parse_chinese_number("十八") == 18
    assert parse_chinese_number("壹万贰仟叁佰元整") == 12300
    assert parse_chinese_number("购方") is None


def grouped(amount: Decimal, group: str, mark: str) -> str:
    return f"{amount:,.2f}".replace(",", "~").replace(".", mark).replace("~", group)


@given(
    cents=st.integers(0, 10**10),
    notation=st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ",")]),
    sign=st.sampled_from(["", "RM ", "$", "€", "¥"]),
)
def test_round_trip(cents: int, notation: tuple[str, str], sign: str) -> None:
    amount = Decimal(cents) / 100
    money = parse_money(sign + grouped(amount, *notation))
    assert money is not None
    assert money.amount == amount


@given(cents=st.integers(1, 10**8))
def test_negative_round_trip(cents: int) -> None:
    amount = Decimal(cents) / 100
    for text in (f"({amount:,.2f})", f"{amount:,.2f}-", f"-{amount:,.2f}"):
        money = parse_money(text)
        assert money is not None
        assert money.amount == -amount


@given(text=st.text(max_size=30))
def test_any_text_is_read_without_error(text: str) -> None:
    parse_money(text)
    for found in find_amounts(text):
        assert 0 <= found.start < found.end <= len(text)
