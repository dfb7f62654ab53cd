from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.evaluation.metrics import (
    character_edits,
    mean,
    normal_form,
    plain_form,
    similarity,
    text_in_rows,
    words_found,
)
from docmill.extraction import FieldKind
from docmill.geometry import Box


@pytest.mark.parametrize(
    ("truth", "found", "expected"),
    [
        ("abcd", "abcd", 1.0),
        ("abcd", "ABCD", 1.0),
        ("abcd", "abcx", 0.75),
        ("abcd", "abxx", 0.0),  # a distance of 0.5 is another answer
        ("abcde", "abcxx", 0.6),
        ("abcd", "", 0.0),
        ("", "", 1.0),
        ("", "a", 0.0),
        ("AEON  CO", "aeon co", 1.0),
    ],
)
def test_similarity_by_hand(truth: str, found: str, expected: float) -> None:
    assert similarity(truth, found) == pytest.approx(expected)


@given(st.text(), st.text())
def test_similarity_is_symmetric_and_never_between_zero_and_a_half(one: str, other: str) -> None:
    value = similarity(one, other)
    assert value == similarity(other, one)
    assert value == 0 or 0.5 < value <= 1


@pytest.mark.parametrize(
    ("kind", "truth", "found"),
    [
        (FieldKind.DATE, "11/03/2018", "2018-03-11"),
        (FieldKind.DATE, "27/07/17", "27 Jul 2017"),
        (FieldKind.MONEY, "13.10", "RM 13.10"),
        (FieldKind.MONEY, "1,234.50", "1.234,50 €"),
        (FieldKind.NUMBER, "3", "3.0"),
        (FieldKind.BOOLEAN, "true", "Yes"),
        (FieldKind.TEXT, "AEON CO. (M) BHD.", "Aeon Co.(M) Bhd"),
        (FieldKind.TEXT, "ＡＢＣ", "abc"),
    ],
)
def test_values_that_say_the_same_are_equal(kind: FieldKind, truth: str, found: str) -> None:
    assert normal_form(kind, truth) == normal_form(kind, found)


@pytest.mark.parametrize(
    ("kind", "truth", "found"),
    [
        (FieldKind.DATE, "11/03/2018", "12/03/2018"),
        (FieldKind.MONEY, "13.10", "31.10"),
        (FieldKind.BOOLEAN, "true", "false"),
        (FieldKind.TEXT, "12.5", "125"),
        (FieldKind.TEXT, "ACME", "ACNE"),
    ],
)
def test_values_that_differ_are_not_equal(kind: FieldKind, truth: str, found: str) -> None:
    assert normal_form(kind, truth) != normal_form(kind, found)


def test_a_typed_value_goes_before_the_text() -> None:
    assert normal_form(FieldKind.DATE, "?", date(2018, 3, 11)) == date(2018, 3, 11)
    assert normal_form(FieldKind.MONEY, "?", Decimal("1.5")) == Decimal("1.50")
    assert normal_form(FieldKind.BOOLEAN, "?", False) is False


def test_the_date_order_decides_an_ambiguous_date() -> None:
    assert normal_form(FieldKind.DATE, "03/04/2018", date_order="MDY") == date(2018, 3, 4)
    assert normal_form(FieldKind.DATE, "03/04/2018", date_order="DMY") == date(2018, 4, 3)


def test_what_is_no_date_is_compared_as_text() -> None:
    assert normal_form(FieldKind.DATE, "Next Week") == plain_form("nextweek")


def test_characters_are_compared_without_blanks_and_case() -> None:
    assert character_edits("Total 12.50", "TOTAL  12.50") == (0, 10)
    assert character_edits("Total 12.50", "T0TAL 12.5") == (2, 10)
    assert character_edits("Total", "") == (5, 5)


def test_words_count_as_often_as_they_stand_there() -> None:
    assert words_found("to be or not to be", "be to") == (2, 6)
    assert words_found("Total: 5", "5 TOTAL 5") == (2, 2)
    assert words_found("总计 12", "总 12") == (2, 3)


def test_lines_are_put_into_rows() -> None:
    lines = [
        ("12.50", Box(0.7, 0.201, 0.8, 0.22)),
        ("second", Box(0.1, 0.3, 0.2, 0.32)),
        ("Total", Box(0.1, 0.2, 0.2, 0.22)),
    ]
    assert text_in_rows(lines) == "Total 12.50\nsecond"


def test_the_mean_of_nothing_is_not_zero() -> None:
    assert mean([]) is None
    assert mean([1.0, 0.0]) == 0.5
