from hypothesis import given
from hypothesis import strategies as st

from docmill.geometry import Box
from docmill.layout.reading_order import reading_order, rows_of


@st.composite
def boxes(draw: st.DrawFn) -> list[Box]:
    def one() -> Box:
        x, y = draw(st.integers(0, 900)) / 1000, draw(st.integers(0, 970)) / 1000
        return Box(x, y, min(1.0, x + draw(st.integers(1, 400)) / 1000), y + draw(st.integers(5, 30)) / 1000)

    return [one() for _ in range(draw(st.integers(0, 14)))]


@given(boxes(), st.randoms(use_true_random=False))
def test_the_order_depends_on_the_boxes_alone(page: list[Box], chance: object) -> None:
    shuffled = list(page)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [page[i] for i in reading_order(page)] == [shuffled[i] for i in reading_order(shuffled)]


@given(boxes())
def test_every_box_is_read_once(page: list[Box]) -> None:
    assert sorted(reading_order(page)) == list(range(len(page)))
    assert sorted(i for row in rows_of(page) for i in row) == list(range(len(page)))


def test_rows_left_to_right_and_top_to_bottom() -> None:
    page = [Box(0.6, 0.11, 0.7, 0.13), Box(0.1, 0.1, 0.3, 0.12), Box(0.1, 0.2, 0.3, 0.22), Box(0.6, 0.195, 0.7, 0.215)]
    assert reading_order(page) == [1, 0, 2, 3]


def test_a_row_may_slope() -> None:
    page = [Box(0.1 * i, 0.1 + 0.004 * i, 0.1 * i + 0.08, 0.12 + 0.004 * i) for i in range(9)]
    below = [Box(b.x0, b.y0 + 0.03, b.x1, b.y1 + 0.03) for b in page]
    assert rows_of([*below, *page]) == [list(range(9, 18)), list(range(9))]


def test_columns_of_running_text_are_read_one_after_the_other() -> None:
    title = Box(0.1, 0.02, 0.9, 0.04)
    left = [Box(0.05, 0.1 + 0.03 * i, 0.45, 0.12 + 0.03 * i) for i in range(6)]
    right = [Box(0.55, 0.1 + 0.03 * i, 0.95, 0.12 + 0.03 * i) for i in range(6)]
    footer = Box(0.1, 0.9, 0.9, 0.92)
    assert reading_order([footer, *right, *left, title]) == [13, *range(7, 13), *range(1, 7), 0]


def test_a_table_is_read_by_rows() -> None:
    page = [Box(0.1 + 0.3 * c, 0.1 + 0.03 * r, 0.2 + 0.3 * c, 0.12 + 0.03 * r) for r in range(6) for c in range(3)]
    assert reading_order(page) == list(range(18))


def test_boxes_without_height_do_no_harm() -> None:
    flat = [Box(0.1, 0.1, 0.5, 0.1) for _ in range(5)] + [Box(0.6, 0.1, 0.9, 0.1) for _ in range(5)]
    assert sorted(reading_order(flat)) == list(range(10))
