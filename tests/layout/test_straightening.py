import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.extraction import Cell, Grid, Line, Mark, PageText, Word
from docmill.geometry import Box
from docmill.layout.straightening import Straightening, on_page, upright

turns = st.sampled_from([0, 90, 180, 270])
skews = st.one_of(st.just(0.0), st.floats(-15, 15, allow_nan=False))
sides = st.integers(200, 3000)


@st.composite
def inner_boxes(draw: st.DrawFn) -> Box:
    """Boxes far enough from the edges that rotation does not clip them."""
    x0, y0 = draw(st.floats(0.35, 0.6)), draw(st.floats(0.35, 0.6))
    return Box(x0, y0, x0 + draw(st.floats(0.001, 0.05)), y0 + draw(st.floats(0.001, 0.05)))


@given(sides, st.floats(0.5, 2), turns, skews, inner_boxes())
def test_a_box_comes_back_from_the_page(width: int, ratio: float, turned: int, skew: float, box: Box) -> None:
    way = Straightening(width, max(1, round(width * ratio)), turned, skew)
    back = way.to_upright(way.to_page(box))
    assert back.as_list() == pytest.approx(box.as_list(), abs=2e-5)


@given(sides, sides, turns, skews)
def test_the_whole_page_stays_on_it(width: int, height: int, turned: int, skew: float) -> None:
    way = Straightening(width, height, turned, skew)
    corners = np.array([[0, 0, 1], [width, 0, 1], [0, height, 1], [width, height, 1]], dtype=float)
    points = (corners @ way.matrix.T)[:, :2]
    assert points.min() >= -1.01
    assert (points[:, 0] <= way.size[0] + 1.01).all() and (points[:, 1] <= way.size[1] + 1.01).all()


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("skew", [0.0, 7.0, -12.0])
def test_ink_is_where_the_box_says(turned: int, skew: float) -> None:
    page = np.full((400, 600), 255, np.uint8)
    page[100:120, 150:250] = 0
    way = Straightening(600, 400, turned, skew)
    level = way.apply(page)
    assert level.shape[:2] == way.size[::-1]
    ys, xs = np.nonzero(level < 128)
    height, width = level.shape
    seen = Box.clipped(xs.min() / width, ys.min() / height, (xs.max() + 1) / width, (ys.max() + 1) / height)
    middle = way.to_page(seen).center
    assert middle == pytest.approx((200 / 600, 110 / 400), abs=0.006)


def test_positive_skew_levels_lines_that_rise() -> None:
    page = np.full((400, 400), 255, np.uint8)
    for x in range(50, 350):
        y = round(250 - (x - 50) * np.tan(np.radians(10)))
        page[y - 2 : y + 3, x] = 0
    ys, _ = np.nonzero(Straightening(400, 400, 0, 10.0).apply(page) < 128)
    assert np.ptp(ys) <= 9


def test_a_page_turned_by_90_is_read_from_its_left_side() -> None:
    way = Straightening(400, 600, 90)
    assert way.size == (600, 400)
    # The bottom left of the page is the top left of the upright one.
    assert way.to_page(Box(0, 0, 0.1, 0.2)).as_list() == pytest.approx([0, 0.9, 0.2, 1])


@pytest.mark.parametrize("bad", [(10, 10, 45, 0.0), (10, 10, 0, 60.0), (0, 10, 0, 0.0)])
def test_nonsense_is_refused(bad: tuple[int, int, int, float]) -> None:
    with pytest.raises(ValueError):
        Straightening(*bad)


def test_all_parts_of_a_page_move_together() -> None:
    box = Box(0.4, 0.4, 0.5, 0.42)
    text = PageText(
        (Line("a", box, 0.9, (Word("a", box, 0.9),)),),
        (Mark(box, True, 0.3, 0.9),),
        (Grid(box, (Cell(box, 0, 0),)),),
        width=500,
        height=700,
    )
    way = Straightening(700, 500, 90, 0.0)
    moved = on_page(text, way)
    assert (moved.turned, moved.width, moved.height) == (90, 700, 500)
    places = [moved.lines[0].box, moved.lines[0].words[0].box, moved.marks[0].box, moved.grids[0].cells[0].box]
    assert all(p.as_list() == pytest.approx([0.4, 0.5, 0.42, 0.6]) for p in places)
    back = upright(moved)
    assert (back.turned, back.skew, back.width, back.height) == (0, 0.0, 500, 700)
    assert back.lines[0].box.as_list() == pytest.approx(box.as_list())


def test_an_upright_page_is_left_alone() -> None:
    text = PageText((), width=10, height=10)
    assert upright(text) is text
    assert upright(PageText(())) == PageText(())
