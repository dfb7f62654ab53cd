"""How a picture is resized and how many tokens it becomes.

The arithmetic is that of the models' own image processors ("smart resize" in Hugging Face transformers'
``models/qwen2_vl/image_processing_qwen2_vl.py``; Qwen2.5-VL and Qwen3-VL use the same with other limits, and so does
MiniMax M3 as long as no longest side is asked for): Python's rounding to even included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from docmill.failures import PageTooLarge
from docmill.models.profile import ModelProfile, VisionModel

LONGEST_RATIO = 200


@dataclass(frozen=True, slots=True)
class ResizedPage:
    """A page as the model sees it: pixels, and the visual tokens that it takes (without the two that enclose it)."""

    width: int
    height: int
    tokens: int


def smart_resize(width: int, height: int, *, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The size, in pixels, that a picture is brought to: multiples of ``factor``, its area between the two limits.

    Args:
        width: pixels, at least 1.
        height: pixels, at least 1.
        factor: patch size times merge size.
        min_pixels: least area.
        max_pixels: largest area.

    Raises:
        PageTooLarge: one side is more than 200 times the other, which the models refuse.
    """
    if max(width, height) / min(width, height) > LONGEST_RATIO:
        raise PageTooLarge(
            f"the picture is {width} x {height}: one side is more than {LONGEST_RATIO} times the other",
            remedy="cut it into pieces",
        )
    wide, high = max(factor, round(width / factor) * factor), max(factor, round(height / factor) * factor)
    if wide * high > max_pixels:
        shrink = math.sqrt(width * height / max_pixels)
        wide = max(factor, math.floor(width / shrink / factor) * factor)
        high = max(factor, math.floor(height / shrink / factor) * factor)
    elif wide * high < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        wide, high = math.ceil(width * grow / factor) * factor, math.ceil(height * grow / factor) * factor
    return wide, high


def resized_page(width: int, height: int, vision: VisionModel) -> ResizedPage:
    """A page of ``width`` x ``height`` pixels as the vision part sees it."""
    wide, high = smart_resize(
        width, height, factor=vision.factor, min_pixels=vision.min_pixels, max_pixels=vision.max_pixels
    )
    return ResizedPage(wide, high, (wide // vision.factor) * (high // vision.factor))


def page_tokens(width: int, height: int, profile: ModelProfile) -> int:
    """Visual tokens of a page, with the two that enclose it."""
    return resized_page(width, height, profile.vision).tokens + 2
