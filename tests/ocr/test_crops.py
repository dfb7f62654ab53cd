import numpy as np
import pytest
from PIL import Image

from docmill.failures import UnreadablePage
from serving.ocr.crops import colour_picture, cropped, legible


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA", "P", "LA", "CMYK", "I;16", "F"])
def test_every_mode_becomes_colour(mode: str) -> None:
    image = Image.new("L", (40, 30), 255)
    image.paste(0, (5, 5, 20, 20))
    image = Image.fromarray(np.asarray(image).astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)
    picture = colour_picture(image)
    assert picture.shape == (30, 40, 3) and picture.dtype == np.uint8
    assert picture[10, 10].max() < 60 and picture[25, 35].min() > 200


@pytest.mark.parametrize("array", [np.zeros((9, 7), bool), np.zeros((9, 7, 1), np.uint8), np.zeros((9, 7), np.uint16)])
def test_every_array_becomes_colour(array: np.ndarray) -> None:
    assert colour_picture(array).shape == (9, 7, 3)


@pytest.mark.parametrize("shape", [(0, 5), (5,), (5, 5, 4), (2, 2, 2, 2)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UnreadablePage):
        colour_picture(np.zeros(shape, np.uint8))


def test_transparency_is_white() -> None:
    assert colour_picture(Image.new("RGBA", (8, 8), (0, 0, 0, 0))).min() == 255


def test_white_on_black_is_turned_round_and_pale_print_is_stretched() -> None:
    dark = np.zeros((200, 300, 3), np.uint8)
    dark[50:60, 50:250] = 255
    assert legible(dark)[0, 0].min() == 255 and legible(dark)[55, 100].max() == 0
    pale = np.full((200, 300, 3), 220, np.uint8)
    pale[50:60, 50:250] = 180
    assert int(legible(pale).max()) - int(legible(pale).min()) > 200
    plain = np.full((200, 300, 3), 255, np.uint8)
    assert (legible(plain) == plain).all()


def test_a_line_is_levelled_and_a_high_one_turned() -> None:
    page = np.arange(100 * 100 * 3, dtype=np.uint32).reshape(100, 100, 3).astype(np.uint8)
    flat = np.array([[10, 10], [60, 10], [60, 20], [10, 20]], np.float32)
    high = np.array([[10, 10], [20, 10], [20, 60], [10, 60]], np.float32)
    assert cropped(page, flat).shape == (10, 50, 3)
    assert cropped(page, high).shape == (10, 50, 3)
    assert cropped(page, high, upright=True).shape == (50, 10, 3)
    assert cropped(page, flat * 0) is None
