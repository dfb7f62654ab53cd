"""``SHA256SUMS`` beside a model's files: read everything, compare. Only when asked: 144 GB take minutes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docmill.model_failures import ModelIncomplete
from serving.vllm.findings import Finding

MANIFEST = "SHA256SUMS"
READERS = 4
_LINE = re.compile(r"\\?([0-9a-fA-F]{64}) [ *](.+)")


def checksum_findings(folder: Path, say: Callable[[str], None] | None = None) -> list[Finding]:
    """Files whose content is not what the manifest says (lines as ``sha256sum`` writes them)."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        return [
            Finding(
                MANIFEST, f"there is no {MANIFEST} to verify against",
                f"make one where the model came from: sha256sum * > {MANIFEST}", None,
            )
        ]  # fmt: skip
    sums: dict[str, str] = {}
    for line in manifest.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            return [Finding(MANIFEST, f"{MANIFEST} is not as sha256sum writes it", "make it again", ModelIncomplete)]
        sums[match[2]] = match[1].lower()

    def look(name: str) -> Finding | None:
        file = folder / name
        if not file.is_file():
            return Finding(name, f"{name} is missing ({MANIFEST} names it)", "download it", ModelIncomplete)
        if say is not None:
            say(f"reading {name}")
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        if digest == sums[name]:
            return None
        return Finding(name, f"{name} is not what {MANIFEST} says (damaged)", "download it again", ModelIncomplete)

    with ThreadPoolExecutor(READERS) as readers:
        return [finding for finding in readers.map(look, sums) if finding is not None]
