"""Boxes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.geometry import Box

fractions = st.floats(-2, 2, allow_nan=False)
boxes = st.builds(Box.clipped, fractions, fractions, fractions, fractions)


@given(boxes, boxes)
def test_iou_is_symmetric_and_bounded(one, other):
    assert one.iou(other) == pytest.approx(other.iou(one))
    assert 0 <= one.iou(other) <= 1 + 1e-9


@given(boxes)
def test_a_box_covers_itself(box):
    assert box.iou(box) == pytest.approx(1.0 if box.area > 0 else 0.0)


@given(st.lists(boxes, min_size=1))
def test_around_holds_all(held):
    outer = Box.around(held)
    assert all(outer.intersection(box) == pytest.approx(box.area) for box in held)


@pytest.mark.parametrize("corners", [(0.5, 0, 0.4, 1), (-0.1, 0, 1, 1), (0, 0, 1, 1.1), (0, 0.6, 1, 0.5)])
def test_boxes_outside_the_page_are_refused(corners):
    with pytest.raises(ValueError, match="not a box"):
        Box(*corners)


def test_nothing_to_hold():
    with pytest.raises(ValueError, match="no boxes"):
        Box.around([])
