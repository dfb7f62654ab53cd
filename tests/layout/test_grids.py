import numpy as np
from PIL import Image, ImageDraw

from docmill.geometry import Box
from docmill.layout.grids import find_grids

WIDTH, HEIGHT = 1600, 2000


def page() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    return image, ImageDraw.Draw(image)


def table(draw: ImageDraw.ImageDraw, xs: list[int], ys: list[int], slope: float = 0.0) -> None:
    for y in ys:
        draw.line((xs[0], y + slope * xs[0], xs[-1], y + slope * xs[-1]), fill=0, width=3)
    for x in xs:
        draw.line((x - slope * ys[0], ys[0] + slope * x, x - slope * ys[-1], ys[-1] + slope * x), fill=0, width=3)


def test_every_cell_of_a_plain_table() -> None:
    image, draw = page()
    table(draw, [200, 500, 900, 1400], [300, 360, 420, 480, 540])
    (grid,) = find_grids(np.asarray(image))
    assert [(c.row, c.column, c.row_span, c.column_span) for c in grid.cells] == [
        (r, c, 1, 1) for r in range(4) for c in range(3)
    ]
    first = grid.cells[0].box
    assert abs(first.x0 * WIDTH - 200) < 4 and abs(first.y0 * HEIGHT - 300) < 4
    assert abs(first.x1 * WIDTH - 500) < 4 and abs(first.y1 * HEIGHT - 360) < 4
    assert grid.box.iou(Box(200 / WIDTH, 300 / HEIGHT, 1400 / WIDTH, 540 / HEIGHT)) > 0.97


def test_spans_where_a_line_is_left_out() -> None:
    image, draw = page()
    draw.rectangle((200, 300, 1400, 600), outline=0, width=3)
    draw.line((200, 400, 1400, 400), fill=0, width=3)
    draw.line((600, 500, 1400, 500), fill=0, width=3)
    draw.line((600, 400, 600, 600), fill=0, width=3)
    draw.line((1000, 400, 1000, 600), fill=0, width=3)
    (grid,) = find_grids(np.asarray(image))
    assert [(c.row, c.column, c.row_span, c.column_span) for c in grid.cells] == [
        (0, 0, 1, 3),
        (1, 0, 2, 1),
        (1, 1, 1, 1),
        (1, 2, 1, 1),
        (2, 1, 1, 1),
        (2, 2, 1, 1),
    ]


def test_a_slope_that_was_left_in() -> None:
    image, draw = page()
    table(draw, [100, 500, 900, 1500], [300, 360, 420, 480], slope=0.005)
    (grid,) = find_grids(np.asarray(image))
    assert len(grid.cells) == 9
    assert {(c.row_span, c.column_span) for c in grid.cells} == {(1, 1)}


def test_broken_lines_and_noise() -> None:
    image, draw = page()
    table(draw, [200, 700, 1400], [300, 400, 500])
    dots = np.random.default_rng(1)
    for x in range(250, 1400, 90):
        draw.line((x, 398, x, 402), fill=255, width=3)
    for x, y in zip(dots.integers(0, WIDTH, 2000), dots.integers(0, HEIGHT, 2000), strict=True):
        draw.point((int(x), int(y)), fill=0)
    (grid,) = find_grids(np.asarray(image))
    assert len(grid.cells) == 4


def test_a_frame_around_the_page_is_no_table() -> None:
    image, draw = page()
    draw.rectangle((50, 50, 1550, 1950), outline=0, width=3)
    assert find_grids(np.asarray(image)) == ()


def test_two_tables_are_two() -> None:
    image, draw = page()
    table(draw, [200, 700, 1400], [300, 400, 500])
    table(draw, [200, 500, 1400], [900, 1000, 1100])
    grids = find_grids(np.asarray(image))
    assert [len(g.cells) for g in grids] == [4, 4]
    assert grids[0].box.y1 < grids[1].box.y0


def test_letters_make_no_table() -> None:
    image, draw = page()
    for x in range(300, 700, 30):
        draw.rectangle((x, 300, x + 30, 334), outline=0, width=4)
    text = [Box(290 / WIDTH, 296 / HEIGHT, 740 / WIDTH, 338 / HEIGHT)]
    assert find_grids(np.asarray(image), text=text) == ()


def test_an_empty_page_has_no_tables() -> None:
    assert find_grids(np.full((100, 100), 255, np.uint8)) == ()
