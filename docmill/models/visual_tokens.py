"""How a picture is resized and how many tokens it becomes.

The arithmetic is that of the image processors, Python's rounding to even included: "smart resize" in Hugging Face
transformers' ``models/qwen2_vl/image_processing_qwen2_vl.py`` for all Qwen models (Qwen3-VL with larger patches and
other limits), and vLLM's ``transformers_utils/processors/minimax_m3.py`` for MiniMax M3, which differs in pictures that
are narrower than half a patch and can be told to go by the longer side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from docmill.failures import PageTooLarge
from docmill.models.profile import Family, ModelProfile, VisionModel

LONGEST_RATIO = 200
SIDE_TOTAL_PIXELS = 12_845_056
"""Largest area of a picture that is resized by its sides; larger ones are refused (MiniMax M3)."""


@dataclass(frozen=True, slots=True)
class ResizedPage:
    """A page as the model sees it: pixels, and the visual tokens that it takes (without the two that enclose it)."""

    width: int
    height: int
    tokens: int


def smart_resize(
    width: int, height: int, *, factor: int, min_pixels: int, max_pixels: int, least: int = 0
) -> tuple[int, int]:
    """The size, in pixels, that a picture is brought to: multiples of ``factor``, its area between the two limits.

    Args:
        width: pixels, at least 1.
        height: pixels, at least 1.
        factor: patch size times merge size.
        min_pixels: least area.
        max_pixels: largest area.
        least: least side before the limits are looked at. With 0 a side of less than half a ``factor`` rounds to none,
            and the picture counts as too small.

    Raises:
        PageTooLarge: one side is more than 200 times the other, which the models refuse.
    """
    _refuse_strips(width, height)
    wide, high = max(least, round(width / factor) * factor), max(least, round(height / factor) * factor)
    if wide * high > max_pixels:
        shrink = math.sqrt((height * width) / max_pixels)
        wide = max(factor, math.floor(width / shrink / factor) * factor)
        high = max(factor, math.floor(height / shrink / factor) * factor)
    elif wide * high < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        wide, high = math.ceil(width * grow / factor) * factor, math.ceil(height * grow / factor) * factor
    return wide, high


def side_resize(width: int, height: int, *, factor: int, long_side: int, short_side: int) -> tuple[int, int]:
    """The size, in pixels, that a picture is brought to when it goes by its sides: multiples of ``factor``.

    A longer side above ``long_side`` shrinks to it; else a shorter side below ``short_side`` grows to it.

    Raises:
        PageTooLarge: one side is more than 200 times the other, or the area is still beyond what the model takes.
    """
    _refuse_strips(width, height)
    scale = 1.0
    if max(width, height) > long_side:
        scale = long_side / max(width, height)
    elif min(width, height) < short_side:
        scale = short_side / min(width, height)
    wide, high = (max(factor, round(side * scale / factor) * factor) for side in (width, height))
    if wide * high > SIDE_TOTAL_PIXELS:
        raise PageTooLarge(
            f"the picture is {width} x {height}, resized {wide} x {high}: more than {SIDE_TOTAL_PIXELS:,} pixels",
            remedy="make it smaller, or cut it into pieces",
        )
    return wide, high


def _refuse_strips(width: int, height: int) -> None:
    if max(width, height) / min(width, height) > LONGEST_RATIO:
        raise PageTooLarge(
            f"the picture is {width} x {height}: one side is more than {LONGEST_RATIO} times the other",
            remedy="cut it into pieces",
        )


def resized_page(width: int, height: int, vision: VisionModel, family: Family = Family.QWEN2_VL) -> ResizedPage:
    """A page of ``width`` x ``height`` pixels as the vision part sees it.

    Raises:
        PageTooLarge: the model refuses such a picture.
    """
    if vision.long_side:
        wide, high = side_resize(
            width, height, factor=vision.factor, long_side=vision.long_side, short_side=vision.short_side
        )
    else:
        wide, high = smart_resize(
            width, height, factor=vision.factor, min_pixels=vision.min_pixels, max_pixels=vision.max_pixels,
            least=vision.factor if family is Family.MINIMAX_M3 else 0,
        )  # fmt: skip
    return ResizedPage(wide, high, (wide // vision.factor) * (high // vision.factor))


def page_tokens(width: int, height: int, profile: ModelProfile) -> int:
    """Visual tokens of a page, with the two that enclose it.

    Raises:
        PageTooLarge: the model refuses such a picture.
    """
    return resized_page(width, height, profile.vision, profile.family).tokens + 2
