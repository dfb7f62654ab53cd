import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.failures import PageTooLarge
from docmill.rendering.limits import RenderLimits, chosen_dpi, fitting_size

points = st.floats(min_value=1e-3, max_value=1e6)


@given(points, points, st.floats(min_value=0, max_value=1e5), st.booleans())
def test_a_page_stays_within_the_limits_or_is_refused(width: float, height: float, scan: float, whole: bool) -> None:
    limits = RenderLimits()
    try:
        dpi = chosen_dpi(width, height, scan, limits, all_scan=whole)
    except PageTooLarge:
        coarse = limits.min_dpi / 72
        assert width * height * coarse**2 > limits.max_pixels or max(width, height) * coarse > 27_000
        return
    assert whole or limits.min_dpi <= dpi
    assert (width * dpi / 72) * (height * dpi / 72) <= limits.max_pixels * (1 + 1e-9)
    if scan <= limits.target_dpi:
        assert dpi <= limits.max_dpi


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_fitting_size_keeps_the_shape_and_never_enlarges(width: int, height: int) -> None:
    limits = RenderLimits(max_pixels=1_000_000)
    across, down = fitting_size(width, height, limits)
    assert across <= width
    assert down <= height
    if width * height > limits.max_pixels and min(across, down) > 1:
        assert across * down <= limits.max_pixels
        assert math.isclose(across / down, width / height, rel_tol=2 / min(across, down))


@pytest.mark.parametrize("size", [(0.0, 10.0), (-5.0, 10.0), (math.nan, 10.0), (math.inf, 10.0)])
def test_no_proper_size(size: tuple[float, float]) -> None:
    with pytest.raises(PageTooLarge):
        chosen_dpi(*size, 0.0, RenderLimits())


def test_limits_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="grow"):
        RenderLimits(target_dpi=700)
    with pytest.raises(ValueError, match="positive"):
        RenderLimits(max_pages=0)
