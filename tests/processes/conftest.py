"""Worker processes import their jobs by name: the folder of the jobs goes on the path."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def jobs_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "jobs"))


@pytest.fixture
def jobs():
    """The module of jobs, as the parent sees it."""
    import worker_jobs

    return worker_jobs
