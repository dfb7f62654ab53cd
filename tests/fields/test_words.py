import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.normalisation.booleans import parse_boolean
from docmill.normalisation.text import collapse, comparison_form, fold_width, join_lines, lookalike_form


def test_comparison_form_forgets_case_width_blanks_and_punctuation() -> None:
    assert comparison_form("Sub-Total :") == comparison_form("ＳＵＢ ＴＯＴＡＬ") == "subtotal"
    assert comparison_form("地址、电话：") == "地址电话"


def test_lookalikes_of_faded_print_are_equal() -> None:
    assert lookalike_form("IUIAL") == lookalike_form("TOTAL")
    assert lookalike_form("CASH") != lookalike_form("TOTAL")


def test_lines_join_with_a_blank_but_not_between_chinese() -> None:
    assert join_lines(["No 5,", "Jalan 2"]) == "No 5, Jalan 2"
    assert join_lines(["北京市", "海淀区"]) == "北京市海淀区"


@given(text=st.text())
def test_folding_width_keeps_every_position(text: str) -> None:
    assert len(fold_width(text)) == len(text)


@given(text=st.text())
def test_forms_are_stable(text: str) -> None:
    assert comparison_form(comparison_form(text)) == comparison_form(text)
    assert collapse(collapse(text)) == collapse(text)


@pytest.mark.parametrize("text", ["Yes", "YES.", "是", "√", "☑", "[x]", "☑ Yes", "true", "X", "有", "ja"])
def test_true(text: str) -> None:
    assert parse_boolean(text) is True


@pytest.mark.parametrize("text", ["No", "否", "☐", "[ ]", "false", "无", "nein"])
def test_false(text: str) -> None:
    assert parse_boolean(text) is False


@pytest.mark.parametrize("text", ["", "maybe", "Yes or no", "☑☐", "12"])
def test_neither(text: str) -> None:
    assert parse_boolean(text) is None
