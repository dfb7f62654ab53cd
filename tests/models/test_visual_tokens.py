"""Resizing and counting, against the image processors' own answers and what must always hold."""

import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from docmill.failures import PageTooLarge
from docmill.models.naming import load_profile
from docmill.models.visual_tokens import page_tokens, resized_page, side_resize, smart_resize

LIMITS = {28: (3136, 12_845_056), 32: (65_536, 16_777_216)}
SIDES = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("width", "height", "factor", "limits", "resized"),
    [  # as transformers 5.19 answers (models/qwen2_vl/image_processing_qwen2_vl.py)
        (1008, 1288, 28, LIMITS[28], (1008, 1288)),
        (1654, 2339, 28, LIMITS[28], (1652, 2352)),
        (1654, 2339, 32, LIMITS[32], (1664, 2336)),
        (14, 56, 28, LIMITS[28], (28, 112)),
        (42, 70, 28, LIMITS[28], (56, 56)),  # 1.5 and 2.5 both round to 2: to even
        (10, 2000, 28, LIMITS[28], (28, 812)),
        (6000, 8000, 28, LIMITS[28], (3080, 4116)),
        (1, 1, 32, LIMITS[32], (256, 256)),
        (7, 1400, 28, LIMITS[28], (28, 812)),
    ],
)
def test_pictures_are_resized_as_the_processor_does(
    width: int, height: int, factor: int, limits: tuple[int, int], resized: tuple[int, int]
) -> None:
    assert smart_resize(width, height, factor=factor, min_pixels=limits[0], max_pixels=limits[1]) == resized


@given(width=SIDES, height=SIDES, factor=st.sampled_from([28, 32]))
@example(width=14, height=42, factor=28)
@example(width=20_000, height=100, factor=32)
def test_what_always_holds(width: int, height: int, factor: int) -> None:
    low, high = LIMITS[factor]
    assume(max(width, height) / min(width, height) <= 200)
    wide, tall = smart_resize(width, height, factor=factor, min_pixels=low, max_pixels=high)
    assert wide % factor == tall % factor == 0
    assert wide >= factor
    assert tall >= factor
    assert low <= wide * tall
    assert wide * tall <= high or factor in (wide, tall)
    assert smart_resize(height, width, factor=factor, min_pixels=low, max_pixels=high) == (tall, wide)


@given(width=SIDES, height=SIDES, factor=st.sampled_from([28, 32]))
def test_resizing_again_changes_nothing(width: int, height: int, factor: int) -> None:
    low, high = LIMITS[factor]
    assume(max(width, height) / min(width, height) <= 100)
    once = smart_resize(width, height, factor=factor, min_pixels=low, max_pixels=high)
    assert smart_resize(*once, factor=factor, min_pixels=low, max_pixels=high) == once


@given(width=st.integers(100, 4000), height=st.integers(100, 4000), factor=st.sampled_from([28, 32]))
def test_within_the_limits_no_side_moves_by_more_than_half_a_factor(width: int, height: int, factor: int) -> None:
    low, high = LIMITS[factor]
    assume(max(width, height) / min(width, height) <= 200)
    assume(low <= (width - factor) * (height - factor))
    assume((width + factor) * (height + factor) <= high)
    wide, tall = smart_resize(width, height, factor=factor, min_pixels=low, max_pixels=high)
    assert abs(wide - width) <= factor / 2
    assert abs(tall - height) <= factor / 2


@given(side=st.integers(1, 400), times=st.integers(2, 50))
def test_strips_are_refused(side: int, times: int) -> None:
    long = side * 200 + times
    with pytest.raises(PageTooLarge, match="more than 200 times"):
        smart_resize(side, long, factor=28, min_pixels=3136, max_pixels=12_845_056)
    with pytest.raises(PageTooLarge, match="more than 200 times"):
        side_resize(long, side, factor=28, long_side=2016, short_side=112)


def test_a_strip_of_exactly_200_is_taken() -> None:
    assert smart_resize(10, 2000, factor=28, min_pixels=3136, max_pixels=12_845_056)


# --- by the longer side (MiniMax M3) ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "long_side", "resized"),
    [  # as vLLM 0.32 answers (transformers_utils/processors/minimax_m3.py)
        ((2048, 2048), 252, (252, 252)),
        ((2048, 2048), 504, (504, 504)),
        ((2048, 2048), 1008, (1008, 1008)),
        ((1654, 2339), 2016, (1428, 2016)),
        ((50, 500), 2016, (112, 1120)),
        ((4, 600), 2016, (112, 16800)),
        ((300, 400), 2016, (308, 392)),
    ],
)
def test_pictures_that_go_by_their_longer_side(size: tuple[int, int], long_side: int, resized: tuple[int, int]) -> None:
    assert side_resize(*size, factor=28, long_side=long_side, short_side=112) == resized


@given(width=SIDES, height=SIDES)
def test_what_always_holds_by_the_longer_side(width: int, height: int) -> None:
    assume(max(width, height) / min(width, height) <= 18)
    wide, tall = side_resize(width, height, factor=28, long_side=2016, short_side=112)
    assert wide % 28 == tall % 28 == 0
    assert max(wide, tall) <= 2016
    assert math.isclose(wide / tall, width / height, rel_tol=0.6)


def test_pictures_that_the_model_refuses() -> None:
    with pytest.raises(PageTooLarge, match="12,845,056"):
        side_resize(4000, 4000, factor=28, long_side=5000, short_side=112)


def test_without_its_longer_side_minimax_m3_sees_672_by_672() -> None:
    profile = load_profile("minimax-m3")
    vision = profile.vision.model_copy(update={"long_side": 0, "short_side": 0})
    assert resized_page(2048, 2048, vision, profile.family).tokens == 24 * 24
    assert vision.max_tokens == 576
    # sides of less than half a patch: unlike Qwen's, this processor takes one patch
    assert resized_page(10, 2000, vision, profile.family).width == 28
    assert resized_page(10, 2000, vision, profile.family).height == 1988


# --- tokens --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "tokens"),
    [
        ("qwen2-vl-7b", (1008, 1288), 36 * 46 + 2),
        ("qwen2-vl-7b", (1654, 2339), 59 * 84 + 2),
        ("qwen2.5-vl-7b", (1654, 2339), 59 * 84 + 2),
        ("qwen3-vl-8b", (1654, 2339), 52 * 73 + 2),
        ("minimax-m3", (1654, 2339), 51 * 72 + 2),
    ],
)
def test_a_page_is_so_many_tokens(name: str, size: tuple[int, int], tokens: int) -> None:
    assert page_tokens(*size, load_profile(name)) == tokens


@given(width=st.integers(1, 9000), height=st.integers(1, 9000), name=st.sampled_from(["qwen2-vl-7b", "qwen3-vl-8b"]))
def test_no_page_is_more_than_the_largest(width: int, height: int, name: str) -> None:
    assume(max(width, height) / min(width, height) <= 50)
    profile = load_profile(name)
    assert 4 <= page_tokens(width, height, profile) - 2 <= profile.vision.max_tokens
