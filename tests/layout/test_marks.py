import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docmill.extraction import Mark
from docmill.geometry import Box
from docmill.layout.glyphs import Glyph, ReadAs, read_as
from docmill.layout.marks import find_marks
from docmill.layout.written_marks import without_frames, written_marks

WIDTH, HEIGHT = 1600, 2200


def page() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    return image, ImageDraw.Draw(image)


def seen(image: Image.Image, glyphs: tuple[Glyph, ...] = ()) -> list[tuple[int, int, bool]]:
    marks = find_marks(np.asarray(image), glyphs=glyphs)
    # To the nearest 10 pixels: a cross widens what is seen of its frame by a few.
    return [(round(m.box.x0 * WIDTH / 10) * 10, round(m.box.y0 * HEIGHT / 10) * 10, m.checked) for m in marks]


@pytest.mark.parametrize("side", [16, 24, 32, 48])
@pytest.mark.parametrize("thick", [1, 3])
@pytest.mark.parametrize("tone", [0, 120])
def test_empty_and_crossed_boxes(side: int, thick: int, tone: int) -> None:
    image, draw = page()
    for x, crossed in ((200, False), (400, True)):
        draw.rectangle((x, 300, x + side, 300 + side), outline=tone, width=thick)
        if crossed:
            draw.line((x, 300, x + side, 300 + side), fill=0, width=2)
            draw.line((x, 300 + side, x + side, 300), fill=0, width=2)
    assert seen(image) == [(200, 300, False), (400, 300, True)]


def test_a_cross_that_leaves_its_box() -> None:
    image, draw = page()
    draw.rectangle((500, 500, 530, 530), outline=0, width=2)
    draw.line((490, 488, 542, 541), fill=0, width=3)
    draw.line((488, 543, 541, 489), fill=0, width=3)
    assert seen(image) == [(500, 500, True)]


def test_a_tick_that_leaves_its_box() -> None:
    image, draw = page()
    draw.rectangle((500, 500, 530, 530), outline=0, width=2)
    draw.line([(506, 514), (514, 526), (545, 480)], fill=0, width=3)
    assert seen(image) == [(500, 500, True)]


def test_a_box_that_stands_on_a_line() -> None:
    image, draw = page()
    draw.rectangle((500, 500, 530, 530), outline=0, width=2)
    draw.line((100, 531, 1500, 531), fill=0, width=4)
    assert seen(image) == [(500, 500, False)]


def test_radio_buttons() -> None:
    image, draw = page()
    draw.ellipse((300, 300, 330, 330), outline=0, width=2)
    draw.ellipse((500, 300, 530, 330), outline=0, width=2)
    draw.ellipse((508, 308, 522, 322), fill=0)
    assert seen(image) == [(300, 300, False), (500, 300, True)]


def test_dust_is_no_tick() -> None:
    image, draw = page()
    draw.rectangle((500, 500, 530, 530), outline=0, width=2)
    for x, y in ((508, 509), (520, 512), (515, 523)):
        draw.point((x, y), fill=0)
    assert seen(image) == [(500, 500, False)]


def test_cells_of_a_table_are_no_boxes() -> None:
    image, draw = page()
    for i in range(8):
        draw.line((300 + 40 * i, 400, 300 + 40 * i, 440), fill=0, width=2)
    draw.line((300, 400, 580, 400), fill=0, width=2)
    draw.line((300, 440, 580, 440), fill=0, width=2)
    assert seen(image) == []


@pytest.mark.parametrize("size", [18, 24, 36])
def test_letters_are_no_boxes(size: int) -> None:
    image, draw = page()
    text = "Declaration of good BOND HOLDERS: DOB 08/06/1980, no fee due. Quod erat"
    for row in range(12):
        draw.text((40, 100 + row * 80), text, fill=0, font=ImageFont.load_default(size))
    # Without the text read, rings and square letters may pass; with it none does.
    glyphs = []
    for row in range(12):
        x, top = 40.0, 100 + row * 80
        for letter in text:
            wide = ImageFont.load_default(size).getlength(letter)
            box = Box(x / WIDTH, top / HEIGHT, (x + wide) / WIDTH, (top + size * 1.3) / HEIGHT)
            glyphs.append(Glyph(letter, box, 0.99, row))
            x += wide
    assert seen(image, tuple(sorted(glyphs, key=lambda g: g.box.x0))) == []


def test_a_blank_page_has_no_marks() -> None:
    assert find_marks(np.full((300, 200), 255, np.uint8)) == ()


def written(text: str, sure: float = 0.9) -> list[Glyph]:
    return [Glyph(c, Box(0.01 * i, 0.1, 0.01 * i + 0.01, 0.12), sure, 0) for i, c in enumerate(text)]


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("[x] Yes [ ] No", [True, False]),
        ("(X) single ( ) married", [True, False]),
        ("☑是 ☐否", [True, False]),
        ("□男□女", [False, False]),
        ("√ paid", [True]),
        ("f(x) and item(s) (see note)", []),
        ("[1] reference", []),
        ("Total: 5", []),
    ],
)
def test_marks_in_text(text: str, states: list[bool]) -> None:
    marks = sorted(written_marks(written(text)), key=lambda m: m.box.x0)
    assert [m.checked for m in marks] == states


def test_a_drawn_mark_is_not_told_twice() -> None:
    glyphs = written("☐ Yes")
    drawn = Mark(Box(0.0, 0.1, 0.012, 0.12), False, 0.0, 0.9)
    assert written_marks(glyphs, [drawn]) == ()
    assert without_frames(glyphs, [drawn]) == [False, True, True, True, True]
    assert without_frames(written("Yes"), [drawn]) == [True, True, True]


def in_pitch(text: str, pitch: int, size: int) -> list[Glyph]:
    """Characters set in squares of ``pitch`` pixels from (200, 300), as they are read."""
    return [
        Glyph(
            c,
            Box((200 + pitch * i) / WIDTH, 296 / HEIGHT, (200 + pitch * (i + 1)) / WIDTH, (304 + size) / HEIGHT),
            1,
            0,
        )
        for i, c in enumerate(text)
    ]


@pytest.mark.parametrize(
    "text", ["2020年5月20日", "上海静安区市北", "日期：2020", "出生日期", "中国 829510", "人口数", "项目"]
)
def test_square_characters_are_text(text: str) -> None:
    image, draw = page()
    glyphs = in_pitch(text, 34, 28)
    for number, character in enumerate(text):
        x = 203 + 34 * number
        if character in "日区国口目":
            draw.rectangle((x, 302, x + 26, 328), outline=0, width=3)
            draw.line((x, 315, x + 26, 315), fill=0, width=3)
        elif not character.isspace():
            draw.line((x, 304, x + 26, 326), fill=0, width=3)
            draw.line((x + 13, 300, x + 13, 330), fill=0, width=3)
    marks = find_marks(np.asarray(image), glyphs=glyphs)
    assert marks == ()
    # Not even where a mark was seen does it vanish from the text.
    drawn = [Mark(g.box, True, 0.4, 0.9) for g in glyphs if g.text in "日区国口目"]
    assert drawn and all(without_frames(glyphs, drawn))


@pytest.mark.parametrize("text", ["口男口女", "口 男", "性别：口男口女", "区 自驾"])
def test_frames_before_chinese_labels_are_boxes(text: str) -> None:
    image, draw = page()
    glyphs = in_pitch(text, 34, 28)
    at = [i for i, c in enumerate(text) if c in "口区"]
    for number in at:
        draw.rectangle((203 + 34 * number, 302, 231 + 34 * number, 330), outline=0, width=2)
    marks = find_marks(np.asarray(image), glyphs=glyphs)
    assert len(marks) == len(at)
    assert [i for i, kept in enumerate(without_frames(glyphs, marks)) if not kept] == at


def broken(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.rectangle((x, y, x + 30, y + 30), outline=0, width=2)
    draw.rectangle((x + 28, y + 12, x + 32, y + 16), fill=255)


def test_a_broken_frame_is_found_by_its_neighbours() -> None:
    image, draw = page()
    broken(draw, 900, 360)
    assert seen(image) == []
    for row in range(3):
        draw.rectangle((300, 300 + 60 * row, 330, 330 + 60 * row), outline=0, width=2)
    broken(draw, 1200, 1800)  # in no row or column with another
    assert seen(image) == [(300, 300, False), (300, 360, False), (900, 360, False), (300, 420, False)]


def test_bars_and_blots_are_no_boxes() -> None:
    image, draw = page()
    for row in range(6):
        draw.rectangle((300, 300 + 40 * row, 315, 314 + 40 * row), fill=0)
    glyphs = written("Terms of payment")
    assert seen(image, tuple(glyphs)) == []


@pytest.mark.parametrize(
    ("text", "at", "read"),
    [
        ("Exempt", 1, ReadAs.LETTER),
        ("PO Box 12", 5, ReadAs.LETTER),
        ("YesX No", 3, ReadAs.TICK),
        ("5x5", 1, ReadAs.LETTER),
        ("生日", 1, ReadAs.LETTER),
        ("20日", 2, ReadAs.LETTER),
        ("国籍", 0, ReadAs.LETTER),
        ("日 自驾", 0, ReadAs.FRAME),
        ("口 yes", 0, ReadAs.FRAME),
        ("X yes", 0, ReadAs.TICK),
        ("O yes", 0, ReadAs.ROUND),
        ("BOND", 1, ReadAs.LETTER),
        ("BOND", 0, ReadAs.LETTER),
        ("BOND", 40, ReadAs.NOTHING),
    ],
)
def test_what_a_frame_was_read_as(text: str, at: int, read: ReadAs) -> None:
    assert read_as(Box(0.01 * at, 0.104, 0.01 * at + 0.01, 0.117), written(text)) is read
