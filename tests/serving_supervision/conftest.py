import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from supervised_server import QUICK, Stage, WatchedRegistry, make_launch, pids_of

from serving.supervision.orphans import end_marked
from serving.supervision.supervisor import Supervisor
from serving.supervision.timings import SupervisorTimings

Begin = Callable[..., Any]


@pytest.fixture
async def begin(tmp_path: Path) -> AsyncIterator[Begin]:
    """Start a supervised server: ``await begin(script, flags=(…), launch={…}, **timings)``."""
    stages: list[Stage] = []

    async def start(
        script: Any = None, *, flags: tuple[str, ...] = (), launch: dict[str, Any] | None = None, **timings: Any
    ) -> Stage:
        registry = WatchedRegistry()
        (server_id,) = await registry.add_servers("scripted", "here", 1)
        folder = tmp_path / str(len(stages))
        folder.mkdir()
        launched = make_launch(folder, script, flags=flags, **(launch or {}))
        progress: list[tuple[str, float | None]] = []
        supervisor = Supervisor(
            server_id,
            launched,
            registry,
            SupervisorTimings(**{**QUICK, **timings}),
            on_progress=lambda *step: progress.append(step),
            inherited={**os.environ, "DOCMILL_DATABASE_URL": "secret", "AWS_SECRET_ACCESS_KEY": "secret"},
        )
        stage = Stage(
            folder, registry, server_id, launched, supervisor, asyncio.ensure_future(supervisor.run()), progress
        )
        stages.append(stage)
        return stage

    yield start
    left = {}
    for stage in stages:
        stage.run.cancel()
        await asyncio.gather(stage.run, return_exceptions=True)
        left.update(dict.fromkeys(pids_of(stage.server_id), stage.log))
        end_marked(stage.server_id)
    assert not left


@pytest.fixture
def server_id() -> Iterator[UUID]:
    """An id whose processes are all ended after the test."""
    made = uuid4()
    yield made
    end_marked(made)
