"""Folders with a model's files, as small as they can be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MakeFolder = Callable[..., Path]


@pytest.fixture
def make_folder(tmp_path: Path) -> MakeFolder:
    """A folder with that config.json and other JSON files."""

    def made(config: Any, name: str = "model", **files: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        if config is not None:
            text = config if isinstance(config, str) else json.dumps(config)
            (folder / "config.json").write_text(text, encoding="utf-8")
        for stem, held in files.items():
            (folder / f"{stem}.json").write_text(json.dumps(held), encoding="utf-8")
        return folder

    return made
