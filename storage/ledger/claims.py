"""Claims: the right to open a document or read a page, until the database's clock says that it has run out.

Lock order everywhere: the reading, then its pages. A claim itself never waits (SKIP LOCKED).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from docmill.failures import Failure, PoisonPage, failure_of
from docmill.ledger import DocumentClaim, PageClaim, PageStatus
from docmill.ports import ObjectRef
from storage.ledger.failing import fail_document, fail_page
from storage.ledger.leases import hold_reading

MAX_SERVER_CRASHES = 2
"""A page that was in flight at so many restarts of model servers is set aside (index ``pages_suspected``)."""

_OBJECT = "d.bucket, d.key, d.etag, d.size, d.last_modified, d.version_id, d.content_type, d.metadata"

_CLAIM_DOCUMENTS = text(f"""
WITH chosen AS (
    SELECT id FROM readings
    WHERE batch_id = :batch AND status = 'pending' AND (lease_holder IS NULL OR lease_expires_at <= now())
        AND crashes + (lease_holder IS NOT NULL)::int < :max_crashes
    ORDER BY position LIMIT :limit
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE readings r
    SET crashes = crashes + (lease_holder IS NOT NULL)::int, fence = fence + 1, lease_holder = :holder,
        lease_expires_at = now() + make_interval(secs => :seconds)
    FROM chosen WHERE r.id = chosen.id
    RETURNING r.id, r.document_id, r.position, r.fence, r.lease_expires_at
)
SELECT r.id, r.document_id, r.fence, r.lease_expires_at, {_OBJECT}
FROM claimed r JOIN documents d ON d.id = r.document_id ORDER BY r.position
""")

_CLAIM_PAGES = text(f"""
WITH chosen AS (
    SELECT id FROM pages
    WHERE batch_id = :batch AND status IN ('pending', 'claimed') AND server_crashes < {MAX_SERVER_CRASHES}
        AND (status = 'pending' OR (lease_expires_at <= now() AND crashes + 1 < :max_crashes))
    ORDER BY position, page_no LIMIT :limit
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE pages p
    SET crashes = crashes + (status = 'claimed')::int, status = 'claimed', fence = fence + 1, lease_holder = :holder,
        lease_expires_at = now() + make_interval(secs => :seconds)
    FROM chosen WHERE p.id = chosen.id
    RETURNING p.*
)
SELECT p.id, p.reading_id, p.document_id, p.sha256, p.page_no, p.attempts, p.fence, p.lease_expires_at,
    r.page_count, d.media_type, {_OBJECT}
FROM claimed p JOIN readings r ON r.id = p.reading_id JOIN documents d ON d.id = p.document_id
ORDER BY p.position, p.page_no
""")

_POISON_DOCUMENTS = text("""
SELECT id FROM readings
WHERE batch_id = :batch AND status = 'pending' AND lease_holder IS NOT NULL AND lease_expires_at <= now()
    AND crashes + 1 >= :max_crashes
ORDER BY id FOR UPDATE SKIP LOCKED
""")

# Two conditions, each with an index of its own: the queue may be long.
_CRASHED = "status = 'claimed' AND lease_expires_at <= now() AND crashes + 1 >= :max_crashes"
_SUSPECT = f"""server_crashes >= {MAX_SERVER_CRASHES} AND status IN ('pending', 'claimed')
    AND (status = 'pending' OR lease_expires_at <= now())"""

_POISON_PAGES = text(f"""
SELECT id, reading_id FROM pages WHERE batch_id = :batch AND {_CRASHED}
UNION
SELECT id, reading_id FROM pages WHERE batch_id = :batch AND {_SUSPECT}
ORDER BY reading_id, id
""")

_HOLD_POISON_PAGE = text(f"""
SELECT id, status, server_crashes >= {MAX_SERVER_CRASHES} AS suspect FROM pages
WHERE id = :id AND (({_CRASHED}) OR ({_SUSPECT}))
FOR UPDATE
""")

_CRASHED_PAGE = text("UPDATE pages SET crashes = crashes + 1 WHERE id = :id")
_CRASHED_READING = text("UPDATE readings SET crashes = crashes + 1 WHERE id = :id")

_BEAT = text("""
UPDATE batches SET heartbeat_at = now() WHERE id = :batch AND heartbeat_at < now() - interval '5 seconds'
""")


async def claim_documents(
    connection: AsyncConnection, batch_id: UUID, holder: str, limit: int, lease_seconds: float, max_crashes: int
) -> list[DocumentClaim]:
    """Claim readings that are to be opened, in the order of their listing."""
    for poison in await connection.execute(_POISON_DOCUMENTS, {"batch": batch_id, "max_crashes": max_crashes}):
        await connection.execute(_CRASHED_READING, {"id": poison.id})
        await fail_document(connection, poison.id, _poison("document", "opened", max_crashes))
    rows = await connection.execute(
        _CLAIM_DOCUMENTS,
        {
            "batch": batch_id,
            "holder": holder,
            "limit": limit,
            "seconds": float(lease_seconds),
            "max_crashes": max_crashes,
        },
    )
    claims = [
        DocumentClaim(row.id, row.document_id, _object(row), row.fence, holder, row.lease_expires_at) for row in rows
    ]
    await connection.execute(_BEAT, {"batch": batch_id})
    return claims


async def claim_pages(
    connection: AsyncConnection, batch_id: UUID, holder: str, limit: int, lease_seconds: float, max_crashes: int
) -> list[PageClaim]:
    """Claim a shard: pages in the order of their documents' listing and of their numbers."""
    rows = await connection.execute(
        _CLAIM_PAGES,
        {
            "batch": batch_id,
            "holder": holder,
            "limit": limit,
            "seconds": float(lease_seconds),
            "max_crashes": max_crashes,
        },
    )
    claims = [
        PageClaim(
            page_id=row.id,
            reading_id=row.reading_id,
            document_id=row.document_id,
            ref=_object(row),
            sha256=row.sha256,
            media_type=row.media_type,
            page_no=row.page_no,
            page_count=row.page_count,
            attempt_no=row.attempts + 1,
            fence=row.fence,
            holder=holder,
            expires_at=row.lease_expires_at,
        )
        for row in rows
    ]
    await connection.execute(_BEAT, {"batch": batch_id})
    return claims


async def poisoned(connection: AsyncConnection, batch_id: UUID, max_crashes: int) -> list[tuple[UUID, UUID]]:
    """(page, reading) of the batch's pages whose lease ran out, or whose model server crashed, once too often."""
    rows = await connection.execute(_POISON_PAGES, {"batch": batch_id, "max_crashes": max_crashes})
    return [(row.id, row.reading_id) for row in rows]


async def set_aside(connection: AsyncConnection, page_id: UUID, reading_id: UUID, max_crashes: int) -> None:
    """Fail a poisoned page, unless it was recorded or taken over meanwhile."""
    await hold_reading(connection, reading_id)
    held = await connection.execute(_HOLD_POISON_PAGE, {"id": page_id, "max_crashes": max_crashes})
    page = held.one_or_none()
    if page is None:
        return
    if page.status == PageStatus.CLAIMED:
        await connection.execute(_CRASHED_PAGE, {"id": page_id})
    failure = _server_poison() if page.suspect else _poison("page", "read", max_crashes)
    await fail_page(connection, page_id, failure)


def _poison(what: str, done: str, crashes: int) -> Failure:
    return failure_of(
        PoisonPage(
            f"the worker died or fell silent {crashes} times while this {what} was being {done}",
            detail={"crashes": crashes},
        )
    )


def _server_poison() -> Failure:
    return failure_of(
        PoisonPage(
            "this page was in flight at two restarts of a model server (crash or hang)",
            detail={"server_crashes": MAX_SERVER_CRASHES},
        )
    )


def _object(row: Row[Any]) -> ObjectRef:
    return ObjectRef(
        bucket=row.bucket,
        key=row.key,
        etag=row.etag,
        size=row.size,
        last_modified=row.last_modified,
        version_id=row.version_id,
        content_type=row.content_type,
        metadata=row.metadata,
    )
