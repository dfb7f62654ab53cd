"""Everything as it runs in earnest, but for vLLM: Postgres, detached supervisors, scripted servers behind them."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from model_files import write_model
from scripted_python import ScriptedPython
from serving_place import Place

from docmill.settings import Settings, load_settings
from flows.server_ends import end_model_servers
from storage.embedded.postgres import EmbeddedPostgres
from storage.ledger.model_servers import PostgresServerRegistry
from storage.migrations import upgrade

_numbers = itertools.count()


@pytest.fixture
def place_settings(
    tmp_path: Path, embedded_postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    python = ScriptedPython(tmp_path / "vllm")
    url = embedded_postgres.create_database(f"flows_serving_{next(_numbers)}")
    asyncio.run(upgrade(url))
    folder = write_model(tmp_path / "models" / "tiny")
    for name in [each for each in os.environ if each.startswith("DOCMILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DOCMILL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DOCMILL_DATABASE_URL", url)
    monkeypatch.setenv("DOCMILL_SERVING_PYTHON", str(python.path))
    monkeypatch.setenv("DOCMILL_SERVING_PROFILE", "tiny")
    monkeypatch.setenv("DOCMILL_SERVING_MODELS", f'{{"tiny": "{folder}"}}')
    monkeypatch.setenv("DOCMILL_SERVING_CPU_KV_CACHE_BYTES", str(2**26))
    monkeypatch.setenv("DOCMILL_SERVING_DRAIN_SECONDS", "5")
    monkeypatch.setenv("DOCMILL_SERVING_READY_SECONDS", "60")
    monkeypatch.setenv("DOCMILL_SERVING_LEASE_SECONDS", "3")
    monkeypatch.chdir(tmp_path)
    yield load_settings()


@pytest.fixture
async def place(place_settings: Settings) -> AsyncIterator[Place]:
    settings = place_settings
    assert settings.database.url is not None
    assert settings.serving.python is not None
    async with PostgresServerRegistry.connect(settings.database.url.get_secret_value()) as registry:
        python = ScriptedPython(settings.serving.python.parents[1])
        here = Place(settings, python, registry)
        yield here
        await asyncio.to_thread(end_model_servers, settings)
        left = [each.server_id for each in await registry.servers(live=False) if here.processes(each.id)]
    assert not left, "a server was left running"
    assert not here.supervisors(), "a supervisor was left running"
