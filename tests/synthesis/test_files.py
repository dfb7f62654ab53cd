from __future__ import annotations

import io
import json
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from docmill.synthesis import Kind, Scan, make_document
from docmill.synthesis.__main__ import main
from docmill.synthesis.files import Format, encode


@pytest.mark.parametrize("form", [Format.JPEG, Format.PNG])
def test_a_picture_holds_the_page(form: Format) -> None:
    document = make_document(Kind.RECEIPT, 3)
    with Image.open(io.BytesIO(encode(document, form))) as image:
        assert image.size == document.pages[0].size
        assert image.format == form.value.upper()


def test_a_bilevel_tiff_is_g4_and_keeps_every_page_exactly() -> None:
    document = make_document(Kind.INVOICE, 3, pages=2, how=Scan(0.4, bilevel=True))
    with Image.open(io.BytesIO(encode(document, Format.TIFF))) as image:
        assert image.n_frames == 2
        for number, page in enumerate(document.pages):
            image.seek(number)
            assert image.tag_v2[259] == 4  # compression: CCITT G4
            assert image.convert("L").tobytes() == page.convert("L").tobytes()


def test_a_pdf_has_its_pages_at_their_size_and_the_same_bytes_each_time() -> None:
    document = make_document(Kind.INVOICE, 3, pages=2)
    data = encode(document, Format.PDF)
    assert data == encode(document, Format.PDF)
    pdf = pypdfium2.PdfDocument(data)
    try:
        assert len(pdf) == 2
        assert pdf[0].get_size() == pytest.approx((595, 842), abs=1)
    finally:
        pdf.close()


def test_two_pages_do_not_go_into_a_jpeg() -> None:
    with pytest.raises(ValueError, match="use tiff or pdf"):
        encode(make_document(Kind.INVOICE, 3, pages=2, dpi=40), Format.JPEG)


def test_the_command_writes_a_set_with_its_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--kind", "all", "--count", "6", "--seed", "4", "--dpi", "60"]) == 0
    assert "6 documents, 6 pages" in capsys.readouterr().out
    truths = [json.loads(line) for line in (tmp_path / "truth.jsonl").read_text("utf-8").splitlines()]
    words = [json.loads(line) for line in (tmp_path / "words.jsonl").read_text("utf-8").splitlines()]
    assert len(truths) == len(words) == 6
    assert {truth["document_type"] for truth in truths} == {kind.value for kind in Kind}
    contents = {(tmp_path / truth["file"]).read_bytes() for truth in truths}
    assert len(contents) == 6
    assert all(word["lines"] for word in words)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "receipt", "--pages", "3"], "a receipt has 1 to 1 pages"),
        (["--severity", "2"], "severity is 0 to 1"),
        (["--font", "nowhere.ttf"], "no font file nowhere.ttf"),
    ],
)
def test_the_command_names_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([str(tmp_path), *options])
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err
