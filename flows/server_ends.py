"""The end of model servers: asked for and waited for, and what is left of those that nobody looks after."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from docmill.failures import DocmillError, LeaseLost
from docmill.model_failures import ServerFailed, ServerFault
from docmill.model_servers import STALE_SECONDS, ServerRecord, ServerRegistry, ServerState
from docmill.settings import Settings
from flows.detached_supervisors import MARK
from flows.endpoints import database_url
from serving.supervision.orphans import end_marked, end_orphans, marked_processes
from storage.embedded.processes import end, processes_marked
from storage.ledger.model_servers import PostgresServerRegistry

SILENT_SECONDS = 10.0
"""A supervisor says every 2 s that it lives; after so long without a word it is worth a look whether it still does."""
LOOK_SECONDS = 0.5
GRACE_SECONDS = 60.0
"""Beyond the drain: vLLM's own way down, and a database that takes its time."""


async def stop_server(
    registry: ServerRegistry,
    record: ServerRecord,
    *,
    force: bool = False,
    drain_seconds: float = 120.0,
    on_progress: Callable[[ServerRecord], None] = lambda _: None,
) -> ServerRecord:
    """Ask a server to end and wait until it has; the row as it is then.

    Where its supervisor is gone (killed, the host was restarted), the row is ended, and on its own host what is left of
    its processes too.

    Args:
        registry: of the row.
        record: the row.
        force: even if somebody holds it; running requests get the drain's time.
        drain_seconds: of the server's settings.
        on_progress: is told the row whenever it was read.

    Raises:
        ServerInUse: somebody holds it and ``force`` is not given.
        ServerUnknown: there is no such row.
        ServerFault: it did not end in time.
    """
    record = await registry.request_stop(record.id, force=force)
    deadline = asyncio.get_running_loop().time() + drain_seconds + GRACE_SECONDS + STALE_SECONDS
    while record.state.live:
        on_progress(record)
        if await asyncio.to_thread(supervisor_is_gone, record):
            with contextlib.suppress(LeaseLost):
                await registry.enter(record.id, ServerState.STOPPED, message="stopped; its supervisor was gone already")
        elif _silent_seconds(record) > STALE_SECONDS:
            await registry.reap()
        elif asyncio.get_running_loop().time() > deadline:
            raise ServerFault(
                f"the server of {record.profile} on {record.host} does not end",
                remedy=f"see its log: {record.log_path or 'none yet'}",
            )
        else:
            await asyncio.sleep(LOOK_SECONDS)
        record = await registry.server(record.id)
    if record.host == socket.gethostname() and not supervised(record.id):
        await asyncio.to_thread(end_marked, record.id)
    on_progress(record)
    return record


def supervised(server_id: UUID) -> bool:
    """Whether processes of the server run on this host under a living supervisor."""
    return any(each.supervised for each in marked_processes() if each.server_id == server_id)


def supervisor_is_gone(record: ServerRecord) -> bool:
    """Whether a live row of this host has lost its supervisor, sooner than its heartbeat goes stale.

    Before the first process runs, and between a crash and the restart, there is none that could tell; a supervisor that
    takes long to come up on a busy host is not taken for a dead one then.
    """
    patience = SILENT_SECONDS if record.pid is not None else STALE_SECONDS
    return record.host == socket.gethostname() and _silent_seconds(record) > patience and not supervised(record.id)


async def end_lost(registry: ServerRegistry, record: ServerRecord, *, certainly: bool = False) -> bool:
    """End a live row of this host whose supervisor is gone, and what is left of its processes; whether it was so.

    Args:
        registry: of the row.
        record: the row.
        certainly: the caller saw its supervisor's end.
    """
    if not record.state.live or not (certainly or await asyncio.to_thread(supervisor_is_gone, record)):
        return False
    message = f"its supervisor on {record.host} was gone"
    with contextlib.suppress(LeaseLost):
        await registry.enter(record.id, ServerState.FAILED, error_code=ServerFailed.code, message=message)
    await asyncio.to_thread(end_marked, record.id)
    return True


async def end_those_lost(registry: ServerRegistry) -> None:
    """End the live rows of this host whose supervisors are gone, so that nobody is shown a server that is not there."""
    for each in await registry.servers():
        await end_lost(registry, each)


def _silent_seconds(record: ServerRecord) -> float:
    return (datetime.now(UTC) - record.heartbeat_at).total_seconds()


def end_model_servers(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> None:
    """End all model servers that were started from this data folder on this host; nothing of them is left.

    They are drained; what does not end in time is killed. A database that is away is no hindrance.
    """
    drain = settings.serving.drain_seconds
    with contextlib.suppress(DocmillError):
        asyncio.run(_end_rows(settings, say))
    supervisors = processes_marked(MARK, str(settings.data_dir.expanduser().absolute()))
    end(supervisors, grace_seconds=drain + GRACE_SECONDS)
    # with the supervisors gone, their guards end the rest; this is for what lost its guard, too
    end_orphans(())


async def _end_rows(settings: Settings, say: Callable[[str], None]) -> None:
    here, folder = socket.gethostname(), settings.data_dir.expanduser().absolute()

    async def stop(record: ServerRecord) -> None:
        with contextlib.suppress(DocmillError):
            await stop_server(registry, record, force=True, drain_seconds=settings.serving.drain_seconds)
            say(f"model server {record.profile} has ended")

    async with PostgresServerRegistry.connect(database_url(settings)) as registry:
        rows = [each for each in await registry.servers() if each.host == here and _belongs(each, folder)]
        await asyncio.gather(*map(stop, rows))


def _belongs(record: ServerRecord, data_dir: Path) -> bool:
    return record.log_path is not None and Path(record.log_path).is_relative_to(data_dir)


async def model_servers_of(settings: Settings) -> list[ServerRecord]:
    """The live rows, oldest first; none where the database is away or has no tables."""
    try:
        async with asyncio.timeout(5.0), PostgresServerRegistry.connect(database_url(settings)) as registry:
            await end_those_lost(registry)
            return sorted(await registry.servers(), key=lambda each: each.created_at)
    except (TimeoutError, DocmillError):
        return []
