"""The reader with its real models, on pictures drawn here."""

import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docmill.failures import ConfigurationError, UnreadablePage
from docmill.layout.straightening import upright
from serving.ocr.reader import OcrOptions, OcrReader, read_text
from serving.ocr.recognizer import chosen_backend

ROWS = ["Invoice number 2024-117", "Date of issue 11/03/2024", "Grand total 1,250.40", "Thank you for your order"]


def page(size: int = 32, ground: int = 255, ink: int = 0) -> Image.Image:
    image = Image.new("L", (900, 640), ground)
    draw = ImageDraw.Draw(image)
    for number, row in enumerate(ROWS):
        draw.text((80, 80 + number * 90), row, fill=ink, font=ImageFont.load_default(size))
    draw.rectangle((80, 460, 110, 490), outline=ink, width=2)
    draw.rectangle((400, 460, 430, 490), outline=ink, width=2)
    draw.line((404, 464, 426, 486), fill=ink, width=3)
    draw.line((404, 486, 426, 464), fill=ink, width=3)
    draw.text((130, 458), "Cash", fill=ink, font=ImageFont.load_default(size))
    draw.text((450, 458), "Card", fill=ink, font=ImageFont.load_default(size))
    return image


def plain(text: str) -> str:
    return "".join(text.split())


@pytest.fixture(scope="module")
def reader() -> OcrReader:
    return OcrReader(OcrOptions(threads=2))


def test_lines_words_and_marks(reader: OcrReader) -> None:
    text = reader.read(page())
    assert [line.text for line in text.lines] == [*ROWS, "Cash", "Card"]
    assert [w.text for w in text.lines[0].words] == ["Invoice", "number", "2024-117"]
    assert [m.checked for m in text.marks] == [False, True]
    assert (text.turned, text.skew, text.width, text.height) == (0, 0.0, 900, 640)
    left, top, right, bottom = page().convert("L").point(lambda v: 255 - v).crop((0, 60, 900, 140)).getbbox()
    box = text.lines[0].box
    assert box.x0 * 900 == pytest.approx(left, abs=12) and box.x1 * 900 == pytest.approx(right, abs=12)
    assert box.y0 * 640 <= top + 64 and box.y1 * 640 >= bottom + 56
    assert all(line.confidence > 0.9 for line in text.lines)
    assert pickle.loads(pickle.dumps(text)) == text


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
@pytest.mark.parametrize("skew", [0, 4, -11])
def test_every_turn_and_slope_is_undone(reader: OcrReader, turn: int, skew: int) -> None:
    # Pillow rotates counter-clockwise: lines rise by `skew`, and then the page lies turned.
    image = page().rotate(skew, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)
    image = image.rotate(turn, expand=True)
    text = reader.read(image)
    assert text.turned == turn
    assert text.skew == pytest.approx(skew, abs=0.6)
    assert [plain(line.text) for line in text.lines] == [plain(row) for row in [*ROWS, "Cash", "Card"]]
    # On the upright page the first word stands at the top left, where it was drawn; so it does after mapping.
    level = upright(text)
    first, last = level.lines[0].box, level.lines[-1].box
    assert first.y1 < last.y0 and first.x0 < last.x0
    assert 0.02 < first.height < 0.12
    ink = 255 - np.asarray(image)
    for line in text.lines:
        box = line.box
        rows = slice(int(box.y0 * image.height), int(box.y1 * image.height) + 1)
        columns = slice(int(box.x0 * image.width), int(box.x1 * image.width) + 1)
        ink[rows, columns] = 0
    for mark in text.marks:
        x, y = mark.box.center
        middle = int(x * image.width), int(y * image.height)
        ink[middle[1] - 40 : middle[1] + 40, middle[0] - 40 : middle[0] + 40] = 0
    assert len(text.marks) == 2
    assert (ink > 128).sum() < 50


def leaves(value: object) -> Iterator[object]:
    """All that a dataclass holds, however deep."""
    if is_dataclass(value):
        for part in fields(value):
            yield from leaves(getattr(value, part.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("skew", [0, 5])
def test_numbers_are_plain(reader: OcrReader, skew: int) -> None:
    image = page()
    draw = ImageDraw.Draw(image)
    for i in range(3):
        draw.line((80, 520 + 50 * i, 480, 520 + 50 * i), fill=0, width=2)
        draw.line((80 + 200 * i, 520, 80 + 200 * i, 620), fill=0, width=2)
    text = reader.read(image.rotate(skew, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC))
    assert text.marks and text.grids and text.lines[0].words
    assert {type(leaf) for leaf in leaves(text)} <= {str, float, int, bool}


@pytest.mark.parametrize("framed", [False, True])
def test_a_few_words_alone_on_a_large_page(reader: OcrReader, framed: bool) -> None:
    image = Image.new("L", (1654, 2339), 255)
    draw = ImageDraw.Draw(image)
    draw.text((200, 230), "Hello World", fill=0, font=ImageFont.load_default(26))
    draw.text((1300, 2200), "Page 1", fill=0, font=ImageFont.load_default(26))
    if framed:
        draw.rectangle((50, 50, 1604, 2289), outline=0, width=4)
        draw.rectangle((0, 0, 14, 2339), fill=20)
    text = reader.read(image)
    assert [plain(line.text) for line in text.lines] == ["HelloWorld", "Page1"]
    box = text.lines[0].box
    assert box.x0 * 1654 == pytest.approx(202, abs=12) and box.y0 * 2339 == pytest.approx(236, abs=14)
    assert (text.width, text.height, text.turned) == (1654, 2339, 0)


def test_pale_inverted_and_one_bit_pages(reader: OcrReader) -> None:
    expected = reader.read(page()).text
    assert reader.read(page(ground=230, ink=170)).text == expected
    assert reader.read(page(ground=0, ink=255)).text == expected
    assert plain(reader.read(page().convert("1")).text) == plain(expected)


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (400, 3), (40, 40), (900, 1200)])
def test_blank_pages_have_no_lines(reader: OcrReader, size: tuple[int, int]) -> None:
    text = reader.read(Image.new("L", size, 255))
    assert (text.lines, text.marks, text.grids) == ((), (), ())
    assert (text.width, text.height) == size


def test_a_strip_and_a_long_receipt(reader: OcrReader) -> None:
    strip = Image.new("L", (700, 40), 255)
    ImageDraw.Draw(strip).text((20, 6), "Total due 18.20", fill=0, font=ImageFont.load_default(24))
    assert reader.read(strip).text == "Total due 18.20"
    receipt = Image.new("L", (600, 6000), 255)
    draw = ImageDraw.Draw(receipt)
    for row in range(60):
        draw.text((30, 40 + row * 98), f"Item {row + 100}", fill=0, font=ImageFont.load_default(20))
    assert [plain(line.text) for line in reader.read(receipt).lines] == [f"Item{row + 100}" for row in range(60)]


def test_a_table_is_found(reader: OcrReader) -> None:
    image = Image.new("L", (1000, 1000), 255)
    draw = ImageDraw.Draw(image)
    for i in range(4):
        draw.line((100, 200 + i * 80, 850, 200 + i * 80), fill=0, width=2)
        draw.line((100 + i * 250, 200, 100 + i * 250, 440), fill=0, width=2)
    for row in range(3):
        for column in range(3):
            place = (130 + column * 250, 220 + row * 80)
            draw.text(place, f"Cell {row}{column}", fill=0, font=ImageFont.load_default(26))
    text = reader.read(image)
    assert [len(grid.cells) for grid in text.grids] == [9]
    assert [line.text for line in text.lines] == [f"Cell {r}{c}" for r in range(3) for c in range(3)]


def test_parts_can_be_left_out() -> None:
    text = read_text(page(), OcrOptions(threads=2, straighten=False, marks=False, grids=False))
    assert len(text.lines) >= 5 and text.marks == () and text.grids == ()


def test_the_fingerprint_names_models_code_and_options() -> None:
    base = OcrReader().fingerprint
    assert "rapidocr-3" in base and "reader-" in base
    assert OcrReader(OcrOptions(threads=7)).fingerprint == base
    assert OcrReader(OcrOptions(max_pixels=10**6)).fingerprint != base


def test_errors_name_their_remedy(reader: OcrReader) -> None:
    with pytest.raises(UnreadablePage):
        reader.read(np.zeros((0, 3), np.uint8))
    with pytest.raises(ConfigurationError, match="auto"):
        chosen_backend("tesseract")


def test_onnxruntime_reads_the_same() -> None:
    image = page().crop((0, 0, 900, 240))
    other = OcrReader(OcrOptions(threads=2, backend="onnxruntime")).read(image)
    assert [line.text for line in other.lines] == ROWS[:2]
