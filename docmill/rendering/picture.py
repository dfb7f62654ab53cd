"""A drawn page, and how any colour mode becomes RGB or gray on a plain ground."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from docmill.ports import PageImage
from docmill.rendering.limits import RenderLimits, fitting_size

_DARK = 170  # luminance below which ink can be read on white
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page as a picture in memory, as a viewer shows it.

    Attributes:
        image: mode RGB or L.
        dpi: at which it was drawn or scanned; None for a picture that does not say.
        notes: what a reader should know (cut off, first frame of several, ...), for people.
    """

    image: Image.Image
    dpi: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Pixels."""
        return self.image.width

    @property
    def height(self) -> int:
        """Pixels."""
        return self.image.height

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """Height x width x 3 (RGB), or height x width (gray)."""
        return np.asarray(self.image)

    def encode(self, media_type: str = "image/jpeg", quality: int = 90) -> PageImage:
        """The page as bytes: image/jpeg (with ``quality``) or image/png."""
        held = io.BytesIO()
        if media_type == "image/png":
            self.image.save(held, "PNG", compress_level=3)
        elif media_type == "image/jpeg" and max(self.image.size) < 65_500:  # JPEG's own limit
            self.image.save(held, "JPEG", quality=quality)
        elif media_type == "image/jpeg":
            return self.encode("image/png")
        else:
            raise ValueError(f"pages are encoded as image/jpeg or image/png, not {media_type}")
        return PageImage(held.getvalue(), media_type, self.width, self.height, self.dpi)


def flattened(image: Image.Image, *, inverted: bool = False) -> tuple[Image.Image, tuple[str, ...]]:
    """The picture as RGB or L, without transparency, and notes.

    Transparency becomes white; black where all that is visible is light, so that white print does not vanish.

    Args:
        image: loaded, of any mode.
        inverted: high values mean black (16-bit pictures only; Pillow knows it of the others).
    """
    if image.mode in ("RGB", "L"):
        if "transparency" not in image.info:
            return image, ()
        image = image.convert("RGBA")
    if image.mode == "1":
        return image.convert("L"), ()
    if image.mode.startswith(("I", "F")):
        return _eight_bit(image, inverted=inverted), ()
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode in ("LA", "PA", "La", "RGBa"):
        image = image.convert("RGBA")
    if image.mode != "RGBA":
        return image.convert("RGB"), ()
    return _on_ground(image)


def _on_ground(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    alpha = image.getchannel("A")
    lowest, _ = alpha.getextrema()
    if lowest == 255:
        return image.convert("RGB"), ()
    light = np.asarray(image.convert("RGB").convert("L"))[np.asarray(alpha) >= 128]
    # One visible pixel in fifty is enough to be ink: then the picture is dark on light, whatever its paper is.
    vanishes = light.size > 0 and float(np.quantile(light, 0.02)) > _DARK
    ground = Image.new("RGB", image.size, _BLACK if vanishes else _WHITE)
    ground.paste(image.convert("RGB"), mask=alpha)
    return ground, ("light on transparency: put on black",) if vanishes else ()


def _eight_bit(image: Image.Image, *, inverted: bool) -> Image.Image:
    """16-bit, 32-bit and floating point gray as 8-bit, scaled by what the numbers can hold."""
    values = np.asarray(image)
    top = float(np.nanmax(values)) if values.size else 0.0
    if image.mode.startswith("F"):
        low = float(np.nanmin(values)) if values.size else 0.0
        span = 1.0 if low >= 0 and top <= 1 else 255.0 if low >= 0 and top <= 255 else max(top - low, 1e-9)
        shift = low if span not in (1.0, 255.0) else 0.0
    else:
        shift, span = 0.0, next((float(s) for s in (255, 4095, 65_535) if top <= s), max(top, 1.0))
    scaled = np.empty(values.shape, dtype=np.uint8)
    for start in range(0, values.shape[0], 256):  # by bands: the floating point copy stays small
        band = np.nan_to_num(values[start : start + 256].astype(np.float32))
        scaled[start : start + 256] = np.clip((band - shift) * (255.0 / span), 0, 255).astype(np.uint8)
    if inverted:
        np.subtract(255, scaled, out=scaled)
    return Image.fromarray(scaled)


def reduced(image: Image.Image, limits: RenderLimits) -> Image.Image:
    """The picture within ``max_pixels``, by whole-number reduction first and then Lanczos; never larger."""
    size = fitting_size(image.width, image.height, limits)
    if size == image.size:
        return image
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
