"""Pages as small pictures."""

from __future__ import annotations

import io

from PIL import Image

HEIGHT = 1200
QUALITY = 70


def page_picture(image: Image.Image, *, height: int = HEIGHT, quality: int = QUALITY) -> tuple[bytes, int, int]:
    """A JPEG of the page, at most ``height`` pixels high, and its width and height.

    Very long pages (receipts) may be three times as high, so that their text stays readable.
    """
    tallest = height * min(3.0, max(1.0, image.height / image.width / 1.5))
    scale = min(1.0, tallest / image.height)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    plain = image.convert("L" if image.mode in ("1", "L", "I;16") else "RGB")
    small = plain if size == image.size else plain.resize(size, Image.Resampling.LANCZOS)
    data = io.BytesIO()
    small.save(data, "JPEG", quality=quality, optimize=True)
    return data.getvalue(), *size
