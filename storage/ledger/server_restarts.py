"""Restarts of model servers, and the pages that were in flight."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.model_servers import Restart
from storage.ledger import schema
from storage.ledger.codec import clean_text
from storage.ledger.server_leases import clear_expired
from storage.ledger.server_rows import lost

_RESTARTED = text("""
UPDATE model_servers
SET restarts = restarts + 1, state = CASE state WHEN 'draining' THEN 'draining' ELSE 'starting' END, phase = NULL,
    progress = NULL, error_code = :code, message = :message, heartbeat_at = now()
WHERE id = :id AND state NOT IN ('stopped', 'failed')
RETURNING id
""")

_IN_FLIGHT = text("DELETE FROM model_requests WHERE server_id = :id RETURNING page_id")

# Pages that are gone meanwhile are not noted. In the order in which others lock pages.
_SUSPECT = text("""
WITH held AS (
    SELECT id FROM pages WHERE id = ANY(CAST(:pages AS uuid[])) ORDER BY reading_id, id FOR NO KEY UPDATE
)
UPDATE pages SET server_crashes = server_crashes + 1 FROM held WHERE pages.id = held.id RETURNING pages.id
""")

_NOTE = text("""
INSERT INTO model_restart_pages (restart_id, page_id) SELECT :id, unnest(CAST(:pages AS uuid[]))
""")

_RESTARTS = text("""
SELECT r.id, r.server_id, r.happened_at, r.code, r.message, r.exit_code, r.log_tail, r.requests,
    ARRAY(SELECT page_id FROM model_restart_pages p WHERE p.restart_id = r.id ORDER BY page_id) AS page_ids
FROM model_restarts r WHERE r.server_id = :id ORDER BY r.happened_at DESC, r.id
""")

CRASHES = text("SELECT server_crashes FROM pages WHERE id = :page")


async def record_restart(
    connection: AsyncConnection, server_id: UUID, *, code: str, message: str, exit_code: int | None, log_tail: str
) -> Restart:
    """The restart, its pages, and the row back in ``starting``. Raises LeaseLost."""
    message, log_tail = clean_text(message), clean_text(log_tail)
    await clear_expired(connection, [server_id])
    restarted = await connection.execute(_RESTARTED, {"id": server_id, "code": code, "message": message})
    if restarted.one_or_none() is None:
        raise lost(server_id)
    in_flight = list((await connection.execute(_IN_FLIGHT, {"id": server_id})).scalars())
    suspects = sorted({page_id for page_id in in_flight if page_id is not None})
    pages = tuple(sorted((await connection.execute(_SUSPECT, {"pages": suspects})).scalars()))
    table = schema.model_restarts
    happened = (
        insert(table)
        .values(
            server_id=server_id,
            code=code,
            message=message,
            exit_code=exit_code,
            log_tail=log_tail,
            requests=len(in_flight),
        )
        .returning(table.c.id, table.c.happened_at)
    )
    row = (await connection.execute(happened)).one()
    await connection.execute(_NOTE, {"id": row.id, "pages": list(pages)})
    return Restart(row.id, server_id, row.happened_at, code, message, exit_code, log_tail, pages, len(in_flight))


async def restarts(connection: AsyncConnection, server_id: UUID) -> list[Restart]:
    """The server's restarts, newest first."""
    return [
        Restart(
            id=row.id,
            server_id=row.server_id,
            happened_at=row.happened_at,
            code=row.code,
            message=row.message,
            exit_code=row.exit_code,
            log_tail=row.log_tail,
            page_ids=tuple(row.page_ids),
            requests=row.requests,
        )
        for row in await connection.execute(_RESTARTS, {"id": server_id})
    ]
