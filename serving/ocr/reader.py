"""From a page's picture to what stands on it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from docmill.extraction import Grid, Mark, PageText
from docmill.layout.glyphs import Glyph, line_boxes
from docmill.layout.grids import find_grids
from docmill.layout.ink import Mask, gray_picture, ink_of
from docmill.layout.islands import find_islands
from docmill.layout.marks import find_marks
from docmill.layout.reading_order import reading_order
from docmill.layout.scribbles import find_scribbles
from docmill.layout.straightening import Picture, Straightening, on_page
from docmill.layout.written_marks import without_frames, written_marks
from serving.ocr.crops import colour_picture, cropped, legible
from serving.ocr.lines import glyphs_of, line_of, without
from serving.ocr.recognizer import Recognised, Recognizer, model_names
from serving.ocr.uprightness import (
    SMALLEST_SKEW,
    STEEPEST_SKEW,
    SURE,
    Quads,
    best_turn,
    covered,
    in_order,
    moved,
    slope,
    stands_on_its_side,
)

CODE_VERSION = 2
"""Raised whenever a page may read differently than before."""

Seen = tuple[NDArray[np.float32], Recognised]
"""A line's corners in pixels, and what it says."""

_SPARSE = 0.04
"""A page of whose area lines cover less is looked through a second time, where its ink is."""

_DOUBTFUL_TEXT = 0.7
"""Pages whose lines read worse than this are looked at in the other directions too."""


@dataclass(frozen=True, slots=True)
class OcrOptions:
    """How to read.

    Attributes:
        threads: per process.
        backend: ``auto``, ``openvino`` or ``onnxruntime``.
        max_pixels: a larger picture is looked through at a smaller scale (and its lines are read at full scale).
        min_confidence: lines below it are dropped.
        straighten, marks, grids: whether to turn and level pages, look for check boxes and signatures, look for ruled
            tables.
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

    @property
    def fingerprint(self) -> str:
        """All that changes what is read: models, code and options. Loads nothing."""
        o = self.options
        parts = (o.max_pixels, o.min_confidence, int(o.straighten), int(o.marks), int(o.grids))
        return f"{model_names()}+reader-{CODE_VERSION}+" + "-".join(str(p) for p in parts)

    def read(self, image: Picture | Image.Image) -> PageText:
        """Read one page.

        Args:
            image: gray or RGB, as a viewer shows the page; also 1-bit, 16-bit gray and with transparency.

        Returns:
            Lines in reading order, marks and grids, on the page as a viewer shows it. A blank page has none.

        Raises:
            UnreadablePage: the picture has no pixels or is of another shape.
        """
        picture = legible(colour_picture(image))
        if not self.options.straighten:
            height, width = picture.shape[:2]
            return self._read(picture, Straightening(width, height), self._detect(picture))
        way, quads, doubtful = self._turned(picture)
        text = self._read(picture, way, quads)
        if doubtful or not text.lines or median(line.confidence for line in text.lines) >= _DOUBTFUL_TEXT:
            return text
        again = self._turn_by_reading(picture, way, quads, [0, 180, 90, 270])
        return text if again[0].turned == way.turned else self._read(picture, *again)

    def _detect(self, picture: Picture) -> Quads:
        quads = self._detect_in(picture)
        height, width = picture.shape[:2]
        if covered(quads) > _SPARSE * height * width:
            return quads
        # Alone on a large blank page, words are overlooked that are seen in a picture of their own.
        for x0, y0, x1, y1 in find_islands(picture):
            if (x1 - x0) * (y1 - y0) > 0.8 * height * width:
                continue
            found = self._detect_in(np.ascontiguousarray(picture[y0:y1, x0:x1]))
            if covered(found) > 0:
                found += np.array([x0, y0], dtype=np.float32)
                middles = quads.mean(axis=1)
                outside = ((middles < (x0, y0)) | (middles > (x1, y1))).any(axis=1)
                if covered(found) > 0.8 * covered(quads[~outside]):
                    quads = np.concatenate([quads[outside], found])
        return quads

    def _detect_in(self, picture: Picture) -> Quads:
        height, width = picture.shape[:2]
        scale = float(min(1.0, (self.options.max_pixels / (height * width)) ** 0.5))
        if min(height, width) * scale < 32:
            scale = 1.0
        small = picture
        if scale < 1:
            small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        margin = 32 if min(small.shape[:2]) < 160 else 0
        if margin:
            small = cv2.copyMakeBorder(small, margin, margin, margin, margin, cv2.BORDER_REPLICATE)
        return in_order(((self.recognizer.detect(small) - margin) / scale).astype(np.float32))

    def _turned(self, picture: Picture) -> tuple[Straightening, Quads, bool]:
        """How to turn and level the page, where its lines then stand, and whether reading had to decide."""
        height, width = picture.shape[:2]
        turn, sure = self.recognizer.orientation(picture)
        if sure < SURE:
            turn = 0
        way = Straightening(width, height, turn)
        quads = self._detect(way.apply(picture))
        aside = stands_on_its_side(quads)
        if len(quads) == 0 or (turn == 0 and sure >= SURE and not aside):
            return self._levelled(picture, way, quads), quads, False
        order = [90, 270, 0, 180] if aside else [0, 180]
        way, quads = self._turn_by_reading(picture, way, quads, order)
        return self._levelled(picture, way, quads), quads, True

    def _turn_by_reading(
        self, picture: Picture, way: Straightening, quads: Quads, turns: list[int]
    ) -> tuple[Straightening, Quads]:
        """Try some lines in several directions, relative to how the page is turned now."""
        flat = Straightening(way.width, way.height, way.turned)
        more = best_turn(self.recognizer, flat.apply(picture), quads, turns)
        turned = Straightening(way.width, way.height, (way.turned + more) % 360)
        if more:
            # Looked through again: the detector sees lines better when they lie.
            quads = self._detect(turned.apply(picture))
        return turned, quads

    def _levelled(self, picture: Picture, way: Straightening, quads: Quads) -> Straightening:
        angle = slope(quads)
        if not SMALLEST_SKEW <= abs(angle) <= STEEPEST_SKEW:
            return way
        return Straightening(way.width, way.height, way.turned, round(angle, 3))

    def _read(self, picture: Picture, way: Straightening, quads: Quads) -> PageText:
        """Read the lines that stand at ``quads`` of the turned, not yet levelled page."""
        level = way.apply(picture)
        flat = Straightening(way.width, way.height, way.turned)
        quads = moved(quads, way.matrix @ np.linalg.inv(flat.matrix)) if way.skew else quads
        height, width = level.shape[:2]
        seen = self._seen(level, quads)
        glyphs = [g for i, (quad, answer) in enumerate(seen) for g in glyphs_of(i, quad, answer, (width, height))]
        gray = gray_picture(level)
        ink = ink_of(gray)
        marks, grids = self._drawn(gray, ink, glyphs)
        if marks:
            seen = _text_only(seen, glyphs, marks)
        lines = [line_of(quad, answer, (width, height)) for quad, answer in seen]
        scribbles = None
        if self.options.marks:
            scribbles = find_scribbles(ink, [(line.text, line.box) for line in lines], [mark.box for mark in marks])
        order = reading_order([line.box for line in lines], width / height)
        text = PageText(tuple(lines[i] for i in order), marks, grids, width=width, height=height, scribbles=scribbles)
        return text if way.identity else on_page(text, way)

    def _seen(self, picture: Picture, quads: Quads) -> list[Seen]:
        crops = [cropped(picture, quad) for quad in quads]
        kept = [quad for quad, crop in zip(quads, crops, strict=True) if crop is not None]
        answers = self.recognizer.recognise([crop for crop in crops if crop is not None])
        return [
            (quad, answer)
            for quad, answer in zip(kept, answers, strict=True)
            if answer.text.strip() and answer.confidence >= self.options.min_confidence
        ]

    def _drawn(self, gray: Picture, ink: Mask, glyphs: list[Glyph]) -> tuple[tuple[Mark, ...], tuple[Grid, ...]]:
        marks: tuple[Mark, ...] = ()
        if self.options.marks:
            marks = find_marks(gray, ink, sorted(glyphs, key=lambda g: g.box.x0))
            marks = tuple(sorted(marks + written_marks(glyphs, marks), key=lambda m: (m.box.y0, m.box.x0)))
        lines = line_boxes(glyphs)
        return marks, find_grids(gray, ink, lines) if self.options.grids else ()


def _text_only(seen: list[Seen], glyphs: list[Glyph], marks: tuple[Mark, ...]) -> list[Seen]:
    keep: list[list[bool]] = [[] for _ in seen]
    for glyph, wanted in zip(glyphs, without_frames(glyphs, marks), strict=True):
        keep[glyph.line].append(wanted)
    left = [without(quad, answer, wanted) for (quad, answer), wanted in zip(seen, keep, strict=True)]
    return [line for line in left if line is not None]


def read_text(image: Picture | Image.Image, options: OcrOptions | None = None) -> PageText:
    """Read one page; see :meth:`OcrReader.read`. A plain function, to be sent to a worker process."""
    return OcrReader(options).read(image)
