from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from docmill.drawing import Level, draw_boxes, level_of
from docmill.drawing.palette import COLOURS, percent
from docmill.extraction import Block, BlockKind, Field, FieldKind
from docmill.geometry import Box


def field(box: Box | None, confidence: float, name: str = "total", row: int | None = None) -> Field:
    return Field(name, FieldKind.TEXT, "1", "1", confidence, box, row=row)


def has(image: Image.Image, colour: tuple[int, int, int]) -> bool:
    return bool((np.asarray(image) == colour).all(axis=2).any())


@pytest.mark.parametrize(
    ("confidence", "level"),
    [
        (1, Level.SURE),
        (0.9, Level.SURE),
        (0.899, Level.FAIR),
        (0.6, Level.FAIR),
        (0.59, Level.DOUBTFUL),
        (0, "doubtful"),
    ],
)
def test_levels(confidence: float, level: Level) -> None:
    assert level_of(confidence) == level


@given(st.floats(0, 1))
def test_the_percentage_never_promises_a_higher_level(confidence: float) -> None:
    shown = int(percent(confidence).rstrip("%")) / 100
    assert level_of(shown) == level_of(confidence)


@pytest.mark.parametrize(("confidence", "level"), [(0.95, Level.SURE), (0.7, Level.FAIR), (0.2, Level.DOUBTFUL)])
def test_the_frame_has_the_colour_of_the_confidence(confidence: float, level: Level) -> None:
    page = Image.new("L", (400, 500), 255)
    drawn = draw_boxes(page, [field(Box(0.3, 0.3, 0.6, 0.4), confidence)])
    assert drawn.size == page.size
    assert drawn.mode == "RGB"
    assert {level for level in Level if has(drawn, COLOURS[level])} == {level}
    assert np.asarray(page).min() == 255  # the page itself is untouched


def test_the_frame_stands_around_the_box_and_the_value_stays_readable() -> None:
    page = Image.new("RGB", (400, 500), "white")
    drawn = np.asarray(draw_boxes(page, [field(Box(0.25, 0.4, 0.5, 0.5), 0.95, row=0)]), dtype=int)
    changed = np.argwhere((drawn != 255).any(axis=2))
    (top, left), (bottom, right) = changed.min(axis=0), changed.max(axis=0)
    assert (top, left) == (198, 98)
    assert (bottom, right) == (252, 202)
    assert drawn[225, 150].min() > 200  # a light tint inside


def test_a_label_stands_where_nothing_is_printed() -> None:
    page = Image.new("L", (400, 500), 255)
    page.paste(0, (0, 0, 400, 100))  # all above the value is printed on
    drawn = np.asarray(draw_boxes(page, [field(Box(0.1, 0.21, 0.3, 0.25), 0.95)]))
    assert (drawn[:95] == 0).all()


def test_fields_without_a_place_are_left_out_and_blocks_are_framed() -> None:
    page = Image.new("RGB", (200, 200), "white")
    assert draw_boxes(page, [field(None, 0.9)]).tobytes() == page.tobytes()
    block = Block(BlockKind.TEXT, "x", Box(0.2, 0.2, 0.8, 0.8), 0.9)
    assert draw_boxes(page, [], [block]).tobytes() != page.tobytes()


@given(
    st.lists(st.tuples(*[st.floats(0, 1)] * 5), max_size=4),
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.text(max_size=8),
)
def test_any_box_on_any_page_can_be_drawn(
    boxes: list[tuple[float, float, float, float, float]], size: tuple[int, int], name: str
) -> None:
    fields = [field(Box.clipped(a, b, c, d), confidence, name) for a, b, c, d, confidence in boxes]
    assert draw_boxes(Image.new("1", size, 1), fields).size == size
