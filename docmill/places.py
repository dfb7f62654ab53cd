"""Paths as people write them."""

from __future__ import annotations

import os.path
from pathlib import Path


def whole_path(written: str | Path) -> Path:
    """The absolute path, ``~`` and symbolic links followed as far as they lead.

    Unlike ``Path.expanduser().resolve()`` it never fails: an unknown home and a loop of links stay in the path,
    and whoever opens it says that nothing is there.
    """
    try:
        return Path(os.path.realpath(os.path.expanduser(written)))  # noqa: PTH111 - pathlib's own raises RuntimeError
    except ValueError:  # a null byte
        return Path(written)
