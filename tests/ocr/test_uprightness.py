import numpy as np
import pytest

from docmill.layout.straightening import Straightening
from serving.ocr.uprightness import in_order, moved, slope, stands_on_its_side


def lines(angle: float, count: int = 6, width: float = 400, height: float = 20) -> np.ndarray:
    """Quads of parallel lines that rise to the right by ``angle`` degrees."""
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    flat = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=float)
    turned = flat @ np.array([[c, -s], [s, c]])
    return np.stack([turned + np.array([100, 200 + 40 * i]) for i in range(count)]).astype(np.float32)


@pytest.mark.parametrize("angle", [-14.0, -3.0, -0.4, 0.0, 0.4, 2.6, 9.0, 15.0])
def test_the_slope_is_measured(angle: float) -> None:
    assert slope(lines(angle)) == pytest.approx(angle, abs=0.05)


def test_few_or_short_lines_have_no_slope() -> None:
    assert slope(lines(5, count=2)) == 0
    assert slope(lines(5, width=40)) == 0
    assert slope(np.zeros((0, 4, 2), np.float32)) == 0


def test_lines_that_disagree_have_no_slope() -> None:
    assert slope(np.concatenate([lines(a, count=1) for a in (-8, -4, 0.5, 4, 8)])) == 0


def test_text_on_its_side() -> None:
    level = lines(0)
    way = Straightening(800, 800, 90)
    assert not stands_on_its_side(level)
    assert stands_on_its_side(moved(level, way.matrix))
    assert not stands_on_its_side(np.zeros((0, 4, 2), np.float32))


@pytest.mark.parametrize("angle", [79.0, 101.0, -80.0])
def test_steep_lines_are_on_their_side_wherever_their_corners_begin(angle: float) -> None:
    steep = lines(angle)
    assert stands_on_its_side(in_order(np.roll(steep, 1, axis=1)))
    assert (in_order(np.roll(steep, 2, axis=1)) == in_order(steep)).all()


def test_levelling_levels() -> None:
    way = Straightening(900, 900, 0, 6.0)
    assert slope(moved(lines(6), way.matrix)) == pytest.approx(0, abs=0.05)
