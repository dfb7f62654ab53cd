"""From a page's picture to what stands on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from docmill.extraction import Line, PageText, Word
from docmill.failures import UnreadablePage
from docmill.geometry import Box
from docmill.layout.reading_order import reading_order
from docmill.layout.straightening import Picture, Straightening, on_page
from serving.ocr.recognizer import Recognised, Recognizer, model_names
from serving.ocr.words import with_spaces, words_of

CODE_VERSION = 1
"""Raised whenever a page may read differently than before."""


@dataclass(frozen=True, slots=True)
class OcrOptions:
    """How to read.

    Attributes:
        threads: per process.
        backend: ``auto``, ``openvino`` or ``onnxruntime``.
        max_pixels: a larger picture is looked through at a smaller scale (and its lines are read at full scale).
        min_confidence: lines below it are dropped.
        straighten, marks, grids: whether to turn and level pages, look for check boxes, look for ruled tables.
    """

    threads: int = 1
    backend: str = "auto"
    max_pixels: int = 3_200_000
    min_confidence: float = 0.5
    straighten: bool = True
    marks: bool = True
    grids: bool = True


_recognizers: dict[tuple[int, str], Recognizer] = {}


class OcrReader:
    """Reads pages. The models are loaded at the first page and kept for the life of the process.

    Raises:
        ConfigurationError: at the first page, where the models or the backend are missing.
    """

    def __init__(self, options: OcrOptions | None = None) -> None:
        self.options = options or OcrOptions()

    @property
    def recognizer(self) -> Recognizer:
        """The process's models."""
        key = (self.options.threads, self.options.backend)
        if key not in _recognizers:
            _recognizers[key] = Recognizer(*key)
        return _recognizers[key]

    def read(self, image: Picture | Image.Image) -> PageText:
        """Read one page.

        Args:
            image: gray or RGB, as a viewer shows the page; also 1-bit, 16-bit gray and with transparency.

        Returns:
            Lines in reading order, marks and grids, on the page as a viewer shows it. A blank page has none.

        Raises:
            UnreadablePage: the picture has no pixels or is of another shape.
        """
        picture = colour_picture(image)
        height, width = picture.shape[:2]
        way = Straightening(width, height)
        upright = picture
        found = self._detect(upright)
        way, level, found = self._levelled(way, upright, found)
        lines = self._lines(level, found)
        text = PageText(lines=_in_order(lines, level), width=way.size[0], height=way.size[1])
        return on_page(text, way)

    def _detect(self, picture: Picture) -> NDArray[np.float32]:
        height, width = picture.shape[:2]
        scale = min(1.0, (self.options.max_pixels / (height * width)) ** 0.5)
        if min(height, width) * scale < 32 or max(height, width) < 200:
            scale = 1.0
        small = picture
        if scale < 1:
            small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        margin = 32 if min(small.shape[:2]) < 160 else 0
        if margin:
            small = cv2.copyMakeBorder(small, margin, margin, margin, margin, cv2.BORDER_REPLICATE)
        found = self.recognizer.detect(small)
        return (found - margin) / np.float32(scale)

    def _levelled(
        self, way: Straightening, picture: Picture, found: NDArray[np.float32]
    ) -> tuple[Straightening, Picture, NDArray[np.float32]]:
        return way, picture, found

    def _lines(self, picture: Picture, found: NDArray[np.float32]) -> list[Line]:
        crops = [_crop(picture, quad) for quad in found]
        kept = [i for i, crop in enumerate(crops) if crop is not None]
        answers = self.recognizer.recognise([c for c in crops if c is not None])
        lines = []
        for index, answer in zip(kept, answers, strict=True):
            if answer.text.strip() and answer.confidence >= self.options.min_confidence:
                lines.append(_line(found[index], answer, picture.shape[1], picture.shape[0]))
        return lines

    @property
    def fingerprint(self) -> str:
        """All that changes what is read: models, code and options."""
        o = self.options
        parts = (o.max_pixels, o.min_confidence, int(o.straighten), int(o.marks), int(o.grids))
        return f"{model_names()}+reader-{CODE_VERSION}+" + "-".join(str(p) for p in parts)


def read_text(image: Picture | Image.Image, options: OcrOptions | None = None) -> PageText:
    """Read one page; see :meth:`OcrReader.read`. A plain function, to be sent to a worker process."""
    return OcrReader(options).read(image)


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
        top = float(picture.max()) or 1.0
        picture = np.clip(picture.astype(np.float32) * (255 / max(top, 1.0)), 0, 255).astype(np.uint8)
    if picture.ndim == 2:
        picture = picture[:, :, None]
    if picture.shape[2] == 1:
        picture = np.repeat(picture, 3, axis=2)
    return np.ascontiguousarray(picture)


def _crop(picture: Picture, quad: NDArray[np.float32]) -> Picture | None:
    width = round(float(max(np.linalg.norm(quad[0] - quad[1]), np.linalg.norm(quad[2] - quad[3]))))
    height = round(float(max(np.linalg.norm(quad[0] - quad[3]), np.linalg.norm(quad[1] - quad[2]))))
    if width < 3 or height < 3:
        return None
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    matrix = cv2.getPerspectiveTransform(quad.astype(np.float32), target)
    crop = cv2.warpPerspective(picture, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.rot90(crop) if height >= 1.5 * width else crop


def _line(quad: NDArray[np.float32], answer: Recognised, width: int, height: int) -> Line:
    def fraction(points: NDArray[Any]) -> Box:
        (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
        return Box.clipped(float(x0) / width, float(y0) / height, float(x1) / width, float(y1) / height)

    across = float(np.linalg.norm(quad[0] - quad[1]))
    down = float(np.linalg.norm(quad[0] - quad[3]))
    # A line that stands upright is read from its bottom to its top.
    corners = quad if down < 1.5 * across else quad[[3, 0, 1, 2]]
    characters = with_spaces(answer.characters)
    words = []
    for span in words_of(characters):
        top = corners[0] + (corners[1] - corners[0]) * np.array([[span.start], [span.end]])
        bottom = corners[3] + (corners[2] - corners[3]) * np.array([[span.start], [span.end]])
        words.append(Word(span.text, fraction(np.concatenate([top, bottom])), round(span.confidence, 4)))
    text = "".join(c.text for c in characters).strip()
    return Line(text, fraction(quad), round(answer.confidence, 4), tuple(words))


def _in_order(lines: list[Line], picture: Picture) -> tuple[Line, ...]:
    order = reading_order([line.box for line in lines], picture.shape[1] / picture.shape[0])
    return tuple(lines[i] for i in order)
