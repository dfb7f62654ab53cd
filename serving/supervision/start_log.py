"""How far a starting vLLM has come, read from its log.

The lines were read from the sources of vLLM 0.24 and 0.32 (model_executor/model_loader, v1/worker,
v1/core/kv_cache_utils, compilation, v1/engine/core, entrypoints); the two write different prefixes, so the lines are
searched for, not matched whole. tqdm's bars end in a carriage return.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TAIL_LINES = 800
"""Kept for the diagnosis: with eight workers the cause stands that far above the end."""
_LINE_CHARACTERS = 600
_NOISE = re.compile(r"\s*(?:nanobind: |- leaked |- \.{3} skipped|See https://nanobind)")
"""Dozens of such lines follow on any end of a vLLM that has Triton, and would push the cause out of the last lines."""
_READ_BYTES = 2**20

STARTING, LOADING, COMPILING, CAPTURING, WARMING = "starting", "loading", "compiling", "capturing", "warming"

_SHARDS = re.compile(r"Loading (?:safetensors|pt|np_cache|safetensors using [\w ]+)[^:]*:\s*(\d+)%")
_CAPTURE = re.compile(r"Capturing CUDA graphs?[^:]*:\s*(\d+)%")
_KV_TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
_PHASES = (
    (re.compile(r"Starting to load model |Loading safetensors|Loading drafter model"), LOADING),
    (
        re.compile(
            r"Loading weights took|Model loading took|Dynamo bytecode transform|Starting torch\.compile"
            r"|Compiling a graph|Directly load (?:AOT|the compiled)|Using cache directory: .* for vLLM's torch\.compile"
            r"|Warming up model for the compilation"
        ),
        COMPILING,
    ),
    (re.compile(r"Capturing CUDA graph|Profiling CUDA graph memory"), CAPTURING),
    (
        re.compile(
            r"Graph capturing finished|init engine \(profile|Starting vLLM (?:API )?server|Application startup complete"
        ),
        WARMING,
    ),
)
_TIMINGS = (
    ("weights_seconds", re.compile(r"Loading weights took ([\d.]+) seconds")),
    ("model_seconds", re.compile(r"Model loading took [\d.]+ GiB(?: memory)? and ([\d.]+) seconds")),
    ("dynamo_seconds", re.compile(r"Dynamo bytecode transform time: ([\d.]+) s")),
    ("compile_seconds", re.compile(r"torch\.compile (?:takes|took) ([\d.]+) s in total")),
    ("capture_seconds", re.compile(r"Graph capturing finished in ([\d.]+) secs")),
    ("engine_seconds", re.compile(r"init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s")),
)
_GIB = (
    ("weights_gib", re.compile(r"Model loading took ([\d.]+) GiB")),
    ("kv_cache_gib", re.compile(r"Available KV cache memory: ([\d.]+) GiB")),
    ("graphs_gib", re.compile(r"Graph capturing finished in [\d.]+ secs, took ([\d.]+) GiB")),
)
_ORDER = (STARTING, LOADING, COMPILING, CAPTURING, WARMING)


@dataclass(slots=True)
class StartReport:
    """What a start has told so far.

    Attributes:
        phase: ``starting``, ``loading``, ``compiling``, ``capturing`` or ``warming``; never goes back.
        progress: 0 to 1 within the phase; None where the log does not say.
        kv_cache_tokens: how many tokens the KV cache holds.
        figures: vLLM's own times and sizes (``weights_seconds``, ``compile_seconds``, ``weights_gib``…), the slowest
            worker's of each; ``ready_seconds`` is the whole start as the supervisor saw it.
    """

    phase: str = STARTING
    progress: float | None = None
    kv_cache_tokens: int | None = None
    figures: dict[str, float] = field(default_factory=dict)

    def read(self, line: str) -> None:
        """Take in one line."""
        for phase, bar in ((LOADING, _SHARDS), (CAPTURING, _CAPTURE)):
            if (found := bar.search(line)) and _ORDER.index(self.phase) <= _ORDER.index(phase):
                share = int(found[1]) / 100
                # two bars follow each other while graphs are captured (mixed, then decode only): each starts at 0
                self.phase, self.progress = phase, share
                return
        for pattern, phase in _PHASES:
            if pattern.search(line) and _ORDER.index(phase) > _ORDER.index(self.phase):
                self.phase, self.progress = phase, None
        if found := _KV_TOKENS.search(line):
            self.kv_cache_tokens = int(found[1].replace(",", ""))
        for name, pattern in (*_TIMINGS, *_GIB):
            if found := pattern.search(line):
                self.figures[name] = max(float(found[1]), self.figures.get(name, 0.0))


class LogReader:
    """Follows a log that another process appends to, and keeps its last lines.

    Args:
        path: the log; it need not be there yet.
        offset: bytes to skip: what earlier processes wrote.
        secret: is blotted out in what is kept.
    """

    def __init__(self, path: Path, offset: int = 0, secret: str | None = None) -> None:
        self._path = path
        self._offset = offset
        self._secret = secret
        self._rest = b""
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)

    def new_lines(self) -> Iterator[str]:
        """Whole lines since the last call, without colours and ends."""
        while chunk := self._chunk():
            *lines, self._rest = re.split(rb"[\r\n]+", self._rest + chunk)
            for raw in lines:
                if text := self._clean(raw):
                    self._lines.append(text)
                    yield text
            if len(self._rest) > _READ_BYTES:
                self._rest = b""  # no line of a log is that long

    def tail(self, lines: int = 50) -> str:
        """The last lines that say something, the unfinished one too."""
        for _ in self.new_lines():
            pass
        told = [*self._lines, *filter(None, [self._clean(self._rest)])]
        return "\n".join([line for line in told if not _NOISE.match(line)][-lines:])

    def _chunk(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(_READ_BYTES)
        except OSError:
            return b""
        self._offset += len(chunk)
        return chunk

    def _clean(self, raw: bytes) -> str:
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\x00", "", raw.decode("utf-8", "replace")).rstrip()
        if self._secret:
            text = text.replace(self._secret, "***")
        return text[:_LINE_CHARACTERS]
