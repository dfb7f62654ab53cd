"""Pages that are pictures already: TIFF, JPEG, PNG, WebP, BMP, GIF, HEIC, AVIF, through Pillow."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps

from docmill.failures import PageTooLarge, UnreadableDocument, UnreadablePage
from docmill.rendering import sniff
from docmill.rendering.faults import translated
from docmill.rendering.limits import RenderLimits, check_source, fitting_size
from docmill.rendering.picture import RenderedPage, flattened, reduced
from docmill.rendering.tiff import read_frames

_PLUGINS = {
    sniff.TIFF: ("TIFF",),
    sniff.JPEG: ("JPEG", "MPO"),
    sniff.PNG: ("PNG",),
    sniff.WEBP: ("WEBP",),
    sniff.BMP: ("BMP",),
    sniff.GIF: ("GIF",),
    sniff.HEIC: ("HEIF",),
    sniff.AVIF: ("AVIF", "HEIF"),
}
_DAMAGED = "the picture is damaged or cut off"
_MOST_MISSING = 0.5  # of the height: with more missing, what is there is no page


@cache
def _register_heif() -> None:
    import pillow_heif

    pillow_heif.register_heif_opener(thumbnails=False)


@contextlib.contextmanager
def _bomb_limit(limits: RenderLimits) -> Iterator[None]:
    """Pillow refuses more than twice its limit: with half of ours it checks ours, wherever it checks."""
    before = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = (limits.max_source_pixels + 1) // 2
    try:
        yield
    except Image.DecompressionBombError as error:
        raise PageTooLarge(f"the picture has more than {limits.max_source_pixels / 1e6:.0f} million pixels") from error
    finally:
        Image.MAX_IMAGE_PIXELS = before


@contextlib.contextmanager
def _opened(path: Path, media_type: str, limits: RenderLimits) -> Iterator[Image.Image]:
    if media_type in (sniff.HEIC, sniff.AVIF):
        _register_heif()
    # An open file, not a path: Pillow maps files that it opens itself, and then turns raw TIFFs wrongly.
    with _bomb_limit(limits), path.open("rb") as file, Image.open(file, formats=_PLUGINS[media_type]) as image:
        check_source(image.width, image.height, limits)
        yield image


def count_pages(path: Path, media_type: str, limits: RenderLimits) -> tuple[int, tuple[str, ...]]:
    """How many pages a picture file has, and notes. Nothing is decoded.

    Raises:
        UnreadableDocument: the header is damaged.
        PageTooLarge: its only picture has more than ``max_source_pixels``.
    """
    with translated(UnreadableDocument, f"the {_name(media_type)} file is damaged: its header cannot be read"):
        if media_type == sniff.TIFF:
            frames = read_frames(path, limits.max_pages)
            notes = []
            if frames.left_out:
                notes.append(f"{frames.left_out} thumbnails or masks are left out")
            if frames.broken:
                notes.append(f"damaged after page {len(frames.pages)}")
            return len(frames.pages), tuple(notes)
        with _opened(path, media_type, limits) as image:
            frame_count = getattr(image, "n_frames", 1)
    return 1, (f"the first of {frame_count} pictures is read",) if frame_count > 1 else ()


def render_picture(path: Path, media_type: str, page_no: int, limits: RenderLimits) -> RenderedPage:
    """One page of a picture file: upright, RGB or gray on a plain ground, within ``max_pixels``.

    Raises:
        UnreadablePage: there is no such page, or it is damaged.
        PageTooLarge: it has more than ``max_source_pixels``.
    """
    with translated(UnreadablePage, _DAMAGED):
        index = 0
        if media_type == sniff.TIFF:
            pages = read_frames(path, limits.max_pages).pages
            if page_no > len(pages):
                raise UnreadablePage(f"the file has no page {page_no}")
            frame = pages[page_no - 1]
            index = frame.index
            check_source(frame.width, frame.height, limits)
        elif page_no > 1:
            raise UnreadablePage(f"the file has no page {page_no}")
        with _opened(path, media_type, limits) as image:
            if index:
                image.seek(index)
            return _page(path, image, media_type, limits)


def _page(path: Path, image: Image.Image, media_type: str, limits: RenderLimits) -> RenderedPage:
    source = image.size
    density = _density(image)
    inverted = media_type == sniff.TIFF and getattr(image, "tag_v2", {}).get(262) == 0
    if media_type == sniff.JPEG:
        image.draft(None, fitting_size(*source, limits))  # the decoder halves for next to nothing
    loaded, notes = _loaded(path, image, media_type)
    turned, turn_notes = _upright(loaded)
    swapped = (turned.width > turned.height) != (source[0] > source[1])
    flat, flat_notes = flattened(turned, inverted=inverted)
    flat = reduced(flat, limits)
    dpi = None
    if density is not None:
        scale = flat.width / (source[1] if swapped else source[0])
        across, down = density[::-1] if swapped else density
        flat, dpi = _square(flat, across * scale, down * scale, limits)
    return RenderedPage(flat, dpi, (*notes, *turn_notes, *flat_notes))


def _density(image: Image.Image) -> tuple[float, float] | None:
    """Pixels an inch across and down, where the file says something believable."""
    held = image.info.get("dpi")
    try:
        across, down = float(held[0]), float(held[1])  # type: ignore[index]
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return None
    if not (math.isfinite(across) and math.isfinite(down)) or min(across, down) < 50 or max(across, down) > 4800:
        return None
    return across, down


def _square(image: Image.Image, across: float, down: float, limits: RenderLimits) -> tuple[Image.Image, float]:
    """A fax of 204 x 98 dpi is stretched to square pixels; others stay. Returns the resolution, too."""
    ratio = max(across, down) / min(across, down)
    if 1.5 < ratio < 3 and image.width * image.height * ratio <= limits.max_pixels:
        wide = across < down
        size = (round(image.width * ratio), image.height) if wide else (image.width, round(image.height * ratio))
        return image.resize(size, Image.Resampling.BICUBIC), round(max(across, down), 2)
    return image, round(across, 2)


def _loaded(path: Path, image: Image.Image, media_type: str) -> tuple[Image.Image, tuple[str, ...]]:
    """Decode; of a JPEG that is cut off, keep the part that is there when it is the larger part."""
    try:
        image.load()
    except MemoryError:
        raise
    except Exception:
        if media_type != sniff.JPEG:
            raise
    else:
        return image, ()
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        part = Image.open(io.BytesIO(path.read_bytes()), formats=_PLUGINS[media_type])
        part.draft(None, image.size)
        part.load()
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before
    missing = _missing_share(part)
    if missing > _MOST_MISSING:
        raise UnreadablePage(f"the picture is cut off: {missing:.0%} of it is missing")
    return part, (
        f"the picture is cut off: the last {missing:.0%} of it is missing" if missing else "its last bytes are missing",
    )


def _missing_share(image: Image.Image) -> float:
    """The share of rows at the bottom that are all alike in one colour: what the decoder filled up."""
    pixels = np.asarray(image)
    last = pixels[-1, -1]
    filled = (pixels == last).reshape(image.height, -1).all(axis=1)
    written = np.flatnonzero(~filled)
    return 1.0 - (int(written[-1]) + 1 if written.size else 0) / image.height


def _upright(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    """The picture turned as its EXIF orientation says; an EXIF block that cannot be read does not count."""
    try:
        turned = ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    except Exception:
        return image, ("its EXIF data is damaged: not turned",)
    return turned, ()


def _name(media_type: str) -> str:
    return media_type.removeprefix("image/").upper()
