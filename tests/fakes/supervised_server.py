"""Scripted servers under a real supervisor, over a registry in memory whose every change can be waited for."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from memory_registry import MemoryRegistry

from docmill.launching import Launch
from docmill.model_servers import ServerLease, ServerRecord, ServerState
from serving.supervision.orphans import marked_processes
from serving.supervision.supervisor import Supervisor

PROGRAM = Path(__file__).with_name("scripted_vllm.py")
PATIENCE_SECONDS = 40.0
QUICK = {
    "ready_seconds": 30.0, "hang_seconds": 60.0, "probe_seconds": 60.0, "drain_seconds": 20.0,
    "heartbeat_seconds": 0.02, "poll_seconds": 0.02, "watch_seconds": 0.02, "metrics_seconds": 0.02,
    "http_seconds": 5.0, "sleep_seconds": 10.0, "stop_grace_seconds": 5.0, "grace_seconds": 0.2, "dump_seconds": 5.0,
    "kill_seconds": 20.0, "backoff_seconds": 0.01, "farewell_seconds": 0.2,
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def pids_of(server_id: UUID) -> list[int]:
    """Every process that carries the server's mark."""
    return [found.pid for found in marked_processes() if found.server_id == server_id]


class WatchedRegistry(MemoryRegistry):
    """Tells when anything changed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Condition()
        self.states: list[ServerState] = []

    def _change(self, server_id: UUID, **changes: Any) -> ServerRecord:
        record = super()._change(server_id, **changes)
        if "state" in changes and (not self.states or self.states[-1] is not record.state):
            self.states.append(record.state)
        self._telling = asyncio.ensure_future(self._tell())
        return record

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def next_change(self) -> None:
        """Return once anything changed (heartbeats do all the time)."""
        async with self.changed:
            await self.changed.wait()

    async def until(self, server_id: UUID, holds: Callable[[ServerRecord], bool]) -> ServerRecord:
        """The row, once it is so."""
        async with asyncio.timeout(PATIENCE_SECONDS), self.changed:
            await self.changed.wait_for(lambda: holds(self._counted(self._known(server_id))))
            return self._counted(self._known(server_id))


@dataclass
class Stage:
    """One supervised scripted server."""

    folder: Path
    registry: WatchedRegistry
    server_id: UUID
    launch: Launch
    supervisor: Supervisor
    run: asyncio.Task[ServerState]
    progress: list[tuple[str, float | None]] = field(default_factory=list)

    async def until(self, state: ServerState, *, restarts: int = 0) -> ServerRecord:
        return await self.registry.until(self.server_id, lambda row: row.state is state and row.restarts >= restarts)

    async def ended(self) -> ServerState:
        return await asyncio.wait_for(asyncio.shield(self.run), PATIENCE_SECONDS)

    @property
    def record(self) -> ServerRecord:
        return self.registry._counted(self.registry._known(self.server_id))

    @property
    def log(self) -> str:
        return self.launch.log_path.read_text() if self.launch.log_path.exists() else ""

    async def fault(self, fault: str, **more: Any) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            try:
                await client.post(f"{self.launch.base_url}/__fault", json={"fault": fault, **more})
            except httpx.RemoteProtocolError:
                assert fault == "crash"

    async def told(self) -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            found: dict[str, Any] = (await client.get(f"{self.launch.base_url}/__state")).json()
            return found

    async def ask(self, tokens: int = 4) -> httpx.Response:
        body = {
            "model": self.launch.served_name,
            "messages": [{"role": "user", "content": "Hello"}],
            "max_tokens": tokens,
        }
        headers = {"Authorization": f"Bearer {self.launch.api_key}"} if self.launch.api_key else {}
        async with httpx.AsyncClient(trust_env=False, timeout=60, headers=headers) as client:
            return await client.post(f"{self.launch.base_url}/v1/chat/completions", json=body)

    async def asleep(self) -> None:
        """Return once the server itself sleeps (its row says so a moment before)."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (await self.told())["sleeping"]:
                await self.registry.next_change()

    async def lease(self, holder: str = "test", seconds: float = 600) -> ServerLease:
        acquired = await self.registry.acquire("scripted", holder, seconds)
        return acquired.leases[0]


def make_launch(folder: Path, script: Any = None, *, flags: tuple[str, ...] = (), **more: Any) -> Launch:
    control = folder / "script.json"
    control.write_text(json.dumps(script or {}))
    port = free_port()
    command = (
        sys.executable, "-S", str(PROGRAM), "--host", "127.0.0.1", "--port", str(port),
        "--served-model-name", "scripted", "--script", str(control), *flags,
    )  # fmt: skip
    values: dict[str, Any] = {
        "command": command,
        "environment": {},
        "base_url": f"http://127.0.0.1:{port}",
        "served_name": "scripted",
        "log_path": folder / "logs" / "server.log",
        "config_hash": "hash",
    }
    return Launch(**{**values, **more})
