"""Leases on model servers, and the requests in flight under them.

A lease lives by the database's clock. One that ran out but was not cleared yet is extended like any other; once it is
cleared, its requests are gone with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.model_servers import ServerLease
from storage.ledger.codec import clean_text

# Servers that lose leases remember since when: an idle server is put to sleep by it.
_REMEMBERED = """
, ended AS (
    SELECT server_id, max(least(now(), expires_at)) AS at FROM gone GROUP BY server_id
), held AS (
    SELECT s.id, ended.at FROM model_servers s JOIN ended ON ended.server_id = s.id
    ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE model_servers s SET last_leased_at = greatest(s.last_leased_at, held.at) FROM held WHERE s.id = held.id
"""


def _dropped(which: str, lock: str = "") -> Any:
    return text(f"""
WITH chosen AS (
    SELECT id FROM model_leases WHERE {which} ORDER BY id FOR UPDATE {lock}
), gone AS (
    DELETE FROM model_leases l USING chosen WHERE l.id = chosen.id RETURNING l.server_id, l.expires_at
)
{_REMEMBERED}
""")


_EXPIRED = "expires_at <= now() AND (CAST(:servers AS uuid[]) IS NULL OR server_id = ANY(CAST(:servers AS uuid[])))"
_CLEAR_WAITING = _dropped(_EXPIRED)
_CLEAR = _dropped(_EXPIRED, "SKIP LOCKED")
_RELEASE = _dropped("id = ANY(CAST(:ids AS uuid[]))")
_DROP = _dropped("server_id = :server")

_LEASE = text("""
INSERT INTO model_leases (server_id, holder, expires_at)
SELECT id, :holder, now() + make_interval(secs => :seconds) FROM unnest(CAST(:servers AS uuid[])) AS s (id)
ON CONFLICT (server_id, holder) DO UPDATE SET expires_at = excluded.expires_at
RETURNING id, server_id, holder
""")

_RENEW = text("""
WITH held AS (
    SELECT l.id FROM model_leases l JOIN model_servers s ON s.id = l.server_id
    WHERE l.id = ANY(CAST(:ids AS uuid[])) AND s.state NOT IN ('stopped', 'failed')
    ORDER BY l.id FOR NO KEY UPDATE OF l
)
UPDATE model_leases l SET expires_at = now() + make_interval(secs => :seconds)
FROM held WHERE l.id = held.id RETURNING l.id
""")

# A note that a power cut of the database takes is no loss: the request is gone then too. So nobody waits for the disk.
_HASTILY = "hasty AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"

BEGIN_REQUEST = text(f"""
WITH {_HASTILY}
INSERT INTO model_requests (id, server_id, lease_id, page_id)
SELECT :id, l.server_id, l.id, CAST(:page AS uuid) FROM model_leases l CROSS JOIN hasty WHERE l.id = :lease
ON CONFLICT (id) DO UPDATE
SET server_id = excluded.server_id, lease_id = excluded.lease_id, page_id = excluded.page_id, started_at = now()
""")

END_REQUEST = text(f"WITH {_HASTILY} DELETE FROM model_requests USING hasty WHERE id = :id")


async def clear_expired(
    connection: AsyncConnection, servers: Sequence[UUID] | None = None, *, wait: bool = True
) -> None:
    """Delete leases that ran out, with their requests: those of the servers, or of all.

    With ``wait`` for those too that are being renewed at this moment, whose renewal then counts; else they are left.
    """
    found = {"servers": None if servers is None else list(servers)}
    await connection.execute(_CLEAR_WAITING if wait else _CLEAR, found)


async def drop_leases(connection: AsyncConnection, server_id: UUID) -> None:
    """Delete the server's leases, with their requests."""
    await connection.execute(_DROP, {"server": server_id})


async def lease(
    connection: AsyncConnection, servers: Sequence[UUID], holder: str, lease_seconds: float
) -> tuple[ServerLease, ...]:
    """Lease the servers, in their order."""
    wanted = {"servers": list(servers), "holder": clean_text(holder), "seconds": float(lease_seconds)}
    made = {row.server_id: ServerLease(*row) for row in await connection.execute(_LEASE, wanted)}
    return tuple(made[server_id] for server_id in servers)


async def renew(connection: AsyncConnection, leases: Sequence[ServerLease], lease_seconds: float) -> set[UUID]:
    """Extend the leases; the ids of those that are gone."""
    ids = [each.id for each in leases]
    kept = await connection.execute(_RENEW, {"ids": ids, "seconds": float(lease_seconds)})
    return set(ids).difference(kept.scalars())


async def release(connection: AsyncConnection, leases: Sequence[ServerLease]) -> None:
    """Delete the leases, with their requests."""
    await connection.execute(_RELEASE, {"ids": [each.id for each in leases]})
