"""What a scanner does to a page: a little turn, uneven light, blur, noise. The boxes turn with the page."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from docmill.geometry import Box

Move = Callable[[Box], Box]


@dataclass(frozen=True, slots=True)
class Scan:
    """How a page is scanned.

    Attributes:
        severity: 0 (as drawn) to 1 (a bad day): scales the turn (to 2 degrees), blur, noise and shade.
        color: keep colours, else shades of gray.
        bilevel: black and white only, as a fax or a G4 TIFF holds it.
    """

    severity: float = 0.4
    color: bool = True
    bilevel: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.severity <= 1:
            raise ValueError(f"severity is 0 to 1, not {self.severity}")


CLEAN = Scan(severity=0)


def scan(image: Image.Image, seed: int, how: Scan) -> tuple[Image.Image, Move]:
    """The page as it comes off the scanner, and what carries a box of the drawn page over to it.

    The size stays. The same seed gives the same picture on the same library versions.
    """
    rng = random.Random(f"scan-{seed}")
    severity = how.severity
    degrees = rng.uniform(-2, 2) * severity
    picture = image.convert("RGB" if how.color and not how.bilevel else "L")
    move: Move = _stay
    if severity:
        paper = (252, 251, 247) if picture.mode == "RGB" else 251
        picture = picture.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=paper)
        move = _turn(degrees, *picture.size)
        picture = picture.filter(ImageFilter.GaussianBlur(0.25 + 0.5 * severity))
        picture = _light(picture, np.random.default_rng(seed), severity)
        quality = round(88 - 40 * severity)
        picture = _through_jpeg(picture, quality)
    if how.bilevel:
        picture = picture.point(lambda level: 255 if level > 165 else 0).convert("1", dither=Image.Dither.NONE)
    return picture, move


def _stay(box: Box) -> Box:
    return box


def _turn(degrees: float, width: int, height: int) -> Move:
    """Pillow turns counter-clockwise around the middle; the new box holds the turned corners."""
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))

    def move(box: Box) -> Box:
        xs, ys = [], []
        for x, y in ((box.x0, box.y0), (box.x1, box.y0), (box.x0, box.y1), (box.x1, box.y1)):
            across, down = (x - 0.5) * width, (y - 0.5) * height
            xs.append((across * cosine + down * sine) / width + 0.5)
            ys.append((down * cosine - across * sine) / height + 0.5)
        return Box.clipped(min(xs), min(ys), max(xs), max(ys))

    return move


def _light(picture: Image.Image, rng: np.random.Generator, severity: float) -> Image.Image:
    """A shade that grows towards one edge, and grain."""
    levels = np.asarray(picture, dtype=np.float32)
    height, width = levels.shape[:2]
    tilt_x, tilt_y = rng.uniform(-1, 1, 2)
    across = np.linspace(-1, 1, width, dtype=np.float32) * tilt_x
    down = np.linspace(-1, 1, height, dtype=np.float32) * tilt_y
    shade = 1 - 0.07 * severity * (1 + (across[None, :] + down[:, None]) / 2)
    grain = rng.standard_normal((height, width), dtype=np.float32) * (1 + 8 * severity)
    if levels.ndim == 3:
        shade, grain = shade[..., None], grain[..., None]
    return Image.fromarray(np.clip(levels * shade + grain, 0, 255).astype(np.uint8))


def _through_jpeg(picture: Image.Image, quality: int) -> Image.Image:
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=quality)
    with Image.open(data) as again:
        return again.copy()
