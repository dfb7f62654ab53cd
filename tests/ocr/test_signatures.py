"""Signed and unsigned forms, drawn, read and searched."""

import pytest

from docmill.document_types import load_document_type
from docmill.finding.extractor import find_fields
from docmill.synthesis import Kind, Scan, make_document
from serving.ocr.reader import OcrOptions, OcrReader


@pytest.mark.parametrize(("seed", "signed"), [(0, True), (1, False), (5, True)])
def test_forms_that_are_signed_and_not(seed: int, signed: bool) -> None:
    document = make_document(Kind("application_form"), seed, how=Scan(0.4))
    truth = document.truth.fields["signature"]
    assert truth.text == str(signed).lower()
    text = OcrReader(OcrOptions(threads=2)).read(document.pages[-1])
    found = {f.name: f for f in find_fields(text, load_document_type("application_form"))[0]}["signature"]
    assert found.value is signed
    assert not signed or (found.box is not None and truth.box is not None and found.box.iou(truth.box) > 0.6)
