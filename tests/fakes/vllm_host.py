"""A host with real vLLM on its CPU: settings, ledger, models, and what runs of the servers. Nothing here is a fake."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil
import psycopg

from docmill.ledger import BatchSpec, OpenedDocument
from docmill.model_servers import ServerRecord, ServerState
from docmill.ports import ObjectRef
from docmill.settings import Settings
from flows.detached_supervisors import MARK
from serving.supervision.orphans import marked_processes
from storage.embedded.processes import RecordedProcess, processes_marked
from storage.ledger.model_servers import PostgresServerRegistry
from storage.ledger.postgres import PostgresLedger

PROJECT = Path(__file__).parents[2]
PATIENCE_SECONDS = 300.0
"""Ten times what a start takes on two cores."""


@dataclass(frozen=True)
class VllmHost:
    """The host.

    Attributes:
        settings: as ``docmill.toml`` says, which DOCMILL_CONFIG names for this process and all that it starts.
        folder: for whatever a test makes.
        model: a tiny checkpoint, complete.
    """

    settings: Settings
    folder: Path
    model: Path

    @property
    def database(self) -> str:
        url = self.settings.database.url
        assert url is not None
        return url.get_secret_value()

    @property
    def python(self) -> Path:
        assert self.settings.serving.python is not None
        return self.settings.serving.python

    def also(self, **serving: Any) -> Settings:
        """The settings with others of ``[serving]``."""
        held = self.settings.serving.model_copy(update=serving)
        return self.settings.model_copy(update={"serving": held})

    def copy_of_the_model(self, change: Callable[[Path], None]) -> Path:
        """The checkpoint with something changed about it."""
        folder = self.folder / f"model-{uuid4().hex[:8]}"
        shutil.copytree(self.model, folder)
        change(folder)
        return folder

    async def page(self) -> UUID:
        """A page of the ledger."""
        async with PostgresLedger.connect(self.database, pool_size=1) as ledger:
            key = f"{uuid4()}.pdf"
            batch = await ledger.start_batch(BatchSpec(f"s3://forms/{key}", "receipt", "vision", "v1", {}))
            await ledger.add_documents(batch.id, [ObjectRef("forms", key, "1", 1000, batch.created_at)])
            (claim,) = await ledger.claim_documents(batch.id, "opener", 1, 60)
            await ledger.record_opened(claim, OpenedDocument(uuid4().hex * 2, "application/pdf", 1))
            (page,) = await ledger.claim_pages(batch.id, "reader", 1, 60)
            return page.page_id

    # --- what runs ------------------------------------------------------------------------------------------------

    def processes(self, server_id: UUID) -> list[psutil.Process]:
        """Everything that runs of a server, its guard among it."""
        return [psutil.Process(each.pid) for each in marked_processes() if each.server_id == server_id]

    def part(self, server_id: UUID, name: str) -> psutil.Process:
        """The one process that vLLM calls so (EngineCore, Worker…)."""
        (found,) = [each for each in self.processes(server_id) if title(each) == f"VLLM::{name}"]
        return found

    def supervisors(self) -> list[RecordedProcess]:
        """Detached supervisors that run."""
        return processes_marked(MARK, str(self.settings.data_dir))

    def supervisor_of(self, server_id: UUID) -> RecordedProcess | None:
        """The detached supervisor of one server."""
        return next((each for each in self.supervisors() if str(server_id) in command_line(each.pid)), None)

    @asynccontextmanager
    async def frozen(self, server_id: UUID) -> AsyncIterator[None]:
        """The engine does nothing, so that whatever is asked stays unanswered."""
        engine = self.part(server_id, "EngineCore")
        engine.suspend()
        try:
            yield
        finally:
            if engine.is_running():
                engine.resume()

    async def nothing_left(self, server_id: UUID) -> None:
        """Return once no process of the server runs."""

        async def gone() -> bool:
            return not self.processes(server_id)

        await until(gone)

    async def requests_noted(self, server_id: UUID) -> None:
        """Return once a request is noted as on its way to the server."""
        query = "SELECT 1 FROM model_requests WHERE server_id = %s"
        async with await psycopg.AsyncConnection.connect(self.database, autocommit=True) as connection:

            async def noted() -> bool:
                return await (await connection.execute(query, (server_id,))).fetchone() is not None

            await until(noted)

    # --- what is said ---------------------------------------------------------------------------------------------

    def log_of(self, record: ServerRecord) -> str:
        """What the server wrote."""
        assert record.log_path is not None
        return Path(record.log_path).read_text(encoding="utf-8", errors="replace")

    def vllm_python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the interpreter of vLLM's environment."""
        return subprocess.run([self.python, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS)

    def docmill(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return subprocess.run(
            [sys.executable, "-m", "console", *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )

    def told(self, *arguments: str) -> Any:
        """What a command says with ``--json``."""
        done = self.docmill(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


async def until(holds: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until something is so, and return it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := await holds()):  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(0.1)
        return found


async def row_in(
    registry: PostgresServerRegistry, server_id: UUID, state: ServerState, *, restarts: int = 0
) -> ServerRecord:
    """The row, once it is in the state."""

    async def found() -> ServerRecord | None:
        row = await registry.server(server_id)
        assert row.state is state or row.state.live, f"{row.state}: {row.message}"
        return row if row.state is state and row.restarts >= restarts else None

    record: ServerRecord = await until(found)
    return record


def command_line(pid: int) -> list[str]:
    """The words of a process's command line; none where it has ended."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def title(process: psutil.Process) -> str:
    """What a process calls itself."""
    return next(iter(command_line(process.pid)), "").strip()


def kill(process: psutil.Process | RecordedProcess) -> None:
    """kill -9, and wait for the end."""
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while RecordedProcess.of(process.pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
