"""The registry of model servers in Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.model_servers import (
    STALE_SECONDS,
    Acquired,
    Orders,
    Restart,
    ServerLease,
    ServerRecord,
    ServerState,
    StopRequest,
)
from storage.ledger import server_leases, server_restarts, server_rows
from storage.ledger.batches import take_turn
from storage.ledger.codec import clean_text
from storage.ledger.database import Database

_USABLE = text("""
SELECT id FROM model_servers
WHERE profile = :profile AND state IN ('starting', 'ready', 'sleeping') AND stop_requested = 'none'
ORDER BY created_at, id
""")


class PostgresServerRegistry:
    """:class:`docmill.model_servers.ServerRegistry` over Postgres. Each method is one transaction.

    Every method raises DatabaseUnavailable where Postgres cannot be reached, AccessDenied (category ``database``) where
    it refuses the login, and ConfigurationError where the tables are missing or old.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, *, pool_size: int = 2, prepared_statements: bool = True) -> AsyncIterator[Self]:
        """A registry with a pool of connections of its own, closed at the end; arguments as of PostgresLedger."""
        async with Database(url, pool_size=pool_size, prepared_statements=prepared_statements) as database:
            yield cls(database)

    # --- those who need a server ----------------------------------------------------------------------------------

    async def acquire(
        self, profile: str, holder: str, lease_seconds: float, *, start_on: str | None = None
    ) -> Acquired:
        """Leases on every usable server of the profile; where there is none, perhaps a new row to start."""
        return await self._database.run(lambda c: _acquire(c, profile, holder, lease_seconds, start_on))

    async def renew(self, leases: Sequence[ServerLease], lease_seconds: float) -> set[UUID]:
        """Extend leases; the ids of those that are gone."""
        if not leases:
            return set()
        return await self._database.run(lambda c: server_leases.renew(c, leases, lease_seconds))

    async def release(self, leases: Sequence[ServerLease]) -> None:
        """Let go."""
        if leases:
            await self._database.run(lambda c: server_leases.release(c, leases))

    async def begin_request(self, request_id: UUID, lease: ServerLease, page_id: UUID | None) -> None:
        """Note that a request is being sent. One statement, and no wait for the disk."""
        await self._database.once(server_leases.BEGIN_REQUEST, {"id": request_id, "lease": lease.id, "page": page_id})

    async def end_request(self, request_id: UUID) -> None:
        """The request is over. One statement, and no wait for the disk."""
        await self._database.once(server_leases.END_REQUEST, {"id": request_id})

    async def crashes_of(self, page_id: UUID) -> int:
        """At how many restarts the page was in flight since it was last reopened; 0 for a page that is not known."""
        rows = await self._database.once(server_restarts.CRASHES, {"page": page_id})
        return int(rows[0].server_crashes) if rows else 0

    # --- those who look -------------------------------------------------------------------------------------------

    async def server(self, server_id: UUID) -> ServerRecord:
        """One row."""
        return await self._database.run(lambda c: server_rows.server(c, server_id))

    async def servers(self, *, profile: str | None = None, live: bool = True) -> list[ServerRecord]:
        """Rows, newest first."""
        return await self._database.run(lambda c: server_rows.servers(c, profile, live=live))

    async def holders(self, server_id: UUID) -> list[tuple[str, datetime]]:
        """Who has live leases on it, and until when."""
        return await self._database.run(lambda c: server_rows.holders(c, server_id))

    async def restarts(self, server_id: UUID) -> list[Restart]:
        """A server's restarts, newest first."""
        return await self._database.run(lambda c: server_restarts.restarts(c, server_id))

    # --- operators ------------------------------------------------------------------------------------------------

    async def add_servers(self, profile: str, host: str, count: int) -> list[UUID]:
        """Rows in state ``starting`` for the caller to start."""
        return await self._database.run(lambda c: server_rows.add_servers(c, profile, host, count))

    async def request_stop(self, server_id: UUID, *, force: bool = False) -> ServerRecord:
        """Ask the supervisor to end the server."""
        return await self._database.run(lambda c: server_rows.request_stop(c, server_id, force=force))

    async def reap(self, *, stale_seconds: float = STALE_SECONDS) -> list[ServerRecord]:
        """Delete expired leases; live rows with a stale heartbeat become ``failed``. Returns those rows."""
        return await self._database.run(lambda c: _reap(c, stale_seconds))

    # --- a supervisor, on its own row -----------------------------------------------------------------------------

    async def assign_gpus(self, server_id: UUID, candidates: Sequence[int], count: int) -> tuple[int, ...]:
        """Take GPUs of the row's host that no other live row holds."""
        return await self._database.run(lambda c: server_rows.assign_gpus(c, server_id, candidates, count))

    async def describe(self, server_id: UUID, **columns: Any) -> None:
        """Set fields of the row."""
        await self._database.run(lambda c: server_rows.describe(c, server_id, columns))

    async def heartbeat(self, server_id: UUID) -> Orders:
        """Say that the supervisor lives; learn what is wanted."""
        row = await self._database.run(lambda c: server_rows.beat(c, server_id))
        return Orders(row.leases, 0.0 if row.leases else max(0.0, row.idle), StopRequest(row.stop_requested))

    async def enter(
        self, server_id: UUID, state: ServerState, *, error_code: str | None = None, message: str | None = None
    ) -> None:
        """Enter a state."""
        await self._database.run(lambda c: server_rows.enter(c, server_id, state, error_code, message))

    async def begin_drain(self, server_id: UUID, *, force: bool = False) -> bool:
        """Enter ``draining``, unless a lease is live (and not ``force``)."""
        return await self._database.run(lambda c: server_rows.begin_drain(c, server_id, force=force))

    async def record_restart(
        self, server_id: UUID, *, code: str, message: str, exit_code: int | None, log_tail: str
    ) -> Restart:
        """The restart with the pages that were in flight; the row is back in ``starting``."""
        return await self._database.run(
            lambda c: server_restarts.record_restart(
                c, server_id, code=code, message=message, exit_code=exit_code, log_tail=log_tail
            )
        )


async def _acquire(
    connection: AsyncConnection, profile: str, holder: str, lease_seconds: float, start_on: str | None
) -> Acquired:
    await take_turn(connection, server_rows.profile_turn(profile))
    await server_rows.reap_stale(connection, STALE_SECONDS, profile=profile)
    usable = list((await connection.execute(_USABLE, {"profile": clean_text(profile)})).scalars())
    started = None
    if not usable and start_on is not None:
        started = await server_rows.new_server(connection, profile, start_on)
        usable = [started]
    if not usable:
        return Acquired(())
    await server_leases.clear_expired(connection, usable, wait=False)
    return Acquired(await server_leases.lease(connection, usable, holder, lease_seconds), started)


async def _reap(connection: AsyncConnection, stale_seconds: float) -> list[ServerRecord]:
    await server_leases.clear_expired(connection, wait=False)
    return await server_rows.reap_stale(connection, stale_seconds)
