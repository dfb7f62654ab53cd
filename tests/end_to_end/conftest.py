"""The whole of docmill as its users have it: the command line, with the local stack in a folder of the tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from docmill.synthesis.__main__ import write_set
from docmill.synthesis.documents import Kind
from docmill.synthesis.files import Format
from storage.embedded.postgres import EmbeddedPostgres

COMMAND_SECONDS = 300


@dataclass
class Docmill:
    """Runs the command; reads the database as an analyst does."""

    folder: Path
    environment: dict[str, str] = field(repr=False)

    def run(
        self, *arguments: str, code: int = 0, variables: dict[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "console", *arguments],
            env=self.environment | (variables or {}),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=cwd or self.folder,
            timeout=COMMAND_SECONDS,
        )
        assert done.returncode == code, (
            f"docmill {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def json(self, *arguments: str, code: int = 0, variables: dict[str, str] | None = None) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code, variables=variables).stdout)

    def start(self, *arguments: str, variables: dict[str, str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "console", *arguments],
            env=self.environment | (variables or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            # a shell's background jobs ignore it, and children inherit that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def sql(self, query: str, *values: Any) -> list[dict[str, Any]]:
        url = EmbeddedPostgres(Path(self.environment["DOCMILL_DATA_DIR"])).url()
        with psycopg.connect(url, row_factory=dict_row) as connection:
            return connection.execute(query, values).fetchall()


@pytest.fixture(scope="session")
def docmill() -> Iterator[Docmill]:
    """The command with its stack up; one for the whole session, so tests use sources of their own."""
    folder = Path(tempfile.mkdtemp(prefix="docmill-e2e-"))
    folder.chmod(0o755)
    (folder / "home").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DOCMILL_", "PREFECT_"))}
    environment = kept | {
        "HOME": str(folder / "home"),
        "DOCMILL_DATA_DIR": str(folder / "data"),
        "DOCMILL_PIPELINE_LEASE_SECONDS": "6",
        "COLUMNS": "120",
    }
    command = Docmill(folder, environment)
    command.run("up")
    yield command
    command.run("down")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def receipts(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder of receipts, each different: ``receipts(count, seed)``."""

    def make(count: int, seed: int) -> Path:
        folder = tmp_path / f"receipts-{seed}"
        write_set(folder, kinds=[Kind.RECEIPT], count=count, seed=seed * 1000, form=Format.JPEG)
        return folder / "images"

    return make
