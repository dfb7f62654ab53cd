import numpy as np
from PIL import Image, ImageDraw, ImageFont

from docmill.layout.islands import find_islands

WIDTH, HEIGHT = 1654, 2339


def page(*words: tuple[int, int, str]) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    draw = ImageDraw.Draw(image)
    for x, y, word in words:
        draw.text((x, y), word, fill=0, font=ImageFont.load_default(28))
    return image, draw


def holds(rectangle: tuple[int, int, int, int], box: tuple[int, int, int, int]) -> bool:
    return rectangle[0] < box[0] and rectangle[1] < box[1] and rectangle[2] > box[2] and rectangle[3] > box[3]


def test_words_far_apart_are_islands_of_their_own() -> None:
    image, _ = page((200, 150, "Hello World"), (1300, 2200, "Page 1"))
    first, second = find_islands(np.asarray(image))
    assert holds(first, (202, 158, 340, 180)) and first[3] < 300 and first[2] < 500
    assert holds(second, (1302, 2208, 1370, 2228))


def test_frames_rules_edges_of_a_scan_and_specks_are_none() -> None:
    image, draw = page((800, 1100, "Hello World"))
    draw.rectangle((60, 60, WIDTH - 60, HEIGHT - 60), outline=0, width=4)
    draw.rectangle((0, 0, 20, HEIGHT), fill=0)
    draw.line((300, 1800, 700, 1800), fill=0, width=3)
    for x in range(100, 1500, 200):
        draw.point((x, 400), fill=0)
    (island,) = find_islands(np.asarray(image))
    assert holds(island, (802, 1108, 940, 1130))
    assert island[3] - island[1] < 250


def test_blank_and_full_pages_have_none() -> None:
    assert find_islands(np.full((HEIGHT, WIDTH), 255, np.uint8)) == []
    image, _ = page(*((100, 100 + 60 * i, "Lines that fill a page from its left to its right " * 2) for i in range(35)))
    assert find_islands(np.asarray(image)) == []
