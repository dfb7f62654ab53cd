"""A host of the tests, with real supervisors and a real registry, and scripted servers behind them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import psutil
from scripted_python import ScriptedPython

from docmill.chat import ChatRequest
from docmill.model_servers import ServerRecord, ServerState
from docmill.settings import Settings
from flows.detached_supervisors import MARK
from serving.supervision.orphans import marked_processes
from storage.embedded.processes import RecordedProcess, processes_marked
from storage.ledger.model_servers import PostgresServerRegistry

PATIENCE_SECONDS = 60.0
QUESTION = ChatRequest(instruction="What is on the page?", max_tokens=4)


@dataclass
class Place:
    """A host of the tests: its settings, and what runs on it."""

    settings: Settings
    python: ScriptedPython
    registry: PostgresServerRegistry

    def also(self, **serving: Any) -> Settings:
        """The settings with others of ``[serving]``."""
        held = self.settings.serving.model_copy(update=serving)
        return self.settings.model_copy(update={"serving": held})

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until something is so, and return it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (found := await holds()):  # noqa: ASYNC110 - other processes set no events
                await asyncio.sleep(0.05)
            return found

    async def one(self, *states: ServerState, live: bool = True) -> ServerRecord:
        """The newest row, once it is in one of the states."""

        async def found() -> ServerRecord | None:
            rows = await self.registry.servers(live=live)
            return rows[0] if rows and rows[0].state in (states or tuple(ServerState)) else None

        record: ServerRecord = await self.until(found)
        return record

    def supervisors(self) -> list[RecordedProcess]:
        """Detached supervisors that run."""
        return processes_marked(MARK, str(self.settings.data_dir))

    def processes(self, server_id: UUID) -> list[int]:
        """What runs of a server."""
        return [each.pid for each in marked_processes() if each.server_id == server_id]


async def fault(record: ServerRecord, name: str, **order: Any) -> None:
    """Let the scripted server fail as it is told."""
    async with httpx.AsyncClient(trust_env=False, timeout=10.0) as client:
        try:
            await client.post(f"{record.base_url}/__fault", json={"fault": name, **order})
        except httpx.HTTPError:
            assert name in ("crash", "oom", "hang")


def kill(process: psutil.Process | RecordedProcess) -> None:
    """kill -9, and wait for the end."""
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while RecordedProcess.of(process.pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
