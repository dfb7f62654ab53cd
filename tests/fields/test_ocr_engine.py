import pickle

from docmill.document_types import load_document_type
from docmill.extraction import PageText
from docmill.finding.extractor import VERSION
from docmill.ports import PageExtractor, PageImage, PageInput
from serving.ocr_engine import OcrExtractor


def page_input(text: PageText) -> PageInput:
    return PageInput(PageImage(b"", "image/png", 1000, 1400), text, 1, 1)


async def test_it_is_the_port_and_finds_the_fields(receipt) -> None:
    engine: PageExtractor = OcrExtractor("reader-7")
    read = await engine.extract(page_input(receipt.read()), load_document_type("receipt"))
    assert (read.engine, read.document_type, read.missing) == ("ocr", "receipt", ())
    assert {f.name for f in read.fields} >= {"company", "date", "total"}
    assert read.text.startswith("KEDAI ANEKA SDN BHD")
    assert 0.5 < read.confidence <= 1
    assert pickle.loads(pickle.dumps(read)) == read


async def test_the_same_page_gives_the_same_answer(receipt) -> None:
    engine, document_type = OcrExtractor("reader-7"), load_document_type("receipt")
    first = await engine.extract(page_input(receipt.read()), document_type)
    assert await engine.extract(page_input(receipt.read()), document_type) == first


async def test_an_empty_page_has_no_fields(blank) -> None:
    read = await OcrExtractor("reader-7").extract(page_input(blank().read()), load_document_type("receipt"))
    assert (read.fields, read.blocks, read.text, read.confidence) == ((), (), "", 0.0)
    assert read.missing == ("company", "date", "total")
    assert read.needs_review


def test_the_fingerprint_changes_with_the_reader() -> None:
    assert OcrExtractor("reader-7").fingerprint == f"reader-7+finding-{VERSION}"
    assert OcrExtractor("reader-7").fingerprint != OcrExtractor("reader-8").fingerprint
