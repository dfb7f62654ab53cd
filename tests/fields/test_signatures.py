import pytest

from docmill.document_types import load_document_type
from docmill.finding.extractor import find_fields

FORM = load_document_type("application_form")


def signature(page):
    return {f.name: f for f in find_fields(page.read(), FORM)[0]}.get("signature")


@pytest.mark.parametrize("label", ["Signature of applicant", "Signature:", "签名", "申请人签名"])
@pytest.mark.parametrize(("x", "y"), [(0.52, 0.67), (0.52, 0.74)])
def test_a_scribble_at_the_label_signs_the_form(blank, label: str, x: float, y: float) -> None:
    page = blank().text(0.5, 0.70, label).scribble(x, y)
    found = signature(page)
    assert (found.value, found.raw, found.needs_review) == (True, "signed", False)
    assert found.box == page.scribbles[0]


def test_a_scribble_behind_the_label(blank) -> None:
    assert signature(blank().text(0.1, 0.70, "Signature:").scribble(0.25, 0.70)).value is True


def test_a_scribble_elsewhere_signs_nothing(blank) -> None:
    page = blank().text(0.5, 0.70, "Signature of applicant").scribble(0.52, 0.4).scribble(0.1, 0.70)
    assert signature(page).value is False


def test_a_label_with_a_blank_is_not_signed(blank) -> None:
    page = blank().text(0.5, 0.70, "Signature of applicant")
    page.scribbles = ()
    found = signature(page)
    assert (found.value, found.raw) == (False, "")
    assert found.confidence < 0.7


def test_without_a_look_for_handwriting_a_blank_says_nothing(blank) -> None:
    assert signature(blank().text(0.5, 0.70, "Signature of applicant")) is None


def test_a_scribble_without_a_label_says_nothing(blank) -> None:
    assert signature(blank().text(0.5, 0.70, "Remarks").scribble(0.52, 0.67)) is None
