"""User metadata of files in a folder store, as JSON files in its hidden room."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from storage.objects.folder_paths import HIDDEN_ROOM


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What is known of a file beside its bytes."""

    content_type: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


def _place(root: Path, key: str) -> Path:
    return root / HIDDEN_ROOM / "metadata" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def write_sidecar(
    root: Path, key: str, found: os.stat_result, content_type: str | None, metadata: dict[str, str]
) -> None:
    """Keep the metadata of the file whose facts are ``found``.

    Raises:
        OSError: it cannot be written.
    """
    place = _place(root, key)
    place.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "key": key,
        "size": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "content_type": content_type,
        "metadata": metadata,
    }
    new = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    new.write_text(json.dumps(facts))
    new.replace(place)


def read_sidecar(root: Path, key: str, found: os.stat_result) -> Sidecar:
    """The metadata of this very file; empty where it has none, or was replaced by somebody else since."""
    try:
        facts = json.loads(_place(root, key).read_text())
        if (facts["size"], facts["mtime_ns"]) != (found.st_size, found.st_mtime_ns):
            return Sidecar()
        return Sidecar(facts["content_type"], dict(facts["metadata"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Sidecar()


def remove_sidecar(root: Path, key: str) -> None:
    """Forget the metadata of a file."""
    try:
        _place(root, key).unlink(missing_ok=True)
    except OSError:
        return
