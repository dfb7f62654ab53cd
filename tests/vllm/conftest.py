"""Real vLLM on the CPU, from ``.vllm`` (``make test-vllm`` makes it), under docmill's own supervisors."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from vllm_host import PROJECT, VllmHost

from docmill.model_servers import ServerRecord
from docmill.settings import load_settings
from flows.model_servers import ModelServer, model_server
from flows.server_ends import end_model_servers
from storage.embedded.postgres import EmbeddedPostgres
from storage.ledger.model_servers import PostgresServerRegistry
from storage.migrations import upgrade

PYTHON = PROJECT / ".vllm" / "bin" / "python"
CHECKPOINT_PROGRAM = Path(__file__).with_name("tiny_qwen2vl.py")
READING_MODEL = PROJECT.parent / "shared" / "mini-model"
NAMES = ("tiny", "resting", "divided", "refused")
"""One server each; all of them serve the same checkpoint."""

# The model that really reads lies beside the project on the founders' machines alone.
collect_ignore = [] if READING_MODEL.is_dir() else ["test_a_model_that_reads.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in collect_ignore:
        terminalreporter.write_line(f"tests/vllm/{name} was not collected: no model at {READING_MODEL}")


@pytest.fixture(scope="session")
def host(embedded_postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmHost]:
    """The host; at its end nothing of any server is left."""
    assert PYTHON.is_file(), "no environment with vLLM in .vllm: make test-vllm"
    folder = tmp_path_factory.mktemp("host")
    model = folder / "tiny-qwen2-vl"
    subprocess.run([PYTHON, CHECKPOINT_PROGRAM, model], check=True, capture_output=True, timeout=300)
    database = embedded_postgres.create_database("real_vllm")
    asyncio.run(upgrade(database))
    models = dict.fromkeys(NAMES, model) | {"mini-form": READING_MODEL / "model"}
    configuration = folder / "docmill.toml"
    configuration.write_text(
        f"""
        data_dir = {quoted(folder / "data")}
        [database]
        url = {quoted(database)}
        [serving]
        python = {quoted(PYTHON)}
        profile = "tiny"
        models = {{ {", ".join(f"{name} = {quoted(path)}" for name, path in models.items())} }}
        max_model_len = 2048
        max_num_seqs = 4
        max_queued_requests = 2
        ready_seconds = 300
        lease_seconds = 20
        hang_seconds = 20
        probe_seconds = 4
        drain_seconds = 60
        """,
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patched:
        for name in [each for each in os.environ if each.startswith(("DOCMILL_", "PREFECT_"))]:
            patched.delenv(name)
        patched.setenv("DOCMILL_CONFIG", str(configuration))
        here = VllmHost(load_settings(), folder, model)
        yield here
        rows = asyncio.run(_rows(here))
        end_model_servers(here.settings)
        left = [each for row in rows for each in here.processes(row)]
        assert not left, f"left running: {left}"
        assert not here.supervisors()


async def _rows(host: VllmHost) -> list[UUID]:
    async with PostgresServerRegistry.connect(host.database) as registry:
        return [each.id for each in await registry.servers(live=False)]


def quoted(value: object) -> str:
    """As a string of TOML."""
    return json.dumps(str(value))


@pytest.fixture
async def registry(host: VllmHost) -> AsyncIterator[PostgresServerRegistry]:
    async with PostgresServerRegistry.connect(host.database) as connected:
        yield connected


@pytest.fixture
async def server(host: VllmHost) -> AsyncIterator[ModelServer]:
    """The server that most tests share, held as a flow holds it; whichever test is first starts it."""
    async with model_server("tiny", settings=host.settings, holder="test") as held:
        yield held


@pytest.fixture
async def row(registry: PostgresServerRegistry, server: ModelServer) -> ServerRecord:
    (live,) = await registry.servers(profile="tiny")
    return live
