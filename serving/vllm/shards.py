"""Shards of safetensors: there, as long as their headers say, and with the tensors that the index expects.

A safetensors file is eight bytes (the header's length, little endian), the header (JSON: tensor → dtype, shape and
``data_offsets``), then the data; its length is therefore known from the header.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docmill.model_failures import ModelIncomplete
from serving.vllm.findings import Finding

LONGEST_HEADER = 100_000_000  # bytes; what the format's own reader allows
READERS = 8  # files on a network disk are looked at side by side
NAMED = 3
_NUMBERED = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.safetensors")
_POINTER = b"version https://git-lfs"


def shard_findings(
    folder: Path, tensors: Mapping[str, set[str]], unfinished: Sequence[str], *, siblings: bool = False
) -> list[Finding]:
    """What is wrong with the shards.

    Args:
        folder: where they lie.
        tensors: shard → tensors that must be in it (none: whatever is there).
        unfinished: what an interrupted download left, to be named.
        siblings: there is no index: what numbered names promise (``-00001-of-00004``) must be there.
    """
    expected = dict(tensors)
    if siblings:
        for name in _promised(tensors):
            expected.setdefault(name, set())
    names = sorted(expected)
    missing = [name for name in names if not (folder / name).exists()]
    found = []
    if missing:
        told = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        stopped = f"; the download stopped at {unfinished[0]}" if unfinished else ""
        message = f"{len(missing)} of {len(names)} shards missing: {told}{stopped}"
        found.append(Finding(missing[0], message, "download the named files", ModelIncomplete))
    there = [name for name in names if name not in missing]
    with ThreadPoolExecutor(READERS) as readers:
        for finding in readers.map(lambda name: _shard(folder, name, expected[name]), there):
            found += [finding] if finding is not None else []
    return found


def _promised(names: Mapping[str, set[str]]) -> list[str]:
    promised = []
    for stem, count in {(m[1], int(m[3])) for m in map(_NUMBERED.fullmatch, names) if m}:
        promised += [f"{stem}-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]
    return promised


def _shard(folder: Path, name: str, tensors: set[str]) -> Finding | None:
    def wrong(message: str) -> Finding:
        return Finding(name, f"{name} {message}", "download it again", ModelIncomplete)

    file = folder / name
    size = file.stat().st_size
    with file.open("rb") as opened:
        first = opened.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8:
            return wrong(f"is cut off: {size} bytes")
        if length > LONGEST_HEADER:
            opened.seek(0)
            if opened.read(len(_POINTER)) == _POINTER:
                return Finding(
                    name, f"{name} is a pointer of Git LFS, not the weights", "git lfs pull", ModelIncomplete
                )
            return wrong("is no safetensors file")
        if size < 8 + length:
            return wrong(f"is cut off within its header: {size:,} of at least {8 + length:,} bytes")
        header = opened.read(length)
    try:
        held = json.loads(header)
        ends = [entry["data_offsets"][1] for tensor, entry in held.items() if tensor != "__metadata__"]
        whole = 8 + length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return wrong("has a damaged header")
    if size < whole:
        return wrong(f"is cut off: {size:,} of {whole:,} bytes")
    if size > whole:
        return wrong(f"is longer than its header says: {size:,} instead of {whole:,} bytes")
    if lacking := sorted(tensors - held.keys()):
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        return wrong(f"lacks the tensor {lacking[0]}{more}, which the index places there")
    return None
