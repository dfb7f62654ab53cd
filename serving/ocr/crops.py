"""Pictures as the models take them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from docmill.failures import UnreadablePage
from docmill.layout.straightening import Picture


def colour_picture(image: Picture | Image.Image) -> Picture:
    """Any picture as (height, width, 3) uint8.

    Raises:
        UnreadablePage: it has no pixels or is of another shape.
    """
    if isinstance(image, Image.Image):
        if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
        if not image.mode.startswith(("I", "F")):
            image = image.convert("RGB")
        picture: NDArray[Any] = np.asarray(image)
    else:
        picture = np.asarray(image)
    if picture.ndim not in (2, 3) or 0 in picture.shape or (picture.ndim == 3 and picture.shape[2] not in (1, 3)):
        raise UnreadablePage(f"not a picture of a page: shape {picture.shape}")
    if picture.dtype == np.bool_:
        picture = picture.astype(np.uint8) * np.uint8(255)
    elif picture.dtype != np.uint8:
        top = max(float(picture.max()), 1.0)
        picture = np.clip(picture.astype(np.float32) * (255 / top), 0, 255).astype(np.uint8)
    if picture.ndim == 2:
        picture = picture[:, :, None]
    if picture.shape[2] == 1:
        picture = np.repeat(picture, 3, axis=2)
    return np.ascontiguousarray(picture)


def legible(picture: Picture) -> Picture:
    """The page dark on light and with contrast, where it is not.

    A page that is mostly dark is inverted; one whose tones span less than half the scale is stretched. Tones are
    taken from every eighth pixel or so.
    """
    height, width = picture.shape[:2]
    step = max(1, min(8, min(height, width) // 64))
    sample = picture[::step, ::step].mean(axis=2)
    low, middle, high = (float(v) for v in np.percentile(sample, (0.5, 50, 99.5)))
    if high - low < 8:
        return picture
    if middle < 100 and middle - low < high - middle:
        picture, low, high = 255 - picture, 255 - high, 255 - low
    if high - low < 120:
        table = np.clip((np.arange(256) - low) * 255 / (high - low), 0, 255).astype(np.uint8)
        picture = cv2.LUT(picture, table)
    return picture


def cropped(picture: Picture, quad: NDArray[np.float32], *, upright: bool = False) -> Picture | None:
    """One line's own picture, levelled; None where it is smaller than a letter.

    A line that is much higher than wide is turned so that it reads from its bottom to its top, unless ``upright``.
    """
    width = round(float(max(np.linalg.norm(quad[0] - quad[1]), np.linalg.norm(quad[2] - quad[3]))))
    height = round(float(max(np.linalg.norm(quad[0] - quad[3]), np.linalg.norm(quad[1] - quad[2]))))
    if width < 3 or height < 3:
        return None
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    matrix = cv2.getPerspectiveTransform(quad.astype(np.float32), target)
    crop: Picture = cv2.warpPerspective(
        picture, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.rot90(crop, k=-1) if height >= 1.5 * width and not upright else crop
